//! The ids of words, kept from word to word.

mod cache;
mod cached_encoder;
mod long;
mod short;

pub(super) use self::cache::{CACHE_BYTES, Cache, GROUP};
pub(crate) use self::cached_encoder::{Remembered, Words};
pub(super) use self::short::{MOST_IDS, ROOM};
