//! The reason why a line is not packed, and the remedy.

use packtok_pbin::chain;
use packtok_tokenizer::EncodeError;

use crate::field::BadDocument;

/// The reason why a line does not become a document.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The filter finds no valid text in the line.
    #[error(transparent)]
    Field(#[from] BadDocument),
    /// The tokenizer rejected the text.
    #[error("{}", chain(.0))]
    Tokenizer(packtok_tokenizer::Error),
    /// The text has no tokens, and empty documents are forbidden.
    #[error("the document is empty: it has no tokens before EOD")]
    Empty,
}

impl Reason {
    /// Returns this reason if it is about the document.
    ///
    /// # Errors
    /// The error of the tokenizer, if it is about the tokenizer or the machine: such an error must
    /// not skip a document.
    pub fn about_document(self) -> packtok_tokenizer::Result<Self> {
        match self {
            Self::Tokenizer(error) if !error.is_about_text() => Err(error),
            reason => Ok(reason),
        }
    }

    /// The remedy, for the end of a message.
    pub fn remedy(&self) -> String {
        const SKIP: &str =
            "or skip such documents with --on-bad-document skip (on_bad_document: skip)";
        match self {
            Self::Field(reason) => reason.remedy().to_string(),
            Self::Tokenizer(packtok_tokenizer::Error::Encode(
                EncodeError::SpecialTokenInText { .. },
            )) => {
                format!(
                    "fix the text, set --special-tokens-in-text (special_tokens_in_text) to parse or text, {SKIP}"
                )
            }
            Self::Tokenizer(_) => format!("fix the text, {SKIP}"),
            Self::Empty => "set --empty-document (empty_document) to skip or keep".to_owned(),
        }
    }
}
