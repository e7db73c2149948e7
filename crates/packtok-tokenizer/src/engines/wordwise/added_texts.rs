//! Whether a word may contain an added token.

use aho_corasick::AhoCorasick;

use crate::load::AddedToken;

/// The search texts of added tokens. Some tokens are matched in the original text, some in the
/// normalized text.
pub(super) struct AddedTexts(AhoCorasick);

impl AddedTexts {
    /// Returns `None` if the normalized text of a token is unknown or empty.
    pub(super) fn of(
        added_tokens: &[AddedToken],
        normalized: impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let mut texts = Vec::new();
        for token in added_tokens
            .iter()
            .filter(|token| !token.content.is_empty())
        {
            let normalized = normalized(&token.content);
            texts.push(normalized.filter(|text| !text.is_empty())?);
            texts.push(token.content.clone());
        }
        AhoCorasick::new(texts).ok().map(Self)
    }

    /// Whether a word may contain an added token.
    pub(super) fn may_occur_in(&self, word: &str, normalized: &str) -> bool {
        self.0.is_match(word) || normalized != word && self.0.is_match(normalized)
    }
}
