//! Where a long word may be cut, because no token reaches across.
//!
//! A merge gives a token, so that where no token of the vocabulary has the bytes on both sides in its middle,
//! nothing is ever merged across, and the two sides can be merged on their own. Looked at are two bytes on
//! either side; a token that has but one byte there counts for all that could stand beside it.

/// The neighbourhoods that tokens have in their middle; some others may be taken for one.
pub(super) struct Cuts {
    bits: Vec<u64>,
    /// The same of the two bytes next to a place alone: it says no most often, from the nearest cache.
    pairs: Pairs,
    /// Whether symbols are characters, which are never cut.
    whole_chars: bool,
}

/// The two bytes around each place in the middle of a token.
#[derive(Clone)]
pub(super) struct Pairs(Box<[u64; (1 << 16) / 64]>);

impl Pairs {
    pub(super) fn none() -> Self {
        Self(Box::new([0; (1 << 16) / 64]))
    }

    pub(super) fn put(&mut self, left: u8, right: u8) {
        let pair = pair(left, right);
        self.0[pair / 64] |= 1 << (pair % 64);
    }

    /// Whether some token has these two in its middle.
    #[inline(always)]
    pub(super) fn has(&self, left: u8, right: u8) -> bool {
        let pair = pair(left, right);
        self.0[pair / 64] >> (pair % 64) & 1 == 1
    }
}

const BITS: usize = 1 << 20;
/// Stands for a byte beyond the end of a token.
const ANY: u64 = 256;

impl Cuts {
    /// For a vocabulary of these tokens, which are merged from characters or from bytes.
    pub(super) fn between<'a>(tokens: impl Iterator<Item = &'a [u8]>, whole_chars: bool) -> Self {
        let mut cuts = Self {
            bits: vec![0; BITS / 64],
            pairs: Pairs::none(),
            whole_chars,
        };
        for token in tokens {
            for at in 1..token.len() {
                cuts.pairs.put(token[at - 1], token[at]);
                let byte = |i: Option<usize>| {
                    i.and_then(|i| token.get(i))
                        .map_or(ANY, |&byte| u64::from(byte))
                };
                let bit = bit(
                    byte(at.checked_sub(2)),
                    byte(Some(at - 1)),
                    byte(Some(at)),
                    byte(Some(at + 1)),
                );
                cuts.bits[bit / 64] |= 1 << (bit % 64);
            }
        }
        cuts
    }

    /// Where the piece of a word ends that begins at `start`; nothing is merged across.
    pub(super) fn end_of_piece(&self, word: &[u8], start: usize) -> usize {
        let end = (start + 1..word.len())
            .find(|&at| !(self.is_spanned(word, at) || self.whole_chars && is_inner(word[at])));
        end.unwrap_or(word.len())
    }

    /// The two bytes around each place in the middle of a token.
    pub(super) fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    /// Whether some token may have what is around `at` in its middle.
    #[inline]
    fn is_spanned(&self, word: &[u8], at: usize) -> bool {
        self.pairs.has(word[at - 1], word[at]) && self.is_spanned_by_four(word, at)
    }

    fn is_spanned_by_four(&self, word: &[u8], at: usize) -> bool {
        let byte = |i: usize| word.get(i).map_or(ANY, |&byte| u64::from(byte));
        let (left, right) = (byte(at - 1), byte(at));
        let far_left = if at < 2 { ANY } else { byte(at - 2) };
        let far_right = byte(at + 1);
        [
            (far_left, far_right),
            (ANY, far_right),
            (far_left, ANY),
            (ANY, ANY),
        ]
        .into_iter()
        .any(|(far_left, far_right)| {
            let bit = bit(far_left, left, right, far_right);
            self.bits[bit / 64] >> (bit % 64) & 1 == 1
        })
    }
}

/// Whether a byte begins no character.
fn is_inner(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

fn pair(left: u8, right: u8) -> usize {
    usize::from(left) << 8 | usize::from(right)
}

fn bit(far_left: u64, left: u64, right: u64, far_right: u64) -> usize {
    let key = far_left << 27 | left << 18 | right << 9 | far_right;
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS.trailing_zeros())) as usize
}
