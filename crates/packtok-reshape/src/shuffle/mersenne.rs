//! CPython's `random.Random(seed).shuffle`: the Mersenne Twister MT19937, seeded by an integer.
//!
//! The generator and its seeding by an array follow Matsumoto and Nishimura, *Mersenne Twister*,
//! ACM TOMACS 8 (1998), and `mt19937ar.c` (2002). CPython's documentation guarantees that
//! `random()` repeats for a seed; `shuffle` has taken bits in this way since Python 3.2.

use super::seed::Seed;

const STATE_WORDS: usize = 624;
const SHIFT_WORDS: usize = 397;
const UPPER_BIT: u32 = 1 << 31;
/// The seed of the state that an array of seeds is mixed into.
const ARRAY_SEED: u32 = 19_650_218;

/// A Mersenne Twister.
pub(super) struct Mersenne {
    state: [u32; STATE_WORDS],
    next: usize,
}

impl Mersenne {
    /// The generator of `random.Random(seed)`.
    pub(super) fn new(seed: &Seed) -> Self {
        let key = seed.words();
        let mut state = [0; STATE_WORDS];
        let mut last = ARRAY_SEED;
        state[0] = last;
        for (i, word) in state.iter_mut().enumerate().skip(1) {
            last = step(last, 1_812_433_253).wrapping_add(i as u32);
            *word = last;
        }
        let mut at = 1;
        let mut in_key = 0;
        for _ in 0..STATE_WORDS.max(key.len()) {
            state[at] = (state[at] ^ step(state[at - 1], 1_664_525))
                .wrapping_add(key[in_key])
                .wrapping_add(in_key as u32);
            at = advance(&mut state, at);
            in_key = (in_key + 1) % key.len();
        }
        for _ in 1..STATE_WORDS {
            state[at] = (state[at] ^ step(state[at - 1], 1_566_083_941)).wrapping_sub(at as u32);
            at = advance(&mut state, at);
        }
        state[0] = UPPER_BIT;
        Self {
            state,
            next: STATE_WORDS,
        }
    }

    /// The next 32 bits.
    #[inline]
    fn next_u32(&mut self) -> u32 {
        if self.next == STATE_WORDS {
            self.generate();
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    fn generate(&mut self) {
        let state = &mut self.state;
        for i in 0..STATE_WORDS {
            let bits = (state[i] & UPPER_BIT) | (state[(i + 1) % STATE_WORDS] & !UPPER_BIT);
            let odd = if bits & 1 == 1 { 0x9908_b0df } else { 0 };
            state[i] = state[(i + SHIFT_WORDS) % STATE_WORDS] ^ (bits >> 1) ^ odd;
        }
        self.next = 0;
    }

    /// A number in `0..=last`, as `Random._randbelow(last + 1)`: draws as many bits as `last + 1`
    /// has, until the number is small enough. `last` is below `u32::MAX`.
    #[inline]
    pub(super) fn up_to(&mut self, last: u32) -> u32 {
        let bits = u32::BITS - (last + 1).leading_zeros();
        loop {
            let number = self.next_u32() >> (u32::BITS - bits);
            if number <= last {
                return number;
            }
        }
    }
}

fn step(word: u32, factor: u32) -> u32 {
    (word ^ (word >> 30)).wrapping_mul(factor)
}

/// The index after `at`; wraps to 1, after word 0 was set to the last word.
fn advance(state: &mut [u32; STATE_WORDS], at: usize) -> usize {
    if at + 1 < STATE_WORDS {
        return at + 1;
    }
    state[0] = state[STATE_WORDS - 1];
    1
}
