//! The engine for BPE: byte-level with the split patterns of current tokenizers, or on characters as in SentencePiece.
//!
//! ```text
//! text ─▶ added_tokens ─▶ split ends of words ─▶ word_chunks, piece_bounds long words in pieces ─▶ lookup hit: ids
//!                                                                       misses, resolve, merge ◀─┘ miss
//! ```
//!
//! Words are cut at `isolated_tokens`, of which Gemma has thousands.
//!
//! Texts with bytes that have no token, or with certain added tokens, fall back to the reference engine.
//! `docs/design/fast_engine.md` describes the whole.

use std::collections::HashMap;

use serde_json::Value;

use super::added_tokens::{AddedTokens, Preceding, TextPart};
use super::bpe::{Bpe, FindUnmerged};
use super::isolated_tokens::{Cut, Cuts, IsolatedTokens};
use super::lookup::{NextWords, Prepare, Stage};
use super::merge::MergeRules;
use super::missing_bytes::MissingBytes;
use super::model::{Model, Spelling, Tokens};
use super::piece_bounds::PieceBounds;
use super::preprocessing::{Prefix, Preprocessing, is_byte_level};
use super::resolve::Resolve;
use super::scratch::Scratch;
use super::split::{Pattern, ROOM, SplitState, Splitter};
use super::word_chunks::WordChunks;
use crate::engines::simd::{AnySimd, Job, Simd};
use crate::engines::word_cache::GROUP;
use crate::engines::word_key::{SHORT, WordKey};
use crate::load::{AddedToken, model_type};

/// Maximum bytes that are kept allocated for a text with a space before it, or its first word.
const MAX_RETAINED_BYTES: usize = 1 << 16;
/// Ids follow the order of merges, so tokens from this id on are rare: of larger vocabularies, putting all into the cache
/// takes longer than merging those that occur.
const FREQUENT_TOKENS: u32 = 98_304;

/// The name of the vector instructions that engines use on this machine.
pub(crate) fn simd_name() -> &'static str {
    AnySimd::detect().name()
}

/// The loaded engine. All threads share it.
pub(crate) struct ByteBpe {
    simd: AnySimd,
    splitter: Splitter,
    bpe: Bpe,
    prefix: Prefix,
    added_tokens: AddedTokens,
    missing_bytes: MissingBytes,
    tokens: Tokens,
}

impl ByteBpe {
    /// The engine for a tokenizer.json.
    ///
    /// # Errors
    /// The reason why the engine does not cover the file.
    pub(crate) fn load(json: &Value, added_tokens: &[AddedToken]) -> Result<Self, String> {
        match model_type(&json["model"]) {
            "BPE" => {}
            other => return Err(format!("its model is {other}")),
        }
        let preprocessing = Preprocessing::read(json);
        let spelling = match &preprocessing {
            Ok(preprocessing) => Some(preprocessing.spelling),
            Err(_) => is_byte_level(&json["pre_tokenizer"]).then_some(Spelling::Bytes),
        };
        let model = spelling.map(|spelling| Model::read(&json["model"], spelling));
        let (preprocessing, model) = match (preprocessing, model) {
            (Ok(preprocessing), Some(Ok(model))) => (preprocessing, model),
            // Every reason is given.
            (preprocessing, model) => {
                let of_model = model.and_then(Result::err);
                let reasons = preprocessing.err().into_iter().chain(of_model);
                return Err(reasons.collect::<Vec<_>>().join(" and "));
            }
        };
        if preprocessing.form.is_some() && !model.missing_bytes.as_slice().is_empty() {
            return Err("its vocabulary lacks bytes, which a normalizer may write".to_owned());
        }
        let added_tokens = AddedTokens::read(json, added_tokens, &preprocessing)?;
        let Preprocessing {
            pattern, prefix, ..
        } = preprocessing;
        let isolated = match prefix {
            Prefix::None => added_tokens.isolated(),
            _ => None,
        };
        let mut engine = Self::new(model, pattern, prefix, added_tokens)?;
        engine.isolate(&isolated.unwrap_or_default())?;
        if json["model"]["ignore_merges"] == true {
            engine.bpe.unmerged = engine.find_unmerged();
        }
        Ok(engine)
    }

