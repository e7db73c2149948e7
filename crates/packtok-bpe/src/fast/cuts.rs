//! Where a long word may be cut, because no token reaches across.
//!
//! A merge gives a token, so that where no token of the vocabulary has the bytes on both sides in its middle,
//! nothing is ever merged across, and the two sides can be merged on their own. Some token must have the two bytes
//! around a place there; before them it must have the one that stands before them, or begin; behind them the one that
//! stands behind, or end.

/// What tokens have around the places in their middle; something else may be taken for it.
pub(super) struct Cuts {
    pairs: Pairs,
    /// Where each pair is in tokens: [`INSIDE`], [`FIRST`], [`LAST`].
    places: Box<[u8; 1 << 16]>,
    /// All threes: a pair with the byte before it, or with the one behind.
    triples: Triples,
    /// Whether symbols are characters, which are never cut.
    whole_chars: bool,
}

/// Some token has the pair; some token begins with it; some token ends with it.
const INSIDE: u8 = 1;
const FIRST: u8 = 2;
const LAST: u8 = 4;

/// The two bytes around each place in the middle of a token.
#[derive(Clone)]
pub(crate) struct Pairs(Box<[u64; (1 << 16) / 64]>);

impl Pairs {
    pub(crate) fn none() -> Self {
        Self(Box::new([0; (1 << 16) / 64]))
    }

    pub(crate) fn put(&mut self, left: u8, right: u8) {
        let pair = pair(left, right);
        self.0[pair / 64] |= 1 << (pair % 64);
    }

    /// Whether some token has these two in its middle.
    #[inline(always)]
    pub(crate) fn has(&self, left: u8, right: u8) -> bool {
        let pair = pair(left, right);
        self.0[pair / 64] >> (pair % 64) & 1 == 1
    }
}

/// Three bytes in a row, by a hash that others may share.
struct Triples(Box<[u64; TRIPLE_BITS / 64]>);

const TRIPLE_BITS: usize = 1 << 18;

impl Triples {
    fn none() -> Self {
        Self(Box::new([0; TRIPLE_BITS / 64]))
    }

    fn put(&mut self, bytes: [u8; 3]) {
        let bit = Self::bit(bytes);
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    #[inline(always)]
    fn has(&self, bytes: [u8; 3]) -> bool {
        let bit = Self::bit(bytes);
        self.0[bit / 64] >> (bit % 64) & 1 == 1
    }

    #[inline(always)]
    fn bit([a, b, c]: [u8; 3]) -> usize {
        let key = u32::from_le_bytes([a, b, c, 0]);
        (key.wrapping_mul(0x9e37_79b1) >> (32 - TRIPLE_BITS.trailing_zeros())) as usize
    }
}

impl Cuts {
    /// For a vocabulary of these tokens, which are merged from characters or from bytes.
    pub(super) fn between<'a>(tokens: impl Iterator<Item = &'a [u8]>, whole_chars: bool) -> Self {
        let mut cuts = Self {
            pairs: Pairs::none(),
            places: vec![0; 1 << 16].try_into().expect("as many"),
            triples: Triples::none(),
            whole_chars,
        };
        for token in tokens {
            if let ([first, second, ..], [.., before, last]) = (token, token) {
                cuts.places[pair(*first, *second)] |= FIRST;
                cuts.places[pair(*before, *last)] |= LAST;
            }
            for two in token.windows(2) {
                cuts.pairs.put(two[0], two[1]);
                cuts.places[pair(two[0], two[1])] |= INSIDE;
            }
            for triple in token.windows(3) {
                cuts.triples.put([triple[0], triple[1], triple[2]]);
            }
        }
        cuts
    }

    /// Where the piece of a word ends that begins at `start`; nothing is merged across, nor across `start`.
    #[inline(always)]
    pub(super) fn end_of_piece(&self, word: &[u8], start: usize) -> usize {
        let mut at = start + 1;
        // Whether some token may have the place at hand with the byte before, and with the one behind.
        let (mut has_before, mut has_behind) = (false, false);
        while at < word.len() {
            let (left, right) = (word[at - 1], word[at]);
            if at + 1 < word.len() {
                has_behind = self.triples.has([left, right, word[at + 1]]);
            }
            // No branches: what is next to a place cannot be foreseen.
            let mut places = self.places[pair(left, right)];
            places |= FIRST * u8::from(has_before);
            places |= LAST * u8::from(has_behind);
            let is_spanned = places == INSIDE | FIRST | LAST;
            if !(is_spanned || self.whole_chars && is_inner(right)) {
                break;
            }
            has_before = has_behind;
            has_behind = false;
            at += 1;
        }
        at.min(word.len())
    }

    /// The two bytes around each place in the middle of a token.
    pub(super) fn pairs(&self) -> &Pairs {
        &self.pairs
    }
}

/// Whether a byte begins no character.
#[inline(always)]
fn is_inner(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

fn pair(left: u8, right: u8) -> usize {
    usize::from(left) << 8 | usize::from(right)
}
