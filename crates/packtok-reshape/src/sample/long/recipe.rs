//! The recipe and the report of rows of long documents: the input and the output of
//! [`super::pack_long`].

use std::path::PathBuf;

use packtok_formats::mds::{self, Compression};
use packtok_pack::pack::Existing;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::sample::report::Written;

/// The longest row. Positions of its tokens have 32 bits, and best fit keeps a few words per
/// token.
const MAX_ROW_TOKENS: u64 = 1 << 24;

/// A domain and its token files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongDomain {
    /// Name of the domain and of its folder.
    pub name: String,
    /// Token files of the domain.
    pub files: Vec<PathBuf>,
}

/// The options for packing long documents into rows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongRecipe {
    /// The folder to write to.
    pub output: PathBuf,
    /// The domains.
    pub domains: Vec<LongDomain>,
    /// The most tokens of a row.
    pub length: u64,
    /// Documents with fewer tokens are not used.
    pub min_length: u64,
    /// Lengths of pieces; if there are any, each length has rows of its own.
    pub by_length: Vec<u64>,
    /// Compression of the MDS files.
    pub compression: Option<String>,
    /// The largest MDS file in bytes.
    pub size_limit: u64,
    /// The action for finished outputs.
    pub existing: Existing,
}

/// The result of packing.
#[derive(Debug, Serialize)]
pub struct LongReport {
    /// The folder.
    pub output: PathBuf,
    /// Whether only a shard was written, which `--join` publishes.
    pub is_part: bool,
    /// The files that this process wrote.
    #[serde(flatten)]
    pub written: Written,
    /// Rows of all domains.
    pub rows: u64,
    /// Number of tokens in these rows.
    pub tokens: u64,
    /// The domains.
    pub domains: Vec<LongDomainReport>,
}

/// The use of the documents of a domain.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LongDomainReport {
    /// The domain.
    pub domain: String,
    /// Number of documents in the domain.
    pub documents: u64,
    /// Number of tokens in these documents.
    pub tokens: u64,
    /// Documents that are shorter than the minimum, or empty.
    pub too_short: u64,
    /// Number of tokens in the documents that are too short.
    pub too_short_tokens: u64,
    /// Documents that are cut into several pieces.
    pub cut: u64,
    /// Tokens at the ends of documents that are shorter than every length of pieces.
    pub left_over_tokens: u64,
    /// Rows.
    pub rows: u64,
    /// Number of tokens in the rows.
    pub row_tokens: u64,
    /// Rows that are shorter than the length.
    pub short_rows: u64,
    /// Whether all rows were there before.
    pub kept: bool,
}

impl LongRecipe {
    pub(super) fn check(&self) -> Result<()> {
        let fault = |option, value: u64, expected| {
            Err(Error::OptionOutOfRange {
                option,
                found: value.to_string(),
                expected,
            })
        };
        if !(1..=MAX_ROW_TOKENS).contains(&self.length) {
            return fault("--length", self.length, "1 to 2^24");
        }
        match self
            .by_length
            .iter()
            .find(|&&piece| piece == 0 || !self.length.is_multiple_of(piece))
        {
            Some(&piece) => fault(
                "--by-length",
                piece,
                "lengths that divide the length of a row",
            ),
            None => Ok(()),
        }
    }

    /// The lengths of the pieces of a document in order, and the tokens left over.
    pub(super) fn pieces(&self, mut len: u64) -> (Vec<u64>, u64) {
        let mut lengths = self.by_length.clone();
        lengths.sort_unstable();
        let mut pieces = Vec::new();
        while let Some(&piece) = lengths.iter().rev().find(|&&piece| piece <= len) {
            pieces.push(piece);
            len -= piece;
        }
        (pieces, len)
    }

    /// The lengths that have rows of their own, ascending; 0 stands for whole documents.
    pub(super) fn groups(&self) -> Vec<u64> {
        if self.by_length.is_empty() {
            return vec![0];
        }
        let mut lengths = self.by_length.clone();
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// The folder of a group of rows.
    pub(super) fn folder(&self, domain: &str, group: u64) -> PathBuf {
        let folder = self.output.join(domain);
        if group == 0 {
            folder
        } else {
            folder.join(format!("{group}-{}", self.length))
        }
    }

    pub(super) fn options(&self) -> Result<mds::Options> {
        let compression = self.compression.as_deref().map(Compression::parse);
        Ok(mds::Options {
            size_limit: Some(self.size_limit),
            compression: compression.transpose()?,
            ..mds::Options::default()
        })
    }
}
