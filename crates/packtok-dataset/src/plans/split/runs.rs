//! Runs of consecutive documents on one side: the start of each in the complete stream and on its
//! side.
//!
//! Responsible for the body of a split file. Runs alternate between the sides, and the first run
//! is on the train side, possibly empty. So run n is on the train side if n is even. Positions on
//! a side are called virtual.

use std::ops::Range;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::side::Side;
use crate::error::Result;
use crate::plans::plan_file::{
    DataFingerprint, Key, Kind, PlanFault, PlanFile, PlanFileWriter, u64_at,
};

const RECORD_BYTES: usize = 32;
const GROUP_BYTES: usize = 64 * 1024;

/// A run of consecutive documents on one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitRun {
    /// The numbers of the documents among all documents.
    pub documents: Range<u64>,
    /// The tokens of the documents, as a range of the complete stream.
    pub tokens: Range<u64>,
    /// Number of the first document on this side.
    pub first_virtual_document: u64,
    /// Position of the first token on this side.
    pub first_virtual_token: u64,
}

/// One side of an open split; cheap to share between threads.
#[derive(Debug)]
pub struct SplitRuns {
    file: PlanFile,
    side: Side,
    /// Number of runs of both sides.
    num_runs: u64,
}

/// The start of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Record {
    document: u64,
    token: u64,
    /// Number of held-out documents before it.
    validation_documents: u64,
    /// Number of held-out tokens before it.
    validation_tokens: u64,
}

