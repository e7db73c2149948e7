//! Finds a text in documents: a scan in the order of the documents, which can be continued.

use std::time::{Duration, Instant};

use regex::{Regex, RegexBuilder};
use serde::Serialize;

use super::{Decoder, DocumentTexts, RELEASED_BYTES};
use crate::error::{Error, Result};

/// Tokens of a long document that are decoded at once.
const WINDOW_TOKENS: u64 = 8192;
/// Tokens of a window that the next one has too, so that one of them has each match as a whole.
const OVERLAP_TOKENS: u64 = 1024;
/// Tokens before the position of a window that are decoded too. They complete its first character, and show
/// what is before its first match.
const LEAD_TOKENS: u64 = 64;
/// Longest pattern. Each byte may be a token of its own, and all of them must fit into the overlap.
const MAX_PATTERN_BYTES: usize = 800;
const CONTEXT_CHARS: usize = 80;

/// A text to search for.
pub struct Pattern(Regex);

impl Pattern {
    /// # Errors
    /// [`Error::Pattern`] if the text is empty or too long.
    pub fn new(text: &str, ignore_case: bool) -> Result<Self> {
        let error = || Error::Pattern {
            bytes: text.len(),
            limit: MAX_PATTERN_BYTES,
        };
        if text.is_empty() || text.len() > MAX_PATTERN_BYTES {
            return Err(error());
        }
        let regex = RegexBuilder::new(&regex::escape(text))
            .case_insensitive(ignore_case)
            .build();
        Ok(Self(regex.map_err(|_| error())?))
    }
}

/// A place in the documents of all files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Position {
    /// Number of the document in the order of the files.
    pub document: u64,
    /// Number of the token in the document.
    pub token: u64,
}

/// An occurrence of the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// The token that has the end of its first character.
    #[serde(flatten)]
    pub at: Position,
    /// Text before it.
    pub before: String,
    /// The occurrence itself.
    pub text: String,
    /// Text after it.
    pub after: String,
}

/// When a search stops.
#[derive(Debug, Clone, Copy)]
pub struct SearchLimits {
    /// Number of hits.
    pub hits: usize,
    /// Time; at least one window is searched.
    pub time: Duration,
}

/// The hits of a search.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct SearchResult {
    /// In order. Of several that start in the same token, the first one.
    pub hits: Vec<Hit>,
    /// Where to continue; `None` at the end.
    pub next: Option<Position>,
}

impl DocumentTexts {
    /// Searches the texts from a position. Special tokens have no text.
    ///
    /// # Errors
    /// [`Error::NoTokenizer`]; a file cannot be read; the tokenizer cannot decode.
    pub fn search(
        &self,
        pattern: &Pattern,
        from: Position,
        limits: SearchLimits,
    ) -> Result<SearchResult> {
        let decoder = self.decoder.as_ref().ok_or(Error::NoTokenizer)?;
        let start = Instant::now();
        let mut at = from;
        let mut result = SearchResult::default();
        let mut window = Window::default();
        let mut read_bytes = 0;
        while at.document < self.files.num_documents() {
            let after = self.search_window(decoder, pattern, at, &mut window)?;
            read_bytes += window.ids.len() as u64 * self.files.width().bytes();
            if read_bytes > RELEASED_BYTES {
                read_bytes = 0;
                let file = self.files.file_of_document(at.document);
                self.files.token_file(file)?.release_pages();
            }
            at = after;
            for hit in window.hits.drain(..) {
                if result.hits.len() == limits.hits {
                    result.next = Some(hit.at);
                    return Ok(result);
                }
                result.hits.push(hit);
            }
            if start.elapsed() > limits.time {
                break;
            }
        }
        result.next = (at.document < self.files.num_documents()).then_some(at);
        Ok(result)
    }

