//! Memory that is reused from word to word.

use crate::engines::byte_bpe::MergeHeap;

/// Memory that is reused from word to word.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) normalized: String,
    pub(super) sequence: String,
    pub(super) paths: Paths,
    pub(super) heap: MergeHeap,
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
