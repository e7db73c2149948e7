//! Everything that decides the ids of a word.

use std::collections::HashMap;

use super::isolated_tokens::IsolatedTokens;
use super::merge::{MergeHeap, MergeRules};
use super::model::Tokens;
use super::piece_bounds::PieceBounds;
use crate::engines::simd::{Job, Simd};

/// The merge rules, the positions at which long words are split, and tokens that merging does not produce.
pub(super) struct Bpe {
    pub(super) merge_rules: MergeRules,
    pub(super) piece_bounds: PieceBounds,
    /// With `ignore_merges`: words that are tokens although their merges give other ids.
    pub(super) unmerged: HashMap<Box<[u8]>, u32>,
    pub(super) isolated_tokens: Option<IsolatedTokens>,
}

impl Bpe {
    /// The id of a word that is a token although its merges give other ids.
    #[inline(always)]
    pub(super) fn unmerged(&self, word: &[u8]) -> Option<u32> {
        if self.unmerged.is_empty() {
            return None;
        }
        self.unmerged.get(word).copied()
    }

    /// The id of a word that is an isolated token.
    #[inline]
    pub(super) fn isolated(&self, word: &[u8]) -> Option<u32> {
        self.isolated_tokens.as_ref()?.id_of(word)
    }
}

/// Finds the tokens that their own merges do not produce.
pub(super) struct FindUnmerged<'a> {
    pub(super) merge_rules: &'a MergeRules,
    pub(super) tokens: &'a Tokens,
}

impl Job for FindUnmerged<'_> {
    type Output = HashMap<Box<[u8]>, u32>;

    #[inline(always)]
    fn run(self, _: impl Simd) -> Self::Output {
        let mut heap = MergeHeap::default();
        let mut ids = Vec::new();
        let mut unmerged = HashMap::new();
        let not_made = |&(_, id): &(&[u8], u32)| !self.merge_rules.makes(id);
        for (token, id) in self.tokens.iter().filter(not_made) {
            ids.clear();
            self.merge_rules.encode(token, &mut heap, &mut ids);
            if ids[..] != [id] {
                unmerged.insert(token.into(), id);
            }
        }
        unmerged
    }
}
