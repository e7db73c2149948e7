//! Shuffles the documents of pbins and the lines of JSONL files, whole or in chunks.
//!
//! With a seed, the order is the order of Modalities: `mersenne` and `numpy_random` are its
//! generators, and `seed` parses their seeds. Without a seed, the order is packtok's permutation.
//! `order` holds an order in 4 bytes per document. `documents` writes documents of token files in it,
//! and `lines` those of JSONL files: in memory if the input is small, otherwise through `buckets`.
//! `chunk` determines which documents of each file belong to a chunk, and `pbins` shuffles pbins as
//! Modalities does.

mod bucket_file;
mod buckets;
mod chunk;
pub(crate) mod documents;
mod lines;
mod mersenne;
pub(crate) mod meter;
mod numpy_random;
mod order;
mod pbins;
mod seed;

use std::path::PathBuf;

use packtok_pack::pack::Existing;
use packtok_pbin::{ChunkInfo, ShuffleGenerator};
use serde::Serialize;

pub use buckets::Budget;
pub(crate) use buckets::Sink;
pub use chunk::read_list;
pub(crate) use chunk::{checked as checked_chunk, documents as documents_of_chunk};
pub use lines::shuffle_lines;
pub use order::Shuffle;
pub(crate) use order::checked_len;
pub use pbins::shuffle_pbins;
pub use seed::Seed;

use crate::error::Result;
use crate::existing;

/// The files to shuffle, and the options.
#[derive(Debug, Clone)]
pub struct ShuffleOptions {
    /// The files, in order.
    pub inputs: Vec<PathBuf>,
    /// The file to write.
    pub output: PathBuf,
    /// The action if the output already exists.
    pub existing: Existing,
    /// The order.
    pub shuffle: Shuffle,
    /// Whether the caller chose the seed. If not, an existing output may have any seed.
    pub is_seed_given: bool,
    /// The chunk of each file to use; `None` for all documents.
    pub chunk: Option<ChunkInfo>,
    /// The memory to use.
    pub budget: Budget,
}

/// The result of a shuffle.
#[derive(Debug, Serialize)]
pub struct ShuffleReport {
    /// The written file.
    pub output: PathBuf,
    /// Number of inputs.
    pub num_inputs: usize,
    /// Documents or lines of the output.
    pub documents: u64,
    /// Tokens of the output; `None` for lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Length of the output in bytes.
    pub file_bytes: u64,
    /// The generator of the order.
    pub generator: ShuffleGenerator,
    /// The generator's seed, as in the trailer.
    pub seed: String,
    /// The copy of the tokenizer next to the output, if an input has a tokenizer next to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer_path: Option<PathBuf>,
    /// Whether the output already existed and was proven correct.
    pub skipped_existing: bool,
}

impl ShuffleOptions {
    /// Checks chunk and output, and removes the files of killed runs. Returns whether the output
    /// exists and is to be kept.
    fn prepare(&self) -> Result<bool> {
        self.chunk.map(chunk::checked).transpose()?;
        existing::prepare(&self.inputs, &self.output, self.existing)
    }
}
#[cfg(test)]
mod tests;
