//! Verification: a pbin by itself, a pbin against its corpus, and one engine against another.

mod corpus;
mod engines;
mod error;
mod file;
mod proof;

pub use corpus::{CorpusReport, verify_corpus};
pub use engines::{EnginesReport, verify_engines};
pub use error::{EnginesDiffer, VerifyError};
pub use file::{FileReport, verify_file};
pub use proof::prove;

/// The id encoded by the little-endian bytes of one token.
fn id_of(token: &[u8]) -> u32 {
    let bytes = token.iter().rev();
    bytes.fold(0, |id, &byte| id << 8 | u32::from(byte))
}
