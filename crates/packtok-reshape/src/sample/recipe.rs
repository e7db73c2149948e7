//! The recipe of samples: one JSON object, which the Python package and this module validate.

use std::path::{Path, PathBuf};

use packtok_pack::pack::Existing;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::sample::quota;
use crate::sample::windows::Window;

/// A domain and its token files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Domain {
    /// Name of the domain and of its folders.
    pub name: String,
    /// The domain's share of the samples of each side.
    pub proportion: f64,
    /// Token files of the domain.
    pub files: Vec<PathBuf>,
}

/// The texts from which windows are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum From {
    /// Single documents.
    Documents,
    /// The concatenation of all documents of a side and domain.
    Stream,
}

/// The share of all documents on each side.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Splits {
    /// Share of the test side.
    pub test: f64,
    /// Share of the train side.
    pub train: f64,
    /// Share of the retrieval side.
    pub retrieval: f64,
}

/// The retrieval corpus.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retrieval {
    /// Chunks of a shard, over all domains.
    pub samples: u64,
    /// Number of shards.
    pub shards: u64,
    /// The only shard to write; `None` for all.
    pub only: Option<u64>,
    /// Number of tokens of a chunk, and maximum number of tokens of its neighbour.
    pub chunk: u64,
}

/// Type of the token ids in samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum SampleIdType {
    Uint16,
    Uint32,
    Int32,
}

/// Everything that determines the samples and their files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The folder to write to.
    pub output: PathBuf,
    /// The folder that names of sources are relative to.
    pub root: Option<PathBuf>,
    /// The domains, in the order of the outputs.
    pub domains: Vec<Domain>,
    /// The texts from which windows are taken.
    pub from: From,
    /// Tokens before the decoder's.
    pub context: u64,
    /// Tokens of the decoder.
    pub decoder: u64,
    /// Documents with fewer tokens are not used; only for windows of documents.
    pub min_tokens: u64,
    /// The share of all documents on each side.
    pub splits: Splits,
    /// Samples of the test side.
    pub test: u64,
    /// Samples of the train side.
    pub train: u64,
    /// The retrieval corpus, if it is written.
    pub retrieval: Option<Retrieval>,
    /// Seed of the sides and of the choice of samples.
    pub seed: u64,
    /// Type of the ids; `None` for the narrowest unsigned type of at least 16 bits that fits the
    /// files.
    pub dtype: Option<SampleIdType>,
    /// Compression of the MDS files.
    pub compression: Option<String>,
    /// Whether samples have the columns `source` and `start`.
    pub origin: bool,
    /// The largest MDS file in bytes.
    pub size_limit: u64,
    /// Whether fewer samples than requested are no error.
    pub allow_short: bool,
    /// The action for finished outputs of another plan.
    pub existing: Existing,
}

/// A side of the split, in the order of the hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Samples for evaluation.
    Test,
    /// Samples for training.
    Train,
    /// Chunks for retrieval.
    Retrieval,
}

impl Side {
    /// All sides.
    pub const ALL: [Self; 3] = [Self::Test, Self::Train, Self::Retrieval];

    /// The name of its folder.
    pub fn name(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Train => "train",
            Self::Retrieval => "retrieval",
        }
    }
}

