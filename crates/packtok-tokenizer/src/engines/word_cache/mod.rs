//! The ids of words, kept from word to word.

mod cache;
mod cached_encoder;
mod long;
mod short;

pub(super) use self::cache::{CACHE_BYTES, GROUP, WordCache};
pub(crate) use self::cached_encoder::{CachedEncoder, WordEncoder};
pub(super) use self::short::{MAX_IDS, ROOM};
