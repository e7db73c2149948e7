//! Words as numbers, which is how they are compared and looked for.

/// Bytes of a word that is short; others are cut where they can be.
pub(super) const SHORT: usize = 15;

/// Where the length of a short word is in its second number.
pub(super) const LEN_SHIFT: u32 = 56;

/// A word to look up.
///
/// ```text
/// low: bytes 0 to 7 | high: bytes 8 to 14, then the length
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) low: u64,
    pub(super) high: u64,
    /// Where it is looked for.
    pub(super) hash: u64,
}

/// Which bits of 16 bytes belong to a word of so many.
const BITS_OF: [[u64; 2]; 16] = {
    let mut bits_of = [[0; 2]; 16];
    let mut len = 1;
    while len < 16 {
        let bits = u128::MAX >> (128 - 8 * len);
        bits_of[len] = [bits as u64, (bits >> 64) as u64];
        len += 1;
    }
    bits_of
};

impl Word {
    /// The word at `start..end` of a text, if it is short.
    #[inline(always)]
    pub(super) fn short(text: &[u8], start: usize, end: usize) -> Option<Self> {
        let len = end - start;
        let bits = BITS_OF.get(len)?;
        let bytes = text.get(start..start + 16).and_then(<[u8]>::first_chunk);
        let number = match (bytes, text.last_chunk()) {
            (Some(bytes), _) => u128::from_le_bytes(*bytes),
            // At the end of a text: what is before the word is shifted out.
            (None, Some(last)) => u128::from_le_bytes(*last) >> (8 * (start + 16 - text.len())),
            (None, None) => u128::from_le_bytes(padded(&text[start..end])),
        };
        let (low, high) = (number as u64, (number >> 64) as u64);
        let (low, high) = (low & bits[0], high & bits[1] | (len as u64) << LEN_SHIFT);
        Some(Self {
            low,
            high,
            hash: hash(low, high),
        })
    }

    /// A word that is nowhere: it has no bytes.
    pub(super) const NOWHERE: Self = Self {
        low: 1,
        high: 0,
        hash: 0,
    };
}

/// Where a word is looked for.
#[inline(always)]
pub(super) fn hash(low: u64, high: u64) -> u64 {
    let product =
        u128::from(low ^ 0x9e37_79b9_7f4a_7c15) * u128::from(high ^ 0xc2b2_ae3d_27d4_eb4f);
    product as u64 ^ (product >> 64) as u64
}

/// Where a word of any length is looked for.
pub(super) fn hash_of_bytes(bytes: &[u8]) -> u64 {
    let (sixteens, rest) = bytes.as_chunks::<16>();
    let start = hash(bytes.len() as u64, 0);
    let chunks = sixteens.iter().map(two_numbers);
    let hash_of_chunks = chunks.fold(start, |before, [low, high]| hash(low ^ before, high));
    let [low, high] = two_numbers(&padded(rest));
    hash(low ^ hash_of_chunks, high)
}

#[inline(always)]
fn two_numbers(bytes: &[u8; 16]) -> [u64; 2] {
    let number = u128::from_le_bytes(*bytes);
    [number as u64, (number >> 64) as u64]
}

fn padded(bytes: &[u8]) -> [u8; 16] {
    let mut padded = [0; 16];
    padded[..bytes.len()].copy_from_slice(bytes);
    padded
}
