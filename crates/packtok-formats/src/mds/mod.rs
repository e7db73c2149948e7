//! MDS, the folders of samples that mosaicml-streaming reads: shard files and an `index.json`.
//!
//! All code that depends on these bytes is here. `shard_file.rs` defines the bytes of a shard
//! file, `write.rs` divides samples into shard files, `sized.rs` writes a shard file whose samples
//! have known sizes, and `options.rs` has the options of both. `index.rs` reads and writes the
//! index, and `entry.rs` has its entries. `read.rs` opens shard files and finds samples in them.
//! `encoding.rs` has the encodings of columns, `columns.rs` the columns of a shard, `check.rs` the
//! hashes and the compression of files, and `marker.rs` the file `packtok.json`, which describes a
//! folder's samples. `tokens.rs` opens a shard file as a file of documents, and `write_tokens.rs`
//! writes one. Shards in object stores, and the cache of decompressed shards, are left to
//! packtok-dataset.
//!
//! A shard file:
//!
//! ```text
//! u32 n | u32 offset[n + 1], from the start of the file | columns as JSON | sample 0 | … | sample n - 1
//! ```
//!
//! A sample: for each column of variable size, the size of its value as a u32; then the values, in
//! the order of the columns' names. All integers are little-endian.

mod check;
mod columns;
mod encoding;
mod entry;
pub(crate) mod fault;
mod index;
mod marker;
mod options;
mod read;
mod shard_file;
mod size;
mod sized;
mod tokens;
mod write;
mod write_tokens;

pub use check::{Compression, Hash};
pub use columns::{Column, Columns, Pickles};
pub use encoding::{Dims, Dtype, Encoding, Value};
pub use entry::{FileEntry, ShardEntry, shard_name};
pub use fault::{EncodingFault, SampleFault};
pub use index::{INDEX_FILE, Index, MAX_INDEX_BYTES, publish_index};
pub use marker::{MARKER_FILE, Marker};
pub use options::{DEFAULT_SIZE_LIMIT, Options};
pub use read::{Sample, Shard};
pub use sized::SizedWriter;
pub use tokens::{describe_tokens, is_shard, open_tokens, shard_names, verify_hashes};
pub use write::{Finished, Writer};
pub(crate) use write_tokens::Mds;
pub use write_tokens::{TokensWriter, shard_path, tokens_entry};

/// The largest file: positions in it are 32 bits wide.
const MAX_FILE_BYTES: u64 = u32::MAX as u64;
