//! The options of everything that writes shard files.

use crate::mds::check::{Compression, Hash};

/// The size limit of a shard file that mosaicml-streaming's writer has by default.
pub const DEFAULT_SIZE_LIMIT: u64 = 1 << 26;

/// The options for writing samples.
#[derive(Debug, Clone)]
pub struct Options {
    /// The largest size of a shard file with more than one sample. `None` is recorded as no limit,
    /// but positions of 32 bits still limit the size.
    pub size_limit: Option<u64>,
    /// The hashes of each file in the index.
    pub hashes: Vec<Hash>,
    /// The compression of the files.
    pub compression: Option<Compression>,
    /// The number of the first shard.
    pub first_shard: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            size_limit: Some(DEFAULT_SIZE_LIMIT),
            hashes: vec![Hash::Sha256, Hash::Xxh64],
            compression: None,
            first_shard: 0,
        }
    }
}
