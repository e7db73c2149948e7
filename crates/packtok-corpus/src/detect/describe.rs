//! Describes a corpus without reading its documents, so that a caller can suggest options.

use serde::Serialize;

use crate::detect::text_format::read_head;
use crate::error::Result;
use crate::{BOM, Expansion, Format, Ignored, Selection, Source, expand};

/// A description of a corpus, from the names of its files and the head of the first source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Description {
    /// Format of its first source.
    pub format: Format,
    /// Names of the columns that contain texts in the first source (see `text_columns`).
    pub columns: Vec<String>,
    /// Number of sources.
    pub num_sources: usize,
    /// Total length of the sources on disk.
    pub source_bytes: u64,
    /// Files that are not read.
    pub ignored: Vec<Ignored>,
}

/// Describes the corpus of `inputs`, as [`expand`] takes them.
///
/// # Errors
/// As [`expand`]; the first source cannot be read.
pub fn describe(inputs: &[String], selection: &Selection) -> Result<Description> {
    let Expansion { sources, ignored } = expand(inputs, selection)?;
    Ok(Description {
        format: sources[0].format,
        columns: text_columns(&sources[0])?,
        num_sources: sources.len(),
        source_bytes: sources.iter().map(|source| source.bytes).sum(),
        ignored,
    })
}

/// Names of the columns of `source` that contain texts, in their order: the keys of the first
/// object with a string, or the columns of the table. Fields of structures are named by their
/// path, joined by dots. Empty for plain text and for CBOR.
///
/// # Errors
/// The source cannot be read.
fn text_columns(source: &Source) -> Result<Vec<String>> {
    match source.format {
        Format::Text | Format::Cbor | Format::Plugin => Ok(Vec::new()),
        Format::Jsonl => read_head(source).map(|head| keys_of_first_object(&head)),
        Format::Csv | Format::Tsv => crate::formats::csv::columns(source, None),
        #[cfg(feature = "tables")]
        Format::Parquet | Format::Arrow => crate::formats::table::text_columns(source),
        #[cfg(not(feature = "tables"))]
        Format::Parquet | Format::Arrow => Ok(Vec::new()),
    }
}

/// The keys with string values in the first line that is a JSON object. Empty if that line is
/// longer than `head`.
fn keys_of_first_object(head: &[u8]) -> Vec<String> {
    let text = head.strip_prefix(BOM).unwrap_or(head);
    let mut lines = text.split(|&byte| byte == b'\n');
    let first = lines.find(|line| !line.trim_ascii().is_empty());
    let object = first.and_then(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
    let mut names = Vec::new();
    if let Some(serde_json::Value::Object(object)) = object {
        add_texts(&object, "", &mut names);
    }
    names
}

fn add_texts(
    object: &serde_json::Map<String, serde_json::Value>,
    prefix: &str,
    names: &mut Vec<String>,
) {
    for (key, value) in object {
        let name = format!("{prefix}{key}");
        match value {
            serde_json::Value::String(_) => names.push(name),
            serde_json::Value::Object(inner) => add_texts(inner, &format!("{name}."), names),
            _ => {}
        }
    }
}
