//! The fingerprint of a token stream.

/// SHA-256 of everything that identifies a token stream.
pub type DataFingerprint = [u8; 32];
