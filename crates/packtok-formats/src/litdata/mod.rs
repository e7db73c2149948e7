//! litdata's folders of tokens: chunk files, and an `index.json` that lists them.
//!
//! A chunk file, with integers in little-endian:
//!
//! ```text
//! u32 n | u32 offset[n + 1], from the start of the file | item 0 | … | item n - 1
//! ```
//!
//! An item is the ids of one tensor or array, without a header, and packtok writes one for each document.
//! litdata's `TokensLoader` skips the offsets: it cuts the ids of a chunk into samples of equal length.
//! The type of the ids is in the index only.

mod index;
mod read;
mod write;

pub(crate) use index::is_file_name;
pub use index::{ChunkEntry, INDEX_FILE, IndexedFolder, publish_index};
pub use read::{open, open_if_listed};
pub(crate) use write::Litdata;
pub use write::{MAX_CHUNK_BYTES, chunk_path};
