//! Token files to other files: reshaping, shuffling, conversions, samples.
//!
//! Reads token files through `packtok-formats` and `packtok-pbin`, divides and orders them with
//! `packtok-dataset`, and writes new files. Tokenization is left to `packtok-pack`.
#![forbid(unsafe_code)]

pub mod convert;
mod declared_tokenizer;
pub mod diff;
mod error;
mod existing;
pub mod filter;
pub mod import;
mod loss_mask;
pub mod sample;
pub mod shuffle;
pub mod steps;
pub mod tokens;

pub use declared_tokenizer::DeclaredTokenizer;
pub use error::{Error, Result};
