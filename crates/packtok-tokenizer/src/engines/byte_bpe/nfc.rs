//! Brings texts to normal form C (NFC). Nearly all texts are already in it.
//!
//! Most characters are inert: they are not marks, do not change, and never compose with the character before them. A
//! text of inert characters is in NFC. Letters of most scripts are recognized by their first two bytes, 64 bytes at a
//! time with vector instructions; other characters are looked up. Each run of other characters is checked together
//! with the character before it: nothing composes across the start of an inert character.
//!
//! The tables are those of the crate that the Python package uses.

use std::borrow::Cow;

use unicode_normalization_alignments::char::canonical_combining_class;
use unicode_normalization_alignments::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::split::{ClassTable, INERT};
use crate::engines::simd::{AnySimd, Job, SIMD_BLOCK_BYTES, Simd};

/// Characters from here on are treated as not inert: they are rare, and skipping them speeds up
/// the construction of the table.
const FIRST_RARE: char = '\u{30000}';

pub(super) struct Nfc {
    simd: AnySimd,
    table: ClassTable,
}

impl Nfc {
    pub(super) fn new() -> Self {
        Self {
            simd: AnySimd::detect(),
            table: ClassTable::of_inert(is_inert),
        }
    }

    /// The text in NFC.
    pub(super) fn normalized<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.has(text) {
            text.into()
        } else {
            text.nfc().map(|(char, _)| char).collect()
        }
    }

    /// Whether a text is in NFC.
    pub(super) fn has(&self, text: &str) -> bool {
        text.is_ascii() || self.simd.run(Has { nfc: self, text })
    }

    /// Whether the character at `at` is not inert.
    #[inline(always)]
    fn is_other(&self, text: &str, at: usize) -> bool {
        let byte = text.as_bytes()[at];
        byte >= 0xc0 && self.table.of_wide(text.as_bytes(), at) & INERT == 0
    }

    /// Whether the run of non-inert characters at `at`, together with the character before it, is
    /// in NFC. Also returns the end of the run.
    #[cold]
    #[inline(never)]
    fn has_around(&self, text: &str, at: usize) -> (bool, usize) {
        let before = text[..at].char_indices().next_back();
        let start = before.map_or(at, |(start, _)| start);
        let mut chars = text[at..].char_indices().map(|(i, _)| at + i);
        let end = chars.find(|&i| !self.is_other(text, i));
        let end = end.unwrap_or(text.len());
        let some = &text[start..end];
        (some.nfc().map(|(char, _)| char).eq(some.chars()), end)
    }
}

/// Whether a character is not a mark, does not change, and never composes with the character before it.
fn is_inert(char: char) -> bool {
    char < FIRST_RARE
        && canonical_combining_class(char) == 0
        && is_nfc_quick(std::iter::once(char)) == IsNormalized::Yes
}

/// [`Nfc::has`] on a back end.
struct Has<'a> {
    nfc: &'a Nfc,
    text: &'a str,
}

impl Job for Has<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self, simd: impl Simd) -> bool {
        let Self { nfc, text } = self;
        let bytes = text.as_bytes();
        // Characters before this position are checked.
        let mut done = 0;
        for at in (0..bytes.len()).step_by(SIMD_BLOCK_BYTES) {
            let mut others = others_of_block(simd, nfc, bytes, at);
            while others != 0 {
                let at = at + others.trailing_zeros() as usize;
                others &= others - 1;
                if at >= done && nfc.is_other(text, at) {
                    let (has, end) = nfc.has_around(text, at);
                    if !has {
                        return false;
                    }
                    done = end;
                }
            }
        }
        true
    }
}

/// First bytes of the characters in a SIMD block that may not be inert.
#[inline(always)]
fn others_of_block(simd: impl Simd, nfc: &Nfc, bytes: &[u8], at: usize) -> u64 {
    let Some(block) = bytes[at..].first_chunk() else {
        // The end of a text is shorter than a SIMD block.
        let mut others = 0;
        for (i, byte) in bytes[at..].iter().enumerate() {
            others |= u64::from(*byte >= 0xc0) << i;
        }
        return others;
    };
    let masks = simd.ascii(block);
    match masks.wide & !masks.inner {
        0 => 0,
        first_bytes => first_bytes & !nfc.table.match_first_two(simd, bytes, at),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Characters that compose, marks, others, and marks that are reordered.
    const PARTS: [&str; 24] = [
        "a",
        "e",
        "é",
        "e\u{301}",
        "\u{301}",
        "\u{323}",
        "\u{323}\u{301}",
        "\u{301}\u{323}",
        " ",
        "я",
        "и\u{306}",
        "й",
        "語",
        "\u{1112}",
        "\u{1161}",
        "\u{11ab}",
        "한",
        "\u{915}\u{93c}",
        "\u{958}",
        "\u{344}",
        "\u{212b}",
        "\u{1d15e}",
        "\u{30000}",
        "\u{2f800}",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn any_mix_is_what_the_crate_makes_of_it(
            parts in prop::collection::vec((0..PARTS.len(), 1..30usize, 0..8usize), 0..60)
        ) {
            let text: String = parts
                .into_iter()
                .map(|(part, times, chance)| PARTS[part].repeat(if chance == 0 { times } else { 1 }))
                .collect();
            static ALL: std::sync::OnceLock<Vec<Nfc>> = std::sync::OnceLock::new();
            let all = ALL.get_or_init(|| {
                let back_ends = AnySimd::all().into_iter();
                back_ends.map(|simd| Nfc { simd, ..Nfc::new() }).collect()
            });
            let expected: String = text.nfc().map(|(char, _)| char).collect();
            for nfc in all {
                prop_assert_eq!(nfc.has(&text), expected == text, "{:?}", &text);
                prop_assert_eq!(nfc.normalized(&text), &expected[..]);
            }
        }
    }

    #[test]
    fn every_pair_of_characters_that_may_change_is_found() {
        let nfc = Nfc::new();
        let others: Vec<char> = ('\u{80}'..FIRST_RARE)
            .filter(|&char| !is_inert(char))
            .collect();
        for &char in &others {
            for before in [
                "",
                "a",
                "A",
                "\u{915}",
                "\u{1112}",
                "\u{1102}\u{1161}",
                "\u{301}",
                "\u{5d0}",
            ] {
                let text = format!("{before}{char}b");
                let expected: String = text.nfc().map(|(char, _)| char).collect();
                assert_eq!(nfc.normalized(&text), expected, "{text:?}");
            }
        }
    }
}
