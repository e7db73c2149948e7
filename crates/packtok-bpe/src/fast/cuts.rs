//! Where a long word may be cut, because no token reaches across.
//!
//! A merge gives a token, so that where no token of the vocabulary has the bytes on both sides in its middle,
//! nothing is ever merged across, and the two sides can be merged on their own. Some token must have the two bytes
//! around a place there; before them it must have the one that stands before them, or begin; behind them the one that
//! stands behind, or end.

/// What tokens have around the places in their middle; something else may be taken for it.
pub(super) struct Cuts {
    pairs: Pairs,
    /// The pairs that tokens begin with, and end with.
    first: Pairs,
    last: Pairs,
    /// All threes: a pair with the byte before it, or with the one behind.
    triples: Triples,
    /// Whether symbols are characters, which are never cut.
    whole_chars: bool,
}

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
            first: Pairs::none(),
            last: Pairs::none(),
            triples: Triples::none(),
            whole_chars,
        };
        for token in tokens {
            if let ([first, second, ..], [.., before, last]) = (token, token) {
                cuts.first.put(*first, *second);
                cuts.last.put(*before, *last);
            }
            for pair in token.windows(2) {
                cuts.pairs.put(pair[0], pair[1]);
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
        while at < word.len()
            && (self.is_spanned(word, start, at) || self.whole_chars && is_inner(word[at]))
        {
            at += 1;
        }
        at.min(word.len())
    }

    /// The two bytes around each place in the middle of a token.
    pub(super) fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    /// Whether some token may have what is around `at` in its middle, and nothing from before `start`.
    #[inline(always)]
    fn is_spanned(&self, word: &[u8], start: usize, at: usize) -> bool {
        let (left, right) = (word[at - 1], word[at]);
        if !self.pairs.has(left, right) {
            return false;
        }
        let may_begin = self.first.has(left, right)
            || at >= start + 2 && self.triples.has([word[at - 2], left, right]);
        may_begin
            && (self.last.has(left, right)
                || at + 1 < word.len() && self.triples.has([left, right, word[at + 1]]))
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
