//! The work of one thread: turns the records of a chunk into token bytes, document lengths and an
//! outcome per record.

use std::ops::RangeInclusive;
use std::sync::Arc;

use packtok_corpus::field::Extractors;
use packtok_corpus::pipeline::Work;
use packtok_corpus::{Chunk, OnBadDocument, Reason, Record, ResumePoint, text_of};
use packtok_jobs::splitmix::mixed;
use packtok_pbin::{EmptyDocument, Padding, Side, TextCounts, TokenWidth};
use packtok_tokenizer::{Encoder, Tokenizer};

use super::PackOptions;
use crate::error::{Error, Result};

/// Capacity of the id buffer that is kept between documents (16 MiB). A larger buffer, after a
/// huge document, is freed.
pub(crate) const KEPT_IDS: usize = 4 << 20;

/// The longest padded document, in ids. Padding makes even a small text take this much memory,
/// whatever the limit on the length of documents.
const MAX_PADDED_IDS: u64 = 1 << 24;

/// The length of a document that was counted but not encoded.
pub(crate) const UNSAMPLED: u64 = u64::MAX;

/// Number of bytes of an unsampled text that are encoded to determine whether the text has tokens.
/// Packing encodes every text in full.
const SAMPLED_BYTES: usize = 256;

/// The selection of documents to encode: all for packing, some for verifying.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    /// A document is included if its hash is at most this.
    limit: u64,
    /// For each source, the range of offsets of its documents. Records outside are treated as
    /// blank.
    among: Option<Arc<[RangeInclusive<u64>]>>,
}

impl Sample {
    pub(crate) const ALL: Self = Self {
        limit: u64::MAX,
        among: None,
    };

    /// About `fraction` of the documents, the same documents at every call.
    pub(crate) fn fraction(fraction: f64) -> Self {
        // The cast saturates: 1.0 and more include all documents.
        Self {
            limit: (fraction * u64::MAX as f64) as u64,
            among: None,
        }
    }

    /// Restricts the sample to these offsets of each source.
    pub(crate) fn among(self, offsets: Arc<[RangeInclusive<u64>]>) -> Self {
        Self {
            among: Some(offsets),
            ..self
        }
    }

    fn is_among(&self, source: usize, offset: u64) -> bool {
        (self.among.as_ref()).is_none_or(|among| among[source].contains(&offset))
    }

    fn takes(&self, source: usize, offset: u64) -> bool {
        if self.limit == u64::MAX {
            return true;
        }
        // Mixing spreads adjacent offsets.
        mixed(offset ^ (source as u64).rotate_left(32)) <= self.limit
    }
}

/// Capacity for token data that is kept between doc_batches.
const KEPT_DATA_BYTES: usize = 16 << 20;

/// The outcome of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Packed,
    Empty,
    Blank,
    Rejected,
}

/// A line that was not packed because it is bad.
#[derive(Debug)]
pub(crate) struct Reject {
    /// Index among the records of the chunk, from 0.
    pub(crate) line: usize,
    /// As [`Record::offset`].
    pub(crate) offset: u64,
    pub(crate) len_bytes: u64,
    pub(crate) reason: Reason,
}

/// The result for one chunk.
#[derive(Debug, Default)]
pub(crate) struct DocBatch {
    pub(crate) source: usize,
    /// Concatenated tokens of all packed documents, encoded as in the file.
    pub(crate) data: Vec<u8>,
    /// Length of each packed document in bytes of `data`.
    pub(crate) document_bytes: Vec<u64>,
    /// As [`Record::offset`], for each packed document.
    pub(crate) offsets: Vec<u64>,
    /// For each packed document that contains EODs besides the closing one: its index, and their
    /// number.
    pub(crate) eods_in_text: Vec<(usize, u64)>,
    /// Bytes and tokens of the text of each packed document.
    pub(crate) texts: Vec<TextCounts>,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) rejects: Vec<Reject>,
    /// Whether the last reject ends the run.
    pub(crate) is_fatal: bool,
    /// Start of the next batch; `None` if the run cannot resume there.
    pub(crate) end: Option<ResumePoint>,
    /// Digests of the sources that ended.
    pub(crate) closed: Vec<u32>,
    pub(crate) text_bytes: u64,
}

impl DocBatch {
    /// Prepares for the lines of `chunk`.
    fn start(&mut self, chunk: &Chunk) {
        self.source = chunk.source();
        self.end = chunk.end();
        self.closed.clear();
        self.closed.extend_from_slice(chunk.closed());
        self.text_bytes = chunk.len_bytes() as u64;
        self.data.clear();
        self.document_bytes.clear();
        self.offsets.clear();
        self.eods_in_text.clear();
        self.texts.clear();
        self.outcomes.clear();
        self.rejects.clear();
        self.is_fatal = false;
    }

    /// Frees memory that a huge document needed.
    pub(crate) fn shrink(&mut self) {
        if self.data.capacity() > KEPT_DATA_BYTES {
            self.data = Vec::new();
        }
    }
}

