//! What one thread needs.

use super::merge::MergeHeap;
use super::misses::Misses;
use super::split::ROOM;
use super::word_chunks::{Bounds, CHUNK};
use crate::engines::lane::BLOCK;
use crate::engines::word_cache::{self as cache, CACHE_BYTES, GROUP, WordCache};
use crate::engines::word_key::{SHORT, WordKey};

/// What one thread needs, and the words that it has met.
pub(crate) struct Scratch {
    /// Where some words begin, and where the last of them ends.
    pub(super) found: Vec<u32>,
    /// Where the words of a chunk are.
    pub(super) bounds: Bounds,
    /// The words of a group, and the numbers of their buckets in the cache.
    pub(super) words: Lines<[WordKey; GROUP]>,
    pub(super) buckets: Lines<[u32; GROUP]>,
    /// Ids of the words of a chunk that the cache has, before they go to the caller's buffer.
    pub(super) staged: Box<[u32; CHUNK * SHORT + cache::ROOM]>,
    pub(super) misses: Misses,
    pub(super) cache: WordCache,
    pub(super) heap: MergeHeap,
    /// The first word of a text with the blank before it.
    pub(super) first: Vec<u8>,
}

/// Begins with a line of the processor's cache, so that no vector that is stored is in two.
#[repr(align(64))]
pub(super) struct Lines<T>(pub(super) T);

impl Scratch {
    /// With a cache of at most so many bytes.
    pub(crate) fn new(cache_bytes: Option<usize>) -> Box<Self> {
        Box::new(Self {
            found: vec![0; ROOM + 1],
            bounds: [0; CHUNK + 1 + BLOCK],
            words: Lines([WordKey::default(); GROUP]),
            buckets: Lines([0; GROUP]),
            staged: Box::new([0; CHUNK * SHORT + cache::ROOM]),
            misses: Misses::default(),
            cache: WordCache::new(cache_bytes.unwrap_or(CACHE_BYTES)),
            heap: MergeHeap::default(),
            first: Vec::new(),
        })
    }
}
