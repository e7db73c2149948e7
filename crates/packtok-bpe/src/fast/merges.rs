//! The merges of a BPE: the ids of one word.
//!
//! A word begins as its bytes or characters (`alphabet.rs`); of all neighbours that have a merge, the one of lowest rank is merged, the
//! first of equals, until none has one. Short words are gone through from end to end for each merge, in a
//! few registers' worth of memory; long ones keep their merges in a heap (`heap.rs`).
//!
//! A merge is found by its two ids. Most neighbours have none, which a table of single bits says without
//! touching the table of merges itself:
//!
//! ```text
//! hash of both ids -> may_have: one bit for 16 times as many places as there are merges: 128 KiB for gpt2
//!                  -> slots: | left: 20 bits | right: 20 bits | merge |, at or behind its place
//! merge: | rank: 20 bits | the id it gives: 20 bits |, so that the lowest number is the first to merge
//! ```

use super::alphabet::Alphabet;
use super::heap::Heap;
use super::table::{Table, prefetch};

/// Place in the list of merges, the lowest of which is merged first, and in the low bits the id it gives.
pub(super) type Merge = u64;
pub(super) const NO_MERGE: Merge = Merge::MAX;

/// The id that a merge gives.
#[inline(always)]
pub(super) fn id_of(merge: Merge) -> u32 {
    merge as u32 & (MOST_IDS as u32 - 1)
}

/// Ids and ranks are below it, so that two make one number with room for a position.
pub(super) const ID_BITS: u32 = 20;
pub(super) const MOST_IDS: usize = 1 << ID_BITS;

/// Bytes of a word that is merged without a heap.
const SHORT_BYTES: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 5;

/// The merge of each two ids that have one.
pub(super) struct Merges {
    alphabet: Alphabet,
    /// Of two bytes that are symbols.
    of_bytes: Table<Merge>,
    may_have: Table<u64>,
    may_have_shift: u32,
    slots: Table<Slot>,
    slots_shift: u32,
}

/// Two ids, and their merge.
type Slot = [u64; 2];
/// No two ids: they would be too high.
const FREE: Slot = [u64::MAX, NO_MERGE];

impl Merges {
    /// From the ids that words begin as, and the two ids and the resulting one of each merge, by rank; all below
    /// [`MOST_IDS`].
    ///
    /// Where two ids have several merges the last counts, as in the Python package.
    pub(super) fn new(alphabet: Alphabet, by_rank: &[[u32; 3]]) -> Self {
        let num_slots = (by_rank.len() * 2).next_power_of_two().max(2);
        let num_bits = (by_rank.len() * 16).next_power_of_two().max(64);
        let mut merges = Self {
            alphabet,
            of_bytes: Table::filled(1 << 16, NO_MERGE),
            may_have: Table::new(num_bits / 64),
            may_have_shift: 64 - num_bits.trailing_zeros(),
            slots: Table::filled(num_slots, FREE),
            slots_shift: 64 - num_slots.trailing_zeros(),
        };
        for (rank, &[left, right, id]) in by_rank.iter().enumerate() {
            let (key, hash) = key_and_hash(left, right);
            let bit = hash >> merges.may_have_shift;
            merges.may_have.all_mut()[bit as usize / 64] |= 1 << (bit % 64);
            let slot = merges.view().slot(key, hash);
            merges.slots.all_mut()[slot] = [key, (rank as u64) << ID_BITS | u64::from(id)];
        }
        for pair in 0..1 << 16 {
            let id = |byte| merges.id_of_byte(byte as u8);
            let merge = merges.view().merge(id(pair >> 8), id(pair & 255));
            merges.of_bytes.all_mut()[pair] = merge;
        }
        merges
    }

    /// The tables as they are looked at: to make slices of their memory takes longer than to look.
    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        View {
            merges: self,
            of_bytes: self.of_bytes.all(),
            may_have: self.may_have.all(),
            slots: self.slots.all(),
        }
    }

    #[inline]
    pub(super) fn id_of_byte(&self, byte: u8) -> u32 {
        self.alphabet.id_of_byte(byte)
    }

    /// Appends the ids of a word.
    pub(super) fn encode(&self, word: &[u8], heap: &mut Heap, ids: &mut Vec<u32>) {
        match word.len() {
            0 => {}
            1 => ids.push(self.id_of_byte(word[0])),
            2..=SHORT_BYTES => self.view().encode_short(word, ids),
            _ => heap.encode(self.view(), word, ids),
        }
    }
}

/// [`Merges`], with its tables at hand.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    merges: &'a Merges,
    of_bytes: &'a [Merge],
    may_have: &'a [u64],
    slots: &'a [Slot],
}

