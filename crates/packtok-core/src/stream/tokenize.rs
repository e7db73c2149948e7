//! Tokenizes the documents of a stream.

use std::sync::Arc;

use packtok_tokenizer::{EncodeOptions, Encoder, Tokenizer};

use super::parallel::{Operation, Outcome, Worker};
use super::report::{Bad, Report};
use super::sample::{Name, SourceRecord, Value};
use super::{Sample, StreamError};
use crate::corpus::{Body, Record};
use crate::error::{Error, Result};
use crate::field::{Extractor, Field};
use crate::pack::{OnBadDocument, Reason, text_of};

/// How a document is tokenized.
pub struct TokenizeOptions {
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// How it encodes.
    pub encode: EncodeOptions,
    /// The column with the text.
    pub text_column: Name,
    /// The column for the ids.
    pub ids_column: Name,
    /// The column for the attention mask, if it is wanted.
    pub mask_column: Option<Name>,
    /// The ids that every document must start and end with; they are added where they are missing.
    pub ensured: (Option<u32>, Option<u32>),
    /// What becomes of a document without a text.
    pub on_bad_document: OnBadDocument,
    /// Longest document in bytes.
    pub max_document_bytes: u64,
    /// Whether only the ids are wanted: the record is dropped.
    pub drops_record: bool,
}

/// The operation on all threads.
pub(super) struct Tokenize {
    options: Arc<TokenizeOptions>,
    field: Field,
    report: Arc<Report>,
}

impl Tokenize {
    pub(super) fn new(options: Arc<TokenizeOptions>, report: Arc<Report>) -> Result<Self> {
        Ok(Self {
            field: Field::of_key(&options.text_column)?,
            options,
            report,
        })
    }
}

impl Operation for Tokenize {
    fn worker(&self) -> Result<Box<dyn Worker>> {
        Ok(Box::new(TokenizeWorker {
            encoder: self.options.tokenizer.encoder(&self.options.encode)?,
            extractor: self.field.extractor(),
            options: Arc::clone(&self.options),
            report: Arc::clone(&self.report),
        }))
    }
}

struct TokenizeWorker {
    encoder: Encoder,
    extractor: Extractor,
    options: Arc<TokenizeOptions>,
    report: Arc<Report>,
}

impl TokenizeWorker {
    /// The ids of a record.
    fn ids_of(&mut self, record: &SourceRecord) -> std::result::Result<Vec<u32>, Reason> {
        let (body, len_bytes) = match record {
            SourceRecord::JsonLine(line) => (Body::JsonLine(line), line.len() as u64),
            SourceRecord::Text(_, text) => (Body::Text(text), text.len() as u64),
            SourceRecord::NoText(reason) => (Body::NoText(*reason), 0),
            SourceRecord::Oversize(len_bytes) => (Body::Oversize, *len_bytes),
        };
        let record = Record {
            offset: 0,
            len_bytes,
            body,
        };
        let limit = self.options.max_document_bytes;
        let text = text_of(&mut self.extractor, &record, limit)?.unwrap_or("");
        let mut ids = Vec::new();
        self.encoder
            .encode_into(text, &mut ids)
            .map_err(Reason::Tokenizer)?;
        ensure(&mut ids, self.options.ensured);
        Ok(ids)
    }
}

/// Adds the first and the last id where they are missing. If both are the same, one of them suffices,
/// and the last one is added.
fn ensure(ids: &mut Vec<u32>, (first, last): (Option<u32>, Option<u32>)) {
    let has_first = first.is_none_or(|first| ids.first() == Some(&first));
    let has_last = last.is_none_or(|last| ids.last() == Some(&last));
    let is_one = first == last && first.is_some();
    if is_one && (has_first || has_last) {
        return;
    }
    if let Some(first) = first
        && !has_first
        && !is_one
    {
        ids.insert(0, first);
    }
    if let Some(last) = last
        && !has_last
    {
        ids.push(last);
    }
}

impl Worker for TokenizeWorker {
    fn work(&mut self, samples: Vec<Sample>, put: &mut dyn FnMut(Result<Outcome>) -> bool) {
        for sample in samples {
            let result = self.tokenize(sample);
            let is_error = result.is_err();
            if !put(result) || is_error {
                return;
            }
        }
    }
}

impl TokenizeWorker {
    fn tokenize(&mut self, mut sample: Sample) -> Result<Outcome> {
        let column = &self.options.text_column;
        let foreign = sample
            .foreign
            .as_ref()
            .and_then(|foreign| foreign.text(column));
        let foreign = foreign.map(|text| SourceRecord::Text(column.clone(), text.into_bytes()));
        let is_foreign = foreign.is_some();
        let Some(record) = foreign.or_else(|| sample.record.take()) else {
            return Err(Error::Stream(StreamError::NoText {
                column: column.to_string(),
            }));
        };
        match self.ids_of(&record) {
            Ok(ids) => {
                let options = &self.options;
                if !options.drops_record && !is_foreign {
                    sample.record = Some(record);
                }
                if let Some(column) = &options.mask_column {
                    sample.set(column, Value::Ones(ids.len()));
                }
                sample.set(&options.ids_column, Value::Ids(ids));
                Ok(Outcome::Keep(sample))
            }
            Err(reason) => self.report.judge(
                Bad::new(sample.place.as_ref(), &reason),
                self.options.on_bad_document,
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_ids_are_added() {
        for (ids, ensured, expected) in [
            (&[5][..], (Some(1), Some(2)), &[1, 5, 2][..]),
            (&[1, 5, 2], (Some(1), Some(2)), &[1, 5, 2]),
            (&[1, 5], (Some(1), Some(2)), &[1, 5, 2]),
            (&[5], (None, None), &[5]),
            (&[5], (Some(9), Some(9)), &[5, 9]),
            (&[9, 5], (Some(9), Some(9)), &[9, 5]),
            (&[], (Some(1), Some(2)), &[1, 2]),
            (&[], (Some(9), Some(9)), &[9]),
        ] {
            let mut found = ids.to_vec();
            ensure(&mut found, ensured);
            assert_eq!(found, expected, "{ids:?} {ensured:?}");
        }
    }
}
