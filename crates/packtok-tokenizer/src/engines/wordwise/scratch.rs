//! What is reused from word to word.

/// Scratch for what is made of a word.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) normalized: String,
    pub(super) sequence: String,
    pub(super) nodes: Vec<Node>,
    pub(super) path: Vec<usize>,
}

/// The best node to a place in a sequence.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) score: f64,
    /// Where its last token begins; the place itself if there is no node yet.
    pub(super) start: usize,
    pub(super) id: u32,
}
