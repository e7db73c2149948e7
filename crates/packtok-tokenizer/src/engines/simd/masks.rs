//! The classes of the bytes of a SIMD block, one bit for each byte.

/// Bytes of a SIMD block.
pub(crate) const SIMD_BLOCK_BYTES: usize = 64;

/// The bytes of a text that are classified together. They have nothing to do with the blocks of a
/// dataset.
pub(crate) type SimdBlock = [u8; SIMD_BLOCK_BYTES];

/// The classes of the bytes of a SIMD block. All bytes of a character have its classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Masks {
    pub(crate) letter: u64,
    pub(crate) number: u64,
    /// White space.
    pub(crate) whitespace: u64,
    /// `\r` and `\n`.
    pub(crate) newline: u64,
    /// U+0020.
    pub(crate) space: u64,
    /// `'`
    pub(crate) apostrophe: u64,
    /// Bytes of characters beyond ASCII.
    pub(crate) wide: u64,
    /// Continuation bytes of characters.
    pub(crate) inner: u64,
    /// Only computed for rules that depend on case.
    pub(crate) case: Case,
    /// Only computed for rules with a class of symbols.
    pub(crate) signs: Signs,
}

/// The case of letters and marks. Those in neither `upper` nor `both` are lowercase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Case {
    /// Uppercase and titlecase letters.
    pub(crate) upper: u64,
    /// Letters without case, and marks.
    pub(crate) both: u64,
    pub(crate) mark: u64,
    /// `/`
    pub(crate) slash: u64,
}

/// Classes for rules that distinguish symbols from characters of no class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Signs {
    /// Punctuation and symbols.
    pub(crate) symbol: u64,
    /// Chinese characters that are split off, and kana.
    pub(crate) cjk: u64,
}
