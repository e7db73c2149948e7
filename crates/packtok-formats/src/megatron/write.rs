//! Writes the index of a Megatron dataset.

use std::io::{self, Write};
use std::path::Path;

use packtok_pbin::TokenWidth;

use super::index::{MAGIC, VERSION};
use super::read::MegatronPaths;
use crate::error::{Error, Result};
use crate::npy::Element;
use crate::token_write::{OutputPaths, TokenWrite, TokensToWrite, without_ending};

/// Vocabularies from this size on are int32 for Megatron's tools, although ids up to 65,535 fit in
/// 16 bits. Source: `DType.optimal_dtype` in Megatron-LM's `indexed_dataset.py`.
pub const LEAST_INT32_VOCAB: u64 = 65_500;

/// How Megatron's own tools write tokens.
pub(crate) struct Megatron;

impl TokenWrite for Megatron {
    fn paths(output: &Path) -> OutputPaths {
        let paths = MegatronPaths::of_prefix(&without_ending(output, &["bin", "idx"]));
        OutputPaths {
            data: paths.data,
            to_open: paths.index.clone(),
            others: vec![paths.index],
            loss_mask: None,
        }
    }

    fn width_for_vocab(vocab_size: u64) -> TokenWidth {
        if vocab_size < LEAST_INT32_VOCAB {
            TokenWidth::U16
        } else {
            TokenWidth::U32
        }
    }

    fn width_for(width: TokenWidth) -> TokenWidth {
        width
    }

    fn element(width: TokenWidth) -> Element {
        Element::signed_if_four_bytes(width)
    }

    fn write_other(out: &mut impl Write, path: &Path, tokens: &impl TokensToWrite) -> Result<()> {
        let (width, first_byte) = (tokens.width(), tokens.first_byte());
        write_index(out, path, width, first_byte, || tokens.lengths())
    }
}

/// The code of the type of tokens of this width.
fn code_of(width: TokenWidth) -> u8 {
    match width {
        TokenWidth::U8 => 1,
        TokenWidth::U16 => 8,
        TokenWidth::U32 => 4,
    }
}

/// Writes the index of documents with `lengths` tokens to `out`; each document with tokens is one
/// sequence, and a document without tokens has none, as Megatron's own tool writes them.
///
/// The tokens have `width` bytes, and start at byte `first_byte` of `.bin`. The lengths are read three times. `path` is
/// for messages.
///
/// # Errors
/// A length is an error; [`Error::MegatronDocumentTooLong`]; `out` cannot be written.
pub fn write_index<L: Iterator<Item = Result<u64>>>(
    out: &mut impl Write,
    path: &Path,
    width: TokenWidth,
    first_byte: u64,
    lengths: impl Fn() -> L,
) -> Result<()> {
    let io = |source: io::Error| Error::Io {
        path: path.into(),
        source,
    };
    let (mut num_documents, mut num_sequences) = (0u64, 0u64);
    for length in lengths() {
        let length = length?;
        if i32::try_from(length).is_err() {
            return Err(Error::MegatronDocumentTooLong {
                path: path.into(),
                document: num_documents,
                tokens: length,
            });
        }
        num_documents += 1;
        num_sequences += u64::from(length > 0);
    }
    out.write_all(&MAGIC).map_err(io)?;
    out.write_all(&VERSION.to_le_bytes()).map_err(io)?;
    out.write_all(&[code_of(width)]).map_err(io)?;
    out.write_all(&num_sequences.to_le_bytes()).map_err(io)?;
    out.write_all(&(num_documents + 1).to_le_bytes())
        .map_err(io)?;
    for length in lengths() {
        let length = length?;
        if length > 0 {
            out.write_all(&(length as i32).to_le_bytes()).map_err(io)?;
        }
    }
    let mut position = first_byte;
    for length in lengths() {
        let length = length?;
        if length > 0 {
            out.write_all(&position.to_le_bytes()).map_err(io)?;
            position += length * width.bytes();
        }
    }
    let mut sequence = 0u64;
    out.write_all(&sequence.to_le_bytes()).map_err(io)?;
    for length in lengths() {
        sequence += u64::from(length? > 0);
        out.write_all(&sequence.to_le_bytes()).map_err(io)?;
    }
    Ok(())
}
