//! The classes of characters that split patterns use: letter, number, white space and so on.

use super::automaton::CharSet;
use super::char_table::{CharTable, OF_FOUR};
use crate::engines::simd::{FirstTwo, SIMD_BLOCK_BYTES, Simd};

/// One bit for each class.
pub(super) type Classes = u8;

/// `\p{L}`
pub(super) const LETTER: Classes = 1;
/// `\p{N}`
pub(super) const NUMBER: Classes = 1 << 1;
/// `\s`
pub(super) const WHITESPACE: Classes = 1 << 2;
/// `[\r\n]`
pub(super) const NEWLINE: Classes = 1 << 3;
/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
pub(super) const UPPER: Classes = 1 << 4;
/// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
pub(super) const LOWER: Classes = 1 << 5;

/// `\p{Han}`
const HAN: Classes = 1 << 6;

/// The first byte of the lowest character in [`HAN`].
const FIRST_OF_HAN: u8 = 0xe2;

/// `[\p{P}\p{S}]`. Shares a bit with [`UPPER`]; no pattern uses both.
pub(super) const SYMBOL: Classes = UPPER;
/// Characters that DeepSeek's pattern splits off. Shares a bit with [`LOWER`]; no pattern uses both.
pub(super) const CJK: Classes = LOWER;

/// Characters that NFC does not change. Shares a bit with [`LETTER`]; no table has both.
pub(crate) const INERT: Classes = LETTER;

