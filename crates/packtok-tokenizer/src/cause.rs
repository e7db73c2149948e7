//! Errors of tokenizer libraries, as causes of packtok's.

/// An error of a tokenizer library.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;
