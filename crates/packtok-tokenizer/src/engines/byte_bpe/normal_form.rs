//! Brings texts to normal form C or KC (NFC, NFKC). Nearly all texts are already in the former.
//!
//! Most characters are inert: they are not marks, do not change, and never compose with the character before them. A
//! text of inert characters is in the normal form. Letters of most scripts are recognized by their first two bytes, 64
//! bytes at a time with vector instructions; other characters are looked up. Each run of other characters is normalized
//! together with the character before it: nothing composes across the start of an inert character.
//!
//! The tables are those of the crate that the Python package uses.

use std::borrow::Cow;

use unicode_normalization_alignments::char::canonical_combining_class;
use unicode_normalization_alignments::{
    IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfkc_quick,
};

use super::split::{ClassTable, INERT};
use crate::engines::simd::{AnySimd, Job, SIMD_BLOCK_BYTES, Simd};

/// Characters from here on are treated as not inert: they are rare, and skipping them speeds up
/// the construction of the table.
const FIRST_RARE: char = '\u{30000}';

/// A normal form of Unicode that composes characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    C,
    Kc,
}

impl Form {
    /// The form of a normalizer of a tokenizer.json, by its type.
    pub(super) fn of_type(name: &str) -> Option<Self> {
        match name {
            "NFC" => Some(Self::C),
            "NFKC" => Some(Self::Kc),
            _ => None,
        }
    }

    /// Appends the normalized form of a text.
    fn append(self, text: &str, normalized: &mut String) {
        match self {
            Self::C => normalized.extend(text.nfc().map(|(char, _)| char)),
            Self::Kc => normalized.extend(text.nfkc().map(|(char, _)| char)),
        }
    }

    /// Whether a character is not a mark, does not change, and never composes with the character before it.
    fn is_inert(self, char: char) -> bool {
        let alone = std::iter::once(char);
        let quick = match self {
            Self::C => is_nfc_quick(alone),
            Self::Kc => is_nfkc_quick(alone),
        };
        char < FIRST_RARE && canonical_combining_class(char) == 0 && quick == IsNormalized::Yes
    }
}

/// Brings texts to a normal form.
pub(super) struct NormalForm {
    simd: AnySimd,
    form: Form,
    table: ClassTable,
}

impl NormalForm {
    pub(super) fn new(form: Form) -> Self {
        Self {
            simd: AnySimd::detect(),
            form,
            table: ClassTable::of_inert(|char| form.is_inert(char)),
        }
    }

    /// The text in the normal form.
    pub(super) fn normalized<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if text.is_ascii() {
            text.into()
        } else {
            self.simd.run(Normalize { to: self, text })
        }
    }

    /// Whether a text is in the normal form.
    pub(super) fn has(&self, text: &str) -> bool {
        matches!(self.normalized(text), Cow::Borrowed(_))
    }

    /// Whether the character at `at` is not inert.
    #[inline(always)]
    fn is_other(&self, text: &str, at: usize) -> bool {
        let byte = text.as_bytes()[at];
        byte >= 0xc0 && self.table.of_wide(text.as_bytes(), at) & INERT == 0
    }

    /// Start and end of the run of non-inert characters at `at`, with the character before it.
    #[cold]
    #[inline(never)]
    fn run_around(&self, text: &str, at: usize) -> (usize, usize) {
        let before = text[..at].char_indices().next_back();
        let start = before.map_or(at, |(start, _)| start);
        let mut chars = text[at..].char_indices().map(|(i, _)| at + i);
        let end = chars.find(|&i| !self.is_other(text, i));
        (start, end.unwrap_or(text.len()))
    }
}

/// [`NormalForm::normalized`] on a back end.
struct Normalize<'a, 't> {
    to: &'a NormalForm,
    text: &'t str,
}

impl<'t> Job for Normalize<'_, 't> {
    type Output = Cow<'t, str>;

    #[inline(always)]
    fn run(self, simd: impl Simd) -> Cow<'t, str> {
        let Self { to, text } = self;
        let bytes = text.as_bytes();
        let (mut changed, mut run) = (String::new(), String::new());
        // Characters before the first position are normalized, and those before the second are in `changed`.
        let (mut done, mut copied) = (0, 0);
        for at in (0..bytes.len()).step_by(SIMD_BLOCK_BYTES) {
            let mut others = others_of_block(simd, to, bytes, at);
            while others != 0 {
                let at = at + others.trailing_zeros() as usize;
                others &= others - 1;
                if at < done || !to.is_other(text, at) {
                    continue;
                }
                let (start, end) = to.run_around(text, at);
                run.clear();
                to.form.append(&text[start..end], &mut run);
                if run != text[start..end] {
                    changed.push_str(&text[copied..start]);
                    changed.push_str(&run);
                    copied = end;
                }
                done = end;
            }
        }
        if copied == 0 {
            return text.into();
        }
        changed.push_str(&text[copied..]);
        changed.into()
    }
}

/// First bytes of the characters in a SIMD block that may not be inert.
#[inline(always)]
fn others_of_block(simd: impl Simd, to: &NormalForm, bytes: &[u8], at: usize) -> u64 {
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
        first_bytes => first_bytes & !to.table.match_first_two(simd, bytes, at),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Characters that compose, marks, others, and marks that are reordered.
    const PARTS: [&str; 30] = [
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
        "…",
        "ﬁ",
        "¨",
        "ｶﾞ",
        "㍍",
        "ｱ",
    ];

    fn by_crate(form: Form, text: &str) -> String {
        let mut normalized = String::new();
        form.append(text, &mut normalized);
        normalized
    }

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
            static ALL: std::sync::OnceLock<Vec<NormalForm>> = std::sync::OnceLock::new();
            let all = ALL.get_or_init(|| {
                let back_ends = AnySimd::all().into_iter();
                let with_forms = back_ends.flat_map(|simd| [(simd, Form::C), (simd, Form::Kc)]);
                with_forms
                    .map(|(simd, form)| NormalForm { simd, ..NormalForm::new(form) })
                    .collect()
            });
            for to in all {
                let expected = by_crate(to.form, &text);
                prop_assert_eq!(to.has(&text), expected == text, "{:?}", &text);
                prop_assert_eq!(to.normalized(&text), expected);
            }
        }
    }

    #[test]
    fn every_pair_of_characters_that_may_change_is_found() {
        for form in [Form::C, Form::Kc] {
            let to = NormalForm::new(form);
            for char in ('\u{80}'..FIRST_RARE).filter(|&char| !form.is_inert(char)) {
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
                    assert_eq!(to.normalized(&text), by_crate(form, &text), "{text:?}");
                }
            }
        }
    }
}
