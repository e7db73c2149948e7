//! Positions at which a long word can be split, because no token crosses them.
//!
//! Every merge produces a token. If no token of the vocabulary contains the bytes around a
//! position in its interior, no merge crosses the position, and both sides can be merged
//! independently. A token that crosses a position contains the two bytes around it. In addition,
//! it contains these two and the byte before them, or begins with them; and it contains these two
//! and the byte after them, or ends with them.

use crate::engines::byte_pairs::{Pairs, pair};
use crate::engines::simd::{SIMD_BLOCK_BYTES, Simd};

/// The bytes around positions inside tokens. The check may report tokens that do not exist, but
/// never misses an existing token.
pub(super) struct PieceBounds {
    /// For each pair: [`INSIDE`], [`FIRST`], [`LAST`], [`WHOLE`].
    places: Box<[u8; 1 << 16]>,
    /// All triples of adjacent bytes in tokens.
    triples: Triples,
}

/// Some token contains the pair; some token begins with it; some token ends with it.
const INSIDE: u8 = 1;
const FIRST: u8 = 2;
const LAST: u8 = 4;
/// Both bytes belong to one symbol.
const WHOLE: u8 = 8;

/// A Bloom filter of triples of bytes; the last byte is lowest.
struct Triples(Box<[u64; TRIPLE_BITS / 64]>);

const TRIPLE_BITS: usize = 1 << 18;
/// Up to this many triples, it is faster to look up only those that are needed.
const FEW: u32 = 12;

impl Triples {
    fn none() -> Self {
        Self(Box::new([0; TRIPLE_BITS / 64]))
    }

    fn put(&mut self, three: u32) {
        let bit = Self::bit(three);
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    /// 1 for triples that were added and for some others (false positives); else 0.
    #[inline(always)]
    fn has(&self, three: u32) -> u8 {
        let bit = Self::bit(three);
        (self.0[bit / 64] >> (bit % 64)) as u8 & 1
    }

    /// [`Triples::has`] for the bytes of a word from each of the `needed` positions on, and for some others.
    #[inline(always)]
    fn at(&self, simd: impl Simd, word: &[u8], mut needed: u64) -> u64 {
        if needed.count_ones() > FEW {
            let mut are_there = [0; SIMD_BLOCK_BYTES];
            for (is_there, bytes) in are_there.iter_mut().zip(word.windows(3)) {
                *is_there = self.has(three([bytes[0], bytes[1], bytes[2]]));
            }
            return simd.having(&are_there, 1);
        }
        let mut are_there = 0;
        while needed != 0 {
            let at = needed.trailing_zeros();
            needed &= needed - 1;
            if let Some(&bytes) = word[at as usize..].first_chunk() {
                are_there |= u64::from(self.has(three(bytes))) << at;
            }
        }
        are_there
    }

    #[inline(always)]
    fn bit(three: u32) -> usize {
        (three.wrapping_mul(0x9e37_79b1) >> (32 - TRIPLE_BITS.trailing_zeros())) as usize
    }
}

impl PieceBounds {
    /// For a vocabulary of these tokens, which are merged from characters or from bytes.
    pub(super) fn of_tokens<'a>(tokens: impl Iterator<Item = &'a [u8]>, whole_chars: bool) -> Self {
        let mut piece_bounds = Self {
            places: vec![0; 1 << 16].try_into().expect("as many"),
            triples: Triples::none(),
        };
        if whole_chars {
            for left in 0..=u8::MAX {
                for right in (0..=u8::MAX).filter(|&right| is_inner(right)) {
                    piece_bounds.places[pair(left, right)] |= WHOLE;
                }
            }
        }
        for token in tokens {
            if let ([first, second, ..], [.., before, last]) = (token, token) {
                piece_bounds.places[pair(*first, *second)] |= FIRST;
                piece_bounds.places[pair(*before, *last)] |= LAST;
            }
            for two in token.windows(2) {
                piece_bounds.places[pair(two[0], two[1])] |= INSIDE;
            }
            for triple in token.windows(3) {
                piece_bounds
                    .triples
                    .put(three([triple[0], triple[1], triple[2]]));
            }
        }
        piece_bounds
    }

