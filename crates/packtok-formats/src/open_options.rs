//! What a caller says about a token file that its bytes do not.

use std::path::PathBuf;

use crate::format::TokenFormat;
use crate::npy::Element;

/// How to read a token file; without anything, the content and the files beside it say it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// The format, for files that fit several.
    pub format: Option<TokenFormat>,
    /// The type of the ids, for files that do not record it.
    pub dtype: Option<Element>,
    /// Where documents start, for formats that do not record it.
    pub boundaries: Option<Boundaries>,
}

/// Where the documents of a file start that does not record them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Boundaries {
    /// After each of these ids.
    Eos(u32),
    /// At each of these ids.
    Bos(u32),
    /// The ends of documents are in this file, one u64 each.
    File(PathBuf),
}

impl Boundaries {
    /// The forms that [`Boundaries::parse`] takes.
    pub const FORMS: &str = "eos=ID, bos=ID or file=PATH";

    /// Parses one of [`Boundaries::FORMS`].
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, value) = text.split_once('=')?;
        match kind {
            "eos" => value.parse().ok().map(Self::Eos),
            "bos" => value.parse().ok().map(Self::Bos),
            "file" if !value.is_empty() => Some(Self::File(value.into())),
            _ => None,
        }
    }
}
