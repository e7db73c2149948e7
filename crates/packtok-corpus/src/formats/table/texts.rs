//! The texts of a group of rows.

use super::fault::Fault;
use crate::field::NoText;

/// Decodes the texts of one group.
pub(super) trait Texts: Send {
    /// The next row; `None` at the end of the group.
    fn next_text(&mut self, max_bytes: u64) -> Result<Option<Text<'_>>, Fault>;
}

/// The value of the text column in one row.
pub(super) enum Text<'a> {
    /// The bytes of a text.
    Bytes(&'a [u8]),
    /// A text that is too long to keep; its length in bytes.
    Oversize(u64),
    /// No text.
    NoText(NoText),
}

/// The rows of a group whose column contains no texts.
pub(super) struct NoTexts {
    rows: u64,
    found: &'static str,
}

impl NoTexts {
    pub(super) fn new(rows: u64, found: &'static str) -> Self {
        Self { rows, found }
    }
}

impl Texts for NoTexts {
    fn next_text(&mut self, _: u64) -> Result<Option<Text<'_>>, Fault> {
        let Some(rows) = self.rows.checked_sub(1) else {
            return Ok(None);
        };
        self.rows = rows;
        Ok(Some(Text::NoText(NoText::NotText(self.found))))
    }
}