    /// The engine for a model of characters. Texts have no steps before the model, except that these tokens, whose
    /// texts differ, are isolated in them.
    ///
    /// # Errors
    /// The reason why the engine does not cover the model.
    pub(in crate::engines) fn of_characters(
        model: Model,
        isolated: &[AddedToken],
    ) -> Result<Self, String> {
        let pattern = Pattern::Pieces { each_space: false };
        let mut engine = Self::new(model, pattern, Prefix::None, AddedTokens::default())?;
        engine.isolate(isolated)?;
        Ok(engine)
    }

    fn isolate(&mut self, tokens: &[AddedToken]) -> Result<(), String> {
        if !tokens.is_empty() {
            self.bpe.isolated_tokens = Some(IsolatedTokens::of(tokens)?);
        }
        Ok(())
    }

    fn new(
        model: Model,
        pattern: Pattern,
        prefix: Prefix,
        added_tokens: AddedTokens,
    ) -> Result<Self, String> {
        let tokens = model.tokens.iter().map(|(token, _)| token);
        let piece_bounds = PieceBounds::of_tokens(tokens, model.alphabet.is_of_chars());
        Ok(Self {
            simd: AnySimd::detect(),
            splitter: Splitter::new(pattern, piece_bounds.pairs())?,
            bpe: Bpe {
                merge_rules: MergeRules::new(model.alphabet, &model.merges)?,
                piece_bounds,
                unmerged: HashMap::new(),
                isolated_tokens: None,
            },
            prefix,
            added_tokens,
            missing_bytes: model.missing_bytes,
            tokens: model.tokens,
        })
    }

    /// Texts that contain any of these fall back.
    pub(crate) fn fallback_tokens(&self) -> &[String] {
        self.added_tokens.fallback_tokens()
    }

    /// Texts that contain any of these bytes fall back.
    pub(crate) fn fallback_bytes(&self) -> &[u8] {
        self.missing_bytes.as_slice()
    }

    /// The tokens that may be words but that their own merges do not produce.
    fn find_unmerged(&self) -> HashMap<Box<[u8]>, u32> {
        let mut unmerged = self.simd.run(FindUnmerged {
            merge_rules: &self.bpe.merge_rules,
            tokens: &self.tokens,
        });
        if self.splitter.keeps_words() {
            unmerged.retain(|token, _| self.may_be_word(token));
        }
        unmerged
    }

    /// Whether encoding takes time linear in the length of any text.
    pub(crate) fn is_linear(&self) -> bool {
        self.splitter.is_linear()
    }

    /// Whether a word may consist of exactly these bytes. If the pattern splits the bytes when
    /// they stand alone, it splits them everywhere: no alternative looks at the preceding text.
    /// Only the alternative for white space at the end looks ahead, and it matches best at the end
    /// of a text.
    fn may_be_word(&self, bytes: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(bytes) else {
            return false;
        };
        let mut ends = [0; ROOM];
        let (splitter, state) = (&self.splitter, &mut SplitState::new());
        self.simd.run(Fill {
            splitter,
            state,
            text,
            ends: &mut ends,
        }) == 1
    }

    /// Appends the ids of a text; `false` if it falls back.
    pub(crate) fn encode_into(
        &self,
        text: &str,
        special_tokens_are_text: bool,
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) -> bool {
        if !self.is_for_this(text) {
            return false;
        }
        if self.bpe.isolated_tokens.is_some() && !self.added_tokens.may_change(text) {
            return self.append_part(
                text,
                Preceding::Nothing,
                special_tokens_are_text,
                scratch,
                ids,
            );
        }
        let num_ids = ids.len();
        let mut has_all = true;
        self.added_tokens
            .parts(text, special_tokens_are_text, &mut |part| match part {
                _ if !has_all => {}
                TextPart::AddedToken(id) => ids.push(id),
                TextPart::Text(text, _) if self.is_prefixed_before_split(text) => {
                    has_all = self.append_prefixed(text, scratch, ids);
                }
                TextPart::Text(text, preceding) => {
                    has_all =
                        self.append_part(text, preceding, special_tokens_are_text, scratch, ids);
                }
            });
        if !has_all {
            ids.truncate(num_ids);
        }
        has_all
    }

    /// [`ByteBpe::append_text`] on the back end of this machine.
    #[inline]
    fn append_part(
        &self,
        text: &str,
        preceding: Preceding,
        special_tokens_are_text: bool,
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) -> bool {
        self.simd.run(AppendText {
            engine: self,
            text,
            preceding,
            special_tokens_are_text,
            scratch,
            ids,
        })
    }