impl Recipe {
    /// Checks the numbers.
    pub(super) fn check(&self) -> Result<()> {
        let fault = |option, value: String, expected| {
            Err(Error::OptionOutOfRange {
                option,
                found: value,
                expected,
            })
        };
        if self.domains.is_empty() {
            return fault("domains", "empty".into(), "at least one domain");
        }
        if self.decoder == 0 {
            return fault("DEC", "0".into(), "at least 1");
        }
        if self.context == 0 {
            return fault(
                "the context",
                "empty".into(),
                "at least 1 token; TOTAL must exceed DEC",
            );
        }
        if self
            .context
            .checked_add(self.decoder)
            .is_none_or(|tokens| tokens > MAX_SAMPLE_TOKENS)
        {
            let length = format!("{} + {}", self.context, self.decoder);
            return fault("the length of a sample", length, "at most 2^28 tokens");
        }
        let Splits {
            test,
            train,
            retrieval,
        } = self.splits;
        let sum = test + train + retrieval;
        if [test, train, retrieval]
            .iter()
            .any(|share| !(0.0..=1.0).contains(share))
            || (sum - 1.0).abs() > 1e-9
        {
            return fault(
                "splits",
                format!("{test}, {train}, {retrieval}"),
                "shares that sum to 1",
            );
        }
        let sum: f64 = self.domains.iter().map(|domain| domain.proportion).sum();
        if self
            .domains
            .iter()
            .any(|domain| !(0.0..=1.0).contains(&domain.proportion))
            || (sum - 1.0).abs() > 1e-9
        {
            return fault(
                "the proportions of the domains",
                format!("{sum} in sum"),
                "shares that sum to 1",
            );
        }
        if let Some(retrieval) = &self.retrieval {
            if !(1..=MAX_SAMPLE_TOKENS).contains(&retrieval.chunk) {
                return fault(
                    "--retrieval-chunk",
                    retrieval.chunk.to_string(),
                    "1 to 2^28",
                );
            }
            if let Some(shard) = retrieval.only.filter(|&shard| shard >= retrieval.shards) {
                return Err(Error::NoSuchRetrievalShard {
                    found: shard,
                    shards: retrieval.shards,
                });
            }
        }
        Ok(())
    }

    pub(super) fn window(&self) -> Window {
        Window {
            context: self.context,
            decoder: self.decoder,
        }
    }

    /// The name of a file in the column `source`.
    pub(super) fn source_name(&self, path: &Path) -> String {
        let root = self.root.as_deref().unwrap_or(Path::new(""));
        path.strip_prefix(root)
            .unwrap_or(path)
            .to_string_lossy()
            .into_owned()
    }

    /// Number of samples of a side for each domain; for the retrieval side, of one shard.
    pub(super) fn quotas(&self, side: Side) -> Vec<u64> {
        let total = match side {
            Side::Test => self.test,
            Side::Train => self.train,
            Side::Retrieval => self
                .retrieval
                .as_ref()
                .map_or(0, |retrieval| retrieval.samples),
        };
        let proportions: Vec<f64> = self
            .domains
            .iter()
            .map(|domain| domain.proportion)
            .collect();
        quota::quotas(total, &proportions)
    }

    /// The shards of the retrieval corpus to write.
    pub(super) fn retrieval_shards(&self) -> std::ops::Range<u64> {
        match &self.retrieval {
            Some(Retrieval {
                only: Some(only), ..
            }) => *only..only + 1,
            Some(Retrieval { shards, .. }) => 0..*shards,
            None => 0..0,
        }
    }
}

/// Bounds the memory for one sample.
const MAX_SAMPLE_TOKENS: u64 = 1 << 28;

/// The part of the work that a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Everything.
    All,
    /// Part `index` of `count` of the files, without publishing.
    Shard {
        /// Index of the shard, from 0.
        index: u64,
        /// Number of shards.
        count: u64,
    },
    /// Publishes the parts that all shards have written.
    Join,
}

impl Task {
    /// The parts that this process writes.
    pub(super) fn share(self, parts: usize) -> Result<std::ops::Range<usize>> {
        let (index, count) = match self {
            Self::All => return Ok(0..parts),
            Self::Join => return Ok(0..0),
            Self::Shard { index, count } if index >= count => {
                return Err(Error::NoSuchPart { index, count });
            }
            Self::Shard { index, count } => (index, count),
        };
        let bound = |shard: u64| (parts as u128 * u128::from(shard) / u128::from(count)) as usize;
        Ok(bound(index)..bound(index + 1))
    }
}