/// Turns chunks into doc_batches.
pub(crate) struct Worker {
    extractors: Extractors,
    /// Index of the input of the current chunk.
    input: usize,
    encoder: Encoder,
    ids: Vec<u32>,
    eod_id: u32,
    bos_id: Option<u32>,
    enclose_all: bool,
    width: TokenWidth,
    vocab_size: u64,
    padding: Option<Padding>,
    empty_document: EmptyDocument,
    on_bad_document: OnBadDocument,
    max_document_bytes: u64,
    sample: Sample,
    place: (usize, u64),
}

impl Worker {
    pub(crate) fn new(
        tokenizer: &Tokenizer,
        options: &PackOptions,
        sample: Sample,
    ) -> Result<Self> {
        Ok(Self {
            extractors: options.fields.extractors(),
            input: 0,
            encoder: tokenizer.encoder(&options.spec.encode())?,
            ids: Vec::new(),
            eod_id: options.eod.id,
            bos_id: options.bos.as_ref().map(|bos| bos.id),
            enclose_all: options.spec.recorded.enclose_all,
            width: options.width_for(tokenizer),
            vocab_size: tokenizer.vocab_size(),
            padding: checked_padding(options.spec.recorded.padding, tokenizer)?,
            empty_document: options.spec.recorded.empty_document,
            on_bad_document: options.spec.on_bad_document,
            max_document_bytes: options.spec.recorded.max_document_bytes,
            sample,
            place: (0, 0),
        })
    }

    /// Packs one record into `out`, or returns the reason why the record is not packed.
    fn pack_record(
        &mut self,
        record: &Record<'_>,
        out: &mut DocBatch,
    ) -> std::result::Result<Outcome, Reason> {
        if !self.sample.is_among(self.place.0, self.place.1) {
            return Ok(Outcome::Blank);
        }
        let extractor = self.extractors.of_input(self.input);
        let Some(text) = text_of(extractor, record, self.max_document_bytes)? else {
            return Ok(Outcome::Blank);
        };
        let is_sampled = self.sample.takes(self.place.0, self.place.1);
        self.ids.clear();
        if !is_sampled {
            let judged = &text[..text.floor_char_boundary(SAMPLED_BYTES)];
            self.encoder
                .encode_into(judged, &mut self.ids)
                .map_err(Reason::Tokenizer)?;
            if !self.ids.is_empty() {
                out.document_bytes.push(UNSAMPLED);
                return Ok(Outcome::Packed);
            }
        }
        self.encoder
            .encode_into(text, &mut self.ids)
            .map_err(Reason::Tokenizer)?;
        let text_counts = TextCounts {
            bytes: text.len() as u64,
            tokens: (self.ids.len() - self.encoder.num_special()) as u64,
        };
        // Freed before encoding, because the tokens of a huge document need as much memory again.
        self.extractors.of_input(self.input).release();
        let eods_of_padding = self.pad();
        if self.ids.is_empty() {
            match self.empty_document {
                EmptyDocument::Skip => return Ok(Outcome::Empty),
                EmptyDocument::Fail => return Err(Reason::Empty),
                EmptyDocument::Keep => {}
            }
        }
        if let Some(bos_id) = self.bos_id
            && (self.enclose_all || self.ids.first().is_some_and(|&first| first != bos_id))
        {
            self.ids.insert(0, bos_id);
        }
        if self.enclose_all || self.ids.last() != Some(&self.eod_id) {
            self.ids.push(self.eod_id);
        }
        self.append_document(eods_of_padding, out);
        out.texts.push(text_counts);
        Ok(Outcome::Packed)
    }

    /// Pads the ids of a document. Returns the number of added EODs, without the EOD that closes
    /// the document.
    fn pad(&mut self) -> u64 {
        let Some(padding) = self.padding else {
            return 0;
        };
        let length = usize::try_from(padding.length).unwrap_or(usize::MAX);
        let num_added = length.saturating_sub(self.ids.len());
        self.ids.resize(self.ids.len() + num_added, padding.id);
        if padding.side == Side::Left {
            self.ids.rotate_right(num_added);
        }
        if padding.id != self.eod_id {
            return 0;
        }
        let is_at_end = padding.side == Side::Right || num_added == self.ids.len();
        (num_added - usize::from(num_added > 0 && is_at_end)) as u64
    }

    fn append_document(&mut self, eods_of_padding: u64, out: &mut DocBatch) {
        // The token width holds every id of the vocabulary; a larger id would be truncated to a
        // wrong id.
        if let Some(id) = first_beyond(&self.ids, self.vocab_size) {
            panic!("the engine gave id {id}, beyond the vocabulary");
        }
        let eods_in_text = num_equal(&self.ids, self.eod_id) - eods_of_padding - 1;
        if eods_in_text > 0 {
            out.eods_in_text
                .push((out.document_bytes.len(), eods_in_text));
        }
        let start = out.data.len();
        append_tokens(&self.ids, self.width, &mut out.data);
        out.document_bytes.push((out.data.len() - start) as u64);
        if self.ids.capacity() > KEPT_IDS {
            self.ids = Vec::new();
        }
    }
}

impl Work for Worker {
    type Out = DocBatch;
    type Error = Error;

