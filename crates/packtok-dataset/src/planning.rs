//! Finds plans and splits of the documents of pbins, or builds them.
//!
//! Responsible for feeding a stream's documents to a planner and for cancellation.
//! [`best_fit`](crate::plans::best_fit) and [`whole_documents`](crate::plans::whole_documents)
//! compute blocks; [`cache`](crate::plans::cache) locates files.

use std::ops::Range;
use std::path::{Path, PathBuf};

use packtok_jobs::{Monitor, Progress, report_progress};

use crate::error::{Error, Result};
use crate::items::token_stream::{FileSpan, TokenStream};
use crate::plans::best_fit::plan_best_fit;
use crate::plans::cache::find_or_build;
use crate::plans::plan::{PlanWriter, check_block_tokens};
use crate::plans::plan_file::{Key, Kind};
use crate::plans::split::{self, Document};
use crate::plans::whole_documents::plan_whole_documents;

/// Number of documents between two checks for cancellation.
const CHECK_DOCUMENTS: u64 = 1 << 12;
/// Number of tokens after which to check even if there were fewer documents.
const CHECK_TOKENS: u64 = 1 << 22;

/// The rule for planning blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planner {
    /// See [`plan_best_fit`].
    BestFit {
        /// Inputs of a block.
        context_length: u64,
    },
    /// See [`plan_whole_documents`].
    WholeDocuments {
        /// Tokens of a block.
        block_size: u64,
    },
}

/// The rule that selects the held-out documents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HoldOutRule {
    /// Selects about `fraction` of the documents by a hash of their tokens.
    Hash {
        /// Fraction of the documents, 0 to 1.
        fraction: f64,
        /// Seed of the hash.
        seed: u64,
    },
    /// A number of documents at the end.
    Last {
        /// The number of documents.
        num_documents: u64,
    },
    /// A fraction of the documents at the end, rounded to the nearest number.
    LastFraction {
        /// Fraction of the documents, 0 to 1.
        fraction: f64,
    },
    /// Selects all documents from a given document on.
    From {
        /// The first held-out document.
        document: u64,
    },
}

/// Returns the path of the plan of `stream`. Builds the plan in one of `folders` if none contains
/// it.
///
/// # Errors
/// [`Error::BlockTokens`], [`Error::NoWritableFolder`], [`packtok_jobs::Error::Cancelled`], and
/// the errors of reading the files.
pub fn find_or_plan(
    stream: &TokenStream,
    planner: Planner,
    folders: &[PathBuf],
    monitor: &mut Monitor<'_>,
) -> Result<PathBuf> {
    let (kind, name, block_tokens) = match planner {
        Planner::BestFit { context_length } => (Kind::BestFit, "context_length", context_length),
        Planner::WholeDocuments { block_size } => (Kind::WholeDocuments, "block_size", block_size),
    };
    let key = Key {
        kind,
        options: [check_block_tokens(name, block_tokens)?, 0],
        data: stream.fingerprint(),
    };
    find_or_build(folders, &key, monitor, &mut |dst, monitor| {
        let mut writer = PlanWriter::create(dst, key)?;
        let documents = watched(stream, monitor);
        let mut emit = |pieces: &[_]| writer.push(pieces);
        let num_dropped_tokens = match kind {
            Kind::WholeDocuments => plan_whole_documents(documents, block_tokens, &mut emit)?,
            _ => plan_best_fit(documents, block_tokens, &mut emit).map(|()| 0)?,
        };
        writer.publish(stream.num_tokens(), num_dropped_tokens)
    })
}

/// Returns the path of the split of `stream`. Builds the split in one of `folders` if none
/// contains it.
///
/// # Errors
/// [`Error::Fraction`], [`Error::SplitOfSplit`], [`Error::NoSuchSplit`] if there are too few
/// documents, and as [`find_or_plan`].
pub fn find_or_split(
    stream: &TokenStream,
    rule: HoldOutRule,
    folders: &[PathBuf],
    monitor: &mut Monitor<'_>,
) -> Result<PathBuf> {
    if stream.is_selected() {
        return Err(Error::SplitOfSplit);
    }
    let data = stream.fingerprint();
    let key = match rule {
        HoldOutRule::Hash { fraction, seed } => {
            split::key_by_hash(data, check_fraction(fraction)?, seed)
        }
        _ => split::key_at(data, first_held_out(rule, stream.num_documents())?),
    };
    find_or_build(folders, &key, monitor, &mut |dst, monitor| {
        if key.kind == Kind::SplitByHash {
            let documents = watched(stream, monitor).map(|tokens| document(stream, tokens?));
            return split::write_by_hash(dst, key, documents, stream.files().width());
        }
        write_at(stream, dst, key)
    })
}

/// The first held-out document.
fn first_held_out(rule: HoldOutRule, all: u64) -> Result<u64> {
    let num_held_out = match rule {
        // Writing the split checks that this document exists.
        HoldOutRule::From { document } => return Ok(document),
        HoldOutRule::Last { num_documents } => num_documents,
        HoldOutRule::LastFraction { fraction } | HoldOutRule::Hash { fraction, .. } => {
            (check_fraction(fraction)? * all as f64).round() as u64
        }
    };
    all.checked_sub(num_held_out).ok_or(Error::TooFewDocuments {
        expected: num_held_out,
        found: all,
    })
}

fn check_fraction(fraction: f64) -> Result<f64> {
    if (0.0..=1.0).contains(&fraction) {
        Ok(fraction)
    } else {
        Err(Error::Fraction { found: fraction })
    }
}

fn write_at(stream: &TokenStream, dst: &Path, key: Key) -> Result<()> {
    let (num_documents, num_tokens) = (stream.num_documents(), stream.num_tokens());
    let first = key.options[0];
    let num_train_tokens = if first < num_documents {
        stream.document(first)?.start
    } else {
        num_tokens
    };
    split::write_at(dst, key, num_train_tokens, num_documents, num_tokens)
}

/// A document with its bytes. A document is always a single piece.
fn document(stream: &TokenStream, tokens: Range<u64>) -> Result<Document<'_>> {
    if tokens.is_empty() {
        return Ok(Document { tokens, bytes: &[] });
    }
    let FileSpan {
        file,
        tokens: in_file,
    } = stream.piece(tokens.clone())?;
    let bytes = stream.files().tokens(file, in_file)?;
    Ok(Document { tokens, bytes })
}

/// The documents of a stream. Ends with [`packtok_jobs::Error::Cancelled`] when the caller requests to stop.
fn watched<'a>(
    stream: &'a TokenStream,
    monitor: &'a mut Monitor<'_>,
) -> impl Iterator<Item = Result<Range<u64>>> + 'a {
    let width = stream.files().width().bytes();
    let total_bytes = stream.num_tokens() * width;
    let mut next_check = (CHECK_DOCUMENTS, CHECK_TOKENS);
    (1..)
        .zip(stream.documents())
        .map(move |(documents, document)| {
            let document = document?;
            let tokens = document.end;
            if documents >= next_check.0 || tokens >= next_check.1 {
                next_check = (documents + CHECK_DOCUMENTS, tokens + CHECK_TOKENS);
                let progress = Progress {
                    bytes_read: tokens * width,
                    total_bytes,
                    documents,
                    tokens,
                    ..Progress::default()
                };
                report_progress(monitor, &progress)?;
            }
            Ok(document)
        })
}