/// The classes of most patterns.
pub(super) const COMMON: [(&str, Classes); 7] = [
    (r"\p{L}", LETTER),
    (r"\p{N}", NUMBER),
    (r"\s", WHITESPACE),
    (r"[\r\n]", NEWLINE),
    (r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", UPPER),
    (r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", LOWER),
    (r"\p{Han}", HAN),
];
/// The classes of [`Pattern::Cl100kWithMarks`](super::patterns::Pattern::Cl100kWithMarks).
pub(super) const WITH_MARKS: [(&str, Classes); 4] = [
    (r"[\p{L}\p{M}]", LETTER),
    (r"\p{N}", NUMBER),
    (r"\s", WHITESPACE),
    (r"[\r\n]", NEWLINE),
];
/// The classes of DeepSeek's patterns: marks count as letters, and characters in [`CJK`] have no other class.
pub(super) const OF_DEEPSEEK: [(&str, Classes); 6] = [
    (r"[[\p{L}\p{M}]--[一-龥぀-ゟ゠-ヿ]]", LETTER),
    (r"\p{N}", NUMBER),
    (r"\s", WHITESPACE),
    (r"[\r\n]", NEWLINE),
    (r"[[\p{P}\p{S}]--[一-龥぀-ゟ゠-ヿ]]", SYMBOL),
    (r"[一-龥぀-ゟ゠-ヿ]", CJK),
];

/// The last six bits of the first bytes of U+00C0 to U+017F and U+0380 to U+047F, where case
/// matters most. The remaining letters with case belong to few languages, or alternate in case, so
/// that two bytes do not decide it.
const LATIN_FIRST: usize = 0x3;
const LATIN_LAST: usize = 0x5;
const GREEK_FIRST: usize = 0xe;
const CYRILLIC_LAST: usize = 0x11;

/// The classes of every character.
pub(crate) struct ClassTable {
    chars: CharTable,
    /// Characters whose first two bytes decide their class: `letters` are letters of no other
    /// class, `lower` are lowercase letters, `both` are letters without case, and `cjk` are the
    /// characters in [`CJK`].
    letters: FirstTwo,
    lower: FirstTwo,
    both: FirstTwo,
    cjk: FirstTwo,
}

impl ClassTable {
    /// Built from the tables of the crate `regex-syntax`; `tests/it/engines.rs` compares them with the package's.
    pub(super) fn new(patterns: &[(&str, Classes)]) -> Self {
        Self::with(patterns, |_| 0)
    }

    /// Builds the table with the numbers of the standard library, which `Digits` uses. Its Unicode
    /// version may be newer.
    pub(super) fn with_digits() -> Self {
        Self::with(&COMMON, |char| if char.is_numeric() { NUMBER } else { 0 })
    }

    /// With [`INERT`] for characters that are inert, and no other class.
    pub(crate) fn of_inert(is_inert: impl Fn(char) -> bool) -> Self {
        Self::with(&[], |char| if is_inert(char) { INERT } else { 0 })
    }

    fn with(patterns: &[(&str, Classes)], also: impl Fn(char) -> Classes) -> Self {
        let mut all: Vec<Classes> = (0..=char::MAX as u32)
            .map(|scalar| char::from_u32(scalar).map_or(0, &also))
            .collect();
        for &(pattern, class) in patterns {
            for &(first, last) in CharSet::of_class(pattern).ranges() {
                for classes in &mut all[first as usize..=last as usize] {
                    *classes |= class;
                }
            }
        }
        let chars = CharTable::new(&all);
        let all_are = |wanted: Classes, mask: Classes, weight: fn(usize) -> usize| {
            let are_so = |first, second| {
                let page = chars.page_of_two(first, second);
                first < OF_FOUR && page.iter().all(|classes| classes & mask == wanted)
            };
            FirstTwo::new(are_so, weight)
        };
        let letters = all_are(LETTER, LETTER | NUMBER | WHITESPACE, |_| 1);
        let with_case = LETTER | NUMBER | WHITESPACE | UPPER | LOWER;
        let lower = all_are(LETTER | LOWER, with_case, |first| match first {
            LATIN_FIRST..=LATIN_LAST | GREEK_FIRST..=CYRILLIC_LAST => 16,
            _ => 1,
        });
        let both = all_are(LETTER | UPPER | LOWER, with_case, |_| 1);
        let cjk = all_are(CJK, with_case, |_| 1);
        Self {
            chars,
            letters,
            lower,
            both,
            cjk,
        }
    }

    /// First bytes of the letters beyond ASCII in the SIMD block at `at` that the first two bytes
    /// decide. Empty at the end of a text. Bits at all other bytes are undefined.
    #[inline(always)]
    pub(crate) fn match_first_two(&self, simd: impl Simd, text: &[u8], at: usize) -> u64 {
        match_first_two(simd, text, at, &self.letters)
    }

    /// As [`ClassTable::match_first_two`]: lowercase letters, and letters without case.
    #[inline(always)]
    pub(super) fn case_by_first_two(&self, simd: impl Simd, text: &[u8], at: usize) -> [u64; 2] {
        [
            match_first_two(simd, text, at, &self.lower),
            match_first_two(simd, text, at, &self.both),
        ]
    }

    /// As [`ClassTable::match_first_two`]: characters in [`CJK`].
    #[inline(always)]
    pub(super) fn cjk_by_first_two(&self, simd: impl Simd, text: &[u8], at: usize) -> u64 {
        match_first_two(simd, text, at, &self.cjk)
    }

    /// Whether a text has characters in [`HAN`].
    pub(super) fn has_han(&self, text: &[u8]) -> bool {
        let is_han =
            |at: usize| text[at] >= FIRST_OF_HAN && self.chars.of_wide(text, at) & HAN != 0;
        let mut blocks = (0..text.len()).step_by(SIMD_BLOCK_BYTES);
        blocks.any(|start| {
            let block = start..text.len().min(start + SIMD_BLOCK_BYTES);
            // Without a branch for each byte, so that it is compiled to vector instructions.
            let highest = text[block.clone()]
                .iter()
                .fold(0, |most, &byte| byte.max(most));
            highest >= FIRST_OF_HAN && block.into_iter().any(is_han)
        })
    }

    #[cfg(test)]
    pub(super) fn of(&self, scalar: usize) -> Classes {
        self.chars.of(scalar)
    }

    /// The classes of the character beyond ASCII whose first byte is at `at`.
    #[inline(always)]
    pub(crate) fn of_wide(&self, text: &[u8], at: usize) -> Classes {
        self.chars.of_wide(text, at)
    }
}

#[inline(always)]
fn match_first_two(simd: impl Simd, text: &[u8], at: usize, first_two: &FirstTwo) -> u64 {
    let (block, after) = (text.get(at..), text.get(at + 1..));
    let block = block.and_then(|rest| rest.first_chunk());
    let after = after.and_then(|rest| rest.first_chunk());
    match (block, after) {
        (Some(block), Some(after)) => simd.match_first_two(block, after, first_two),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use tokenizers::utils::SysRegex;

    use super::*;

    #[test]
    fn classes_are_those_of_the_regex_library_that_the_package_has() {
        let table = ClassTable::new(&COMMON);
        let all: String = ('\0'..=char::MAX).collect();
        for (pattern, class) in COMMON {
            let of_table: Vec<char> = all
                .chars()
                .filter(|&char| table.of(char as usize) & class != 0)
                .collect();
            let regex = SysRegex::new(&format!("{pattern}+")).unwrap();
            let of_library: Vec<char> = regex
                .find_iter(&all)
                .flat_map(|(start, end)| all[start..end].chars())
                .collect();
            assert!(of_table == of_library, "{pattern}");
        }
    }

    #[test]
    fn texts_with_chinese_characters_are_found() {
        let table = ClassTable::new(&COMMON);
        for char in '\0'..=char::MAX {
            let is_han = table.of(char as usize) & HAN != 0;
            let mut bytes = [0; 4];
            let bytes = char.encode_utf8(&mut bytes).as_bytes();
            assert_eq!(table.has_han(bytes), is_han, "{char:?}");
            assert!(!is_han || bytes[0] >= FIRST_OF_HAN, "{char:?}");
        }
        for len in 0..200 {
            for (char, is_han) in [("語", true), ("가", false), ("—", false)] {
                let text = format!("{}{char}", "é".repeat(len));
                assert_eq!(table.has_han(text.as_bytes()), is_han, "{text}");
            }
        }
    }

    #[test]
    fn classes_are_of_unicode_16() {
        let table = ClassTable::new(&COMMON);
        // A letter of Unicode 16.0, and one of 17.0.
        assert_eq!(table.of(0x1c89), LETTER | UPPER);
        assert_eq!(table.of(0xa7ce), 0);
    }

    #[test]
    fn all_numbers_are_numbers_of_the_standard_library() {
        let table = ClassTable::new(&COMMON);
        let numbers = ('\0'..=char::MAX).filter(|&char| table.of(char as usize) & NUMBER != 0);
        assert!(numbers.clone().count() > 1000);
        assert!(numbers.into_iter().all(char::is_numeric));
    }

    #[test]
    fn two_bytes_tell_of_most_letters_and_of_nothing_else() {
        for table in [
            ClassTable::new(&COMMON),
            ClassTable::new(&WITH_MARKS),
            ClassTable::new(&OF_DEEPSEEK),
            ClassTable::with_digits(),
        ] {
            let case = LETTER | NUMBER | WHITESPACE | UPPER | LOWER;
            // Lowercase letters are decided where many languages have them. Most other lowercase
            // letters alternate with uppercase letters.
            for (first_two, wanted, mask, one_in) in [
                (&table.letters, LETTER, LETTER | NUMBER | WHITESPACE, 2),
                (&table.lower, LETTER | LOWER, case, 8),
                (&table.both, LETTER | UPPER | LOWER, case, 2),
                (&table.cjk, CJK, case, 2),
            ] {
                let (mut num_such, mut num_decided) = (0, 0);
                for char in '\u{80}'..='\u{ffff}' {
                    let mut bytes = [0; 4];
                    char.encode_utf8(&mut bytes);
                    let is_such = table.of(char as usize) & mask == wanted;
                    let is_decided = first_two.matches(bytes[0], bytes[1]);
                    assert!(is_such || !is_decided, "{char:?}");
                    num_such += usize::from(is_such);
                    num_decided += usize::from(is_decided);
                }
                assert!(
                    num_decided >= num_such / one_in,
                    "{wanted:x}: {num_decided} of {num_such}"
                );
            }
        }
        let common = ClassTable::new(&COMMON);
        for char in "éñąπΩяїש語字한".chars() {
            let bytes = char.to_string().into_bytes();
            assert!(common.letters.matches(bytes[0], bytes[1]), "{char}");
        }
        let matches = |first_two: &FirstTwo, char: &str| {
            first_two.matches(char.as_bytes()[0], char.as_bytes()[1])
        };
        assert!(
            ["é", "ñ", "š", "ő", "π", "ώ", "я", "ё"]
                .iter()
                .all(|char| matches(&common.lower, char))
        );
        assert!(
            ["ש", "語", "字", "한"]
                .iter()
                .all(|char| matches(&common.both, char))
        );
        let of_deepseek = ClassTable::new(&OF_DEEPSEEK);
        assert!(
            ["語", "ぁ", "カ"]
                .iter()
                .all(|char| matches(&of_deepseek.cjk, char))
        );
    }
}
