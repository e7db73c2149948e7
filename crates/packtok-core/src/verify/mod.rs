//! Proves that a pbin is whole and right: by itself, and against its corpus.

mod corpus;
mod file;

pub use corpus::{CorpusReport, verify_corpus};
pub use file::{FileReport, verify_file};

/// The id that little-endian bytes of one token stand for.
fn id_of(token: &[u8]) -> u32 {
    let bytes = token.iter().rev();
    bytes.fold(0, |id, &byte| id << 8 | u32::from(byte))
}
