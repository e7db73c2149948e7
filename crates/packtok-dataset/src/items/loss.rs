//! Selects the labels that count in the loss by two markers: tokens that begin and end the counted
//! parts of a document.
//!
//! A token counts if the last marker before it in its document is the begin marker and the token
//! itself is not a marker. At the start of a document, no token counts.

use std::ops::Range;

use packtok_pbin::TokenWidth;

use crate::error::Result;
use crate::files::file_set::Files;

/// The markers between which labels count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossMarkers {
    /// Tokens after this marker count.
    pub begin: u32,
    /// Tokens after this marker do not count.
    pub end: u32,
}

impl LossMarkers {
    /// Calls `ignore` with the ranges of `tokens` that do not count, as positions from the start
    /// of `tokens`. All tokens are of one file. Adjacent ranges may be reported separately.
    ///
    /// To determine the state at the first token, reads its document backwards to the last marker.
    ///
    /// # Errors
    /// The errors of reading the file.
    pub(super) fn ignored(
        self,
        files: &Files,
        file: usize,
        tokens: Range<u64>,
        mut ignore: impl FnMut(Range<usize>),
    ) -> Result<()> {
        let mut start = tokens.start;
        for document in files.token_file(file)?.documents_from(tokens.start)? {
            if start >= tokens.end {
                break;
            }
            let (_, document) = document?;
            let end = document.end.min(tokens.end);
            if end <= start {
                continue;
            }
            let before = files.tokens(file, document.start..start)?;
            let counts = self.last_of(files.width(), before).unwrap_or(false);
            let origin = (start - tokens.start) as usize;
            let bytes = files.tokens(file, start..end)?;
            self.ignored_from(files.width(), bytes, counts, |range| {
                ignore(origin + range.start..origin + range.end);
            });
            start = end;
        }
        Ok(())
    }

    /// Whether a token after `bytes` counts; `None` if `bytes` contain no marker.
    fn last_of(self, width: TokenWidth, bytes: &[u8]) -> Option<bool> {
        match width {
            TokenWidth::U8 => self.last_of_each(bytes, u8::from_le_bytes),
            TokenWidth::U16 => self.last_of_each(bytes, u16::from_le_bytes),
            TokenWidth::U32 => self.last_of_each(bytes, u32::from_le_bytes),
        }
    }

    fn last_of_each<const N: usize, W: Into<u32>>(
        self,
        bytes: &[u8],
        decode: impl Fn([u8; N]) -> W,
    ) -> Option<bool> {
        let (tokens, _) = bytes.as_chunks::<N>();
        let mut ids = tokens.iter().rev().map(|&token| decode(token).into());
        ids.find_map(|id| self.after(id))
    }

    fn ignored_from(
        self,
        width: TokenWidth,
        bytes: &[u8],
        counts: bool,
        ignore: impl FnMut(Range<usize>),
    ) {
        match width {
            TokenWidth::U8 => self.ignored_of_each(bytes, counts, u8::from_le_bytes, ignore),
            TokenWidth::U16 => self.ignored_of_each(bytes, counts, u16::from_le_bytes, ignore),
            TokenWidth::U32 => self.ignored_of_each(bytes, counts, u32::from_le_bytes, ignore),
        }
    }

    fn ignored_of_each<const N: usize, W: Into<u32>>(
        self,
        bytes: &[u8],
        mut counts: bool,
        decode: impl Fn([u8; N]) -> W,
        mut ignore: impl FnMut(Range<usize>),
    ) {
        let (tokens, _) = bytes.as_chunks::<N>();
        // Start of the current range that does not count; only used while `counts` is false.
        let mut start = 0;
        for (i, &token) in tokens.iter().enumerate() {
            let Some(next) = self.after(decode(token).into()) else {
                continue;
            };
            match (counts, next) {
                (false, true) => ignore(start..i + 1),
                (true, false) => start = i,
                (true, true) => ignore(i..i + 1),
                (false, false) => {}
            }
            counts = next;
        }
        if !counts {
            ignore(start..tokens.len());
        }
    }

    /// Whether the tokens after `id` count; `None` if `id` is not a marker.
    fn after(self, id: u32) -> Option<bool> {
        if id == self.begin {
            Some(true)
        } else if id == self.end {
            Some(false)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_equal_a_loop_over_the_tokens() {
        let markers = LossMarkers { begin: 1, end: 2 };
        // All sequences of up to six tokens from an alphabet in which 1 and 2 are the markers.
        for len in 0..7_u32 {
            for number in 0..3_u32.pow(len) {
                let tokens: Vec<u8> = (0..len)
                    .map(|i| (number / 3_u32.pow(i) % 3) as u8)
                    .collect();
                for at_start in [false, true] {
                    let mut is_open = at_start;
                    let mut expected = Vec::new();
                    for &token in &tokens {
                        expected.push(is_open && token == 0);
                        is_open = token == 1 || (is_open && token != 2);
                    }
                    let mut is_kept = vec![true; tokens.len()];
                    markers.ignored_from(TokenWidth::U8, &tokens, at_start, |range| {
                        is_kept[range].fill(false);
                    });
                    assert_eq!(is_kept, expected, "{tokens:?} {at_start}");
                    let last = markers.last_of(TokenWidth::U8, &tokens);
                    assert_eq!(last.unwrap_or(at_start), is_open, "{tokens:?}");
                }
            }
        }
    }
}
