//! The profile of token files: what a sample of their documents contains.
//!
//! A document belongs to the sample by a hash of its own ids, so that all copies of a document are in the
//! sample or none. Memory does not grow with the files: hashes of documents are limited in number, sums and
//! examples have a fixed size, and of a very long document only the start is examined. One thread reads the
//! documents in order, so that the same files always give the same figures.

mod largest;
mod letters;
mod patterns;
mod repetition;
mod report;
mod sample;
mod text;
mod vocabulary_use;

use std::ops::Range;

use packtok_jobs::{Monitor, Progress, report_progress};
use xxhash_rust::xxh64::Xxh64;

use self::largest::{Counter, RepeatCounter};
use self::repetition::Repetition;
pub use self::report::*;
use self::sample::{DECIDING_TOKENS, Hashes, Share};
use self::text::TextCounter;
use self::vocabulary_use::IdCounts;
use super::{Decoder, DocumentTexts, RELEASED_BYTES};
use crate::error::Result;

/// The default expected number of tokens in a sample: about 40 MB of text.
pub const SAMPLE_TOKENS: u64 = 10_000_000;
/// Tokens of a document that are read at once. Only the first ones are examined for repetition and as text.
const MAX_DOCUMENT_TOKENS: u64 = 1 << 20;
/// The share of tokens in repeated n-grams above which a document counts as repetitive.
const NGRAMS_LIMIT: f64 = 0.2;
/// Documents after which progress is reported.
const DOCUMENTS_PER_REPORT: u64 = 256;

impl DocumentTexts {
    /// The profile of a sample of about `sample_tokens` tokens.
    ///
    /// # Errors
    /// A file cannot be read; the tokenizer cannot decode; [`packtok_jobs::Error::Cancelled`].
    pub fn profile(&self, sample_tokens: u64, monitor: &mut Monitor<'_>) -> Result<Profile> {
        let files = &self.files;
        let share = Share::new(sample_tokens, files.num_tokens());
        let mut scan = Scan::new(self.decoder.as_ref(), self.eod_id);
        self.read_sample(share, &mut scan, monitor)?;
        let place = |number| {
            let file = files.file_of_document(number);
            Place {
                file,
                document: number - files.documents_of(file).start,
            }
        };
        Ok(Profile {
            documents: files.num_documents(),
            tokens: files.num_tokens(),
            sample: Sample {
                share: share.value(),
                ..scan.sample
            },
            empty: scan.empty.figure(place),
            duplicates: scan.hashes.duplicates(place),
            repeated_ngrams: scan.repeated_ngrams.repeats(place),
            vocabulary: scan.id_counts.figures(
                (self.decoder.as_ref())
                    .map(|decoder| (&decoder.vocabulary, decoder.tokenizer.vocab_size())),
                place,
            ),
            text: scan.texts.map(|texts| texts.figures(place)),
        })
    }

    /// Reads the documents of a sample.
    fn read_sample(
        &self,
        share: Share,
        scan: &mut Scan<'_>,
        monitor: &mut Monitor<'_>,
    ) -> Result<()> {
        let files = &self.files;
        let width = files.width().bytes();
        let mut progress = Progress {
            total_bytes: files.num_tokens() * width,
            ..Progress::default()
        };
        let mut ids = Vec::new();
        for file in 0..files.len() {
            let numbers = files.documents_of(file);
            let token_file = files.token_file(file)?;
            let mut released = progress.bytes_read;
            for number in numbers.clone() {
                let range = token_file.document_tokens(number - numbers.start)?;
                let len = range.end - range.start;
                let first = range.start..range.end.min(range.start + DECIDING_TOKENS);
                if share.has(files.tokens(file, first)?, len) {
                    scan.begin(len);
                    for part in parts(range) {
                        let bytes = self.read_ids(file, part, &mut ids)?;
                        scan.add(number, bytes, &ids)?;
                        // The document may be longer than memory.
                        if ids.len() as u64 != len {
                            token_file.release_pages();
                            report_progress(monitor, &progress)?;
                        }
                    }
                    scan.end(number);
                }
                progress.bytes_read += len * width;
                progress.documents += 1;
                progress.tokens += len;
                if progress.documents.is_multiple_of(DOCUMENTS_PER_REPORT) {
                    report_progress(monitor, &progress)?;
                }
                if progress.bytes_read - released > RELEASED_BYTES {
                    released = progress.bytes_read;
                    token_file.release_pages();
                }
            }
            token_file.release_pages();
        }
        Ok(())
    }
}

