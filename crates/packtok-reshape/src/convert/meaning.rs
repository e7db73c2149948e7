//! The meaning of the ids of a file, as far as the file records it.

use packtok_pbin::{SpecialToken, TokenizerInfo};
use serde::Serialize;

/// The meaning of ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Meaning {
    /// The tokenizer.
    pub tokenizer: Option<TokenizerInfo>,
    /// The token after every document.
    pub eod: Option<SpecialToken>,
    /// The token before every document.
    pub bos: Option<SpecialToken>,
}

impl Meaning {
    /// The first difference from `expected`: the name of the field, and both values.
    pub(super) fn difference(&self, expected: &Self) -> Option<(&'static str, String, String)> {
        let token = |token: &Option<SpecialToken>| match token {
            Some(SpecialToken { token, id }) => format!("{token:?} ({id})"),
            None => "none".to_owned(),
        };
        let fingerprint = |meaning: &Self| {
            let tokenizer = meaning.tokenizer.as_ref();
            tokenizer.map_or("unknown".to_owned(), |tokenizer| {
                tokenizer.fingerprint.clone()
            })
        };
        let values = [
            ("tokenizer", fingerprint(self), fingerprint(expected)),
            ("BOS", token(&self.bos), token(&expected.bos)),
            ("EOD", token(&self.eod), token(&expected.eod)),
        ];
        values
            .into_iter()
            .find(|(_, recorded, expected)| recorded != expected)
    }
}
