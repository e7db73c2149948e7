//! Any bytes as code points of 1, 2 and 4 bytes, surrogates included: the UTF-8 that `char` gives, or an error that names
//! the first code point without UTF-8.
//!
//! Code points of 4 bytes are taken modulo a number little above the last one. Seeds: `tests/fuzz/seeds/*.text`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use packtok_tokenizer::{CodePoints, EncodeError};

fuzz_target!(|bytes: &[u8]| {
    let two: Vec<u16> = (bytes.as_chunks().0.iter())
        .map(|&unit| u16::from_le_bytes(unit))
        .collect();
    let four: Vec<u32> = (bytes.as_chunks().0.iter())
        .map(|&unit| u32::from_le_bytes(unit) % 0x11_0010)
        .collect();
    // As text that people write, which has few code points of 4 bytes.
    let text: Vec<u32> = String::from_utf8_lossy(bytes)
        .chars()
        .map(u32::from)
        .collect();
    check(CodePoints::One(bytes), bytes);
    check(CodePoints::Two(&two), &two);
    check(CodePoints::Four(&four), &four);
    check(CodePoints::Four(&text), &text);
});

fn check<U: Copy + Into<u32>>(code_points: CodePoints<'_>, units: &[U]) {
    let mut text = String::new();
    let outcome = code_points.append_to(&mut text);
    assert!(text.len() <= code_points.max_utf8_bytes());
    assert!(str::from_utf8(text.as_bytes()).is_ok());
    let mut expected = String::new();
    for (at, &unit) in units.iter().enumerate() {
        match char::from_u32(unit.into()) {
            Some(char) => expected.push(char),
            None => {
                let Err(EncodeError::NotACharacter {
                    position,
                    code_point,
                }) = outcome
                else {
                    panic!("{outcome:?}");
                };
                assert_eq!((position, code_point), (at, unit.into()));
                return;
            }
        }
    }
    outcome.expect("all code points are characters");
    assert_eq!(text, expected);
}
