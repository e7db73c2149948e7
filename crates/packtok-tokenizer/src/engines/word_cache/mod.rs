//! The word cache: the ids of words that a thread has encoded.

mod cache;
mod cached_encoder;
mod long;
mod short;

pub(super) use self::cache::{CACHE_BYTES, GROUP, WordCache};
pub(crate) use self::cached_encoder::{CachedEncoder, WordEncoder};
pub(super) use self::long::LongWords;
pub(super) use self::short::{MAX_IDS, ROOM};
