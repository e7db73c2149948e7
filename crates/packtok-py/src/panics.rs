//! What panics print.

use std::panic;

/// Keeps silent about panics of the tokenizers library that become errors.
pub(crate) fn hush_contained() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !packtok_tokenizer::is_panic_contained() {
            print(info);
        }
    }));
}
