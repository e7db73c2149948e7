//! Going on where a join over the same output ended: which shards stand in the unfinished file already.

use crate::shard::ShardError;
use std::ops::ControlFlow;
use std::path::Path;

use packtok_pbin::{Checkpoint, Counts, TokenWidth, Writer};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::Marker;
use crate::error::{Error, Result};
use crate::journal::Journal;

/// Version of the journal.
const VERSION: u32 = 1;

/// What a journal begins with: all that the joined file's bytes hang on.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Head {
    packtok_join: u32,
    /// Fingerprint of the plan.
    plan: String,
    /// CRC32C of the checksums of all shards' trailers, which stand for what is in them.
    shards_crc32c: u32,
}

/// A join that has begun, perhaps long ago.
pub(super) struct Begun {
    journal: Journal,
    /// How many shards are in the file.
    num_shards: usize,
}

/// Takes the output for this process, and goes on with what is done already.
///
/// # Errors
/// Another process has the output, or a run that packs has begun it; what `tick` returned.
pub(super) fn begin(
    output: &Path,
    width: TokenWidth,
    markers: &[Marker],
    tick: &mut dyn FnMut() -> Result<()>,
) -> Result<(Begun, Writer)> {
    let mut journal = Journal::open(output, tick)?;
    match go_on(output, width, markers, &mut journal, tick) {
        Ok((num_shards, writer)) => Ok((
            Begun {
                journal,
                num_shards,
            },
            writer,
        )),
        Err(error) => Err(give_up(journal, error)),
    }
}

/// Number of shards that are in the unfinished file, and the file.
fn go_on(
    output: &Path,
    width: TokenWidth,
    markers: &[Marker],
    journal: &mut Journal,
    tick: &mut dyn FnMut() -> Result<()>,
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
        Some((found, checkpoints)) if found == head => checkpoints,
        Some(_) => begun_anew(journal, &head)?,
        None => {
            refuse_packing(journal)?;
            begun_anew(journal, &head)?
        }
    };
    let mut stop = None;
    let kept = Writer::keep(
        output,
        width,
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
        return Err(error);
    }
    let (writer, num_shards) = kept?;
    journal.truncate(num_shards)?;
    Ok((num_shards, writer))
}

fn begun_anew(journal: &mut Journal, head: &Head) -> Result<Vec<Checkpoint>> {
    journal.begin(head)?;
    Ok(Vec::new())
}

/// What a run has packed is not thrown away by joining under the same name.
fn refuse_packing(journal: &mut Journal) -> Result<()> {
    /// What an entry of such a run says of what is packed.
    #[derive(Deserialize)]
    struct Packed {
        #[serde(default)]
        counts: Counts,
    }
    let found = journal.read::<IgnoredAny, Packed>()?;
    let last = found.as_ref().and_then(|(_, entries)| entries.last());
    match last.is_some_and(|packed| packed.counts.documents > 0) {
        true => Err(Error::Shard(ShardError::JournalOfPacking {
            path: journal.folder().to_owned(),
        })),
        false => Ok(()),
    }
}

impl Begun {
    /// How many shards are in the file.
    pub(super) fn num_shards(&self) -> usize {
        self.num_shards
    }

    /// Notes that one more is.
    pub(super) fn note(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        self.num_shards += 1;
        self.journal.append(checkpoint)
    }

    /// Whether this process still has the output for itself.
    pub(super) fn check_owner(&self) -> Result<()> {
        self.journal.check_owner()
    }

    /// The output is published: nothing more is needed.
    pub(super) fn remove(self) -> Result<()> {
        self.journal.remove()
    }

    /// Gives up for `error`, and keeps the shards that are in the file for a later join.
    pub(super) fn give_up(self, error: Error) -> Error {
        give_up(self.journal, error)
    }
}

fn give_up(journal: Journal, error: Error) -> Error {
    if !journal.is_empty() {
        let source = Box::new(error);
        return Error::Kept { source };
    }
    // There is an error to be told already, and what stays is removed by the next join.
    let _ = journal.remove();
    error
}
