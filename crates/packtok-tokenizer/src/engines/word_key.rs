//! Words as 16-byte keys: words are compared and looked up by these.

/// Maximum length in bytes of a short word, whose bytes all fit in its key. Longer words are split
/// where possible.
pub(super) const SHORT: usize = 15;

/// Position of the length in `high`.
pub(super) const LEN_SHIFT: u32 = 56;

/// The length in the keys of all longer words.
pub(super) const LONG: usize = SHORT + 1;

/// The key of a word.
///
/// ```text
/// low: bytes 0 to 7 | high: bytes 8 to 14, then the length, which is 16 for all longer words
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct WordKey {
    pub(super) low: u64,
    pub(super) high: u64,
}

/// For each length, the bits of 16 loaded bytes that belong to the word, and the length where the key has it.
pub(super) static OF_LEN: [[[u64; 2]; 2]; LONG + 1] = {
    let mut of_len = [[[0; 2]; 2]; LONG + 1];
    let mut len = 1;
    while len <= LONG {
        let num_bytes = if len < SHORT { len } else { SHORT };
        let bits = u128::MAX >> (128 - 8 * num_bytes);
        of_len[len] = [
            [bits as u64, (bits >> 64) as u64],
            [0, (len as u64) << LEN_SHIFT],
        ];
        len += 1;
    }
    of_len
};

impl WordKey {
    /// The key of the word at `start..end` of a text.
    #[inline(always)]
    pub(super) fn at(text: &[u8], start: usize, end: usize) -> Self {
        let len = (end - start).min(LONG);
        let bytes = text.get(start..start + 16).and_then(<[u8]>::first_chunk);
        let [low, high] = match (bytes, text.last_chunk()) {
            (Some(bytes), _) => two_numbers(u128::from_le_bytes(*bytes)),
            // Near the end of a text, the last 16 bytes are loaded, and the bytes before the word
            // are shifted out.
            (None, Some(last)) => {
                let num_before = start + 16 - text.len();
                let number = u128::from_le_bytes(*last).checked_shr(8 * num_before as u32);
                two_numbers(number.unwrap_or(0))
            }
            (None, None) => two_numbers(u128::from_le_bytes(padded(&text[start..end]))),
        };
        let [bits, len] = OF_LEN[len];
        Self {
            low: low & bits[0],
            high: high & bits[1] | len[1],
        }
    }

    /// The length of a short word.
    #[inline(always)]
    pub(super) fn len(self) -> usize {
        (self.high >> LEN_SHIFT) as usize
    }

    /// The bytes of a short word, and its length at the end.
    #[inline(always)]
    pub(super) fn bytes(self) -> [u8; 16] {
        (u128::from(self.high) << 64 | u128::from(self.low)).to_le_bytes()
    }

    /// Whether the key contains all bytes of the word.
    #[inline(always)]
    pub(super) fn is_short(self) -> bool {
        self.high >> LEN_SHIFT < LONG as u64
    }

    /// The hash of the key. Its highest bits are mixed best.
    #[inline(always)]
    pub(super) fn hash(self) -> u64 {
        let [of_low, of_high] = HASH_FACTORS;
        self.low
            .wrapping_mul(of_low)
            .wrapping_add(self.high.wrapping_mul(of_high))
    }
}

/// Odd constants without a pattern. Vector instructions have no product of twice the width, so the
/// hash is the sum of two products.
pub(super) const HASH_FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];

/// The hash of a word of any length.
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
