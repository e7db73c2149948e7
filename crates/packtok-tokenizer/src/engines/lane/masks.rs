//! The classes of the bytes of a block, one bit for each byte.

/// Bytes of a block.
pub(in crate::engines) const BLOCK: usize = 64;

/// The classes of the bytes of a block. All bytes of a character have its classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::engines) struct Masks {
    pub(in crate::engines) letter: u64,
    pub(in crate::engines) number: u64,
    /// White space.
    pub(in crate::engines) whitespace: u64,
    /// `\r` and `\n`.
    pub(in crate::engines) newline: u64,
    /// U+0020.
    pub(in crate::engines) space: u64,
    /// `'`
    pub(in crate::engines) apostrophe: u64,
    /// Bytes of characters beyond ASCII.
    pub(in crate::engines) wide: u64,
    /// Continuation bytes of characters.
    pub(in crate::engines) inner: u64,
    /// Only computed for rules that depend on case.
    pub(in crate::engines) case: Case,
    /// Only computed for rules with a class of symbols.
    pub(in crate::engines) signs: Signs,
}

/// Letters and marks in neither `upper` nor `both` are lowercase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::engines) struct Case {
    /// Uppercase and titlecase letters.
    pub(in crate::engines) upper: u64,
    /// Letters without case, and marks.
    pub(in crate::engines) both: u64,
    /// Marks.
    pub(in crate::engines) mark: u64,
    /// `/`
    pub(in crate::engines) slash: u64,
}

/// Classes for rules that distinguish symbols from characters of no class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::engines) struct Signs {
    /// Punctuation and symbols.
    pub(in crate::engines) symbol: u64,
    /// Chinese characters that are split off, and kana.
    pub(in crate::engines) cjk: u64,
}