/// The parts of a document that are read at once.
fn parts(tokens: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let starts = tokens.clone().step_by(MAX_DOCUMENT_TOKENS as usize);
    starts.map(move |start| start..tokens.end.min(start + MAX_DOCUMENT_TOKENS))
}

/// The state of a profile while documents are read.
struct Scan<'a> {
    decoder: Option<&'a Decoder>,
    eod_id: Option<u32>,
    sample: Sample,
    empty: Counter,
    hashes: Hashes,
    repeated_ngrams: RepeatCounter,
    id_counts: IdCounts,
    texts: Option<TextCounter>,
    repetition: Repetition,
    document: Document,
    with_text: Vec<u32>,
}

/// The document that is being read.
#[derive(Default)]
struct Document {
    len: u64,
    hash: Xxh64,
    /// Whether its first part is still to be read.
    is_at_start: bool,
    is_empty: bool,
}

impl<'a> Scan<'a> {
    fn new(decoder: Option<&'a Decoder>, eod_id: Option<u32>) -> Self {
        Self {
            decoder,
            eod_id,
            sample: Sample::default(),
            empty: Counter::default(),
            hashes: Hashes::new(),
            repeated_ngrams: RepeatCounter::new(NGRAMS_LIMIT),
            id_counts: IdCounts::default(),
            texts: decoder.map(|_| TextCounter::new()),
            repetition: Repetition::default(),
            document: Document::default(),
            with_text: Vec::new(),
        }
    }

    /// Begins a document of `len` tokens.
    fn begin(&mut self, len: u64) {
        self.document = Document {
            len,
            is_at_start: true,
            is_empty: true,
            ..Document::default()
        };
    }

    /// Adds the next part of the document with its ids, also as bytes.
    fn add(&mut self, number: u64, bytes: &[u8], ids: &[u32]) -> Result<()> {
        self.document.hash.update(bytes);
        self.id_counts.add(number, ids);
        if std::mem::take(&mut self.document.is_at_start) {
            self.examine(number, ids)?;
        }
        Ok(())
    }

    fn end(&mut self, number: u64) {
        let Document {
            len,
            hash,
            is_empty,
            ..
        } = &self.document;
        self.sample.documents += 1;
        self.sample.tokens += len;
        if *is_empty {
            self.empty.add(number, 1);
        } else {
            self.hashes.add(number, hash.digest(), *len);
        }
    }

    /// Examines the first part of the document for repetition and as text.
    fn examine(&mut self, number: u64, ids: &[u32]) -> Result<()> {
        let num_fitting = self
            .decoder
            .map_or(ids.len(), |decoder| decoder.num_fitting(ids));
        let ids = &ids[..num_fitting];
        let is_cut = (ids.len() as u64) < self.document.len;
        self.sample.cut_documents += u64::from(is_cut);
        let text = self.text_of(ids, is_cut)?;
        let is_empty = text.as_ref().map_or_else(
            || ids.iter().all(|&id| Some(id) == self.eod_id),
            |text| text.trim().is_empty(),
        );
        self.document.is_empty = is_empty && !is_cut;
        if self.document.is_empty {
            return Ok(());
        }
        let repeated = self.repetition.of_tokens(ids);
        self.repeated_ngrams.add(number, repeated);
        if let (Some(texts), Some(text)) = (&mut self.texts, &text) {
            texts.add(number, text, &mut self.repetition);
        }
        Ok(())
    }

    /// The text of `ids`; `None` without a tokenizer.
    fn text_of(&mut self, ids: &[u32], is_cut: bool) -> Result<Option<String>> {
        let Some(decoder) = self.decoder else {
            return Ok(None);
        };
        self.with_text.clear();
        let with_text = ids.iter().filter(|&&id| decoder.name_bytes(id).is_some());
        self.with_text.extend(with_text);
        let mut text = decoder.decode(&self.with_text)?;
        if is_cut {
            // The last character may be incomplete.
            text.truncate(text.trim_end_matches('\u{fffd}').len());
        }
        Ok(Some(text))
    }
}
