//! Errors of tokenizer libraries, as causes of packtok's.

/// A tokenizer library ran out of memory. Rust libraries do not return this error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("out of memory")]
pub(crate) struct OutOfMemory;

/// An error of a tokenizer library.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;
