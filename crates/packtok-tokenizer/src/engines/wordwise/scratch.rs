//! Memory that is reused from word to word.

use crate::engines::byte_bpe::MergeHeap;
use crate::engines::word_cache::{CACHE_BYTES, CachedEncoder, LongWords};

/// The caches of one thread.
pub(crate) struct Caches {
    /// The ids of words.
    pub(super) words: CachedEncoder,
    /// The ids of the normalized parts of words. Most words that are new differ from known ones in punctuation only.
    pub(super) parts: LongWords,
}

impl Caches {
    /// With a cache of words of at most this many bytes.
    pub(crate) fn new(cache_bytes: Option<usize>) -> Self {
        Self {
            words: CachedEncoder::new(cache_bytes),
            parts: LongWords::new(cache_bytes.unwrap_or(CACHE_BYTES) / 6),
        }
    }
}

/// Memory that is reused from word to word.
pub(super) struct Scratch<'a> {
    pub(super) parts: &'a mut LongWords,
    pub(super) normalized: String,
    pub(super) sequence: String,
    pub(super) paths: Paths,
    pub(super) heap: MergeHeap,
}

impl<'a> Scratch<'a> {
    pub(super) fn new(parts: &'a mut LongWords) -> Self {
        Self {
            parts,
            normalized: String::new(),
            sequence: String::new(),
            paths: Paths::default(),
            heap: MergeHeap::default(),
        }
    }
}

/// The segmentations of a sequence.
#[derive(Default)]
pub(super) struct Paths {
    /// The best one up to each position.
    pub(super) nodes: Vec<Node>,
    /// The ends of the tokens of the best one, from the last.
    pub(super) ends: Vec<usize>,
}

/// The best segmentation up to a position of a word.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) score: f64,
    /// Start of the last token of the segmentation; equal to the position itself if no token ends
    /// here yet.
    pub(super) start: u32,
    pub(super) id: u32,
}
