//! The positions of windows in a document or in a stream of documents. All window arithmetic is
//! here.

/// The shape of a sample: its context, and the decoder tokens after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// Tokens before the decoder's.
    pub(super) context: u64,
    /// Tokens of the decoder; windows start this far apart.
    pub(super) decoder: u64,
}

impl Window {
    /// Tokens of a window.
    pub(super) fn tokens(self) -> u64 {
        self.context + self.decoder
    }

    /// Number of windows in `tokens` consecutive tokens.
    pub(super) fn count(self, tokens: u64) -> u64 {
        tokens.saturating_sub(self.context) / self.decoder
    }

    /// Tokens after the last window; all of them if there is no window.
    pub(super) fn tail(self, tokens: u64) -> u64 {
        match self.count(tokens) {
            0 => tokens,
            count => tokens - (self.context + count * self.decoder),
        }
    }

    /// The first token of window `i`.
    pub(super) fn start(self, i: u64) -> u64 {
        i * self.decoder
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Window;

    proptest! {
        #[test]
        fn decoders_tile_what_follows_the_first_context(
            context in 0u64..50, decoder in 1u64..50, tokens in 0u64..1000,
        ) {
            let window = Window { context, decoder };
            let count = window.count(tokens);
            let mut end = context;
            for i in 0..count {
                prop_assert_eq!(window.start(i) + context, end);
                end += decoder;
                prop_assert_eq!(window.start(i) + window.tokens(), end);
            }
            prop_assert!(count == 0 || end <= tokens);
            prop_assert!(end + decoder > tokens);
            let used = if count == 0 { 0 } else { end };
            prop_assert_eq!(used + window.tail(tokens), tokens);
        }
    }
}
