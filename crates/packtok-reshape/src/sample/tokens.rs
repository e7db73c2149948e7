//! The token files that samples are taken from, read in bounded memory.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

use packtok_formats::TokenFile;
use packtok_pbin::{CHECKED_DATA_BYTES, TokenWidth};
use packtok_sampling::files::manifest::Entry;

use crate::error::Result;
use crate::sample::error::SampleError;
use crate::sample::recipe::IdType;

/// Mapped pages count as memory of the process. After reading about this much, files are mapped anew.
const MAPPED_BYTES: u64 = 96 << 20;
/// The system may map this much around a page that is read.
const AROUND_BYTES: u64 = 64 << 10;

/// Receives the tokens of a document, their width, and their position in the file.
type Each<'a> = dyn FnMut(&[u8], TokenWidth, Range<u64>) -> Result<()> + 'a;

/// Calls `each` with the tokens of every document in order, including empty ones, with their position in the file. Verifies the
/// checksums of the data, if the file has any.
pub(super) fn each_document(
    path: &std::path::Path,
    mut each: impl FnMut(&[u8], TokenWidth, Range<u64>) -> Result<()>,
) -> Result<()> {
    let (mut next_document, mut next_token, mut next_piece) = (0, 0, 0);
    loop {
        let file = TokenFile::open(path)?;
        let width = file.width();
        let empty = |count: u64, at: u64, each: &mut Each<'_>| {
            (0..count).try_for_each(|_| each(&[], width, at..at))
        };
        if next_token >= file.num_tokens() {
            return empty(file.num_documents() - next_document, next_token, &mut each);
        }
        let start = next_token;
        for document in file.documents_from(next_token)? {
            let (number, tokens) = document?;
            empty(number - next_document, tokens.start, &mut each)?;
            let last_piece = (tokens.end * width.bytes()).div_ceil(CHECKED_DATA_BYTES);
            if file.has_data_checksums() {
                for piece in next_piece..last_piece {
                    file.verify_data_piece(piece)?;
                }
            }
            next_piece = next_piece.max(last_piece);
            each(file.tokens(tokens.clone())?, width, tokens.clone())?;
            (next_document, next_token) = (number + 1, tokens.end);
            if (next_token - start) * width.bytes() > MAPPED_BYTES {
                break;
            }
        }
    }
}

/// Open token files, by number.
pub(super) struct OpenFiles<'a> {
    entries: &'a [Entry],
    open: HashMap<u32, TokenFile>,
    mapped_bytes: u64,
}

impl<'a> OpenFiles<'a> {
    /// Files that are opened when they are read.
    pub(super) fn new(entries: &'a [Entry]) -> Self {
        Self {
            entries,
            open: HashMap::new(),
            mapped_bytes: 0,
        }
    }

    /// The path of a file.
    pub(super) fn path(&self, file: u32) -> &'a PathBuf {
        &self.entries[file as usize].path
    }

    /// Appends tokens to `out` as ids of a type.
    pub(super) fn append(
        &mut self,
        file: u32,
        tokens: Range<u64>,
        dtype: IdType,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if self.mapped_bytes > MAPPED_BYTES {
            self.open.clear();
            self.mapped_bytes = 0;
        }
        let open = match self.open.entry(file) {
            std::collections::hash_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::hash_map::Entry::Vacant(slot) => {
                let listed = &self.entries[file as usize];
                let open = TokenFile::open(&listed.path)?;
                if Entry::of(&open) != *listed {
                    let path = listed.path.clone();
                    return Err(SampleError::Changed { path }.into());
                }
                slot.insert(open)
            }
        };
        let bytes = open.tokens(tokens.clone())?;
        self.mapped_bytes += bytes.len() as u64 + AROUND_BYTES;
        converted(bytes, open.width(), dtype, out).map_err(|(offset, id)| {
            let wide = u32::try_from(i32::MAX).is_ok_and(|most| id > most);
            SampleError::IdTooLarge {
                path: open.path().to_owned(),
                token: tokens.start + offset as u64,
                id,
                dtype: dtype.name(),
                remedy: if wide || dtype == IdType::Int32 {
                    "uint32"
                } else {
                    "uint32 or int32"
                },
            }
            .into()
        })
    }
}

impl IdType {
    /// NumPy's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Int32 => "int32",
        }
    }

    /// Bytes of an id.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Uint16 => 2,
            Self::Uint32 | Self::Int32 => 4,
        }
    }

    /// The type for files of this width.
    pub(super) fn of_width(width: u64) -> Self {
        if width <= 2 {
            Self::Uint16
        } else {
            Self::Uint32
        }
    }
}

/// Appends tokens as ids of `dtype`; the error is position and value of the first id that does not fit.
fn converted(
    bytes: &[u8],
    width: TokenWidth,
    dtype: IdType,
    out: &mut Vec<u8>,
) -> std::result::Result<(), (usize, u32)> {
    match (width, dtype) {
        (TokenWidth::U16, IdType::Uint16) | (TokenWidth::U32, IdType::Uint32) => {
            out.extend_from_slice(bytes)
        }
        (TokenWidth::U8, IdType::Uint16) => out.extend(bytes.iter().flat_map(|&id| [id, 0])),
        (TokenWidth::U8, IdType::Uint32 | IdType::Int32) => {
            out.extend(bytes.iter().flat_map(|&id| [id, 0, 0, 0]))
        }
        (TokenWidth::U16, IdType::Uint32 | IdType::Int32) => {
            out.extend(
                bytes
                    .as_chunks()
                    .0
                    .iter()
                    .flat_map(|&[low, high]| [low, high, 0, 0]),
            );
        }
        (TokenWidth::U32, IdType::Uint16 | IdType::Int32) => {
            let most = if dtype == IdType::Uint16 {
                u32::from(u16::MAX)
            } else {
                i32::MAX as u32
            };
            for (i, id) in bytes.as_chunks().0.iter().enumerate() {
                let value = u32::from_le_bytes(*id);
                if value > most {
                    return Err((i, value));
                }
                out.extend_from_slice(&id[..dtype.bytes()]);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_their_values_in_every_type() {
        let ids = [0u32, 1, 255];
        for width in [TokenWidth::U8, TokenWidth::U16, TokenWidth::U32] {
            let bytes: Vec<u8> = ids
                .iter()
                .flat_map(|id| id.to_le_bytes()[..width.bytes() as usize].to_vec())
                .collect();
            for dtype in [IdType::Uint16, IdType::Uint32, IdType::Int32] {
                let mut out = vec![9];
                converted(&bytes, width, dtype, &mut out).unwrap();
                let expected: Vec<u8> = ids
                    .iter()
                    .flat_map(|id| id.to_le_bytes()[..dtype.bytes()].to_vec())
                    .collect();
                assert_eq!(out[1..], expected);
            }
        }
    }

    #[test]
    fn the_first_id_that_does_not_fit_is_named() {
        let bytes: Vec<u8> = [1u32, 65_536, 1 << 31]
            .iter()
            .flat_map(|id| id.to_le_bytes())
            .collect();
        let found = |dtype| converted(&bytes, TokenWidth::U32, dtype, &mut Vec::new());
        assert_eq!(found(IdType::Uint16), Err((1, 65_536)));
        assert_eq!(found(IdType::Int32), Err((2, 1 << 31)));
        assert_eq!(found(IdType::Uint32), Ok(()));
    }
}
