//! What panics print.

use std::panic;

/// Lets a pattern that gives up on a text do so in silence: that panic becomes an error, which names the text.
pub(crate) fn hush_patterns() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let message = info.payload_as_str();
        if !message.is_some_and(packtok_bpe::is_pattern_giving_up) {
            print(info);
        }
    }));
}
