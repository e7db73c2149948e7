//! A record, the text of its document, and the handling of records without text.

pub(crate) mod location;
pub(crate) mod plain;
pub(crate) mod reason;
pub(crate) mod record;
pub(crate) mod resume_point;

use serde::{Deserialize, Serialize};

use crate::field::{BadDocument, Extractor};
use crate::{Body, Record};

/// The action for a line that is not a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnBadDocument {
    /// The line ends the run.
    #[default]
    Fail,
    /// The line is counted, listed in the rejects file and skipped.
    Skip,
}

/// The text of the document in a record; `None` if the record is blank.
pub fn text_of<'a>(
    extractor: &'a mut Extractor,
    record: &Record<'a>,
    max_document_bytes: u64,
) -> std::result::Result<Option<&'a str>, BadDocument> {
    match record.body {
        _ if record.is_blank() => Ok(None),
        Body::JsonLine(line) => extractor.text(line).map(Some),
        Body::Text(text) => match simdutf8::basic::from_utf8(text) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(BadDocument::text_not_utf8(text)),
        },
        Body::NoText(reason) => Err(BadDocument::NoText(reason)),
        Body::Oversize => Err(BadDocument::Oversize {
            len_bytes: record.len_bytes,
            max_document_bytes,
        }),
    }
}
