//! What tells one stream of tokens from another.

/// SHA-256 of whatever tells one stream of tokens from another.
pub type DataFingerprint = [u8; 32];
