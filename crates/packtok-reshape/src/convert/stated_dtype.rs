//! Whether ids contradict the type that the caller states for a file without a header.

use packtok_formats::npy::Element;
use packtok_formats::{LargestIds, TokenFile, TokenFormat};
use packtok_pbin::TokenWidth;

use crate::error::{Error, Result};

/// Tokens at the start of a file that are looked at.
const MAX_TOKENS: u64 = 16 << 20;
/// In fewer bytes, narrow ids can look like wide ones.
const MIN_BYTES: u64 = 64;

/// Checks the type of a file whose type is only stated. The widest type with which all ids are in the
/// vocabulary is the right one: narrow ids that are read as wide ones are far too large, and wide ids that
/// are read as narrow ones are in the vocabulary, but every second is 0 or nearly.
///
/// # Errors
/// [`Error::DtypeContradicted`] if that is another type; if there is none, the tokenizer is another one.
pub(super) fn check(file: &TokenFile, vocab_size: u64) -> Result<()> {
    if file.format() != TokenFormat::Raw || file.data_bytes() < MIN_BYTES {
        return Ok(());
    }
    let mut largest = LargestIds::default();
    // A multiple of four bytes is complete in every type.
    let num_tokens = file.num_tokens().min(MAX_TOKENS) & !3;
    largest.add(file.tokens(0..num_tokens)?);
    let widths = [
        (TokenWidth::U32, largest.of_4_bytes),
        (TokenWidth::U16, largest.of_2_bytes),
        (TokenWidth::U8, largest.of_1_byte),
    ];
    let is_in_vocabulary = |id: u32| u64::from(id) < vocab_size;
    let largest_of = |width| widths.iter().find(|&&(other, _)| other == width);
    let stated = largest_of(file.width()).map_or(0, |&(_, id)| id);
    let fitting = widths.into_iter().find(|&(_, id)| is_in_vocabulary(id));
    match fitting {
        Some((width, _)) if width == file.width() => Ok(()),
        // A vocabulary of 256 ids or fewer is needed for a file to have one byte a token.
        Some((TokenWidth::U8, _)) if vocab_size > 256 => Ok(()),
        Some((width, id)) => Err(Error::DtypeContradicted {
            path: file.path().into(),
            stated: Element::of_width(file.width()).name(),
            largest: stated,
            vocab_size,
            fitting: Element::of_width(width).name(),
            largest_fitting: id,
        }),
        None => Ok(()),
    }
}
