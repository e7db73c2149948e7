//! The words of a chunk that are not in the table of short words. They are collected during the lookups, and resolved
//! together.

use crate::engines::word_key::WordKey;

/// The misses of one chunk.
#[derive(Default)]
pub(super) struct Misses {
    pub(super) words: Vec<Miss>,
    pub(super) parts: Vec<Part>,
    pub(super) unresolved: Vec<Unresolved>,
    /// The ids of all parts, in any order.
    pub(super) ids: Vec<u32>,
}

/// A word that missed.
#[derive(Clone, Copy)]
pub(super) struct Miss {
    /// Index of the word in the chunk.
    pub(super) number: usize,
    /// Number of staged ids of the chunk before it.
    pub(super) num_before: usize,
    /// End of its parts in `parts`.
    pub(super) end_of_parts: usize,
    /// The hash of the word, if the word is not short.
    pub(super) hash: u64,
    /// Whether it is inserted into the table of long words.
    pub(super) is_new_and_long: bool,
}

/// A part of a word, or all of it: where its ids are.
#[derive(Clone, Copy, Default)]
pub(super) struct Part {
    pub(super) first_id: usize,
    pub(super) num_ids: usize,
}

/// A part without ids.
#[derive(Clone, Copy)]
pub(super) struct Unresolved {
    pub(super) part: usize,
    pub(super) word: WordKey,
    /// Whether the part is a piece of a long word, which was not looked up in the cache yet.
    pub(super) is_piece: bool,
}

impl Misses {
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.words.clear();
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Adds a word that comes after this many staged ids.
    #[inline(always)]
    pub(super) fn push(&mut self, number: usize, num_before: usize) {
        self.words.push(Miss {
            number,
            num_before,
            end_of_parts: 0,
            hash: 0,
            is_new_and_long: false,
        });
    }

    pub(super) fn push_unresolved(&mut self, word: WordKey, is_piece: bool) {
        self.unresolved.push(Unresolved {
            part: self.parts.len(),
            word,
            is_piece,
        });
        self.parts.push(Part::default());
    }

    /// Adds a part that consists of all ids from `first_id` on.
    pub(super) fn push_resolved(&mut self, first_id: usize) {
        let num_ids = self.ids.len() - first_id;
        self.parts.push(Part { first_id, num_ids });
    }
}
