//! NumPy's `default_rng(seed).shuffle` of a list: `SeedSequence`, PCG64 and bounded integers by
//! masked rejection.
//!
//! PCG64 is PCG-XSL-RR-128/64 of O'Neill, *PCG*, HMC-CS-2014-0905 (2014); `SeedSequence` is
//! O'Neill's `seed_seq` design (2015) with the constants that NumPy documents. NumPy guarantees
//! the streams of its bit generators. It does not guarantee how `shuffle` draws from them, so a
//! test compares this with NumPy.

use super::seed::Seed;

const POOL_WORDS: usize = 4;
const INIT_A: u32 = 0x43b0_d7e5;
const MULT_A: u32 = 0x931e_8875;
const INIT_B: u32 = 0x8b51_f9dd;
const MULT_B: u32 = 0x58f3_8ded;
const MIX_MULT_L: u32 = 0xca01_f9dd;
const MIX_MULT_R: u32 = 0x4973_f715;
const XSHIFT: u32 = 16;

const PCG_MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

/// The generator of `numpy.random.default_rng(seed)`.
pub(super) struct Pcg64 {
    state: u128,
    increment: u128,
    /// The upper half of the last 64 bits, if only the lower half was used.
    half: Option<u32>,
}

impl Pcg64 {
    pub(super) fn new(seed: &Seed) -> Self {
        let words = generated(&mixed_pool(seed.words()));
        let wide = |i: usize| u128::from(words[i]) << 64 | u128::from(words[i + 1]);
        let mut generator = Self {
            state: 0,
            increment: wide(2) << 1 | 1,
            half: None,
        };
        generator.step();
        generator.state = generator.state.wrapping_add(wide(0));
        generator.step();
        generator
    }

    #[inline]
    fn step(&mut self) {
        self.state = (self.state.wrapping_mul(PCG_MULTIPLIER)).wrapping_add(self.increment);
    }

    #[inline]
    fn next_u64(&mut self) -> u64 {
        self.step();
        let xored = (self.state >> 64) as u64 ^ self.state as u64;
        xored.rotate_right((self.state >> 122) as u32)
    }

    /// The next 32 bits: first the lower half of 64 bits, then the upper half.
    #[inline]
    fn next_u32(&mut self) -> u32 {
        if let Some(half) = self.half.take() {
            return half;
        }
        let bits = self.next_u64();
        self.half = Some((bits >> 32) as u32);
        bits as u32
    }

    /// A number in `0..=last`, as `random_interval` of NumPy's C code.
    #[inline]
    pub(super) fn up_to(&mut self, last: u32) -> u32 {
        if last == 0 {
            return 0;
        }
        let mask = u32::MAX >> last.leading_zeros();
        loop {
            let number = self.next_u32() & mask;
            if number <= last {
                return number;
            }
        }
    }
}

/// Mixes entropy into the pool of a `SeedSequence`.
fn mixed_pool(entropy: &[u32]) -> [u32; POOL_WORDS] {
    let mut constant = INIT_A;
    let mut hashed = |word: u32| {
        let word = word ^ constant;
        constant = constant.wrapping_mul(MULT_A);
        let word = word.wrapping_mul(constant);
        word ^ (word >> XSHIFT)
    };
    let mut pool = [0; POOL_WORDS];
    for (i, word) in pool.iter_mut().enumerate() {
        *word = hashed(entropy.get(i).copied().unwrap_or(0));
    }
    for source in 0..POOL_WORDS {
        for target in 0..POOL_WORDS {
            if source != target {
                pool[target] = mixed(pool[target], hashed(pool[source]));
            }
        }
    }
    for &word in entropy.iter().skip(POOL_WORDS) {
        for target in &mut pool {
            *target = mixed(*target, hashed(word));
        }
    }
    pool
}

fn mixed(left: u32, right: u32) -> u32 {
    let word = (left.wrapping_mul(MIX_MULT_L)).wrapping_sub(right.wrapping_mul(MIX_MULT_R));
    word ^ (word >> XSHIFT)
}

/// The first four 64-bit words that a `SeedSequence` generates from its pool.
fn generated(pool: &[u32; POOL_WORDS]) -> [u64; 4] {
    let mut constant = INIT_B;
    let mut next = pool.iter().cycle().map(|&word| {
        let word = word ^ constant;
        constant = constant.wrapping_mul(MULT_B);
        let word = word.wrapping_mul(constant);
        u64::from(word ^ (word >> XSHIFT))
    });
    // `map` of an endless iterator ends nowhere.
    let mut word = || next.next().unwrap_or(0);
    std::array::from_fn(|_| {
        let low = word();
        word() << 32 | low
    })
}
