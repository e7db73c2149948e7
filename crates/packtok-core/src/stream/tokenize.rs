//! Tokenizes the documents of a stream.

use std::sync::Arc;

use packtok_tokenizer::{EncodeOptions, Encoder, Tokenizer};

use super::each::ensure_ends;
use super::parallel::{Given, Operation, Outcome, Worker};
use super::report::Report;
use super::sample::{Name, SourceRecord, TokenForm, Value};
use super::{Sample, StreamError};
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
    /// In which form the caller gets the tokens.
    pub form: TokenForm,
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
        let record = record.as_record();
        let limit = self.options.max_document_bytes;
        let text = text_of(&mut self.extractor, &record, limit)?.unwrap_or("");
        let mut ids = Vec::new();
        self.encoder
            .encode_into(text, &mut ids)
            .map_err(Reason::Tokenizer)?;
        ensure_ends(&mut ids, self.options.ensured);
        Ok(ids)
    }
}

impl Worker for TokenizeWorker {
    fn work(&mut self, given: Given, put: &mut dyn FnMut(Result<Outcome>) -> bool) {
        for sample in given.samples {
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
        let foreign = sample.foreign.as_ref();
        // A column that another step set replaces that of the caller, and is no text.
        let foreign = foreign.filter(|_| sample.column(column).is_none());
        let foreign = foreign.and_then(|foreign| foreign.text(column));
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
                let len = ids.len();
                sample.form = options.form;
                sample.set(&options.ids_column, Value::Ids(ids));
                if let Some(column) = &options.mask_column {
                    sample.set(column, Value::Ones(len));
                }
                Ok(Outcome::Keep(sample))
            }
            Err(reason) => {
                let reason = reason.about_document()?;
                self.report
                    .judge(sample.place.as_ref(), &reason, self.options.on_bad_document)
            }
        }
    }
}
