//! datatrove's tokenized files: tokens in `NAME.ds`, documents in `NAME.ds.index`.
//!
//! `NAME.ds` has only the tokens. `NAME.ds.index` has the token after the end of each document, as
//! u64. `NAME.ds.metadata` has three lines: tokenizer and bytes of a token, separated by `|`; the
//! number of tokens; the same for people. `NAME.ds.loss`, which may be missing, has a byte for each token: 1 if
//! it counts in the loss. All numbers are little-endian. Source: datatrove's
//! `pipeline/tokens/tokenizer.py`.

mod metadata;
mod read;
mod write;

pub use metadata::DatatroveMetadata;
pub use read::{DatatrovePaths, open};
pub(crate) use write::Datatrove;
