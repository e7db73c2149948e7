//! Inputs of the benches: the shared corpora where they are, otherwise documents made from a seed.
//!
//! What is measured, and against what, is the matter of each bench.
#![forbid(unsafe_code)]

mod corpus;
pub mod pbin;
mod settings;
mod synthetic;

pub use corpus::Corpus;
pub use settings::{encode_options, pack_options, read_options, token_counter};
pub use synthetic::SplitMix;
