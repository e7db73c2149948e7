//! The choices of datatrove's writer.

use packtok_pbin::TokenWidth;

/// Bytes of a token that datatrove chooses for a vocabulary: two if all ids fit, otherwise four.
pub fn width_for_vocab(vocab_size: u64) -> TokenWidth {
    if vocab_size <= 1 << 16 {
        TokenWidth::U16
    } else {
        TokenWidth::U32
    }
}
