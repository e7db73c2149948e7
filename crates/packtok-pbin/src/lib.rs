//! The pbin file format: packed token ids, an index of documents and a checksummed trailer.
//!
//! This crate is responsible for every byte of a pbin: reading, writing, joining and verifying
//! files, and publishing them atomically. Tokenization and the use of the tokens are left to other
//! crates. `docs/reference/pbin_format.md` is the specification.
#![deny(unsafe_code)]

mod access_pattern;
mod checkpoint;
mod checksum;
#[doc(hidden)]
pub mod crash;
mod data_checksums;
mod error;
mod fault;
pub mod file_system;
mod header;
mod index;
mod join;
mod locked_file;
mod loss_mask;
mod map;
mod metadata;
mod opcode;
mod origins;
mod pickle_parse;
mod pickle_write;
mod publish;
mod random_access;
mod reader;
mod rename;
mod spool;
mod trailer;
mod trailer_write;
mod verify;
mod writer;

pub use access_pattern::AccessPattern;
pub use checkpoint::Checkpoint;
pub use error::{Error, Result, chain};
pub use fault::{Checked, PickleFault, TrailerFault};
pub use header::{HEADER_BYTES, Header, TokenWidth};
pub use index::{Dialect, read_raw_index};
pub use join::{JoinOptions, Joined, OpenPart, join, join_as};
pub use loss_mask::LossMask;
pub use map::MappedFile;
pub use metadata::{
    ChunkInfo, CorpusFormat, Counts, EmptyDocument, Metadata, Options, Padding, PartInfo,
    RequestedWidth, ShardInfo, ShuffleGenerator, ShuffleInfo, Side, Source, SpecialToken,
    SpecialTokensInText, Step, TextCounts, TokenizerInfo, WriterInfo,
};
pub use origins::Origin;
pub use pickle_parse::parse_pairs;
pub use pickle_write::{PairsWriter, write_pairs};
pub use publish::{Replace, TempFile, publish_bytes, remove_abandoned};
pub use reader::Reader;
pub use rename::rename_new;
pub use trailer::{CHECKED_DATA_BYTES, MAX_METADATA_BYTES};
pub use writer::{Finished, Summary, Writer};
