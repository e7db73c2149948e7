//! Makes choices from the bytes of an input, then from pseudo-random bytes.

use packtok_jobs::splitmix::{GAMMA, mixed};

/// Makes choices. The first eight bytes of an input seed the generator that continues after its last byte. So an input of
/// eight bytes gives a complete case, and a mutation in a longer input leaves what follows as it was.
pub(crate) struct Source<'a> {
    bytes: &'a [u8],
    state: u64,
}

impl<'a> Source<'a> {
    pub(crate) fn new(input: &'a [u8]) -> Self {
        let (seed, bytes) = input.split_at(input.len().min(8));
        let mut state = [0; 8];
        state[..seed.len()].copy_from_slice(seed);
        Self {
            bytes,
            state: u64::from_le_bytes(state),
        }
    }

    fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((&first, rest)) => {
                self.bytes = rest;
                first
            }
            None => (self.next_random() >> 56) as u8,
        }
    }

    /// SplitMix64.
    fn next_random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mixed(self.state)
    }

    /// A number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let mut number = usize::from(self.byte());
        if limit > 1 << 8 {
            number = number << 8 | usize::from(self.byte());
        }
        if limit > 1 << 16 {
            number = number << 8 | usize::from(self.byte());
        }
        number % limit
    }

    /// True with a chance of one in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.once_in(2)
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// Any scalar value of any plane, more often one of the first blocks.
    pub(crate) fn char(&mut self) -> char {
        let limit = self.pick(&[
            0x80, 0x80, 0x100, 0x300, 0x800, 0x3000, 0x1_0000, 0x2_0000, 0x11_0000,
        ]);
        char::from_u32(self.below(limit) as u32).unwrap_or('\u{fffd}')
    }

    /// A substring.
    pub(crate) fn part_of<'t>(&mut self, text: &'t str) -> &'t str {
        let mut bounds: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        bounds.push(text.len());
        let (one, other) = (self.pick(&bounds), self.pick(&bounds));
        // In most cases a prefix or a suffix.
        match self.below(5) {
            0 | 1 => &text[..one],
            2 | 3 => &text[one..],
            _ => &text[one.min(other)..one.max(other)],
        }
    }
}
