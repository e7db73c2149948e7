//! A pickle of a column that CEPE's scripts wrote: an error, or arrays whose bytes match their types and shapes.
//!
//! Seeds: the `*.pickled` files in `seeds`, which NumPy and Python wrote.
#![no_main]

use libfuzzer_sys::fuzz_target;
use packtok_reshape::import::{Array, Pickled, parse};

/// The parser may copy big-endian elements, and an array for each place of a list that names it.
const COPIES: usize = 9;
const ALWAYS: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let most = COPIES * bytes.len() + ALWAYS;
    match parse(bytes) {
        Ok(Pickled::Array(array)) => assert!(checked(&array) <= most),
        Ok(Pickled::Arrays(arrays)) => {
            assert!(arrays.iter().map(checked).sum::<usize>() <= most);
        }
        // Each takes at least two bytes of the pickle.
        Ok(Pickled::Integers(numbers)) => assert!(2 * numbers.len() <= bytes.len()),
        Ok(Pickled::Floats(numbers)) => assert!(2 * numbers.len() <= bytes.len()),
        // Messages are bounded, too.
        Err(fault) => assert!(fault.to_string().len() <= 40 * bytes.len() + 200),
    }
});

/// Checks that the elements fill the shape, and returns their bytes.
fn checked(array: &Array<'_>) -> usize {
    let num_elements = array.shape.iter().product::<u64>();
    assert_eq!(num_elements * array.dtype.bytes(), array.bytes.len() as u64);
    array.bytes.len()
}
