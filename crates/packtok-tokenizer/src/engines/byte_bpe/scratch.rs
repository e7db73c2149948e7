//! The word cache and the buffers of one thread.

use super::merge::MergeHeap;
use super::misses::Misses;
use super::split::ROOM;
use super::word_chunks::{Bounds, WORDS_PER_CHUNK};
use crate::engines::simd::SIMD_BLOCK_BYTES;
use crate::engines::word_cache::{self as cache, CACHE_BYTES, GROUP, WordCache};
use crate::engines::word_key::{SHORT, WordKey};

/// The word cache and the buffers of one thread.
pub(crate) struct Scratch {
    /// The start of some words, and the end of each.
    pub(super) split_bounds: Vec<u32>,
    /// `split_bounds`, cut at isolated tokens.
    pub(super) cut_bounds: Vec<u32>,
    /// The bounds of the words of a chunk.
    pub(super) bounds: Bounds,
    /// The keys of the words of a group, and the numbers of their buckets.
    pub(super) words: Lines<[WordKey; GROUP]>,
    pub(super) buckets: Lines<[u32; GROUP]>,
    /// Ids of the hits of a chunk, before they are appended to the caller's buffer.
    pub(super) staged: Box<[u32; WORDS_PER_CHUNK * SHORT + cache::ROOM]>,
    pub(super) misses: Misses,
    pub(super) cache: WordCache,
    /// Whether the tokens of the vocabulary were put into the cache.
    pub(super) has_vocabulary: bool,
    pub(super) heap: MergeHeap,
    /// The first word of a text with a space before it.
    pub(super) first: Vec<u8>,
    /// A text with a space before it.
    pub(super) prefixed: String,
}

/// Aligned to a cache line, so that no stored vector crosses two.
#[repr(align(64))]
pub(super) struct Lines<T>(pub(super) T);

impl Scratch {
    /// With a cache of at most this many bytes.
    pub(crate) fn new(cache_bytes: Option<usize>) -> Box<Self> {
        Box::new(Self {
            split_bounds: vec![0; ROOM + 1],
            cut_bounds: Vec::new(),
            bounds: [0; WORDS_PER_CHUNK + 1 + SIMD_BLOCK_BYTES],
            words: Lines([WordKey::default(); GROUP]),
            buckets: Lines([0; GROUP]),
            staged: Box::new([0; WORDS_PER_CHUNK * SHORT + cache::ROOM]),
            misses: Misses::default(),
            cache: WordCache::new(cache_bytes.unwrap_or(CACHE_BYTES)),
            has_vocabulary: false,
            heap: MergeHeap::default(),
            first: Vec::new(),
            prefixed: String::new(),
        })
    }
}
