//! The vector instructions that a processor has, of which the best are chosen when a tokenizer is loaded.
//!
//! A lane is one set of them. All that encodes a text is compiled once for each ([`Lane::run`]), so that what it does
//! with vectors is no call; they differ in nothing but speed, and `tests` below holds each against the portable one.
//!
//! # Masks
//!
//! 64 bytes of a text at once, as one bit for each in each class: a block.
//!
//! ```text
//! text       I   c a n ' t   g o   4   2 \n     bit 0 is the first byte
//! letter     1 0 1 1 1 0 1 0 1 1 0 0 0 0 0
//! number     0 0 0 0 0 0 0 0 0 0 0 1 0 1 0
//! space      0 1 0 0 0 0 0 1 0 0 1 0 1 0 1      and so on
//! ```
//!

mod any_lane;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod first_two;
mod masks;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
mod portable;
#[cfg(test)]
mod tests;
mod traits;

pub(super) use self::any_lane::AnyLane;
pub(super) use self::first_two::FirstTwo;
pub(super) use self::masks::{BLOCK, Masks, Signs};
pub(super) use self::traits::{Job, KEY_BATCH, LEN_BATCH, Lane};
