//! Sets of vector instructions. The best set of the processor is chosen when a tokenizer is
//! loaded.
//!
//! A back end is one such set. All code that encodes a text is compiled once for each back end
//! ([`Simd::run`]), so that vector operations are not function calls. Back ends differ only in
//! speed; `tests` compare each with the portable one.
//!
//! # Masks
//!
//! A SIMD block ([`SimdBlock`]) is 64 bytes of text. A mask has one bit for each of them.
//!
//! ```text
//! text       I   c a n ' t   g o   4   2 \n     bit 0 is the first byte
//! letter     1 0 1 1 1 0 1 0 1 1 0 0 0 0 0
//! number     0 0 0 0 0 0 0 0 0 0 0 1 0 1 0
//! whitespace 0 1 0 0 0 0 0 1 0 0 1 0 1 0 1      and so on
//! ```

mod any_simd;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little")
))]
mod back_end;
mod first_two;
mod masks;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
mod portable;
#[cfg(test)]
mod tests;
mod traits;

pub(super) use self::any_simd::AnySimd;
pub(super) use self::first_two::FirstTwo;
pub(super) use self::masks::{Masks, SIMD_BLOCK_BYTES, Signs, SimdBlock};
pub(super) use self::traits::{Job, KEY_BATCH, LEN_BATCH, Lanes, NUM_LANES, Simd};