    fn work(&mut self, chunk: &Chunk, out: &mut DocBatch) -> Result<()> {
        out.start(chunk);
        self.input = chunk.input();
        for (i, record) in chunk.records().enumerate() {
            self.place = (chunk.source(), record.offset);
            match self.pack_record(&record, out) {
                Ok(outcome) => {
                    out.outcomes.push(outcome);
                    if outcome == Outcome::Packed {
                        out.offsets.push(record.offset);
                    }
                }
                Err(reason) => {
                    let reason = reason.about_document()?;
                    // Empty documents are forbidden by an option of their own.
                    out.is_fatal = self.on_bad_document == OnBadDocument::Fail
                        || matches!(reason, Reason::Empty);
                    out.outcomes.push(Outcome::Rejected);
                    out.rejects.push(Reject {
                        line: i,
                        offset: record.offset,
                        len_bytes: record.len_bytes,
                        reason,
                    });
                    if out.is_fatal {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    fn place(&self) -> (usize, u64) {
        self.place
    }
}

/// `padding`, if documents of `tokenizer` can be padded like this.
fn checked_padding(padding: Option<Padding>, tokenizer: &Tokenizer) -> Result<Option<Padding>> {
    let Some(Padding { length, id, .. }) = padding else {
        return Ok(None);
    };
    if length > MAX_PADDED_IDS {
        let limit = MAX_PADDED_IDS;
        return Err(Error::PaddingTooLong { length, limit });
    }
    let vocab_size = tokenizer.vocab_size();
    if u64::from(id) >= vocab_size {
        let tokenizer = tokenizer.name().to_owned();
        return Err(Error::PaddingId {
            id,
            tokenizer,
            vocab_size,
        });
    }
    Ok(padding)
}

/// The first of `ids` that is not below `vocab_size`.
fn first_beyond(ids: &[u32], vocab_size: u64) -> Option<u32> {
    let is_beyond = |id: u32| u64::from(id) >= vocab_size;
    // Most processors need several instructions for an unsigned vector comparison. If both values
    // are below 2^31, the sign of `highest - id` gives the same answer.
    if let Ok(highest) = i32::try_from(vocab_size - 1) {
        let differences = ids
            .iter()
            .map(|&id| id as i32 | highest.wrapping_sub(id as i32));
        if differences.fold(0, |all, difference| all | difference) >= 0 {
            return None;
        }
    }
    ids.iter().copied().find(|&id| is_beyond(id))
}

/// Number of `ids` equal to `wanted`.
fn num_equal(ids: &[u32], wanted: u32) -> u64 {
    // Counts in 32-bit numbers, because a vector holds twice as many of them as 64-bit numbers.
    let num_equal = |ids: &[u32]| ids.iter().map(|&id| u32::from(id == wanted)).sum::<u32>();
    ids.chunks(1 << 30)
        .map(|ids| u64::from(num_equal(ids)))
        .sum()
}

/// Appends `ids` in little-endian; each must fit in `width`.
pub(crate) fn append_tokens(ids: &[u32], width: TokenWidth, data: &mut Vec<u8>) {
    match width {
        TokenWidth::U8 => append(ids, data, |id| [id as u8]),
        TokenWidth::U16 => append(ids, data, |id| (id as u16).to_le_bytes()),
        TokenWidth::U32 => append(ids, data, u32::to_le_bytes),
    }
}

/// Appends an N-byte token for each of `ids`.
fn append<const N: usize>(ids: &[u32], data: &mut Vec<u8>, token_of: impl Fn(u32) -> [u8; N]) {
    data.reserve(N * ids.len());
    // Encodes into a block that stays in the cache, so that the distant memory is written once and
    // not zeroed first.
    let (blocks, rest) = ids.as_chunks::<64>();
    for block in blocks {
        data.extend_from_slice(block.map(&token_of).as_flattened());
    }
    for &id in rest {
        data.extend_from_slice(&token_of(id));
    }
}

#[cfg(test)]
mod tests {
    use packtok_corpus::Body;
    use packtok_corpus::field::Field;

    use super::*;

    fn text(body: Body<'_>) -> std::result::Result<Option<String>, String> {
        let record = Record {
            offset: 0,
            len_bytes: 9,
            body,
        };
        let mut extractor = Field::compile(".text").unwrap().extractor();
        match text_of(&mut extractor, &record, 8) {
            Ok(text) => Ok(text.map(str::to_owned)),
            Err(reason) => Err(reason.to_string()),
        }
    }

    #[test]
    fn a_text_is_taken_as_it_is_and_a_line_through_the_field() {
        let line = r#"{"text": "a"}"#;
        assert_eq!(text(Body::JsonLine(line.as_bytes())), Ok(Some("a".into())));
        assert_eq!(text(Body::Text(line.as_bytes())), Ok(Some(line.into())));
        assert_eq!(text(Body::JsonLine(b" \t")), Ok(None));
        // White space in a text is not a blank record. If it has no ids, `empty_document` applies.
        assert_eq!(text(Body::Text(b" \t")), Ok(Some(" \t".into())));
        assert_eq!(text(Body::Text(b"")), Ok(Some(String::new())));
        assert!(text(Body::Oversize).is_err());
    }
}
