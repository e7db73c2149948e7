//! Errors of tokenizer libraries, as causes of packtok's.

/// A tokenizer library has no memory. Libraries in Rust do not return this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("out of memory")]
pub(crate) struct OutOfMemory;

/// An error of a tokenizer library.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;
