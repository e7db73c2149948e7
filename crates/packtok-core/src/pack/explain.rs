//! What a bad line says about its whole file.

use super::error::PackError;
use super::reason::Reason;
use crate::corpus::{CorpusError, Source, text_format};
use crate::error::Error;

/// The error for a bad line; if the line is the first one of a file that is no JSON lines at all, the
/// error says what the file is.
pub(crate) fn explain(error: Error, source: &Source) -> Error {
    let Error::Pack(PackError::Document {
        offset_bytes,
        reason,
        ..
    }) = &error
    else {
        return error;
    };
    let Reason::Field(bad) = &**reason else {
        return error;
    };
    match text_format(source, *offset_bytes, bad) {
        None => error,
        Some(format) => Error::Corpus(CorpusError::NotJsonLines {
            path: source.path.clone(),
            format,
        }),
    }
}
