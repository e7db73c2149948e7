//! Megatron's indexed datasets: tokens in `PREFIX.bin`, documents in `PREFIX.idx`.
//!
//! The layout of the index, little-endian: the magic `MMIDIDX\0\0`; u64 version 1; u8 code of the
//! token type; u64 number of sequences S; u64 number of document boundaries D, the documents plus
//! one; i32 tokens of each sequence; i64 position in `.bin` of each sequence; i64 first sequence of
//! each document, then S; in multimodal datasets i8 mode of each sequence. Source: Megatron-LM's
//! `indexed_dataset.py`.

mod index;
mod read;
mod write;

pub use index::{MAGIC, MODES, SEQUENCES};
pub use read::{MegatronPaths, open, starts_with_magic};
pub(crate) use write::Megatron;
pub use write::{LEAST_INT32_VOCAB, write_index};
