//! The largest ids in files of raw tokens; see [`LargestIds`].

use packtok_formats::raw::RawFile;
use packtok_formats::{LargestIds, TokenRead};
use packtok_jobs::{Monitor, Progress, report_progress};

use crate::error::Result;
use crate::files::manifest::Entry;

/// Number of tokens read between two progress reports. It is a multiple of four bytes for every
/// width.
const STEP_TOKENS: u64 = 1 << 22;

/// The largest ids in the files of `entries`, without the zeros at their ends.
///
/// # Errors
/// A file cannot be mapped, or is shorter than its entry; [`packtok_jobs::Error::Cancelled`].
pub fn largest_ids(entries: &[Entry], monitor: &mut Monitor<'_>) -> Result<LargestIds> {
    let mut largest_ids = LargestIds::default();
    let mut progress = Progress {
        total_bytes: entries
            .iter()
            .map(|entry| entry.tokens * entry.token_bytes)
            .sum(),
        ..Progress::default()
    };
    for entry in entries {
        let file = RawFile::open(&entry.path, entry.width(), entry.tokens)?;
        let mut start = 0;
        while start < entry.tokens {
            let stop = entry.tokens.min(start + STEP_TOKENS);
            largest_ids.add(file.tokens(start..stop)?);
            progress.bytes_read += (stop - start) * entry.token_bytes;
            progress.tokens += stop - start;
            report_progress(monitor, &progress)?;
            start = stop;
        }
    }
    Ok(largest_ids)
}
