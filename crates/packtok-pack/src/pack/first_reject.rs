//! The first line of a rejects file, for messages.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use packtok_corpus::RecordNumber;

use crate::rejects::RejectRecord;

/// Position and reason of the first line in the rejects file at `path`, for the end of a message.
///
/// Empty if the file cannot be read, so that the caller still reports its own error.
pub(crate) fn first_reject(path: &Path) -> String {
    let mut line = Vec::new();
    let read = File::open(path).and_then(|file| BufReader::new(file).read_until(b'\n', &mut line));
    let record = read
        .ok()
        .and_then(|_| serde_json::from_slice::<RejectRecord<'_>>(&line).ok());
    record.map_or_else(String::new, |record| {
        let RejectRecord { source, reason, .. } = &record;
        let place = match (record.number, record.offset_bytes) {
            // The line in the shard is of no use for finding it in the source.
            (RecordNumber::LineInShard(_), Some(byte)) => format!("{source}: byte {byte}"),
            (number, _) => number.shown_in(source),
        };
        format!("; the first is {place}: {reason}")
    })
}