    /// Appends the ids of a text without added tokens other than isolated ones, which may be a part of a longer text;
    /// `false` if it falls back.
    #[inline(always)]
    fn append_text(
        &self,
        simd: impl Simd,
        text: &str,
        preceding: Preceding,
        special_tokens_are_text: bool,
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) -> bool {
        if !scratch.has_vocabulary && scratch.cache.has_grown_for(self.tokens.len()) {
            self.put_vocabulary(simd, scratch);
        }
        let mut state = SplitState::new();
        let isolated_tokens = self.bpe.isolated_tokens.as_ref();
        let mut cuts = isolated_tokens
            .map(|tokens| Cuts::new(tokens, text.as_bytes(), special_tokens_are_text));
        scratch.split_bounds[0] = 0;
        loop {
            let ends = scratch.split_bounds[1..].first_chunk_mut();
            let ends = ends.expect("there is room");
            let num_words = self.splitter.fill(simd, &mut state, text, ends);
            if num_words == 0 || state.has_given_up() {
                return !state.has_given_up();
            }
            let mut bounds = std::mem::take(&mut scratch.split_bounds);
            let mut words = &bounds[..=num_words];
            if words[0] == 0 && self.has_prefix(text, preceding) {
                words = &words[1..];
                self.append_after_space(simd, &text[..words[0] as usize], scratch, ids);
            }
            match &mut cuts {
                None => self.append_words(simd, text.as_bytes(), words, scratch, ids),
                Some(cuts) => {
                    self.append_cut_words(simd, text.as_bytes(), words, cuts, scratch, ids)
                }
            }
            bounds[0] = bounds[num_words];
            scratch.split_bounds = bounds;
        }
    }

    /// Puts the frequent tokens of the vocabulary into the cache. They need not be merged: each is its own result.
    #[cold]
    #[inline(never)]
    fn put_vocabulary(&self, simd: impl Simd, scratch: &mut Scratch) {
        scratch.has_vocabulary = true;
        let rules = &self.bpe.merge_rules;
        let is_put = |&(token, id): &(&[u8], u32)| {
            id < FREQUENT_TOKENS && token.len() <= SHORT && rules.makes(id)
        };
        let mut tokens = self.tokens.iter().filter(is_put);
        loop {
            // Their buckets are prefetched together.
            let some = tokens.by_ref().take(GROUP);
            let words: Vec<_> = some
                .map(|(token, id)| (WordKey::at(token, 0, token.len()), id))
                .collect();
            if words.is_empty() {
                return;
            }
            let finder = scratch.cache.finder();
            for &(word, _) in &words {
                finder.prefetch(finder.bucket_of(word));
            }
            for (word, id) in words {
                scratch.cache.insert_short(simd, word, &[id]);
            }
        }
    }

    /// Whether this engine encodes a text.
    #[inline]
    fn is_for_this(&self, text: &str) -> bool {
        // Positions have 32 bits, with room for a SIMD block after the end.
        text.len() < (1 << 31) - 1
            && !self.missing_bytes.are_in(text.as_bytes())
            && !self.added_tokens.needs_fallback(text)
    }

    /// Whether this text is split with a space before it.
    #[inline]
    fn is_prefixed_before_split(&self, text: &str) -> bool {
        self.prefix == Prefix::BeforeSplit && !text.is_empty() && !text.starts_with(' ')
    }

    /// Appends the ids of a copy of a text with a space before it; `false` if it falls back.
    #[inline(never)]
    fn append_prefixed(&self, text: &str, scratch: &mut Scratch, ids: &mut Vec<u32>) -> bool {
        let mut prefixed = std::mem::take(&mut scratch.prefixed);
        prefixed.clear();
        prefixed.push(' ');
        prefixed.push_str(text);
        // A pattern splits this text, so it has no isolated tokens.
        let has_all = self.append_part(&prefixed, Preceding::Nothing, false, scratch, ids);
        if prefixed.capacity() <= MAX_RETAINED_BYTES {
            scratch.prefixed = prefixed;
        }
        has_all
    }

    /// Whether a space is prepended to the first word of this text.
    #[inline]
    fn has_prefix(&self, text: &str, preceding: Preceding) -> bool {
        match self.prefix {
            Prefix::None | Prefix::BeforeSplit => false,
            Prefix::Always => preceding != Preceding::NormalizedToken,
            Prefix::UnlessThere => !text.starts_with(' '),
            Prefix::FirstUnlessThere => preceding == Preceding::Nothing && !text.starts_with(' '),
        }
    }