impl Record {
    fn encode(self) -> [u8; RECORD_BYTES] {
        let numbers = [
            self.document,
            self.token,
            self.validation_documents,
            self.validation_tokens,
        ];
        let mut bytes = [0; RECORD_BYTES];
        for (bytes, number) in bytes.as_chunks_mut().0.iter_mut().zip(numbers) {
            *bytes = number.to_le_bytes();
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Self {
        Self {
            document: u64_at(bytes, 0),
            token: u64_at(bytes, 8),
            validation_documents: u64_at(bytes, 16),
            validation_tokens: u64_at(bytes, 24),
        }
    }

    /// Number of documents and tokens of `side` before it; wraps if the record is damaged.
    fn before(&self, side: Side) -> (u64, u64) {
        let (documents, tokens) = (self.validation_documents, self.validation_tokens);
        match side {
            Side::Train => (
                self.document.wrapping_sub(documents),
                self.token.wrapping_sub(tokens),
            ),
            Side::Validation => (documents, tokens),
        }
    }
}

impl SplitRuns {
    /// Opens one side of the split at `path`, which must be for `data`, in constant time.
    ///
    /// # Errors
    /// [`Error::PlanFile`](crate::Error::PlanFile) if the file is damaged, of another kind or for
    /// other data; [`Error::Pbin`](crate::Error::Pbin) if it cannot be read.
    pub fn open(path: &Path, data: &DataFingerprint, side: Side) -> Result<Self> {
        let file = PlanFile::open(path)?;
        let key = *file.key();
        if !matches!(key.kind, Kind::SplitByHash | Kind::SplitAt) {
            return Err(file.fault(PlanFault::Kind {
                found: key.kind.name(),
                expected: "a split",
            }));
        }
        file.require(&Key { data: *data, ..key })?;
        let num_runs = file.counts()[0];
        let found = file.body().len() as u64;
        let expected = num_runs
            .checked_add(1)
            .and_then(|records| records.checked_mul(RECORD_BYTES as u64));
        if expected != Some(found) {
            let expected = expected.unwrap_or(u64::MAX);
            return Err(file.fault(PlanFault::Length { found, expected }));
        }
        let runs = Self {
            file,
            side,
            num_runs,
        };
        runs.check_totals()?;
        Ok(runs)
    }

    /// The last record is the sum of all runs; no held-out total may exceed the overall total.
    fn check_totals(&self) -> Result<()> {
        let totals = self.record(self.num_runs);
        let is_possible = self.record(0) == Record::default()
            && totals.validation_documents <= totals.document
            && totals.validation_tokens <= totals.token;
        if is_possible {
            Ok(())
        } else {
            Err(self.damaged(self.num_runs))
        }
    }

    /// The side that was opened.
    pub fn side(&self) -> Side {
        self.side
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Total number of documents and tokens on both sides, as in the stream before the split.
    pub fn totals(&self) -> (u64, u64) {
        let totals = self.record(self.num_runs);
        (totals.document, totals.token)
    }

    /// Number of documents on this side.
    pub fn num_documents(&self) -> u64 {
        self.record(self.num_runs).before(self.side).0
    }

    /// Number of tokens on this side.
    pub fn num_tokens(&self) -> u64 {
        self.record(self.num_runs).before(self.side).1
    }

    /// Identifies the stream of this side.
    pub fn fingerprint(&self) -> DataFingerprint {
        let Key {
            kind,
            options,
            data,
        } = self.file.key();
        let mut hash = Sha256::new();
        hash.update(data);
        hash.update(kind.name());
        hash.update(options[0].to_le_bytes());
        hash.update(options[1].to_le_bytes());
        hash.update(self.side.name());
        hash.finalize().into()
    }

    /// Reads the complete file and verifies its checksum.
    ///
    /// # Errors
    /// [`Error::PlanFile`](crate::Error::PlanFile) if it is damaged.
    pub fn verify(&self) -> Result<()> {
        self.file.verify()
    }

    /// The run that contains document `i` of this side, which must be below
    /// [`SplitRuns::num_documents`].
    ///
    /// # Errors
    /// [`Error::PlanFile`](crate::Error::PlanFile) if the entries are damaged.
    pub fn run_of_document(&self, i: u64) -> Result<SplitRun> {
        let number = self.last_run(|record| record.before(self.side).0 <= i);
        self.run(number, |run| {
            is_within(i, run.first_virtual_document, &run.documents)
        })
    }

    /// The run that contains token `i` of this side, which must be below [`SplitRuns::num_tokens`].
    ///
    /// # Errors
    /// [`Error::PlanFile`](crate::Error::PlanFile) if the entries are damaged.
    pub fn run_of_token(&self, i: u64) -> Result<SplitRun> {
        let number = self.last_run(|record| record.before(self.side).1 <= i);
        self.run(number, |run| {
            is_within(i, run.first_virtual_token, &run.tokens)
        })
    }

    /// The number among all documents of document `i` of this side.
    ///
    /// # Errors
    /// As [`SplitRuns::run_of_document`].
    pub fn document(&self, i: u64) -> Result<u64> {
        let run = self.run_of_document(i)?;
        Ok(run.documents.start + (i - run.first_virtual_document))
    }

    /// The position among all tokens of token `i` of this side, and the number of tokens from
    /// there to the end of its run.
    ///
    /// # Errors
    /// As [`SplitRuns::run_of_token`].
    pub fn token(&self, i: u64) -> Result<(u64, u64)> {
        let run = self.run_of_token(i)?;
        let token = run.tokens.start + (i - run.first_virtual_token);
        Ok((token, run.tokens.end - token))
    }

    /// Binary search for the last run of this side whose start satisfies `is_before`. Returns the
    /// first run if no start does.
    fn last_run(&self, is_before: impl Fn(&Record) -> bool) -> u64 {
        let offset = match self.side {
            Side::Train => 0,
            Side::Validation => 1,
        };
        let number = |i: u64| 2 * i + offset;
        // Invariant: runs up to `number(low)` satisfy `is_before`; runs from `number(high)` on do
        // not.
        let (mut low, mut high) = (0, (self.num_runs + 1 - offset) / 2);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if is_before(&self.record(number(middle))) {
                low = middle
            } else {
                high = middle
            }
        }
        number(low)
    }

    /// SplitRun `number` if it exists, its record is valid and it satisfies `holds`.
    fn run(&self, number: u64, holds: impl Fn(&SplitRun) -> bool) -> Result<SplitRun> {
        if number >= self.num_runs {
            return Err(self.damaged(number));
        }
        let (first, next) = (self.record(number), self.record(number + 1));
        let totals = self.record(self.num_runs);
        let (first_virtual_document, first_virtual_token) = first.before(self.side);
        let run = SplitRun {
            documents: first.document..next.document,
            tokens: first.token..next.token,
            first_virtual_document,
            first_virtual_token,
        };
        let is_possible = first.document <= next.document
            && next.document <= totals.document
            && first.token <= next.token
            && next.token <= totals.token
            && first_virtual_document <= first.document
            && first_virtual_token <= first.token;
        if is_possible && holds(&run) {
            Ok(run)
        } else {
            Err(self.damaged(number))
        }
    }

    fn record(&self, i: u64) -> Record {
        Record::decode(&self.file.body()[i as usize * RECORD_BYTES..])
    }

    fn damaged(&self, number: u64) -> crate::Error {
        self.file.fault(PlanFault::Entry {
            what: "run",
            number,
        })
    }
}

/// Whether virtual position `i` is in a run that starts at virtual position `first`.
fn is_within(i: u64, first: u64, run: &Range<u64>) -> bool {
    i.checked_sub(first)
        .is_some_and(|offset| offset < run.end - run.start)
}

/// A split in the process of being written to a temporary file.
pub(super) struct RunsWriter {
    file: PlanFileWriter,
    group: Vec<u8>,
    /// The side of the current run.
    side: Side,
    num_runs: u64,
    /// Totals before the next document.
    end: Record,
}

impl RunsWriter {
    /// Starts a split that can be published as `dst`.
    pub(super) fn create(dst: &Path, key: Key) -> Result<Self> {
        Ok(Self {
            file: PlanFileWriter::create(dst, key)?,
            group: Record::default().encode().into(),
            side: Side::Train,
            num_runs: 1,
            end: Record::default(),
        })
    }

    /// Appends documents of one side.
    pub(super) fn push(&mut self, side: Side, num_documents: u64, num_tokens: u64) -> Result<()> {
        if side != self.side {
            self.side = side;
            self.num_runs += 1;
            self.append()?;
        }
        self.end.document += num_documents;
        self.end.token += num_tokens;
        if side == Side::Validation {
            self.end.validation_documents += num_documents;
            self.end.validation_tokens += num_tokens;
        }
        Ok(())
    }

    /// Finishes the split and publishes it.
    pub(super) fn publish(mut self) -> Result<()> {
        self.append()?;
        self.file.append(&self.group)?;
        self.file.publish([self.num_runs, 0, 0, 0, 0])
    }

    fn append(&mut self) -> Result<()> {
        self.group.extend_from_slice(&self.end.encode());
        if self.group.len() >= GROUP_BYTES {
            self.file.append(&self.group)?;
            self.group.clear();
        }
        Ok(())
    }
}
