//! The output of panics.

use std::panic;

/// Silences panics of the tokenizers library that are converted to errors.
pub(crate) fn hush_contained() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !packtok_tokenizer::is_panic_contained() {
            print(info);
        }
    }));
}
