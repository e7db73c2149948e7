//! The script of a letter, and other classes of characters, by one lookup in a table.

use std::sync::LazyLock;

use regex_syntax::hir::{Class, HirKind};

/// Scripts that are counted by name.
const SCRIPTS: [&str; 28] = [
    "Latin",
    "Greek",
    "Cyrillic",
    "Armenian",
    "Hebrew",
    "Arabic",
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
    "Georgian",
    "Hangul",
    "Ethiopic",
    "Mongolian",
    "Thai",
    "Lao",
    "Tibetan",
    "Myanmar",
    "Khmer",
    "Hiragana",
    "Katakana",
    "Han",
];
/// The first of the scripts that are written without spaces between words.
const FIRST_UNSPACED: u8 = 20;

/// Number of classes.
pub(super) const NUM_CLASSES: usize = SCRIPTS.len() + 5;
/// Classes of letters are the positions of their scripts; this one is for letters of any other script, and
/// for those that several scripts share.
const OTHER_LETTER: u8 = SCRIPTS.len() as u8;
/// Control characters other than tabs and ends of lines.
pub(super) const CONTROL: u8 = OTHER_LETTER + 1;
/// U+FFFD.
pub(super) const REPLACEMENT: u8 = OTHER_LETTER + 2;
const SPACE: u8 = OTHER_LETTER + 3;
const OTHER: u8 = OTHER_LETTER + 4;

static CLASSES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut classes: Vec<u8> = (0..=u32::from(char::MAX))
        .map(|code| char::from_u32(code).map_or(OTHER, class_without_script))
        .collect();
    for (script, name) in (0..).zip(SCRIPTS) {
        for (first, last) in ranges_of(name) {
            for class in &mut classes[first as usize..=last as usize] {
                if *class == OTHER_LETTER {
                    *class = script;
                }
            }
        }
    }
    classes
});

fn class_without_script(char: char) -> u8 {
    match char {
        '\t' | '\n' | '\r' => SPACE,
        '\u{fffd}' => REPLACEMENT,
        _ if char.is_control() => CONTROL,
        _ if char.is_whitespace() => SPACE,
        _ if char.is_alphabetic() => OTHER_LETTER,
        _ => OTHER,
    }
}

/// The characters of a script. Every name is a script of Unicode, which a test checks.
fn ranges_of(script: &str) -> Vec<(char, char)> {
    match regex_syntax::parse(&format!(r"\p{{Script={script}}}")) {
        Ok(hir) => match hir.kind() {
            HirKind::Class(Class::Unicode(class)) => class
                .iter()
                .map(|range| (range.start(), range.end()))
                .collect(),
            _ => Vec::new(),
        },
        Err(_) => Vec::new(),
    }
}

/// The classes of characters.
#[derive(Clone, Copy)]
pub(super) struct Classes(&'static [u8]);

impl Classes {
    pub(super) fn new() -> Self {
        Self(&CLASSES)
    }

    pub(super) fn of(self, char: char) -> u8 {
        self.0[char as usize]
    }
}

/// Whether a character of the class is not a part of a word: white space, control characters, and letters of
/// scripts that are written without spaces.
pub(super) fn ends_word(class: u8) -> bool {
    class == SPACE || class == CONTROL || (FIRST_UNSPACED..OTHER_LETTER).contains(&class)
}

/// The name of each class of letters.
pub(super) fn script_names() -> impl Iterator<Item = &'static str> {
    SCRIPTS.into_iter().chain(["other"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_has_letters_and_characters_have_their_classes() {
        let classes = Classes::new();
        for script in 0..OTHER_LETTER {
            assert!(
                classes.0.contains(&script),
                "{}",
                SCRIPTS[usize::from(script)]
            );
        }
        let names: Vec<_> = script_names().collect();
        for (char, expected) in [
            ('a', "Latin"),
            ('é', "Latin"),
            ('я', "Cyrillic"),
            ('小', "Han"),
            ('の', "Hiragana"),
            ('カ', "Katakana"),
            ('한', "Hangul"),
            ('ก', "Thai"),
            ('ि', "Devanagari"),
            ('ᚠ', "other"),
            ('ー', "other"),
        ] {
            assert_eq!(names[usize::from(classes.of(char))], expected, "{char}");
        }
        let chars = [
            '1', '。', '\n', '\u{a0}', '\u{85}', '\u{b}', '\0', '\u{fffd}',
        ];
        let expected = [
            OTHER,
            OTHER,
            SPACE,
            SPACE,
            CONTROL,
            CONTROL,
            CONTROL,
            REPLACEMENT,
        ];
        assert_eq!(chars.map(|char| classes.of(char)), expected);
        let ending = ['a', '小', 'ក', '한', ' '].map(|char| ends_word(classes.of(char)));
        assert_eq!(ending, [false, true, true, false, true]);
    }
}