    /// Searches a part of a document from `at`, and returns the position after it.
    fn search_window(
        &self,
        decoder: &Decoder,
        pattern: &Pattern,
        at: Position,
        window: &mut Window,
    ) -> Result<Position> {
        let file = self.files.file_of_document(at.document);
        let in_file = at.document - self.files.documents_of(file).start;
        let document = self.files.token_file(file)?.document_tokens(in_file)?;
        let len = document.end - document.start;
        let following = Position {
            document: at.document + 1,
            token: 0,
        };
        if at.token >= len {
            return Ok(following);
        }
        let first = at.token.saturating_sub(LEAD_TOKENS);
        let stop = len.min(at.token + WINDOW_TOKENS);
        self.read_ids(
            file,
            document.start + first..document.start + stop,
            &mut window.ids,
        )?;
        let lead = (at.token - first) as usize;
        // A token of excessive length is decoded, but without others after it.
        let num_fitting = decoder.num_fitting(&window.ids).max(lead + 1);
        window.ids.truncate(num_fitting);
        let stop = first + num_fitting as u64;
        let own_stop = if stop == len {
            len
        } else {
            stop.saturating_sub(OVERLAP_TOKENS).max(at.token + 1)
        };
        window.decode(decoder, first)?;
        window.find(decoder, pattern, at.document, at.token..own_stop)?;
        Ok(if own_stop == len {
            following
        } else {
            Position {
                token: own_stop,
                ..at
            }
        })
    }
}

/// A part of a document. Reused for the next one.
#[derive(Default)]
struct Window {
    ids: Vec<u32>,
    /// The ids that have text.
    with_text: Vec<u32>,
    /// The number of each of them in the document.
    tokens: Vec<u64>,
    text: String,
    hits: Vec<Hit>,
}

impl Window {
    fn decode(&mut self, decoder: &Decoder, first: u64) -> Result<()> {
        self.with_text.clear();
        self.tokens.clear();
        for (token, &id) in (first..).zip(&self.ids) {
            if decoder.name_bytes(id).is_some() {
                self.with_text.push(id);
                self.tokens.push(token);
            }
        }
        self.text = decoder.decode(&self.with_text)?;
        Ok(())
    }

    /// Finds the hits that start in the tokens `own`.
    fn find(
        &mut self,
        decoder: &Decoder,
        pattern: &Pattern,
        document: u64,
        own: std::ops::Range<u64>,
    ) -> Result<()> {
        let mut num_before = 0;
        for match_ in pattern.0.find_iter(&self.text) {
            num_before = self.num_before(decoder, match_.start(), num_before)?;
            let Some(&token) = self.tokens.get(num_before) else {
                break;
            };
            if token >= own.end {
                break;
            }
            let is_new = self.hits.last().is_none_or(|hit| hit.at.token < token);
            if token >= own.start && is_new {
                self.hits.push(Hit {
                    at: Position { document, token },
                    before: last_chars(&self.text[..match_.start()]).to_owned(),
                    text: match_.as_str().to_owned(),
                    after: first_chars(&self.text[match_.end()..]).to_owned(),
                });
            }
        }
        Ok(())
    }

    /// The number of tokens before the one that completes the character at byte `at` of the text; at least
    /// `least`. A tokenizer may change text around tokens, so their lengths are those of decoded prefixes.
    fn num_before(&self, decoder: &Decoder, at: usize, least: usize) -> Result<usize> {
        let (mut low, mut high) = (least, self.with_text.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let text = decoder.decode(&self.with_text[..=middle])?;
            // The last character may be incomplete.
            if text.trim_end_matches('\u{fffd}').len() > at {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }
}

fn first_chars(text: &str) -> &str {
    let end = text.char_indices().nth(CONTEXT_CHARS);
    end.map_or(text, |(at, _)| &text[..at])
}

fn last_chars(text: &str) -> &str {
    let start = text.char_indices().rev().nth(CONTEXT_CHARS - 1);
    // The first character of a window may be incomplete.
    let text = start.map_or(text, |(at, _)| &text[at..]);
    text.trim_start_matches('\u{fffd}')
}
