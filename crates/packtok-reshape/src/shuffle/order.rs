//! The order of shuffled documents, in 4 bytes a document.

use std::num::NonZeroU64;

use packtok_dataset::order::permutation::Permutation;
use packtok_pbin::ShuffleGenerator;

use super::mersenne::Mersenne;
use super::numpy_random::Pcg64;
use super::seed::Seed;
use crate::error::{Error, Result};

/// Documents between two checks for cancellation.
const STEPS: u32 = 1 << 20;
/// Up to this number of documents, inverting an order may use a second list.
const TWO_LISTS_LEN: usize = 1 << 26;

/// A generator and its seed, which together define an order of any number of documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shuffle {
    /// The generator of the order.
    pub generator: ShuffleGenerator,
    /// The seed of the generator. The permutation of packtok uses the lower 64 bits.
    pub seed: Seed,
}

impl Shuffle {
    /// The order of `len` documents: `order[i]` is the document at position `i` of the output.
    /// `check` is called regularly; its error ends the computation.
    ///
    /// # Errors
    /// The errors of `check`.
    pub fn order(&self, len: u32, check: &mut dyn FnMut() -> Result<()>) -> Result<Vec<u32>> {
        match self.generator {
            ShuffleGenerator::Python => {
                let mut generator = Mersenne::new(&self.seed);
                fisher_yates(len, |last| generator.up_to(last), check)
            }
            ShuffleGenerator::Numpy => {
                let mut generator = Pcg64::new(&self.seed);
                fisher_yates(len, |last| generator.up_to(last), check)
            }
            ShuffleGenerator::Packtok => permuted(len, self.seed.as_u64().unwrap_or(0), check),
        }
    }
}

/// Shuffles `0..len` from the end, as CPython and NumPy do.
fn fisher_yates(
    len: u32,
    mut up_to: impl FnMut(u32) -> u32,
    check: &mut dyn FnMut() -> Result<()>,
) -> Result<Vec<u32>> {
    let mut order: Vec<u32> = (0..len).collect();
    for last in (1..len).rev() {
        order.swap(last as usize, up_to(last) as usize);
        if last.is_multiple_of(STEPS) {
            check()?;
        }
    }
    Ok(order)
}

fn permuted(len: u32, seed: u64, check: &mut dyn FnMut() -> Result<()>) -> Result<Vec<u32>> {
    let Some(num_items) = NonZeroU64::new(len.into()) else {
        return Ok(Vec::new());
    };
    let permutation = Permutation::new(num_items, seed, 0);
    let mut order = Vec::with_capacity(len as usize);
    let mut numbers = vec![0; STEPS.min(len) as usize];
    while order.len() < len as usize {
        let num = numbers.len().min(len as usize - order.len());
        permutation.fill(order.len() as u64, 1, &mut numbers[..num]);
        order.extend(numbers[..num].iter().map(|&number| number as u32));
        check()?;
    }
    Ok(order)
}

/// The position of each document in the output: the inverse of an order.
pub(super) fn inverted(order: Vec<u32>) -> Vec<u32> {
    if order.len() <= TWO_LISTS_LEN {
        let mut positions = vec![0; order.len()];
        for (position, &document) in (0..).zip(&order) {
            positions[document as usize] = position;
        }
        return positions;
    }
    inverted_in_place(order)
}

/// Inverts the order cycle by cycle. In addition to the list, this needs one bit per document, but
/// each step waits for the previous step.
pub(super) fn inverted_in_place(mut order: Vec<u32>) -> Vec<u32> {
    let mut is_done = vec![0u64; order.len().div_ceil(64)];
    for start in 0..order.len() {
        if is_done[start / 64] >> (start % 64) & 1 == 1 {
            continue;
        }
        let (mut position, mut document) = (start, order[start] as usize);
        loop {
            let next = order[document] as usize;
            order[document] = position as u32;
            is_done[document / 64] |= 1 << (document % 64);
            if document == start {
                break;
            }
            (position, document) = (document, next);
        }
    }
    order
}

/// `len` as the number of documents that an order can have.
pub(crate) fn checked_len(len: u64) -> Result<u32> {
    u32::try_from(len)
        .ok()
        .filter(|&len| len < u32::MAX)
        .ok_or_else(|| Error::TooManyDocuments { documents: len })
}
