//! The rules that a pattern implements, and the state that it carries from SIMD block to SIMD
//! block.

use crate::engines::simd::Masks;

/// State carried from one SIMD block into the next. Unless stated otherwise, bit 0 of a mask is the
/// last bit of the previous SIMD block.
#[derive(Clone, Copy, Default)]
pub(super) struct Carry {
    pub(super) letter: u64,
    pub(super) number: u64,
    pub(super) other: u64,
    pub(super) whitespace: u64,
    pub(super) newline: u64,
    pub(super) space: u64,
    pub(super) wide: u64,
    /// Newlines, and with some patterns slashes, that belong to the symbols before them.
    pub(super) taken: u64,
    /// A symbol that begins a run of symbols and has no space before it.
    pub(super) prefix: u64,
    /// Bytes of this SIMD block at which words after contractions start.
    pub(super) after_contractions: u64,
    /// Bytes of this SIMD block that belong to a contraction.
    pub(super) contracted: u64,
    /// Letters that belong to the symbol before them.
    pub(super) joined: u64,
    /// Chinese characters that are split off.
    pub(super) cjk: u64,
    /// Characters of no class, for patterns that have a class of symbols.
    pub(super) unclassed: u64,
    /// Lowercase letters, and letters without case after these.
    pub(super) lowered: u64,
    /// Letters without case, and marks.
    pub(super) both: u64,
    /// Start of a run of uppercase letters. The run is a word unless a letter of another kind
    /// follows it.
    pub(super) pending_upper: Option<u32>,
    /// Numbers in the current word.
    pub(super) num_digits: u32,
    /// White space from this position on is a word unless a newline follows it.
    pub(super) pending: Option<u32>,
}

/// The rules of a pattern for a SIMD block.
pub(super) trait PatternRules: Copy {
    /// Whether the pattern needs the classes of characters beyond ASCII.
    const NEEDS_BEYOND_ASCII: bool = true;
    /// Whether the pattern needs [`Masks::case`]; marks then count as letters.
    const NEEDS_CASE: bool = false;
    /// Whether the pattern needs [`Masks::signs`]. If so, marks count as letters, and Chinese
    /// characters do not.
    const NEEDS_SIGNS: bool = false;

    /// The starts of words in the SIMD block at `at`. The second result is the start of an earlier
    /// word that was pending.
    fn begins(
        self,
        text: &[u8],
        at: usize,
        masks: &Masks,
        next: &Masks,
        carry: &mut Carry,
    ) -> (u64, Option<u32>);
}
