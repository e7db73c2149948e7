//! Explains a bad line by the format of its file.

use packtok_corpus::Reason;
use packtok_corpus::{Error as CorpusError, Format, Source, text_format};

use crate::error::Error;

/// The error of a bad line. If it is the first line of a file that is not JSON lines, the error
/// names the format of the file.
pub(crate) fn explain(error: Error, source: &Source) -> Error {
    let Error::BadDocument {
        offset_bytes,
        reason,
        ..
    } = &error
    else {
        return error;
    };
    let Reason::Field(bad) = &**reason else {
        return error;
    };
    let (Format::Jsonl, Some(offset_bytes)) = (source.format, *offset_bytes) else {
        return error;
    };
    match text_format(source, offset_bytes, bad) {
        None => error,
        Some(format) => Error::Corpus(CorpusError::OtherFormat {
            path: source.path.clone(),
            found: format,
            expected: source.format,
        }),
    }
}
