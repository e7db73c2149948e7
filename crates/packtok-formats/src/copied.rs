//! Documents whose ids are copied when their file is opened, because no ids can be views of it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use packtok_pbin::{MappedFile, TokenWidth};

use crate::ends::EndsWriter;
use crate::error::{Error, Result};
use crate::flat_file::{FlatFile, FlatParts, StoredType};
use crate::format::TokenFormat;

/// Copies documents to an unlinked temporary file, which is mapped, so that the system can evict it from
/// memory.
pub(crate) struct CopiedDocuments {
    path: PathBuf,
    ids: BufWriter<File>,
    ends: EndsWriter,
    /// The ids of a document.
    wide: Vec<u8>,
    num_tokens: u64,
    num_documents: u64,
}

impl CopiedDocuments {
    /// No documents yet of the file at `path`.
    ///
    /// # Errors
    /// [`Error::NarrowedCopy`], [`Error::TemporaryIndex`].
    pub(crate) fn new(path: &Path) -> Result<Self> {
        let file = tempfile::tempfile().map_err(copy_error(path))?;
        Ok(Self {
            path: path.into(),
            ids: BufWriter::new(file),
            ends: EndsWriter::new(path)?,
            wide: Vec::new(),
            num_tokens: 0,
            num_documents: 0,
        })
    }

    /// The number of the next document.
    pub(crate) fn num_documents(&self) -> u64 {
        self.num_documents
    }

    /// Copies the ids of the next document.
    ///
    /// # Errors
    /// An id is an error; as [`CopiedDocuments::new`].
    pub(crate) fn push(&mut self, ids: impl Iterator<Item = Result<u32>>) -> Result<()> {
        for id in ids {
            let written = self.ids.write_all(&id?.to_le_bytes());
            written.map_err(copy_error(&self.path))?;
            self.num_tokens += 1;
        }
        self.num_documents += 1;
        self.ends.push(self.num_tokens)
    }

    /// Copies the ids of the next document, little-endian integers of `width` bytes. `error` is called with
    /// the position and the value of one that is no id.
    ///
    /// # Errors
    /// That of `error`; as [`CopiedDocuments::new`].
    pub(crate) fn push_integers(
        &mut self,
        bytes: &[u8],
        (width, is_signed): (usize, bool),
        error: impl Fn(u64, i128) -> Error,
    ) -> Result<()> {
        self.wide.clear();
        let is_all_ids = match (width, is_signed) {
            (1, false) => widen::<1>(bytes, &mut self.wide, |id| u8::from_le_bytes(id).into()),
            (2, false) => widen::<2>(bytes, &mut self.wide, |id| u16::from_le_bytes(id).into()),
            (4, false) => widen::<4>(bytes, &mut self.wide, |id| u32::from_le_bytes(id).into()),
            (4, true) => widen::<4>(bytes, &mut self.wide, |id| i32::from_le_bytes(id).into()),
            (8, _) => widen::<8>(bytes, &mut self.wide, i64::from_le_bytes),
            _ => false,
        };
        if is_all_ids {
            let written = self.ids.write_all(&self.wide);
            written.map_err(copy_error(&self.path))?;
            self.num_tokens += (bytes.len() / width) as u64;
            self.num_documents += 1;
            return self.ends.push(self.num_tokens);
        }
        // Small signed types, and the error of an integer that is no id.
        let ids = bytes.chunks_exact(width).enumerate();
        self.push(ids.map(|(token, bytes)| {
            let is_negative = is_signed && bytes[width - 1] >= 0x80;
            let mut wide = [if is_negative { 0xff } else { 0 }; 16];
            wide[..width].copy_from_slice(bytes);
            let id = i128::from_le_bytes(wide);
            u32::try_from(id).map_err(|_| error(token as u64, id))
        }))
    }

    /// The open file. `file_bytes` are the bytes of the original.
    ///
    /// # Errors
    /// As [`CopiedDocuments::new`].
    pub(crate) fn finish(self, format: TokenFormat, file_bytes: u64) -> Result<FlatFile> {
        let path = self.path;
        let ids = self.ids.into_inner();
        let ids = ids.map_err(|error| copy_error(&path)(error.into_error()))?;
        FlatFile::new(FlatParts {
            format,
            data_path: path.clone(),
            map: MappedFile::of(&ids).map_err(copy_error(&path))?,
            path,
            first_byte: 0,
            stored_type: StoredType::Copied(TokenWidth::U32),
            num_tokens: self.num_tokens,
            documents: Box::new(self.ends.finish(file_bytes)?),
        })
    }
}

/// Appends integers of `N` bytes as ids of 32 bits; returns whether all of them are ids.
fn widen<const N: usize>(bytes: &[u8], out: &mut Vec<u8>, parse: impl Fn([u8; N]) -> i64) -> bool {
    let integers = bytes.as_chunks::<N>().0;
    out.resize(4 * integers.len(), 0);
    let mut are_ids = true;
    for (id, &integer) in out.as_chunks_mut::<4>().0.iter_mut().zip(integers) {
        let integer = parse(integer);
        are_ids &= integer >> 32 == 0;
        *id = (integer as u32).to_le_bytes();
    }
    are_ids
}

fn copy_error(path: &Path) -> impl FnOnce(io::Error) -> Error {
    |source| Error::NarrowedCopy {
        path: path.into(),
        folder: std::env::temp_dir(),
        source,
    }
}
