//! Counts of the documents and tokens that a stream dropped.

use std::sync::Mutex;

use packtok_corpus::OnBadDocument;
use packtok_corpus::Reason;
use packtok_jobs::lock;
use serde::Serialize;

use super::lane_files::LaneShares;
use super::parallel::Outcome;
use super::sample::SampleOrigin;
use crate::error::{Error, Result};

/// Maximum number of bad documents that are listed; all are counted.
const MAX_LISTED: usize = 1000;

/// Name in messages for a document that is not from a file.
const A_SAMPLE: &str = "a sample";

/// A document that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bad {
    /// File and position of the document.
    pub at: String,
    /// The reason why the document was skipped.
    pub reason: String,
}

impl Bad {
    fn new(place: Option<&SampleOrigin>, reason: &Reason) -> Self {
        Self {
            at: place.map_or_else(|| A_SAMPLE.to_owned(), SampleOrigin::to_string),
            reason: reason.to_string(),
        }
    }
}

/// Counts bad documents and dropped tokens.
///
/// Documents that are read ahead are counted too, and documents that are recomputed after a resume
/// are counted again.
#[derive(Debug, Default)]
pub(super) struct Report(Mutex<StreamCounts>);

/// The counts of a report.
#[derive(Debug, Default, Clone, Serialize)]
pub struct StreamCounts {
    /// Bad documents that were skipped.
    pub num_bad: u64,
    /// The first bad documents.
    pub listed: Vec<Bad>,
    /// Tokens that are in no row: those of dropped incomplete rows, and of documents that are too
    /// long.
    pub num_dropped_tokens: u64,
    /// The bytes that each lane reads, for each source of files.
    pub lane_shares: Vec<LaneShares>,
}

impl Report {
    fn add(&self, bad: Bad) {
        let mut counts = lock(&self.0);
        counts.num_bad += 1;
        if counts.listed.len() < MAX_LISTED {
            counts.listed.push(bad);
        }
    }

    pub(super) fn set_lane_shares(&self, shares: Vec<LaneShares>) {
        lock(&self.0).lane_shares = shares;
    }

    /// Counts tokens that are in no row.
    pub(super) fn add_dropped(&self, num_tokens: usize) {
        if num_tokens > 0 {
            lock(&self.0).num_dropped_tokens += num_tokens as u64;
        }
    }

    /// Skips the bad document at `place`, or returns the error.
    pub(super) fn judge(
        &self,
        place: Option<&SampleOrigin>,
        reason: &Reason,
        on_bad_document: OnBadDocument,
    ) -> Result<Outcome> {
        match on_bad_document {
            OnBadDocument::Skip => {
                self.add(Bad::new(place, reason));
                Ok(Outcome::Drop)
            }
            OnBadDocument::Fail => Err(Error::BadDocument {
                at: place.map_or_else(|| A_SAMPLE.to_owned(), SampleOrigin::shown_with_line),
                reason: reason.to_string(),
            }),
        }
    }

    /// The counts so far.
    pub(super) fn counts(&self) -> StreamCounts {
        lock(&self.0).clone()
    }
}
