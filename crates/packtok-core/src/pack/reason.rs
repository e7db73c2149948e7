//! Why a line is not packed, and what to do about it.

use packtok_pbin::chain;

use crate::field::BadDocument;

/// Why a line could not become a document.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// It holds no text that could be tokenized.
    #[error(transparent)]
    Field(#[from] BadDocument),
    /// The tokenizer refused the text.
    #[error("{}", chain(.0))]
    Tokenizer(packtok_tokenizer::Error),
    /// It has no tokens, and that was forbidden.
    #[error("the document is empty: it has no tokens before EOD")]
    Empty,
}

impl Reason {
    /// What the user can do.
    pub fn remedy(&self) -> String {
        const SKIP: &str = "or set on_bad_document to skip";
        match self {
            Self::Field(reason) => reason.remedy().to_string(),
            Self::Tokenizer(packtok_tokenizer::Error::SpecialTokenInText { .. }) => {
                format!("fix the text, set special_tokens_in_text to parse or text, {SKIP}")
            }
            Self::Tokenizer(_) => format!("fix the text {SKIP}"),
            Self::Empty => "set empty_document to skip or keep".to_owned(),
        }
    }
}
