//! The file `NAME.bos.idx`: the positions of BOS.

use std::io::Write;
use std::path::Path;

use packtok_pbin::MappedFile;

use super::header::HEADER_BYTES;
use crate::boundaries::Tokens;
use crate::ends::Ends;
use crate::error::{Error, Fault, Result};

/// Bytes of a position.
const POSITION_BYTES: usize = 4;

/// The documents of `tokens` that start at the positions in the file at `path`.
///
/// Positions count tokens, as the reader of NeMo AutoModel takes them, or bytes of the file, as its
/// writer makes them: whichever all have the same id, that of BOS. If both do, the first position says
/// it: that of the first token in bytes, or any other.
pub(super) fn documents_of(tokens: Tokens<'_>, path: &Path) -> Result<Ends> {
    let map = MappedFile::open(path)?;
    let (positions, rest) = map.bytes().as_chunks::<POSITION_BYTES>();
    let num_bytes = map.bytes().len() as u64;
    if !rest.is_empty() {
        return Err(Error::fault(Fault {
            path: path.into(),
            offset: num_bytes,
            what: "the number of bytes",
            found: num_bytes.to_string(),
            expected: format!("a multiple of {POSITION_BYTES}"),
            remedy: "the index is damaged, write it again, or delete it",
        }));
    }
    // uint32, because the positions in bytes of large files are negative as int32.
    let positions = positions.iter().map(|&bytes| u32::from_le_bytes(bytes));
    let width = tokens.stored_type.bytes();
    let of_tokens = |position: u32| Some(u64::from(position));
    let of_bytes = |position: u32| {
        let data = u64::from(position).checked_sub(HEADER_BYTES)?;
        data.is_multiple_of(width).then_some(data / width)
    };
    let in_tokens = check(tokens, positions.clone().map(of_tokens));
    let is_like_bytes = positions.clone().next().map(u64::from) == Some(HEADER_BYTES);
    let is_in_bytes = (in_tokens.is_err() || is_like_bytes)
        && check(tokens, positions.clone().map(of_bytes)).is_ok();
    if let (Err(fault), false) = (&in_tokens, is_in_bytes) {
        return Err(Error::fault(Fault {
            path: path.into(),
            offset: fault.number * POSITION_BYTES as u64,
            what: "the position of a document",
            found: fault.found.clone(),
            expected: fault.expected.clone(),
            remedy: "the index belongs to another file or is damaged, write it again, or delete it",
        }));
    }
    let starts = positions.filter_map(|position| {
        let token = if is_in_bytes {
            of_bytes(position)
        } else {
            of_tokens(position)
        };
        token.filter(|&token| token > 0)
    });
    let end = (tokens.num_tokens > 0).then_some(tokens.num_tokens);
    Ends::keep(starts.chain(end).map(Ok), path, num_bytes)
}

struct BadPosition {
    number: u64,
    found: String,
    expected: String,
}

/// Checks that positions ascend, exist, and have the same id.
fn check(
    tokens: Tokens<'_>,
    positions: impl Iterator<Item = Option<u64>>,
) -> Result<(), BadPosition> {
    let (mut least, mut bos) = (0, None);
    for (position, number) in positions.zip(0..) {
        let bad = |expected: String| BadPosition {
            number,
            found: position.map_or("within a token".to_owned(), |position| position.to_string()),
            expected,
        };
        let Some(token) = position.filter(|&token| token >= least && token < tokens.num_tokens)
        else {
            return Err(bad(format!("one in {least}..{}", tokens.num_tokens)));
        };
        let width = tokens.stored_type.bytes();
        let first = (tokens.first_byte + token * width) as usize;
        let id = &tokens.map.bytes()[first..first + width as usize];
        if *bos.get_or_insert(id) != id {
            return Err(bad("that of a token with the id of the first".to_owned()));
        }
        least = token + 1;
    }
    Ok(())
}

/// Writes the positions of documents with `lengths` tokens to `out`. `path` is for messages.
///
/// # Errors
/// A length is an error; `out` cannot be written.
pub(super) fn write_bos_index(
    out: &mut impl Write,
    path: &Path,
    lengths: impl Iterator<Item = Result<u64>>,
) -> Result<()> {
    let mut start = 0u64;
    for length in lengths {
        // The header of the tokens has checked that they are few enough.
        out.write_all(&(start as i32).to_le_bytes())
            .map_err(Error::io(path))?;
        start += length?;
    }
    Ok(())
}
