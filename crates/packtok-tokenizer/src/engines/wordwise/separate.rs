//! Whether the characters of a word combine with spaces around it.

use unicode_segmentation::UnicodeSegmentation;

/// Whether spaces around a word are grapheme clusters of their own.
pub(super) fn is_separate(word: &str) -> bool {
    let between = format!(" {word} ");
    let mut graphemes = between.graphemes(true);
    graphemes.next() == Some(" ") && graphemes.next_back() == Some(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_after_a_space_is_not_separate() {
        assert!(is_separate("a\u{301}"));
        assert!(!is_separate("\u{301}a"));
        // An Arabic sign that forms a cluster with the following character.
        assert!(!is_separate("a\u{600}"));
        assert!(is_separate("語"));
        assert!(!is_separate("\u{200d}x"));
    }
}
