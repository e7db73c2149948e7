//! Sets of characters.

use regex_syntax::hir::{Class, HirKind};

/// The general categories and scripts that patterns may name. `tests` compare each with the package's library.
pub(super) const PROPERTIES: [&str; 71] = [
    "L",
    "Lu",
    "Ll",
    "Lt",
    "Lm",
    "Lo",
    "M",
    "Mn",
    "Mc",
    "Me",
    "N",
    "Nd",
    "Nl",
    "No",
    "P",
    "Pc",
    "Pd",
    "Ps",
    "Pe",
    "Pi",
    "Pf",
    "Po",
    "S",
    "Sm",
    "Sc",
    "Sk",
    "So",
    "Z",
    "Zs",
    "Zl",
    "Zp",
    "Cc",
    "Cf",
    "Co",
    "Han",
    "Hiragana",
    "Katakana",
    "Hangul",
    "Bopomofo",
    "Latin",
    "Greek",
    "Cyrillic",
    "Armenian",
    "Georgian",
    "Hebrew",
    "Arabic",
    "Syriac",
    "Thaana",
    "Devanagari",
    "Bengali",
    "Gurmukhi",
    "Gujarati",
    "Oriya",
    "Tamil",
    "Telugu",
    "Kannada",
    "Malayalam",
    "Sinhala",
    "Thai",
    "Lao",
    "Tibetan",
    "Myanmar",
    "Khmer",
    "Ethiopic",
    "Mongolian",
    "Cherokee",
    "Tifinagh",
    "Nko",
    "Vai",
    "Common",
    "Inherited",
];

const LAST: u32 = char::MAX as u32;

/// A set of scalars: sorted ranges, first and last included, none of which touch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct CharSet(Vec<(u32, u32)>);

impl CharSet {
    pub(super) fn of_ranges(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.sort_unstable();
        let mut all: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match all.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => all.push((first, last)),
            }
        }
        Self(all)
    }

    pub(super) fn of_char(char: char) -> Self {
        Self(vec![(char as u32, char as u32)])
    }

    pub(super) fn of_chars(chars: impl IntoIterator<Item = char>) -> Self {
        let chars = chars.into_iter().map(|char| (char as u32, char as u32));
        Self::of_ranges(chars.collect())
    }

    /// The characters for which this is true.
    pub(super) fn of_those(is_one: impl Fn(char) -> bool) -> Self {
        Self::of_chars(('\0'..=char::MAX).filter(|&char| is_one(char)))
    }

    /// A general category or a script; `None` if patterns may not name it.
    pub(super) fn of_property(name: &str) -> Option<Self> {
        PROPERTIES
            .contains(&name)
            .then(|| Self::of_class(&format!(r"\p{{{name}}}")))
    }

    /// `\s`
    pub(super) fn whitespace() -> Self {
        Self::of_class(r"\s")
    }

    /// A class as `regex-syntax` reads it. Its tables are of the Unicode version of the package's library.
    pub(crate) fn of_class(class: &str) -> Self {
        let parsed = regex_syntax::parse(class).expect("the class is one of ours");
        match parsed.kind() {
            HirKind::Class(Class::Unicode(class)) => {
                let ranges = class.iter();
                Self::of_ranges(
                    ranges
                        .map(|range| (range.start() as u32, range.end() as u32))
                        .collect(),
                )
            }
            // A class of one character.
            HirKind::Literal(literal) => {
                Self::of_chars(String::from_utf8_lossy(&literal.0).chars())
            }
            _ => panic!("{class} is not a class"),
        }
    }

    pub(crate) fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }

    pub(super) fn is_ascii(&self) -> bool {
        self.0.last().is_none_or(|&(_, last)| last < 0x80)
    }

    pub(super) fn contains(&self, char: char) -> bool {
        let scalar = char as u32;
        let number = self.0.partition_point(|&(_, last)| last < scalar);
        self.0
            .get(number)
            .is_some_and(|&(first, _)| first <= scalar)
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        Self::of_ranges([&self.0[..], &other.0].concat())
    }

    pub(super) fn negated(&self) -> Self {
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        let mut next = 0;
        for &(first, last) in &self.0 {
            if next < first {
                gaps.push((next, first - 1));
            }
            next = last + 1;
        }
        if next <= LAST {
            gaps.push((next, LAST));
        }
        Self(gaps)
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        self.negated().union(&other.negated()).negated()
    }
}

#[cfg(test)]
mod tests {
    use tokenizers::utils::SysRegex;

    use super::*;

    /// The characters that a class of the package's library matches.
    fn of_library(class: &str) -> CharSet {
        let all: String = ('\0'..=char::MAX).collect();
        let regex = SysRegex::new(&format!("{class}+")).unwrap();
        let matches = regex.find_iter(&all);
        CharSet::of_chars(matches.flat_map(|(start, end)| all[start..end].chars()))
    }

    /// Without surrogates, which no text has.
    fn of_texts(set: &CharSet) -> CharSet {
        set.intersection(&CharSet(vec![(0, 0xd7ff), (0xe000, LAST)]))
    }

    #[test]
    fn properties_are_those_of_the_library() {
        for name in PROPERTIES {
            let set = CharSet::of_property(name).unwrap();
            assert!(!set.ranges().is_empty(), "{name}");
            assert!(
                of_texts(&set) == of_library(&format!(r"\p{{{name}}}")),
                "{name}"
            );
        }
        assert!(CharSet::whitespace() == of_library(r"\s"));
        assert_eq!(CharSet::of_property("Klingon"), None);
    }

    #[test]
    fn sets_are_combined_as_sets() {
        let (a, b) = (
            CharSet(vec![(0, 9), (20, 29)]),
            CharSet(vec![(5, 21), (30, LAST)]),
        );
        assert_eq!(a.union(&b), CharSet(vec![(0, LAST)]));
        assert_eq!(a.intersection(&b), CharSet(vec![(5, 9), (20, 21)]));
        assert_eq!(a.negated(), CharSet(vec![(10, 19), (30, LAST)]));
        assert_eq!(b.negated().negated(), b);
        assert!(b.contains('\u{5}') && b.contains(char::MAX) && !b.contains('\u{16}'));
    }
}
