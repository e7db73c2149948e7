//! Symbols: the numbers of tokens while a word is merged.
//!
//! The symbols of the alphabet come first, in the order of their ids. The tokens that rules make follow, in the order
//! of the ranks of their rules. Each token has only one rule (`possible`), so its symbol is also the rank of this rule.

/// A symbol, below [`NO_SYMBOL`].
pub(super) type Symbol = u32;

pub(super) const SYMBOL_BITS: u32 = 20;

/// Stands for both ends of a word, for bytes without a token, and for neighbours that do not merge.
pub(super) const NO_SYMBOL: Symbol = (1 << SYMBOL_BITS) - 1;
