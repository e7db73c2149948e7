//! Byte-level BPE, and BPE on characters as SentencePiece makes it.

mod added_tokens;
mod alphabet;
mod engine;
mod merge;
mod misses;
mod model;
mod nfc;
mod piece_bounds;
mod preprocessing;
mod split;
mod word_chunks;

pub(super) use self::engine::{CACHE_BYTES, GROUP};
pub(crate) use self::engine::{Fast, Scratch, lane_name};
pub(super) use self::merge::MOST_IDS;
pub(super) use self::piece_bounds::Pairs;
pub(crate) use self::split::{CL100K_PATTERN, O200K_PATTERN};
