//! The classes of the bytes of a block, one bit for each byte.

/// Bytes of a block.
pub(in crate::engines) const BLOCK: usize = 64;

/// The classes of the bytes of a block; all bytes of a character have its classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::engines) struct Masks {
    pub(in crate::engines) letter: u64,
    pub(in crate::engines) number: u64,
    /// White space.
    pub(in crate::engines) space: u64,
    /// `\r` and `\n`.
    pub(in crate::engines) newline: u64,
    /// U+0020, the only white space that words of symbols begin with.
    pub(in crate::engines) blank: u64,
    /// `'`
    pub(in crate::engines) apostrophe: u64,
    /// Bytes of characters beyond ASCII.
    pub(in crate::engines) wide: u64,
    /// Bytes that begin no character.
    pub(in crate::engines) inner: u64,
    /// What is asked for by rules that tell upper from lower case, and else nothing.
    pub(in crate::engines) case: Case,
    /// What is asked for by rules that tell symbols from characters of no class, and else nothing.
    pub(in crate::engines) signs: Signs,
}

/// More classes of the bytes of a block; letters and marks that are in none of the first two are lower ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::engines) struct Case {
    /// Letters of upper or title case.
    pub(in crate::engines) upper: u64,
    /// Letters without case, and marks.
    pub(in crate::engines) both: u64,
    /// Marks.
    pub(in crate::engines) mark: u64,
    /// `/`
    pub(in crate::engines) slash: u64,
}

/// More classes of the bytes of a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::engines) struct Signs {
    /// Punctuation and symbols.
    pub(in crate::engines) symbol: u64,
    /// Chinese characters that are kept apart, and kana.
    pub(in crate::engines) cjk: u64,
}
