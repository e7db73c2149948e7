//! Merges the rejects of all shards into one file, with line numbers counted from the start of each
//! source.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use packtok_corpus::RecordNumber;
use packtok_corpus::rejects::{RejectRecord, Rejects};

use super::Marker;
use super::marker::differing;
use crate::error::{Error, Result};

/// Number of lines of the source in which the shards so far ended.
#[derive(Debug, Default)]
pub(super) struct LinesBefore {
    source: u64,
    lines: u64,
}

impl LinesBefore {
    /// Number of lines of a shard's first source that are in earlier shards.
    fn of(&self, marker: &Marker) -> u64 {
        let is_same = |first: super::CorpusOffset| first.source == self.source;
        if marker.first.is_some_and(is_same) {
            self.lines
        } else {
            0
        }
    }

    /// Advances past a shard.
    fn pass(&mut self, marker: &Marker) {
        for part in &marker.parts {
            if part.source != self.source {
                *self = Self {
                    source: part.source,
                    lines: 0,
                };
            }
            self.lines += part.lines;
        }
    }

    /// Appends the rejects of the next shard, which are at `path`.
    pub(super) fn append(
        &mut self,
        path: &Path,
        marker: &Marker,
        rejects: &mut Rejects,
    ) -> Result<()> {
        let num_before = self.of(marker);
        self.pass(marker);
        if marker.counts.rejected == 0 {
            return Ok(());
        }
        let io = |cause| Error::io(path, cause);
        let mut file = BufReader::new(File::open(path).map_err(io)?);
        let mut text = Vec::new();
        let mut num_lines = 0;
        while file.read_until(b'\n', &mut text).map_err(io)? > 0 {
            num_lines += 1;
            let mut record: RejectRecord<'_> =
                serde_json::from_slice(&text).map_err(|source| Error::RejectLine {
                    path: path.into(),
                    line: num_lines,
                    source,
                })?;
            if let RecordNumber::LineInShard(line) = record.number {
                record.number = RecordNumber::Line(num_before + line);
            }
            rejects.write(&record)?;
            text.clear();
        }
        let (found, expected) = (num_lines.to_string(), marker.counts.rejected.to_string());
        differing(path, "its number of lines", found, expected)
    }
}
