//! Reports the use of every document.

use std::path::PathBuf;

use packtok_formats::mds::{INDEX_FILE, MARKER_FILE};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::sample::output::{Output, Part};
use crate::sample::plan::Plan;
use crate::sample::publish;
use crate::sample::recipe::{Recipe, Side, Task};

/// The samples that were drawn, and the documents that were not used.
#[derive(Debug, Serialize)]
pub struct SampleReport {
    /// The folder.
    pub output: PathBuf,
    /// Samples of the test side.
    pub test_samples: u64,
    /// Samples of the train side.
    pub train_samples: u64,
    /// Chunks of all written retrieval shards.
    pub retrieval_samples: u64,
    /// Outputs that were finished before.
    pub kept: u64,
    /// Whether only a shard was written, which `--join` publishes.
    pub is_part: bool,
    /// The files that this process wrote.
    #[serde(flatten)]
    pub written: Written,
    /// Every side of every domain.
    pub sides: Vec<SideReport>,
}

/// The files of a process: with a shard, the files of its parts; otherwise, the files of all
/// published outputs.
#[derive(Debug, Default, Serialize)]
pub struct Written {
    /// Samples of the shard.
    pub shard_samples: u64,
    /// Number of tokens in these samples.
    pub shard_tokens: u64,
    /// The files.
    pub files: Vec<WrittenFile>,
}

/// A file that proves finished work: as long as the file exists, the work need not be repeated.
#[derive(Debug, Serialize, PartialEq)]
pub struct WrittenFile {
    /// Possible paths of the file. A part has another path before it is published than after.
    pub places: Vec<PathBuf>,
    /// Size of the file in bytes.
    pub bytes: u64,
}

impl Written {
    /// The files that a finished task has written; `parts` are the parts of this task.
    pub(super) fn new(
        outputs: &[Output],
        finished: &[bool],
        parts: &[Part],
        task: Task,
    ) -> Result<Self> {
        let mut written = Self {
            shard_samples: parts
                .iter()
                .map(|part| part.samples.end - part.samples.start)
                .sum(),
            ..Self::default()
        };
        if !matches!(task, Task::Shard { .. }) {
            for output in outputs {
                written.push_published(output)?;
            }
            return Ok(written);
        }
        for part in parts {
            let output = &outputs[part.output];
            if finished[part.output] {
                written.push_published(output)?;
            } else if let Some(state) = publish::state(output, part) {
                // Without its marker, the file would be written again wherever it is.
                written.push(publish::marker(output, part))?;
                let (name, bytes) = state.file();
                written.files.push(WrittenFile {
                    places: publish::places(output, part, name).into(),
                    bytes,
                });
            }
        }
        Ok(written)
    }

    /// Adds the file of an output that is published last.
    fn push_published(&mut self, output: &Output) -> Result<()> {
        let is_retrieval = output.side == Side::Retrieval;
        let path = output.folder.join(if is_retrieval {
            MARKER_FILE
        } else {
            INDEX_FILE
        });
        self.push(path)
    }

    /// Adds a file that is in its only place.
    fn push(&mut self, path: PathBuf) -> Result<()> {
        let bytes = std::fs::metadata(&path).map_err(Error::io(&path))?.len();
        let file = WrittenFile {
            places: vec![path],
            bytes,
        };
        // The outputs of a retrieval shard share its marker, and the parts of an output its index.
        if self.files.last() != Some(&file) {
            self.files.push(file);
        }
        Ok(())
    }
}

/// Counts of one side of one domain. Every document is used, too short, or only in samples over
/// the quota.
#[derive(Debug, Serialize)]
pub struct SideReport {
    /// The domain.
    pub domain: String,
    /// The side.
    pub side: Side,
    /// Documents on the side.
    pub documents: u64,
    /// Number of tokens in these documents.
    pub tokens: u64,
    /// Documents without a sample.
    pub too_short: u64,
    /// Number of tokens in the documents without a sample.
    pub too_short_tokens: u64,
    /// Tokens after the last windows.
    pub tail_tokens: u64,
    /// Samples that can be taken.
    pub available: u64,
    /// Samples that were requested.
    pub requested: u64,
    /// Samples that were taken.
    pub used: u64,
    /// Available samples that were not taken, because the quota was reached.
    pub over_quota: u64,
}

impl SampleReport {
    pub(super) fn new(
        recipe: &Recipe,
        plan: &Plan,
        outputs: &[Output],
        finished: &[bool],
        task: Task,
        written: Written,
    ) -> Self {
        let mut sides = Vec::new();
        for side in Side::ALL {
            let quotas = recipe.quotas(side);
            for (i, domain) in recipe.domains.iter().enumerate() {
                let counts = &plan.group(side, i).counts;
                let of_side = outputs
                    .iter()
                    .filter(|output| output.side == side && output.domain == i);
                let used = of_side
                    .map(|output| output.samples.end - output.samples.start)
                    .sum();
                let shards = match side {
                    Side::Retrieval => recipe.retrieval_shards().count() as u64,
                    Side::Test | Side::Train => 1,
                };
                sides.push(SideReport {
                    domain: domain.name.clone(),
                    side,
                    documents: counts.documents,
                    tokens: counts.tokens,
                    too_short: counts.too_short,
                    too_short_tokens: counts.too_short_tokens,
                    tail_tokens: counts.tail_tokens,
                    available: counts.available,
                    requested: quotas[i] * shards,
                    used,
                    over_quota: counts.available - used,
                });
            }
        }
        let samples = |side| {
            sides
                .iter()
                .filter(|report| report.side == side)
                .map(|report| report.used)
                .sum()
        };
        Self {
            output: recipe.output.clone(),
            test_samples: samples(Side::Test),
            train_samples: samples(Side::Train),
            retrieval_samples: samples(Side::Retrieval),
            kept: finished.iter().filter(|&&is_finished| is_finished).count() as u64,
            is_part: matches!(task, Task::Shard { .. }),
            written,
            sides,
        }
    }
}
