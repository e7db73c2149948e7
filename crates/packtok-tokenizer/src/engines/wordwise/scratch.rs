//! Memory that is reused from word to word.

/// Memory that is reused from word to word.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) normalized: String,
    pub(super) sequence: String,
    pub(super) nodes: Vec<Node>,
    pub(super) path: Vec<usize>,
}

/// The best segmentation up to a position of a word.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) score: f64,
    /// Start of the last token of the segmentation; equal to the position itself if no token ends
    /// here yet.
    pub(super) start: usize,
    pub(super) id: u32,
}
