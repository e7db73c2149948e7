//! The output of panics.

use std::panic;

/// Silences panics of the libraries for tokenizers and tables that are converted to errors.
pub(crate) fn hush_contained() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let is_contained =
            packtok_tokenizer::is_panic_contained() || packtok_corpus::is_panic_contained();
        if !is_contained {
            print(info);
        }
    }));
}