    /// End of the piece that starts at `start`. No merge crosses it, nor `start`.
    #[inline(always)]
    pub(super) fn end_of_piece(&self, word: &[u8], start: usize) -> usize {
        let mut at = start + 1;
        // Whether some token may contain the pair and the byte before it, or the pair and the byte
        // after it.
        let (mut has_before, mut has_after) = (0, 0);
        while at < word.len() {
            let (left, right) = (word[at - 1], word[at]);
            if at + 1 < word.len() {
                has_after = self.triples.has(three([left, right, word[at + 1]]));
            }
            // No branches: the bytes are unpredictable.
            let mut places = self.places[pair(left, right)];
            places |= FIRST * has_before;
            places |= LAST * has_after;
            let is_spanned = places & (INSIDE | FIRST | LAST) == INSIDE | FIRST | LAST;
            if !is_spanned && places & WHOLE == 0 {
                break;
            }
            has_before = has_after;
            has_after = 0;
            at += 1;
        }
        at.min(word.len())
    }

    /// The starts of pieces among the first 64 positions after the first byte of a word: the
    /// result of [`PieceBounds::end_of_piece`] for all positions at once. The word has at least
    /// two bytes.
    ///
    /// Whether a position can be split may depend on whether the position before it is split.
    /// Carries in an addition have the same dependency: an unconditional split generates a carry,
    /// and a split that depends on the previous position propagates a carry.
    #[inline(always)]
    pub(super) fn piece_starts(&self, simd: impl Simd, word: &[u8]) -> u64 {
        let mut classes = [0; SIMD_BLOCK_BYTES];
        let num_positions = word.len() - 1;
        for (class, two) in classes.iter_mut().zip(word.windows(2)) {
            *class = self.places[pair(two[0], two[1])];
        }
        let [inside, first, last, whole] =
            [INSIDE, FIRST, LAST, WHOLE].map(|class| simd.having(&classes, class));
        // The byte after a pair counts only if no token ends with the pair, and the byte before it only if none begins
        // with it. That is rare, and the table of triples takes most of the time.
        let undecided = inside & !whole;
        let needed = undecided & !last | (undecided & !first) >> 1;
        let triple = self.triples.at(simd, word, needed);
        let in_any_case = !inside | !(last | triple) | !(first | triple << 1);
        let make = in_any_case & !whole;
        let hand_on = !first & !whole;
        // The first byte starts a piece.
        let sum = (make | hand_on).wrapping_add(make).wrapping_add(1);
        let begins = make | hand_on & !sum;
        match num_positions {
            0..SIMD_BLOCK_BYTES => begins & ((1 << num_positions) - 1),
            _ => begins,
        }
    }

    /// The pairs of adjacent bytes in tokens.
    pub(super) fn pairs(&self) -> Pairs {
        let mut pairs = Pairs::none();
        for (pair, places) in (0..=u16::MAX).zip(&self.places[..]) {
            if places & INSIDE != 0 {
                let [left, right] = pair.to_be_bytes();
                pairs.put(left, right);
            }
        }
        pairs
    }
}

/// Whether a byte continues a character.
#[inline(always)]
fn is_inner(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

fn three([a, b, c]: [u8; 3]) -> u32 {
    u32::from_be_bytes([0, a, b, c])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engines::simd::{AnySimd, Job};

    /// [`PieceBounds::piece_starts`] on a back end.
    struct Begins<'a>(&'a PieceBounds, &'a [u8]);

    impl Job for Begins<'_> {
        type Output = u64;

        #[inline(always)]
        fn run(self, simd: impl Simd) -> u64 {
            self.0.piece_starts(simd, self.1)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn places_all_at_once_are_those_found_one_by_one(
            tokens in prop::collection::vec("[aéя語]{1,5}", 0..30),
            word in "[aéя語]{2,40}",
            whole_chars: bool,
        ) {
            let piece_bounds = PieceBounds::of_tokens(tokens.iter().map(String::as_bytes), whole_chars);
            let word = word.as_bytes();
            let (mut at, mut expected) = (0, 0);
            loop {
                at = piece_bounds.end_of_piece(word, at);
                if at == word.len() || at > SIMD_BLOCK_BYTES {
                    break;
                }
                expected |= 1u64 << (at - 1);
            }
            for simd in AnySimd::all() {
                prop_assert_eq!(simd.run(Begins(&piece_bounds, word)), expected, "{}", simd.name());
            }
        }
    }
}
