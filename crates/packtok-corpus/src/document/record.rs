//! One record of a corpus: its position and its content, from which the text may still have to be
//! extracted.

use crate::field::NoText;

/// A record of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Offset of the first byte of the record in the uncompressed source. For a table of row
    /// groups and for a source plug-in, the index of the row or document, from 0.
    pub offset: u64,
    /// Length of the record in the source in bytes; the length of a line excludes the `\n`.
    pub len_bytes: u64,
    /// The content of the record.
    pub body: Body<'a>,
}

/// The content of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// A line of JSON, without the `\n` and a `\r` before it. [`crate::field`] extracts the text.
    JsonLine(&'a [u8]),
    /// The bytes of a text in a source that is not JSON. They may not be UTF-8.
    Text(&'a [u8]),
    /// A row of a table or an item of a source plug-in that has no text.
    NoText(NoText),
    /// The record is longer than `max_document_bytes`, so its content was not kept.
    Oversize,
}

impl Record<'_> {
    /// Whether the record is a line of JSON whitespace only, which contains no document.
    pub fn is_blank(&self) -> bool {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        matches!(self.body, Body::JsonLine(line) if line.iter().all(is_space))
    }

    /// The bytes of a line, and whether it is oversize, for comparisons.
    #[cfg(test)]
    pub(crate) fn line(&self) -> (Vec<u8>, bool) {
        match self.body {
            Body::JsonLine(line) => (line.to_vec(), false),
            body @ (Body::Text(_) | Body::NoText(_)) => panic!("expected a line, found {body:?}"),
            Body::Oversize => (Vec::new(), true),
        }
    }
}
