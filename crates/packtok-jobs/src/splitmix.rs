//! SplitMix64 (Steele, Lea and Flood, *Fast Splittable Pseudorandom Number Generators*, OOPSLA
//! 2014), the generator for samples and orders. Its outputs are recorded in files and states, so
//! they must not change.

/// The increment of the generator: 2^64 divided by the golden ratio.
pub const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function, a bijection whose every output bit depends on every input bit.
pub fn mixed(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
