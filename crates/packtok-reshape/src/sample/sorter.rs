//! Sorts any number of records in bounded memory: sorted runs in a temporary file, followed by a
//! merge.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Records in memory, 32 MiB.
const RUN_RECORDS: usize = 1 << 20;
/// Records of a run that are read at a time.
const READ_RECORDS: usize = 1 << 10;
const RECORD_BYTES: usize = 32;

/// A candidate for a sample, or a document of a stream. Records are sorted by group, then by key.
/// The remaining fields order documents with equal tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Record {
    /// Side and domain.
    pub(super) group: u32,
    /// A hash of the tokens.
    pub(super) key: u64,
    /// Number of the file.
    pub(super) file: u32,
    /// The first token in the file.
    pub(super) token: u64,
    /// Number of tokens.
    pub(super) len: u64,
}

impl Record {
    fn encode(self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..4].copy_from_slice(&self.group.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.file.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.key.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.token.to_le_bytes());
        bytes[24..].copy_from_slice(&self.len.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; RECORD_BYTES]) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        Self {
            group: word(0) as u32,
            file: (word(0) >> 32) as u32,
            key: word(8),
            token: word(16),
            len: word(24),
        }
    }
}

/// Receives records in any order.
pub(super) struct Sorter {
    folder: PathBuf,
    run_records: usize,
    buffer: Vec<Record>,
    spool: Option<File>,
    /// The end of each run in the spool, in records.
    ends: Vec<u64>,
}

impl Sorter {
    /// A sorter with its temporary file in `folder`.
    pub(super) fn new(folder: &Path) -> Self {
        Self::with_run(folder, RUN_RECORDS)
    }

    fn with_run(folder: &Path, run_records: usize) -> Self {
        Self {
            folder: folder.to_owned(),
            run_records,
            buffer: Vec::new(),
            spool: None,
            ends: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, record: Record) -> Result<()> {
        self.buffer.push(record);
        if self.buffer.len() >= self.run_records {
            self.spill()?;
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        self.buffer.sort_unstable();
        let io = |source| Error::Io {
            path: self.folder.clone(),
            source,
        };
        if self.spool.is_none() {
            self.spool = Some(tempfile::tempfile_in(&self.folder).map_err(io)?);
        }
        let mut bytes = Vec::with_capacity(READ_RECORDS * RECORD_BYTES);
        for records in self.buffer.chunks(READ_RECORDS) {
            bytes.clear();
            for record in records {
                bytes.extend_from_slice(&record.encode());
            }
            if let Some(spool) = &mut self.spool {
                spool.write_all(&bytes).map_err(io)?;
            }
        }
        let start = self.ends.last().copied().unwrap_or(0);
        self.ends.push(start + self.buffer.len() as u64);
        self.buffer.clear();
        Ok(())
    }

    /// Calls `each` with all records in order.
    pub(super) fn finish(mut self, each: &mut impl FnMut(Record) -> Result<()>) -> Result<()> {
        let Some(spool) = self.spool.take() else {
            self.buffer.sort_unstable();
            return self.buffer.into_iter().try_for_each(each);
        };
        self.spool = Some(spool);
        if !self.buffer.is_empty() {
            self.spill()?;
        }
        self.buffer = Vec::new();
        let Some(spool) = &self.spool else {
            return Ok(());
        };
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let mut runs: Vec<SortedRun> = starts
            .zip(&self.ends)
            .map(|(next, &end)| SortedRun {
                next,
                end,
                read: Vec::new(),
            })
            .collect();
        let mut heap = BinaryHeap::with_capacity(runs.len());
        let mut fill = |heap: &mut BinaryHeap<_>, run: usize| {
            let next = runs[run].next(spool).map_err(Error::io(&self.folder))?;
            heap.extend(next.map(|record| Reverse((record, run))));
            Ok::<_, Error>(())
        };
        for run in 0..self.ends.len() {
            fill(&mut heap, run)?;
        }
        while let Some(Reverse((record, run))) = heap.pop() {
            fill(&mut heap, run)?;
            each(record)?;
        }
        Ok(())
    }
}

/// A sorted run in the spool.
struct SortedRun {
    next: u64,
    end: u64,
    /// Records that were read, in reverse order: the next record is the last.
    read: Vec<Record>,
}

impl SortedRun {
    fn next(&mut self, spool: &File) -> std::io::Result<Option<Record>> {
        if self.read.is_empty() && self.next < self.end {
            let count = READ_RECORDS.min((self.end - self.next) as usize);
            let mut bytes = vec![0; count * RECORD_BYTES];
            spool.read_exact_at(&mut bytes, self.next * RECORD_BYTES as u64)?;
            let records = bytes.as_chunks().0.iter().rev();
            self.read.extend(records.map(Record::decode));
            self.next += count as u64;
        }
        Ok(self.read.pop())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_on_disk_give_the_same_order_as_sorting_in_memory(
            keys in prop::collection::vec((0u32..3, 0u64..50, any::<u32>(), any::<u64>()), 0..200),
            run_records in 1usize..40,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut sorter = Sorter::with_run(folder.path(), run_records);
            let mut expected = Vec::new();
            for (group, key, file, token) in keys {
                let record = Record { group, key, file, token, len: token / 2 };
                sorter.push(record).unwrap();
                expected.push(record);
            }
            expected.sort();
            let mut sorted = Vec::new();
            sorter.finish(&mut |record| { sorted.push(record); Ok(()) }).unwrap();
            prop_assert_eq!(sorted, expected);
        }
    }
}
