//! Finds the documents of a file whose format does not record them.

use std::path::Path;

use packtok_pbin::MappedFile;

use crate::ends::Ends;
use crate::error::{Error, Fault, Result};
use crate::flat_file::{DocumentIndex, FlatFile, FlatParts, StoredType};
use crate::format::TokenFormat;
use crate::open_options::{Boundaries, OpenOptions};
use crate::sidecar::sidecar_ends_path;

/// Bytes that are searched between two times that their pages are taken out of memory.
const STEP_BYTES: usize = 64 << 20;

/// All tokens as one document.
#[derive(Debug)]
struct OneDocument {
    num_tokens: u64,
}

impl DocumentIndex for OneDocument {
    fn num_documents(&self) -> u64 {
        1
    }

    fn start(&self, i: u64) -> u64 {
        if i == 0 { 0 } else { self.num_tokens }
    }

    fn crc32c(&self) -> u32 {
        0
    }

    fn file_bytes(&self) -> u64 {
        0
    }
}

/// The tokens of a file, which are all within its map.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokens<'a> {
    /// The file.
    pub(crate) path: &'a Path,
    /// Its map.
    pub(crate) map: &'a MappedFile,
    /// Position in the file of the first token.
    pub(crate) first_byte: u64,
    /// The type of the ids.
    pub(crate) stored_type: StoredType,
    /// Number of tokens.
    pub(crate) num_tokens: u64,
}

/// The file at `path` of a format without an index: its documents are those that the caller names, that
/// the sidecar folder records, or one. All tokens must be within `map`, whose first one is at
/// `first_byte`.
///
/// # Errors
/// Those of [`documents_of`].
pub(crate) fn open_without_index(
    format: TokenFormat,
    path: &Path,
    map: MappedFile,
    (first_byte, stored_type, num_tokens): (u32, StoredType, u64),
    options: &OpenOptions,
) -> Result<FlatFile> {
    let tokens = Tokens {
        path,
        map: &map,
        first_byte: first_byte.into(),
        stored_type,
        num_tokens,
    };
    let documents = documents_of(tokens, options)?;
    FlatFile::new(FlatParts {
        format,
        path: path.into(),
        data_path: path.into(),
        map,
        first_byte,
        stored_type,
        num_tokens,
        documents,
    })
}

/// The documents of `tokens`: as the caller says, as recorded in the sidecar folder, or one.
///
/// # Errors
/// The ends of documents that the caller names or the folder has cannot be read, are damaged, or
/// belong to another number of tokens.
pub(crate) fn documents_of(
    tokens: Tokens<'_>,
    options: &OpenOptions,
) -> Result<Box<dyn DocumentIndex>> {
    match &options.boundaries {
        Some(Boundaries::Eos(id)) => Ok(Box::new(after_each(tokens, *id)?)),
        Some(Boundaries::Bos(id)) => Ok(Box::new(at_each(tokens, *id)?)),
        Some(Boundaries::File(ends)) => Ok(Box::new(recorded(tokens, ends)?)),
        None => {
            let ends = sidecar_ends_path(tokens.path);
            if ends.is_file() {
                return Ok(Box::new(recorded(tokens, &ends)?));
            }
            let num_tokens = tokens.num_tokens;
            Ok(Box::new(OneDocument { num_tokens }))
        }
    }
}

fn recorded(tokens: Tokens<'_>, path: &Path) -> Result<Ends> {
    let ends = Ends::open(path)?;
    if ends.num_tokens() == tokens.num_tokens {
        return Ok(ends);
    }
    Err(Error::fault(Fault {
        path: path.into(),
        offset: ends.file_bytes().saturating_sub(8),
        what: "the end of the last document",
        found: ends.num_tokens().to_string(),
        expected: format!(
            "{}, the number of tokens in {}",
            tokens.num_tokens,
            tokens.path.display()
        ),
        remedy: "the files do not belong together",
    }))
}

/// Documents that end with `id`. Tokens after the last one are a document.
fn after_each(tokens: Tokens<'_>, id: u32) -> Result<Ends> {
    let num_tokens = tokens.num_tokens;
    let mut positions = positions(tokens, id);
    let (mut last, mut tail_tokens) = (0, 0);
    let ends = std::iter::from_fn(|| {
        if let Some(position) = positions.next() {
            last = position + 1;
        } else if last < num_tokens {
            tail_tokens = num_tokens - last;
            last = num_tokens;
        } else {
            return None;
        }
        Some(Ok(last))
    });
    let ends = Ends::keep(ends, tokens.path, 0)?;
    Ok(ends.with_tail(tail_tokens))
}

/// Documents that start with `id`. Tokens before the first one are a document.
fn at_each(tokens: Tokens<'_>, id: u32) -> Result<Ends> {
    let starts = positions(tokens, id).filter(|&start| start > 0);
    let end = (tokens.num_tokens > 0).then_some(tokens.num_tokens);
    Ends::keep(starts.chain(end).map(Ok), tokens.path, 0)
}

/// The tokens that have this id.
fn positions(tokens: Tokens<'_>, id: u32) -> Box<dyn Iterator<Item = u64> + '_> {
    match tokens.stored_type.bytes() {
        1 => Box::new(
            u8::try_from(id)
                .into_iter()
                .flat_map(move |id| positions_of(tokens, id.to_le_bytes())),
        ),
        2 => Box::new(
            u16::try_from(id)
                .into_iter()
                .flat_map(move |id| positions_of(tokens, id.to_le_bytes())),
        ),
        4 => Box::new(positions_of(tokens, id.to_le_bytes())),
        _ => Box::new(positions_of(tokens, u64::from(id).to_le_bytes())),
    }
}

fn positions_of<const N: usize>(tokens: Tokens<'_>, id: [u8; N]) -> impl Iterator<Item = u64> + '_ {
    let start = tokens.first_byte as usize;
    let bytes = &tokens.map.bytes()[start..start + tokens.num_tokens as usize * N];
    let steps = bytes.chunks(STEP_BYTES).zip(0..);
    steps.flat_map(move |(step, i)| {
        if i > 0 {
            tokens.map.release_pages();
        }
        let first = i * (STEP_BYTES / N) as u64;
        let (ids, _) = step.as_chunks::<N>();
        let ids = ids.iter().zip(first..);
        ids.filter(move |(other, _)| **other == id)
            .map(|(_, position)| position)
    })
}
