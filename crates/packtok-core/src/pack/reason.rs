//! Why a line is not packed, and what to do about it.

use crate::field::BadDocument;

/// Why a line could not become a document.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// It holds no text that could be tokenized.
    #[error(transparent)]
    Field(#[from] BadDocument),
    /// The tokenizer refused the text.
    #[error("{}", chain(.0))]
    Tokenizer(packtok_bpe::Error),
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
            Self::Tokenizer(packtok_bpe::Error::SpecialTokenInText { .. }) => {
                format!("mend the text, set special_tokens_in_text to parse or text, {SKIP}")
            }
            Self::Tokenizer(_) => format!("mend the text {SKIP}"),
            Self::Empty => "set empty_document to skip or keep".to_owned(),
        }
    }
}

/// An error and its causes in one line; what a library says may have several.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
