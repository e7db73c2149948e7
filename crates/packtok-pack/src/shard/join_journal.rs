//! Resumes an unfinished join with the same output: records which shards the unfinished file
//! contains.

use std::ops::ControlFlow;
use std::path::Path;

use packtok_jobs::journal::Journal;
use packtok_pbin::{Checkpoint, Counts, TokenWidth, Writer};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::Marker;
use crate::error::{Error, Result};

/// Version of the journal.
const VERSION: u32 = 1;

/// The head of the journal: everything that determines the joined file's bytes.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Head {
    packtok_join: u32,
    /// Fingerprint of the plan.
    plan: String,
    /// CRC32C of the checksums of all shards' trailers, which identify their content.
    shards_crc32c: u32,
}

/// A started join, possibly resumed.
pub(super) struct StartedJoin {
    journal: Journal,
    /// Number of shards in the file.
    num_shards: usize,
}

/// Takes ownership of the output, and resumes an unfinished join.
///
/// # Errors
/// Another process owns the output, or an unfinished packing run has the same output; the error of
/// `tick`.
pub(super) fn begin(
    output: &Path,
    shape: (TokenWidth, bool),
    markers: &[Marker],
    tick: &mut dyn FnMut() -> packtok_jobs::Result<()>,
) -> Result<(StartedJoin, Writer)> {
    let mut journal = Journal::open(output, tick)?;
    match resume(output, shape, markers, &mut journal, tick) {
        Ok((num_shards, writer)) => Ok((
            StartedJoin {
                journal,
                num_shards,
            },
            writer,
        )),
        Err(error) => Err(give_up(journal, error)),
    }
}

/// The number of shards that the unfinished file contains, and the file.
fn resume(
    output: &Path,
    shape: (TokenWidth, bool),
    markers: &[Marker],
    journal: &mut Journal,
    tick: &mut dyn FnMut() -> packtok_jobs::Result<()>,
) -> Result<(usize, Writer)> {
    let head = Head {
        packtok_join: VERSION,
        plan: markers
            .first()
            .map_or_else(String::new, |marker| marker.plan.clone()),
        shards_crc32c: markers.iter().fold(0, |crc, marker| {
            crc32c::crc32c_append(crc, &marker.trailer_crc32c.to_le_bytes())
        }),
    };
    let checkpoints = match journal.read::<Head, Checkpoint>()? {
        Some((recorded, checkpoints)) if recorded == head => checkpoints,
        Some(_) => restarted(journal, &head)?,
        None => {
            reject_packing_run(journal)?;
            restarted(journal, &head)?
        }
    };
    let mut stop = None;
    let kept = Writer::keep(
        output,
        shape,
        journal.folder(),
        &checkpoints,
        &mut |_| match tick() {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                stop = Some(error);
                ControlFlow::Break(())
            }
        },
    );
    if let Some(error) = stop {
        return Err(error.into());
    }
    let (writer, num_shards) = kept?;
    journal.truncate(num_shards)?;
    Ok((num_shards, writer))
}

fn restarted(journal: &mut Journal, head: &Head) -> Result<Vec<Checkpoint>> {
    journal.begin(head)?;
    Ok(Vec::new())
}

/// Rejects the journal of a packing run, so that a join with the same output does not discard its
/// work.
fn reject_packing_run(journal: &mut Journal) -> Result<()> {
    /// The entry of a packing run, reduced to its counts.
    #[derive(Deserialize)]
    struct Packed {
        #[serde(default)]
        counts: Counts,
    }
    let recorded = journal.read::<IgnoredAny, Packed>()?;
    let last = recorded.as_ref().and_then(|(_, entries)| entries.last());
    if last.is_some_and(|packed| packed.counts.documents > 0) {
        Err(Error::JournalOfPacking {
            path: journal.folder().to_owned(),
        })
    } else {
        Ok(())
    }
}

impl StartedJoin {
    /// Number of shards in the file.
    pub(super) fn num_shards(&self) -> usize {
        self.num_shards
    }

    /// Records that another shard is in the file.
    pub(super) fn note(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        self.num_shards += 1;
        Ok(self.journal.append(checkpoint)?)
    }

    /// Checks that this process still owns the output.
    pub(super) fn check_owner(&self) -> Result<()> {
        Ok(self.journal.check_owner()?)
    }

    /// Removes the journal after the output was published.
    pub(super) fn remove(self) -> Result<()> {
        Ok(self.journal.remove()?)
    }

    /// Stops with `error`, and keeps the shards in the file for a later join.
    pub(super) fn give_up(self, error: Error) -> Error {
        give_up(self.journal, error)
    }
}

fn give_up(journal: Journal, error: Error) -> Error {
    if !journal.is_empty() {
        let source = Box::new(error);
        return Error::Kept { source };
    }
    // The first error is reported; the next join removes the rest of the journal.
    let _ = journal.remove();
    error
}
