//! The ids of words, kept from word to word.

mod cache;
mod cached_encoder;
mod long;
mod short;

pub(super) use self::cache::{Cache, ROOM};
pub(crate) use self::cached_encoder::{Remembered, Words};
