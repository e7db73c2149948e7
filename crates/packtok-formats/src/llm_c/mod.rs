//! The `.bin` files of llm.c, modded-nanogpt and NeMo AutoModel: a header, then tokens.
//!
//! The header has 256 int32 numbers: magic, version, number of tokens, and for one of the three magics
//! the bytes of a token. The rest are zeros. All numbers are little-endian. Documents start with the
//! BOS of the vocabulary; `NAME.bos.idx` beside `NAME.bin`, if it exists, has the token of each
//! start as int32. Sources: llm.c's `dev/data/data_common.py`, NeMo AutoModel's
//! `nanogpt_dataset.py`, which reads positions in tokens, and its `nanogpt_data_processor.py`, which
//! writes positions in bytes.

mod bos_index;
mod header;
mod read;
mod write;

pub use header::{HEADER_BYTES, MAX_TOKENS};
pub use read::{bos_index_path, open, starts_with_magic};
pub(crate) use write::LlmC;
