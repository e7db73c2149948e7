//! The table of formats, and the recorded meaning of the ids of a file.

use packtok_formats::{FlatFormat, TokenFile};
use packtok_pbin::{SpecialToken, TokenizerInfo};
use serde::Serialize;

/// A format of token files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenFormat {
    /// packtok's own.
    Pbin,
    /// NPY arrays of documents, as CEPE's scripts save them.
    CepeNpy,
    /// Megatron's `.bin` and `.idx`.
    Megatron,
    /// datatrove's `.ds`.
    Datatrove,
}

/// All formats, by the names that the user gives.
pub const FORMATS: [(&str, TokenFormat); 4] = [
    ("pbin", TokenFormat::Pbin),
    ("cepe-npy", TokenFormat::CepeNpy),
    ("megatron", TokenFormat::Megatron),
    ("datatrove", TokenFormat::Datatrove),
];

impl TokenFormat {
    /// The format of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        let mut formats = FORMATS.into_iter();
        formats
            .find(|(known, _)| *known == name)
            .map(|(_, format)| format)
    }

    /// The name that the user gives.
    pub fn name(self) -> &'static str {
        FORMATS[self as usize].0
    }

    pub(super) fn of(file: &TokenFile) -> Option<Self> {
        match file {
            TokenFile::Pbin(_) => Some(Self::Pbin),
            TokenFile::Npy(_) => Some(Self::CepeNpy),
            TokenFile::Flat(flat) => Some(match flat.format() {
                FlatFormat::Megatron => Self::Megatron,
                FlatFormat::Datatrove => Self::Datatrove,
            }),
            TokenFile::Raw(_) => None,
        }
    }
}

/// The meaning of the ids of a file, as far as the file records it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meaning {
    /// The tokenizer.
    pub tokenizer: Option<TokenizerInfo>,
    /// The token after every document.
    pub eod: Option<SpecialToken>,
    /// The token before every document.
    pub bos: Option<SpecialToken>,
}
