//! Passes over the tokens of a file in steps, for copies of any width.

use std::ops::Range;

use packtok_formats::TokenFile;
use packtok_jobs::{Monitor, Progress};
use packtok_pbin::TokenWidth;

use crate::error::Result;

/// Tokens that are copied between two reports of progress.
const STEP_TOKENS: u64 = 16 << 20;

/// Calls `each` with the tokens of one step after the other, and reports progress in between.
///
/// # Errors
/// Those of `each`; the monitor breaks.
pub(super) fn for_each_step(
    file: &TokenFile,
    monitor: &mut Monitor<'_>,
    mut each: impl FnMut(Range<u64>) -> Result<()>,
) -> Result<()> {
    let (num_tokens, width) = (file.num_tokens(), file.width().bytes());
    let mut first = 0;
    while first < num_tokens {
        let stop = (first + STEP_TOKENS).min(num_tokens);
        each(first..stop)?;
        file.release_pages();
        first = stop;
        let progress = Progress {
            bytes_read: first * width,
            total_bytes: num_tokens * width,
            tokens: first,
            ..Progress::default()
        };
        if monitor(&progress).is_break() {
            return Err(packtok_jobs::Error::Cancelled.into());
        }
    }
    Ok(())
}

/// Appends ids in another width. Every id must fit.
pub(super) fn convert_width(bytes: &[u8], from: TokenWidth, to: TokenWidth, out: &mut Vec<u8>) {
    let ids = from.ids(bytes);
    match to {
        _ if from == to => out.extend_from_slice(bytes),
        TokenWidth::U8 => out.extend(ids.map(|id| id as u8)),
        TokenWidth::U16 => ids.for_each(|id| out.extend((id as u16).to_le_bytes())),
        TokenWidth::U32 => ids.for_each(|id| out.extend(id.to_le_bytes())),
    }
}
