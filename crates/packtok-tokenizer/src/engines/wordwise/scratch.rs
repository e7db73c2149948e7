//! What is reused from word to word.

/// Room for what is made of a word.
#[derive(Default)]
pub(super) struct Room {
    pub(super) normalized: String,
    pub(super) sequence: String,
    pub(super) ways: Vec<Way>,
    pub(super) path: Vec<usize>,
}

/// The best way to a place in a sequence.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) score: f64,
    /// Where its last token begins; the place itself if there is no way yet.
    pub(super) start: usize,
    pub(super) id: u32,
}
