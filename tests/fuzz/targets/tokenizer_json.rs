//! Any bytes as a tokenizer.json: an error, or a tokenizer that gives ids or an error for any text. It must not take the
//! memory that the file asks for, which libFuzzer limits.
//!
//! The first byte of an input is the length of a text, modulo 16, which follows; the rest is the file.
//! Seeds: `tests/fuzz/seeds/*.tokenizer_json`.
#![no_main]

use std::sync::Once;

use libfuzzer_sys::fuzz_target;
use packtok_tokenizer::{EncodeOptions, Tokenizer, is_panic_contained};

/// Panics of the tokenizers library become errors, so libFuzzer, which aborts on any panic, must not see them.
static HUSHED: Once = Once::new();

fuzz_target!(|bytes: &[u8]| {
    HUSHED.call_once(|| {
        let abort = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !is_panic_contained() {
                abort(info);
            }
        }));
    });
    let Some((&len, rest)) = bytes.split_first() else {
        return;
    };
    // Short, so that a pattern that tries many ways ends in time.
    let Some((text, file)) = rest.split_at_checked(usize::from(len % 16)) else {
        return;
    };
    let Ok(tokenizer) = Tokenizer::from_json_bytes("any", file.to_vec()) else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    if let Ok(ids) = tokenizer.encode(&text, &EncodeOptions::default()) {
        let _ = tokenizer.decode(&ids);
    }
});
