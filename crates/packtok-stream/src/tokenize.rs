//! Tokenizes the documents of a stream.

use std::sync::Arc;

use packtok_corpus::Reason;
use packtok_corpus::field::{BadDocument, Extractor, Field, Keys, pattern_of_key};
use packtok_corpus::{OnBadDocument, text_of};
use packtok_tokenizer::{EncodeOptions, Encoder, Tokenizer};
use serde::{Deserialize, Serialize};

use super::Sample;
use super::builder::{OperatorSpec, Site};
use super::check::check_length;
use super::each::ensure_ends;
use super::node::Node;
use super::parallel::{Input, Operation, Outcome, Worker};
use super::report::Report;
use super::sample::{IDS_COLUMN, Name, SourceRecord, TokenForm};
use super::value::{Found, Value};
use crate::error::{Error, Result};

/// Tokenizes documents.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TokenizeSpec {
    /// The number of the tokenizer.
    #[serde(skip_serializing)]
    object: usize,
    /// Whether only the ids are kept and the record is dropped.
    #[serde(skip_serializing)]
    drops_record: bool,
    /// The form in which the caller receives the tokens.
    #[serde(skip_serializing)]
    form: TokenForm,
    add_special_tokens: bool,
    truncate_to: Option<usize>,
    /// The column with the text.
    text_column: String,
    /// The column for the attention mask, if it is wanted.
    mask_column: Option<String>,
    /// The ids with which every document must start and end. Missing ids are added.
    ensured: (Option<u32>, Option<u32>),
    max_document_bytes: u64,
    /// The fingerprint of the tokenizer in a state.
    tokenizer: String,
}

impl OperatorSpec for TokenizeSpec {
    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>> {
        site.parallel(site.input()?, None, || {
            let options = self.options(site.objects().tokenizer(self.object)?);
            Ok(Arc::new(Tokenize {
                field: Field::of_key(&options.text_column)?,
                options: Arc::new(options),
                report: site.report(),
            }))
        })
    }
}

impl TokenizeSpec {
    fn options(&self, tokenizer: Tokenizer) -> TokenizeOptions {
        TokenizeOptions {
            tokenizer,
            encode: EncodeOptions {
                add_special_tokens: self.add_special_tokens,
                truncate_to: self.truncate_to,
                ..EncodeOptions::default()
            },
            text_column: self.text_column.as_str().into(),
            ids_column: IDS_COLUMN.into(),
            mask_column: self.mask_column.as_deref().map(Into::into),
            ensured: self.ensured,
            max_document_bytes: self.max_document_bytes,
            drops_record: self.drops_record,
            form: self.form,
        }
    }
}

/// The arguments with the tokenizer, and the names of columns as samples share them.
struct TokenizeOptions {
    tokenizer: Tokenizer,
    encode: EncodeOptions,
    text_column: Name,
    ids_column: Name,
    mask_column: Option<Name>,
    ensured: (Option<u32>, Option<u32>),
    max_document_bytes: u64,
    drops_record: bool,
    form: TokenForm,
}

/// The operation on all threads.
struct Tokenize {
    options: Arc<TokenizeOptions>,
    field: Field,
    report: Arc<Report>,
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
        check_length(record).map_err(Reason::Field)?;
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
    fn work(&mut self, input: Input, put: &mut dyn FnMut(Result<Outcome>) -> bool) {
        for sample in input.samples {
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
        let record = match self.record_of(&mut sample)? {
            Ok(record) => record,
            Err(reason) => return self.judge(&sample, &Reason::Field(reason)),
        };
        match self.ids_of(&record) {
            Ok(ids) => {
                let options = &self.options;
                if !options.drops_record && sample.foreign.is_none() {
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
            Err(reason) => self.judge(&sample, &reason.about_document()?),
        }
    }

    /// The record of a sample; or why it has no text, if it is from a file.
    fn record_of(
        &self,
        sample: &mut Sample,
    ) -> Result<std::result::Result<SourceRecord, BadDocument>> {
        let column = &self.options.text_column;
        // A column set by another step replaces the caller's column, and does not contain text.
        let is_replaced = sample.column(column).is_some();
        let text = match (&sample.foreign, sample.record.take()) {
            (Some(_), _) if is_replaced => Found::Missing,
            (Some(foreign), _) => foreign.text(column)?,
            (None, Some(record)) => return Ok(Ok(record)),
            (None, None) => Found::Missing,
        };
        let other_type = match text {
            Found::Value(text) => return Ok(Ok(SourceRecord::Text(column.clone(), text))),
            Found::Unfit(type_name) => Some(type_name),
            Found::Missing => None,
        };
        let is_promised = sample.on_bad_document == OnBadDocument::Skip;
        if sample.place.is_none() && !is_promised {
            return Err(Error::NoText {
                column: column.to_string(),
                found: other_type,
            });
        }
        let pattern = pattern_of_key(column).into();
        Ok(Err(match other_type {
            Some(found) => BadDocument::NotString { pattern, found },
            None => BadDocument::Missing {
                pattern,
                found: Keys::default(),
            },
        }))
    }

    fn judge(&self, sample: &Sample, reason: &Reason) -> Result<Outcome> {
        let (place, policy) = (sample.place.as_ref(), sample.on_bad_document);
        self.report.judge(place, reason, policy)
    }
}
