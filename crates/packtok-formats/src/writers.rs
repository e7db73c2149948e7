//! The type that writes each format.

use std::io::Write;
use std::path::Path;

use packtok_jobs::with_suffix;
use packtok_pbin::TokenWidth;

use crate::datatrove::Datatrove;
use crate::dolma::Dolma;
use crate::error::Result;
use crate::format::TokenFormat;
use crate::litdata::Litdata;
use crate::llm_c::LlmC;
use crate::mds::Mds;
use crate::megatron::Megatron;
use crate::npy::{Element, Npy};
use crate::raw::Raw;
use crate::token_write::{OutputPaths, TokenWrite, TokensToWrite, without_ending};

/// Evaluates an expression with the type that implements [`TokenWrite`] for a format.
macro_rules! as_type {
    ($format:ident, $type:ident => $value:expr) => {
        match $format {
            TokenFormat::Pbin | TokenFormat::CepeNpy => {
                type $type = OneFile;
                $value
            }
            TokenFormat::Megatron => {
                type $type = Megatron;
                $value
            }
            TokenFormat::Datatrove => {
                type $type = Datatrove;
                $value
            }
            TokenFormat::Dolma => {
                type $type = Dolma;
                $value
            }
            TokenFormat::LlmC => {
                type $type = LlmC;
                $value
            }
            TokenFormat::Litdata => {
                type $type = Litdata;
                $value
            }
            TokenFormat::Mds => {
                type $type = Mds;
                $value
            }
            TokenFormat::Npy => {
                type $type = Npy;
                $value
            }
            TokenFormat::Parquet => {
                type $type = Parquet;
                $value
            }
            // The last two are only read.
            TokenFormat::Raw | TokenFormat::Tatm | TokenFormat::Arrow => {
                type $type = Raw;
                $value
            }
        }
    };
}

/// The methods of [`TokenWrite`].
impl TokenFormat {
    /// As [`TokenWrite::paths`].
    pub fn paths(self, output: &Path) -> OutputPaths {
        as_type!(self, Format => Format::paths(output))
    }

    /// As [`TokenWrite::width_for_vocab`].
    pub fn width_for_vocab(self, vocab_size: u64) -> TokenWidth {
        as_type!(self, Format => Format::width_for_vocab(vocab_size))
    }

    /// As [`TokenWrite::width_for`].
    pub fn width_for(self, width: TokenWidth) -> TokenWidth {
        as_type!(self, Format => Format::width_for(width))
    }

    /// As [`TokenWrite::element`].
    pub fn element(self, width: TokenWidth) -> Element {
        as_type!(self, Format => Format::element(width))
    }

    /// The greatest id that files of the format can have in this width.
    pub fn max_id(self, width: TokenWidth) -> u32 {
        match self.element(width) {
            Element::I32 => i32::MAX as u32,
            _ => width.max_id(),
        }
    }

    /// As [`TokenWrite::header`].
    ///
    /// # Errors
    /// Those of [`TokenWrite::header`].
    pub fn header(self, path: &Path, tokens: &impl TokensToWrite) -> Result<Vec<u8>> {
        as_type!(self, Format => Format::header(path, tokens))
    }

    /// As [`TokenWrite::is_needed`].
    ///
    /// # Errors
    /// Those of [`TokenWrite::is_needed`].
    pub fn is_needed(self, path: &Path, tokens: &impl TokensToWrite) -> Result<bool> {
        as_type!(self, Format => Format::is_needed(path, tokens))
    }

    /// As [`TokenWrite::write_other`].
    ///
    /// # Errors
    /// Those of [`TokenWrite::write_other`].
    pub fn write_other(
        self,
        out: &mut impl Write,
        path: &Path,
        tokens: &impl TokensToWrite,
    ) -> Result<()> {
        as_type!(self, Format => Format::write_other(out, path, tokens))
    }
}

/// Formats of one file with any name: pbins and CEPE's arrays.
struct OneFile;

impl TokenWrite for OneFile {
    fn paths(output: &Path) -> OutputPaths {
        OutputPaths::of_data(output.to_owned(), Vec::new())
    }
}

/// Rows of a Parquet file, which the feature `tables` writes.
struct Parquet;

impl TokenWrite for Parquet {
    fn paths(output: &Path) -> OutputPaths {
        let prefix = without_ending(output, &["parquet"]);
        OutputPaths::of_data(with_suffix(&prefix, ".parquet"), Vec::new())
    }

    fn element(_: TokenWidth) -> Element {
        Element::I32
    }
}
