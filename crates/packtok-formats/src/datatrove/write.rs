//! Writes the index of a file of datatrove.

use std::io::{self, Write};
use std::path::Path;

use packtok_pbin::TokenWidth;

use crate::error::{Error, Result};

/// Bytes of a token that datatrove chooses for a vocabulary: two if all ids fit, otherwise four.
pub fn width_for_vocab(vocab_size: u64) -> TokenWidth {
    if vocab_size <= 1 << 16 {
        TokenWidth::U16
    } else {
        TokenWidth::U32
    }
}

/// Writes the index of documents with `lengths` tokens to `out`. `path` is for messages.
///
/// # Errors
/// A length is an error; `out` cannot be written.
pub fn write_index(
    out: &mut impl Write,
    path: &Path,
    lengths: impl Iterator<Item = Result<u64>>,
) -> Result<()> {
    let mut end = 0u64;
    for length in lengths {
        end += length?;
        out.write_all(&end.to_le_bytes())
            .map_err(|source: io::Error| Error::Io {
                path: path.into(),
                source,
            })?;
    }
    Ok(())
}
