//! Whether a word may contain an added token.

use aho_corasick::AhoCorasick;

use crate::load::AddedToken;

/// Texts that added tokens may be found by: some are looked for in a text as it is, some in what a normalizer made of
/// it.
pub(super) struct AddedTexts(AhoCorasick);

impl AddedTexts {
    /// None if there is no telling.
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

    /// Whether one may be in a word.
    pub(super) fn may_occur_in(&self, word: &str, normalized: &str) -> bool {
        self.0.is_match(word) || self.0.is_match(normalized)
    }
}
