//! One record of a corpus: its place, and a document whose text may still have to be extracted.

use crate::field::NoText;

/// A record of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Offset of its first byte in the uncompressed source; in a table of row groups, its row from 0;
    /// in a source plug-in, its number from 0.
    pub offset: u64,
    /// Its length in the source in bytes; for a line, without the `\n`.
    pub len_bytes: u64,
    /// Its content.
    pub body: Body<'a>,
}

/// The content of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// A line of JSON, without the `\n` and one `\r` before it; [`crate::field`] finds the text.
    JsonLine(&'a [u8]),
    /// The bytes of the text itself, which may not be UTF-8, of a source that is not JSON.
    Text(&'a [u8]),
    /// A row of a table, or a document of a source plug-in, without text.
    NoText(NoText),
    /// Longer than `max_document_bytes`, so it was not kept.
    Oversize,
}

impl Record<'_> {
    /// Whether it is a line of only JSON whitespace, which contains no document.
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