    /// Appends the ids of a word with a space before it.
    #[inline(never)]
    fn append_after_space(
        &self,
        simd: impl Simd,
        word: &str,
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) {
        let mut first = std::mem::take(&mut scratch.first);
        first.clear();
        first.push(b' ');
        first.extend_from_slice(word.as_bytes());
        let job = AppendWord {
            engine: self,
            word: &first,
            scratch,
            ids,
        };
        simd.run(job);
        if first.capacity() <= MAX_RETAINED_BYTES {
            scratch.first = first;
        }
    }

    /// Appends the ids of the words, cut at isolated tokens.
    #[inline(always)]
    fn append_cut_words(
        &self,
        simd: impl Simd,
        text: &[u8],
        words: &[u32],
        cuts: &mut Cuts<'_>,
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) {
        let mut bounds = std::mem::take(&mut scratch.cut_bounds);
        loop {
            let cut = cuts.cut(words, &mut bounds);
            self.append_words(simd, text, &bounds, scratch, ids);
            match cut {
                Cut::Before(id) => ids.push(id),
                Cut::All => break,
            }
        }
        scratch.cut_bounds = bounds;
    }

    /// Appends the ids of the words. Word `i` is `bounds[i]..bounds[i + 1]`.
    #[inline(always)]
    fn append_words(
        &self,
        simd: impl Simd,
        text: &[u8],
        bounds: &[u32],
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) {
        // Neither this function nor its callees may use closures, which would not be compiled for
        // the back end.
        let mut words = WordChunks {
            text,
            bounds,
            at: bounds[0],
            // With `ignore_merges`, a piece could be mistaken for a token that is only a whole word.
            piece_bounds: self
                .bpe
                .unmerged
                .is_empty()
                .then_some(&self.bpe.piece_bounds),
        };
        loop {
            let num_words = simd.run(NextWords {
                words: &mut words,
                bounds: &mut scratch.bounds,
            });
            if num_words == 0 {
                return;
            }
            let mut num_staged = 0;
            scratch.misses.clear();
            for first in (0..num_words).step_by(GROUP) {
                let of_chunk = first..num_words.min(first + GROUP);
                simd.run(Prepare {
                    text,
                    of_chunk: of_chunk.clone(),
                    scratch,
                });
                num_staged = simd.run(Stage {
                    of_chunk,
                    num_staged,
                    scratch,
                });
            }
            if scratch.misses.is_empty() {
                ids.extend_from_slice(&scratch.staged[..num_staged]);
            } else {
                simd.run(Resolve {
                    bpe: &self.bpe,
                    text,
                    num_staged,
                    scratch,
                    ids,
                });
            }
        }
    }
}

/// [`Splitter::fill`] on a back end.
struct Fill<'a> {
    splitter: &'a Splitter,
    state: &'a mut SplitState,
    text: &'a str,
    ends: &'a mut [u32; ROOM],
}

impl Job for Fill<'_> {
    type Output = usize;

    #[inline(always)]
    fn run(self, simd: impl Simd) -> usize {
        self.splitter.fill(simd, self.state, self.text, self.ends)
    }
}

/// [`ByteBpe::append_text`] on a back end.
struct AppendText<'a> {
    engine: &'a ByteBpe,
    text: &'a str,
    preceding: Preceding,
    special_tokens_are_text: bool,
    scratch: &'a mut Scratch,
    ids: &'a mut Vec<u32>,
}

impl Job for AppendText<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self, simd: impl Simd) -> bool {
        let Self {
            engine,
            text,
            preceding,
            special_tokens_are_text,
            scratch,
            ids,
        } = self;
        engine.append_text(simd, text, preceding, special_tokens_are_text, scratch, ids)
    }
}

/// [`ByteBpe::append_words`] for one word, on a back end.
struct AppendWord<'a> {
    engine: &'a ByteBpe,
    word: &'a [u8],
    scratch: &'a mut Scratch,
    ids: &'a mut Vec<u32>,
}

impl Job for AppendWord<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, simd: impl Simd) {
        let Self {
            engine,
            word,
            scratch,
            ids,
        } = self;
        engine.append_words(simd, word, &[0, word.len() as u32], scratch, ids);
    }
}
