//! Determines the format of a file if the user does not set one, and recognizes files whose
//! content is not of the expected format.

pub(crate) mod describe;
pub(crate) mod format;
pub(crate) mod other_format;
pub(crate) mod recognize;
pub(crate) mod text_format;

use crate::detect::format::format_of_name;
use crate::detect::text_format::{HEAD_BYTES, read_head};
use crate::error::{Error, Result};
use crate::field::check_json;
use crate::{BOM, CorpusFile, Format, OtherFormat, Source};

/// The format of `file`, determined by its name and its first bytes.
///
/// A name with the extension of a format decides. A file with any other name is JSON lines, unless
/// it is a Parquet or Arrow file.
///
/// # Errors
/// The file cannot be read, or has the name of another text format and the content of JSON lines.
pub(crate) fn format_of(file: &Source) -> Result<Format> {
    let name = file.path.file_name().unwrap_or_default().as_encoded_bytes();
    match format_of_name(name) {
        Some(format) => reject_json_lines(file, format).map(|()| format),
        None => Ok(match recognize::binary(&first_bytes(file)?, false) {
            Some(OtherFormat::Parquet) => Format::Parquet,
            Some(OtherFormat::Arrow) => Format::Arrow,
            _ => Format::Jsonl,
        }),
    }
}

fn first_bytes(source: &Source) -> Result<Vec<u8>> {
    let mut file = CorpusFile::of(source)?;
    recognize::first_bytes(&mut file).map_err(|cause| Error::io(&source.path, cause))
}

/// Rejects a file that has the name of another text format and starts with a JSON object. If it
/// were read as plain text, its braces and keys would become tokens.
pub(crate) fn reject_json_lines(file: &Source, named: Format) -> Result<()> {
    let is_text = matches!(named, Format::Text | Format::Csv | Format::Tsv);
    if is_text && starts_with_object(file) {
        Err(Error::JsonLinesOrNot {
            path: file.path.clone(),
            named,
        })
    } else {
        Ok(())
    }
}

/// Whether the first line that is not blank is a JSON object, as far as the head of the file
/// shows. False for a file that cannot be read: the error is reported when its documents are read.
fn starts_with_object(file: &Source) -> bool {
    let source = Source {
        format: Format::Text,
        ..file.clone()
    };
    let Ok(head) = read_head(&source) else {
        return false;
    };
    let text = head.strip_prefix(BOM).unwrap_or(&head).trim_ascii_start();
    let (line, is_complete) = match memchr::memchr(b'\n', text) {
        Some(end) => (&text[..end], true),
        None => (text, head.len() < HEAD_BYTES),
    };
    line.starts_with(b"{") && (!is_complete || check_json(line).is_ok())
}
