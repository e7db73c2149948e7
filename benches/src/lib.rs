//! Inputs of the benches: the shared corpora if available, otherwise documents generated from a
//! seed.
//!
//! Each bench defines its measurement and its baseline.
#![forbid(unsafe_code)]

mod corpus;
pub mod pbin;
mod settings;
mod synthetic;

pub use corpus::Corpus;
pub use settings::{encode_options, pack_options, read_options, token_counter};
pub use synthetic::SplitMix;
