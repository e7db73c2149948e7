//! A set of pairs of adjacent bytes, such as those inside the tokens of a vocabulary.

/// One bit for each of the 65,536 pairs.
#[derive(Clone)]
pub(super) struct Pairs(Box<[u64; (1 << 16) / 64]>);

impl Pairs {
    pub(super) fn none() -> Self {
        Self(Box::new([0; (1 << 16) / 64]))
    }

    /// All pairs of adjacent bytes inside these tokens.
    pub(super) fn inside<T: AsRef<[u8]>>(tokens: impl IntoIterator<Item = T>) -> Self {
        let mut pairs = Self::none();
        for token in tokens {
            for pair in token.as_ref().windows(2) {
                pairs.put(pair[0], pair[1]);
            }
        }
        pairs
    }

    pub(super) fn put(&mut self, left: u8, right: u8) {
        let pair = pair(left, right);
        self.0[pair / 64] |= 1 << (pair % 64);
    }

    /// Whether the set contains this pair.
    #[inline(always)]
    pub(super) fn has(&self, left: u8, right: u8) -> bool {
        let pair = pair(left, right);
        self.0[pair / 64] >> (pair % 64) & 1 == 1
    }
}

pub(super) fn pair(left: u8, right: u8) -> usize {
    usize::from(left) << 8 | usize::from(right)
}
