//! Checks records before a function of the caller receives them, because no other step checks
//! them.

use std::sync::Arc;

use packtok_corpus::Body;
use packtok_corpus::Reason;
use packtok_corpus::field::{BadDocument, check_object};

use super::parallel::{Input, Operation, Outcome, Worker};
use super::report::Report;
use super::sample::SourceRecord;
use crate::error::Result;

/// The operation on all threads.
#[derive(Clone)]
pub(super) struct Check {
    pub(super) report: Arc<Report>,
}

impl Operation for Check {
    fn worker(&self) -> Result<Box<dyn Worker>> {
        Ok(Box::new(self.clone()))
    }
}

impl Worker for Check {
    fn work(&mut self, input: Input, put: &mut dyn FnMut(Result<Outcome>) -> bool) {
        for sample in input.samples {
            let result = match sample.record.as_ref().map_or(Ok(()), check) {
                Ok(()) => Ok(Outcome::Keep(sample)),
                Err(reason) => {
                    let (place, policy) = (sample.place.as_ref(), sample.on_bad_document);
                    self.report.judge(place, &Reason::Field(reason), policy)
                }
            };
            let is_error = result.is_err();
            if !put(result) || is_error {
                return;
            }
        }
    }
}

/// Checks that a record is a JSON object or a text.
fn check(record: &SourceRecord) -> std::result::Result<(), BadDocument> {
    check_length(record)?;
    match record.as_record().body {
        Body::JsonLine(line) => check_object(line),
        Body::Text(text) => match std::str::from_utf8(text) {
            Ok(_) => Ok(()),
            Err(_) => Err(BadDocument::text_not_utf8(text)),
        },
        Body::NoText(reason) => Err(BadDocument::NoText(reason)),
        // Checked above.
        Body::Oversize => Ok(()),
    }
}

/// Checks that a record is not longer than the limit of its source.
pub(super) fn check_length(record: &SourceRecord) -> std::result::Result<(), BadDocument> {
    match *record {
        SourceRecord::Oversize {
            len_bytes,
            max_document_bytes,
        } => Err(BadDocument::Oversize {
            len_bytes,
            max_document_bytes,
        }),
        _ => Ok(()),
    }
}
