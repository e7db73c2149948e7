//! The uncompressed bytes of one source, with its position and its checksum.

pub(crate) mod counted;
pub(crate) mod decompressed;
pub(crate) mod frames;
pub(crate) mod line_counter;
