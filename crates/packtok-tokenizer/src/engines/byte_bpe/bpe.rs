//! What decides the ids of a word.

use std::collections::HashMap;

use super::merge::{Heap, Merges};
use super::model::Tokens;
use super::piece_bounds::Cuts;
use crate::engines::lane::{Job, Lane};

/// What decides the ids of a word.
pub(super) struct Bpe {
    pub(super) merges: Merges,
    pub(super) cuts: Cuts,
    /// Words that are tokens as they are although their merges give other ids; only with `ignore_merges`.
    pub(super) whole: HashMap<Box<[u8]>, u32>,
}

impl Bpe {
    /// The id of a word that is a token although its merges do not give it.
    #[inline(always)]
    pub(super) fn whole(&self, word: &[u8]) -> Option<u32> {
        if self.whole.is_empty() {
            return None;
        }
        self.whole.get(word).copied()
    }
}

/// The tokens that their own merges do not give.
pub(super) struct NotMerged<'a> {
    pub(super) merges: &'a Merges,
    pub(super) tokens: &'a Tokens,
}

impl Job for NotMerged<'_> {
    type Done = HashMap<Box<[u8]>, u32>;

    #[inline(always)]
    fn run(self, _: impl Lane) -> Self::Done {
        let mut heap = Heap::default();
        let mut ids = Vec::new();
        let mut whole = HashMap::new();
        for (token, id) in self.tokens.iter() {
            ids.clear();
            self.merges.encode(token, &mut heap, &mut ids);
            if ids[..] != [id] {
                whole.insert(token.into(), id);
            }
        }
        whole
    }
}
