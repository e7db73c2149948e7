//! Words as numbers, which is how they are compared and looked for.

/// Bytes of a word that is short; others are cut where they can be.
pub(super) const SHORT: usize = 15;

/// Where the length of a short word is in its second number.
pub(super) const LEN_SHIFT: u32 = 56;

/// What stands for the length of any other.
pub(super) const LONG: usize = SHORT + 1;

/// A word to look up.
///
/// ```text
/// low: bytes 0 to 7 | high: bytes 8 to 14, then the length, which is 16 for any longer word
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct WordKey {
    pub(super) low: u64,
    pub(super) high: u64,
}

/// Which bits of 16 bytes belong to a word of so many.
const BITS_OF: [[u64; 2]; LONG + 1] = {
    let mut bits_of = [[0; 2]; LONG + 1];
    let mut len = 1;
    while len <= LONG {
        let num_bytes = if len < SHORT { len } else { SHORT };
        let bits = u128::MAX >> (128 - 8 * num_bytes);
        bits_of[len] = [bits as u64, (bits >> 64) as u64];
        len += 1;
    }
    bits_of
};

impl WordKey {
    /// The word at `start..end` of a text.
    #[inline(always)]
    pub(super) fn at(text: &[u8], start: usize, end: usize) -> Self {
        let len = (end - start).min(LONG);
        let bytes = text.get(start..start + 16).and_then(<[u8]>::first_chunk);
        let [low, high] = match (bytes, text.last_chunk()) {
            (Some(bytes), _) => two_numbers(u128::from_le_bytes(*bytes)),
            // At the end of a text: what is before the word is shifted out.
            (None, Some(last)) => {
                let num_before = start + 16 - text.len();
                let number = u128::from_le_bytes(*last).checked_shr(8 * num_before as u32);
                two_numbers(number.unwrap_or(0))
            }
            (None, None) => two_numbers(u128::from_le_bytes(padded(&text[start..end]))),
        };
        let bits = &BITS_OF[len];
        Self {
            low: low & bits[0],
            high: high & bits[1] | (len as u64) << LEN_SHIFT,
        }
    }

    /// Whether these are all of its bytes.
    #[inline(always)]
    pub(super) fn is_short(self) -> bool {
        self.high >> LEN_SHIFT < LONG as u64
    }

    /// Where it is looked for: of this number the highest bits are mixed best.
    #[inline(always)]
    pub(super) fn hash(self) -> u64 {
        let [of_low, of_high] = HASH_FACTORS;
        self.low
            .wrapping_mul(of_low)
            .wrapping_add(self.high.wrapping_mul(of_high))
    }
}

/// Odd ones, of no pattern, by which the two numbers of a word are multiplied.
pub(super) const HASH_FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];

/// Where a word of any length is looked for.
pub(super) fn hash_of_bytes(bytes: &[u8]) -> u64 {
    let (sixteens, rest) = bytes.as_chunks::<16>();
    let numbers = |bytes| two_numbers(u128::from_le_bytes(bytes));
    let start = mixed(bytes.len() as u64, 0);
    let chunks = sixteens.iter().map(|&bytes| numbers(bytes));
    let hash_of_chunks = chunks.fold(start, |before, [low, high]| mixed(low ^ before, high));
    let [low, high] = numbers(padded(rest));
    mixed(low ^ hash_of_chunks, high)
}

fn mixed(low: u64, high: u64) -> u64 {
    let [of_low, of_high] = HASH_FACTORS;
    let product = u128::from(low ^ of_low) * u128::from(high ^ of_high);
    product as u64 ^ (product >> 64) as u64
}

#[inline(always)]
fn two_numbers(number: u128) -> [u64; 2] {
    [number as u64, (number >> 64) as u64]
}

fn padded(bytes: &[u8]) -> [u8; 16] {
    let mut padded = [0; 16];
    padded[..bytes.len()].copy_from_slice(bytes);
    padded
}