impl View<'_> {
    /// Where two ids are, or would be.
    #[inline(always)]
    fn slot(self, key: u64, hash: u64) -> usize {
        let mut slot = (hash >> self.merges.slots_shift) as usize;
        while self.slots[slot][0] != key && self.slots[slot] != FREE {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    /// The merge of two neighbours.
    #[inline(always)]
    pub(super) fn merge(self, left: u32, right: u32) -> Merge {
        self.found(key_and_hash(left, right))
    }

    /// Where the merge of two neighbours is; has the processor fetch it.
    #[inline(always)]
    fn sought(self, left: u32, right: u32) -> (u64, u64) {
        let (key, hash) = key_and_hash(left, right);
        prefetch(&self.slots[(hash >> self.merges.slots_shift) as usize]);
        (key, hash)
    }

    /// The merge that is there.
    #[inline(always)]
    fn found(self, (key, hash): (u64, u64)) -> Merge {
        let bit = hash >> self.merges.may_have_shift;
        if self.may_have[bit as usize / 64] >> (bit % 64) & 1 == 0 {
            return NO_MERGE;
        }
        let [_, merge] = self.slots[self.slot(key, hash)];
        merge
    }

    #[inline]
    fn merge_of_bytes(self, left: u8, right: u8) -> Merge {
        self.of_bytes[usize::from(left) << 8 | usize::from(right)]
    }

    /// Calls `symbol` with each symbol of a word, `merge` with the merge of each and the one behind it, and says how
    /// many symbols there are.
    #[inline(always)]
    pub(super) fn begin(
        self,
        word: &[u8],
        mut symbol: impl FnMut(usize, u32),
        mut merge: impl FnMut(usize, Merge),
    ) -> usize {
        let (mut num_symbols, mut before) = (0, 0);
        let is_of_chars = self.merges.alphabet.is_of_chars();
        self.merges.alphabet.symbols(word, |id| {
            symbol(num_symbols, id);
            if is_of_chars && num_symbols > 0 {
                merge(num_symbols - 1, self.merge(before, id));
            }
            before = id;
            num_symbols += 1;
        });
        if !is_of_chars {
            for (at, pair) in word.windows(2).enumerate() {
                merge(at, self.merge_of_bytes(pair[0], pair[1]));
            }
        }
        num_symbols
    }

    /// Where a symbol has become part of the one before it, its bit in `alive` is gone.
    fn encode_short(self, word: &[u8], ids: &mut Vec<u32>) {
        let mut symbols = [0; SHORT_BYTES];
        // Of each symbol and the one behind it, the symbol's place in the lowest bits.
        let mut merges = [NO_MERGE; SHORT_BYTES];
        let placed = |merge: Merge, at: usize| match merge {
            NO_MERGE => NO_MERGE,
            merge => merge << PLACE_BITS | at as u64,
        };
        let num_symbols = self.begin(
            word,
            |at, id| symbols[at] = id,
            |at, merge| merges[at] = placed(merge, at),
        );
        let mut alive = u64::MAX >> (64 - num_symbols);
        let merges = &mut merges[..num_symbols - 1];
        let symbols = &mut symbols[..num_symbols];
        loop {
            let first = merges
                .iter()
                .fold(NO_MERGE, |first, &merge| first.min(merge));
            if first == NO_MERGE {
                break;
            }
            let (at, id) = (
                first as usize & (SHORT_BYTES - 1),
                id_of(first >> PLACE_BITS),
            );
            symbols[at] = id;
            let behind = alive & (u64::MAX << 1 << at);
            let gone = behind & behind.wrapping_neg();
            alive ^= gone;
            if let Some(merge) = merges.get_mut(gone.trailing_zeros() as usize) {
                *merge = NO_MERGE;
            }
            // Both are on their way before either is looked at.
            let next = (behind ^ gone).trailing_zeros() as usize;
            let next = symbols.get(next).map(|&next| self.sought(id, next));
            let before = alive & !(u64::MAX << at);
            let before = (before != 0).then(|| {
                let before = before.ilog2() as usize;
                (before, self.sought(symbols[before], id))
            });
            merges[at] = next.map_or(NO_MERGE, |next| placed(self.found(next), at));
            if let Some((before, sought)) = before {
                merges[before] = placed(self.found(sought), before);
            }
        }
        while alive != 0 {
            ids.push(symbols[alive.trailing_zeros() as usize]);
            alive &= alive - 1;
        }
    }
}

#[inline]
fn key_and_hash(left: u32, right: u32) -> (u64, u64) {
    let key = u64::from(left) << ID_BITS | u64::from(right);
    // The high bits of a product hang on all bits of the key.
    (key, key.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
