//! What the split patterns ask of a character: letter, number, white space and the like.

use regex_syntax::hir::{Class, HirKind};

/// One bit for each question that a pattern asks.
pub(super) type Classes = u8;

/// `\p{L}`
pub(super) const LETTER: Classes = 1;
/// `\p{N}`
pub(super) const NUMBER: Classes = 1 << 1;
/// `\s`
pub(super) const SPACE: Classes = 1 << 2;
/// `[\r\n]`
pub(super) const NEWLINE: Classes = 1 << 3;
/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
pub(super) const UPPER: Classes = 1 << 4;
/// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
pub(super) const LOWER: Classes = 1 << 5;
/// In the table of bytes: no character of its own, look at the whole character.
const NOT_ASCII: Classes = 1 << 7;

/// `[\p{P}\p{S}]`; no pattern asks for it and for [`UPPER`].
pub(super) const SYMBOL: Classes = UPPER;
/// Characters that DeepSeek keeps apart; no pattern asks for it and for [`LOWER`].
pub(super) const CJK: Classes = LOWER;

/// The classes that most patterns ask for.
pub(super) const COMMON: [(&str, Classes); 6] = [
    (r"\p{L}", LETTER),
    (r"\p{N}", NUMBER),
    (r"\s", SPACE),
    (r"[\r\n]", NEWLINE),
    (r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", UPPER),
    (r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", LOWER),
];
/// Those of DeepSeek's: letters are marks, too, and what is in [`CJK`] is in no other.
pub(super) const OF_DEEPSEEK: [(&str, Classes); 6] = [
    (r"[[\p{L}\p{M}]--[一-龥぀-ゟ゠-ヿ]]", LETTER),
    (r"\p{N}", NUMBER),
    (r"\s", SPACE),
    (r"[\r\n]", NEWLINE),
    (r"[[\p{P}\p{S}]--[一-龥぀-ゟ゠-ヿ]]", SYMBOL),
    (r"[一-龥぀-ゟ゠-ヿ]", CJK),
];

const BLOCK: usize = 256;

/// The classes of every character, in two steps: a block of characters for each number without its last
/// byte, and in it the character. Most blocks are alike, so that the whole is some 50 kB.
pub(super) struct ClassTable {
    /// Of the ASCII characters, and `NOT_ASCII` for all other bytes.
    of_byte: [Classes; 256],
    block_of: Vec<u16>,
    blocks: Vec<[Classes; BLOCK]>,
}

impl ClassTable {
    /// Made from the tables of the crate `regex-syntax`; `tests/engines.rs` holds them against the package's.
    pub(super) fn new(patterns: &[(&str, Classes)]) -> Self {
        Self::with(patterns, |_| 0)
    }

    /// With the numbers of the standard library, which `Digits` asks; its tables may be newer.
    pub(super) fn with_digits() -> Self {
        Self::with(&COMMON, |char| if char.is_numeric() { NUMBER } else { 0 })
    }

    fn with(patterns: &[(&str, Classes)], also: impl Fn(char) -> Classes) -> Self {
        let mut all: Vec<Classes> = (0..=char::MAX as u32)
            .map(|scalar| char::from_u32(scalar).map_or(0, &also))
            .collect();
        for &(pattern, class) in patterns {
            for (first, last) in ranges(pattern) {
                for classes in &mut all[first as usize..=last as usize] {
                    *classes |= class;
                }
            }
        }
        let mut blocks: Vec<[Classes; BLOCK]> = Vec::new();
        let (chunks, _) = all.as_chunks();
        let block_of = chunks
            .iter()
            .map(|chunk| {
                let at = blocks.iter().position(|block| block == chunk);
                at.unwrap_or_else(|| {
                    blocks.push(*chunk);
                    blocks.len() - 1
                }) as u16
            })
            .collect();
        let mut of_byte = [NOT_ASCII; 256];
        of_byte[..128].copy_from_slice(&all[..128]);
        Self {
            of_byte,
            block_of,
            blocks,
        }
    }

    #[inline]
    fn of(&self, scalar: usize) -> Classes {
        self.blocks[usize::from(self.block_of[scalar / BLOCK])][scalar % BLOCK]
    }

    /// The classes of a character beyond ASCII, in UTF-8, whose first byte is at `at`.
    #[inline(always)]
    pub(super) fn of_wide(&self, text: &[u8], at: usize) -> Classes {
        let bytes = match text.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
            Some(bytes) => *bytes,
            None => {
                let mut bytes = [0; 4];
                bytes[..text.len() - at].copy_from_slice(&text[at..]);
                bytes
            }
        };
        let [first, low, lower, lowest] = bytes.map(usize::from);
        let (low, lower, lowest) = (low & 0x3f, lower & 0x3f, lowest & 0x3f);
        self.of(match first {
            0..0xe0 => (first & 0x1f) << 6 | low,
            0xe0..0xf0 => (first & 0xf) << 12 | low << 6 | lower,
            _ => (first & 7) << 18 | low << 12 | lower << 6 | lowest,
        })
    }

    /// The classes of the character at `at`, and its length; no class and no length behind the end.
    #[inline]
    pub(super) fn at(&self, text: &str, at: usize) -> (Classes, usize) {
        let Some(&byte) = text.as_bytes().get(at) else {
            return (0, 0);
        };
        let classes = self.of_byte[usize::from(byte)];
        if classes != NOT_ASCII {
            return (classes, 1);
        }
        self.beyond_ascii(text, at)
    }

    fn beyond_ascii(&self, text: &str, at: usize) -> (Classes, usize) {
        let c = text[at..].chars().next();
        c.map_or((0, 0), |c| (self.of(c as usize), c.len_utf8()))
    }

    /// Where the run of characters ends, from `at` on, that have of the classes in `mask` exactly `wanted`.
    #[inline]
    pub(super) fn run(&self, text: &str, mut at: usize, mask: Classes, wanted: Classes) -> usize {
        let bytes = text.as_bytes();
        loop {
            let Some(&byte) = bytes.get(at) else {
                return at;
            };
            let classes = self.of_byte[usize::from(byte)];
            if classes == NOT_ASCII {
                let (classes, len) = self.beyond_ascii(text, at);
                if classes & mask != wanted {
                    return at;
                }
                at += len;
            } else if classes & mask == wanted {
                at += 1;
            } else {
                return at;
            }
        }
    }
}

/// The ranges of characters that a class of a pattern has.
fn ranges(pattern: &str) -> Vec<(char, char)> {
    let parsed = regex_syntax::parse(pattern).expect("the pattern is one of ours");
    let HirKind::Class(Class::Unicode(class)) = parsed.kind() else {
        panic!("{pattern} is no class of characters");
    };
    class
        .iter()
        .map(|range| (range.start(), range.end()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_are_numbers_of_the_standard_library() {
        let table = ClassTable::new(&COMMON);
        let numbers = ('\0'..=char::MAX).filter(|&char| table.of(char as usize) & NUMBER != 0);
        assert!(numbers.clone().count() > 1000);
        assert!(numbers.into_iter().all(char::is_numeric));
    }
}
