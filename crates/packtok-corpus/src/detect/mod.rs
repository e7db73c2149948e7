//! Determines the format of a file for which the user names none, and names what a file is instead
//! of its expected format.

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

/// The format of `file`, whatever it has for one.
///
/// The name decides if it ends like the names of a format. A file with any other name is JSON lines,
/// unless it is a Parquet or Arrow file.
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

/// Rejects a file with the name of another text format that starts with a JSON object: as a plain
/// text, its braces and keys would become tokens.
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

/// Whether the first line that is not blank is a JSON object, as far as the start of the file shows
/// it. A file that cannot be read is reported when its documents are.
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
