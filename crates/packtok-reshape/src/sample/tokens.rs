//! The token files that samples are taken from, read in bounded memory.

use std::collections::HashMap;
use std::collections::hash_map::{Entry as Slot, VacantEntry};
use std::fs::{File, Metadata};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use packtok_dataset::files::manifest::Entry;
use packtok_formats::TokenFile;
use packtok_pbin::{CHECKED_DATA_BYTES, TokenWidth};

use crate::error::{Error, Result};
use crate::sample::recipe::SampleIdType;

/// Mapped pages count as memory of the process. They are released after reading about this many
/// bytes.
const MAPPED_BYTES: u64 = 64 << 20;
/// The system may map this much around a page that is read.
const AROUND_BYTES: u64 = 64 << 10;
/// Files that a thread has open at a time: processes may often have 1,024.
const MAX_OPEN: usize = 128;

/// Calls `each` with the tokens of every document in order and their position in the file.
/// Includes empty documents. Verifies the checksums of the data, if the file has any.
pub(super) fn each_document(
    path: &Path,
    mut each: impl FnMut(&[u8], TokenWidth, Range<u64>) -> Result<()>,
) -> Result<()> {
    let file = TokenFile::open(path)?;
    let (width, num_tokens) = (file.width(), file.num_tokens());
    let (mut next_document, mut next_piece, mut released) = (0, 0, 0);
    // The listing skips empty documents; a file without tokens lists no documents. This entry adds
    // trailing empty documents.
    let last = [Ok((file.num_documents(), num_tokens..num_tokens))];
    let listed = (num_tokens > 0)
        .then(|| file.documents_from(0))
        .transpose()?;
    for document in listed.into_iter().flatten().chain(last) {
        let (number, tokens) = document?;
        for _ in next_document..number {
            each(&[], width, tokens.start..tokens.start)?;
        }
        if number == file.num_documents() {
            break;
        }
        let last_piece = (tokens.end * width.bytes()).div_ceil(CHECKED_DATA_BYTES);
        if file.has_data_checksums() {
            for piece in next_piece..last_piece {
                file.verify_data_piece(piece)?;
            }
        }
        next_piece = next_piece.max(last_piece);
        each(file.tokens(tokens.clone())?, width, tokens.clone())?;
        next_document = number + 1;
        if (tokens.end - released) * width.bytes() > MAPPED_BYTES {
            file.release_pages();
            released = tokens.end;
        }
    }
    Ok(())
}

/// Open token files, by number.
pub(super) struct OpenFiles<'a> {
    entries: &'a [Entry],
    open: HashMap<u32, OpenFile>,
    /// Files that were opened before. Reopening such a file requires no parsing.
    checked: HashMap<u32, Checked>,
    mapped_bytes: u64,
    /// Tokens before they are converted.
    tokens: Vec<u8>,
}

impl<'a> OpenFiles<'a> {
    /// Files that are opened when they are read.
    pub(super) fn new(entries: &'a [Entry]) -> Self {
        Self {
            entries,
            open: HashMap::new(),
            checked: HashMap::new(),
            mapped_bytes: 0,
            tokens: Vec::new(),
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
        dtype: SampleIdType,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let entry = &self.entries[file as usize];
        let is_full = self.open.len() >= MAX_OPEN && !self.open.contains_key(&file);
        if is_full || self.mapped_bytes > MAPPED_BYTES {
            self.open.clear();
            self.mapped_bytes = 0;
        }
        let open = match self.open.entry(file) {
            Slot::Occupied(open) => open.into_mut(),
            Slot::Vacant(slot) => slot.insert(match self.checked.entry(file) {
                Slot::Occupied(checked) => OpenFile::reopen(entry, checked.get())?,
                Slot::Vacant(slot) => OpenFile::open(entry, slot)?,
            }),
        };
        let first = tokens.start;
        let result = match open {
            OpenFile::Read { file, start, width } => {
                if !is_converted(*width, dtype) {
                    return read(entry, file, *start, tokens, out);
                }
                self.tokens.clear();
                read(entry, file, *start, tokens, &mut self.tokens)?;
                converted(&self.tokens, *width, dtype, out)
            }
            OpenFile::Mapped(file) => {
                let bytes = file.tokens(tokens)?;
                self.mapped_bytes += bytes.len() as u64 + AROUND_BYTES;
                converted(bytes, file.width(), dtype, out)
            }
        };
        result.map_err(|(offset, id)| too_large(entry, first + offset as u64, id, dtype))
    }
}

/// An open token file.
enum OpenFile {
    /// Read by position. Mapping a page for each sample costs more than reading the sample.
    Read {
        file: File,
        /// Position of the first token.
        start: u64,
        width: TokenWidth,
    },
    /// A mapped file, whose ids are narrowed when they are first read.
    Mapped(TokenFile),
}

/// A file that is read by position, after it was compared with its entry.
struct Checked {
    start: u64,
    width: TokenWidth,
    identity: Identity,
}

/// Device, inode, length and time of modification.
type Identity = (u64, u64, u64, i64, i64);

fn identity(metadata: &Metadata) -> Identity {
    (
        metadata.dev(),
        metadata.ino(),
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec(),
    )
}

impl OpenFile {
    /// Opens a file, compares it with its entry, and stores the result of the check in `checked`.
    fn open(entry: &Entry, checked: VacantEntry<'_, u32, Checked>) -> Result<Self> {
        let path = &entry.path;
        let file = File::open(path).map_err(Error::io(path))?;
        let tokens = TokenFile::open(path)?;
        let opened = identity(&file.metadata().map_err(Error::io(path))?);
        // Another file may have been moved to the path between the two calls.
        let named = identity(&path.metadata().map_err(Error::io(path))?);
        if Entry::of(&tokens) != *entry || opened != named {
            return Err(changed(entry));
        }
        let width = tokens.width();
        // Of a dataset of several files, the path may be that of the index.
        let is_data = tokens.data_path() == path;
        Ok(match tokens.data_position().filter(|_| is_data) {
            Some(start) => {
                checked.insert(Checked {
                    start,
                    width,
                    identity: opened,
                });
                Self::Read { file, start, width }
            }
            None => Self::Mapped(tokens),
        })
    }

    /// Reopens a file, which must be the file that was checked.
    fn reopen(entry: &Entry, checked: &Checked) -> Result<Self> {
        let path = &entry.path;
        let file = File::open(path).map_err(Error::io(path))?;
        if identity(&file.metadata().map_err(Error::io(path))?) != checked.identity {
            return Err(changed(entry));
        }
        Ok(Self::Read {
            file,
            start: checked.start,
            width: checked.width,
        })
    }
}

/// Appends the bytes of tokens to `out`; `start` is the position of the first token of the file.
fn read(
    entry: &Entry,
    file: &File,
    start: u64,
    tokens: Range<u64>,
    out: &mut Vec<u8>,
) -> Result<()> {
    if tokens.start > tokens.end || tokens.end > entry.tokens {
        return Err(changed(entry));
    }
    let first = out.len();
    out.resize(
        first + ((tokens.end - tokens.start) * entry.token_bytes) as usize,
        0,
    );
    let position = start + tokens.start * entry.token_bytes;
    file.read_exact_at(&mut out[first..], position)
        .map_err(Error::io(&entry.path))
}

fn changed(entry: &Entry) -> Error {
    let path = entry.path.clone();
    Error::TokenFileChanged { path }
}

fn too_large(entry: &Entry, token: u64, id: u32, dtype: SampleIdType) -> Error {
    let is_wide = id > i32::MAX as u32 || dtype == SampleIdType::Int32;
    Error::IdTooLarge {
        path: entry.path.clone(),
        token,
        id,
        dtype: dtype.name(),
        remedy: if is_wide { "uint32" } else { "uint32 or int32" },
    }
}

impl SampleIdType {
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

/// Whether tokens of this width have other bytes than ids of `dtype`.
fn is_converted(width: TokenWidth, dtype: SampleIdType) -> bool {
    !matches!(
        (width, dtype),
        (TokenWidth::U16, SampleIdType::Uint16) | (TokenWidth::U32, SampleIdType::Uint32)
    )
}

/// Appends tokens as ids of `dtype`. The error has the position and the value of the first id that
/// does not fit.
fn converted(
    bytes: &[u8],
    width: TokenWidth,
    dtype: SampleIdType,
    out: &mut Vec<u8>,
) -> std::result::Result<(), (usize, u32)> {
    match (width, dtype) {
        (TokenWidth::U16, SampleIdType::Uint16) | (TokenWidth::U32, SampleIdType::Uint32) => {
            out.extend_from_slice(bytes)
        }
        (TokenWidth::U8, SampleIdType::Uint16) => out.extend(bytes.iter().flat_map(|&id| [id, 0])),
        (TokenWidth::U8, SampleIdType::Uint32 | SampleIdType::Int32) => {
            out.extend(bytes.iter().flat_map(|&id| [id, 0, 0, 0]))
        }
        (TokenWidth::U16, SampleIdType::Uint32 | SampleIdType::Int32) => {
            out.extend(
                bytes
                    .as_chunks()
                    .0
                    .iter()
                    .flat_map(|&[low, high]| [low, high, 0, 0]),
            );
        }
        (TokenWidth::U32, SampleIdType::Uint16 | SampleIdType::Int32) => {
            let most = if dtype == SampleIdType::Uint16 {
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
    use packtok_pbin::{Counts, Metadata, Replace, Writer};

    use super::*;

    #[test]
    fn ids_keep_their_values_in_every_type() {
        let ids = [0u32, 1, 255];
        for width in [TokenWidth::U8, TokenWidth::U16, TokenWidth::U32] {
            let bytes: Vec<u8> = ids
                .iter()
                .flat_map(|id| id.to_le_bytes()[..width.bytes() as usize].to_vec())
                .collect();
            for dtype in [
                SampleIdType::Uint16,
                SampleIdType::Uint32,
                SampleIdType::Int32,
            ] {
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
    fn files_beyond_the_open_ones_are_opened_again_unless_they_have_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |number: u32| folder.path().join(format!("{number}.pbin"));
        let write = |number: u32, ids: [u16; 2]| {
            let mut writer = Writer::create(&path(number), TokenWidth::U16, false).unwrap();
            let bytes = ids.map(u16::to_le_bytes).concat();
            writer.append(&bytes, &[bytes.len() as u64]).unwrap();
            let counts = Counts {
                documents: 1,
                tokens: 2,
                lines: 1,
                packed: 1,
                ..Counts::default()
            };
            let metadata = Metadata {
                counts,
                ..Metadata::default()
            };
            let finished = writer.finish(&metadata, &[]).unwrap();
            finished.publish(Replace::Existing).unwrap();
        };
        let num_files = MAX_OPEN as u32 + 2;
        let entries: Vec<_> = (0..num_files)
            .map(|number| {
                write(number, [number as u16, 7]);
                Entry::of(&TokenFile::open(&path(number)).unwrap())
            })
            .collect();
        let mut files = OpenFiles::new(&entries);
        let mut out = Vec::new();
        for number in (0..num_files).chain(0..num_files) {
            out.clear();
            let tokens = files.append(number, 0..2, SampleIdType::Uint16, &mut out);
            tokens.unwrap();
            assert_eq!(out, [number as u8, 0, 7, 0]);
        }
        // File 0 is closed now.
        write(0, [1, 2]);
        for number in 2..num_files {
            let tokens = files.append(number, 0..1, SampleIdType::Uint16, &mut out);
            tokens.unwrap();
        }
        let error = files
            .append(0, 0..1, SampleIdType::Uint16, &mut out)
            .unwrap_err();
        let expected = changed(&entries[0]).to_string();
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn the_first_id_that_does_not_fit_is_named() {
        let bytes: Vec<u8> = [1u32, 65_536, 1 << 31]
            .iter()
            .flat_map(|id| id.to_le_bytes())
            .collect();
        let convert = |dtype| converted(&bytes, TokenWidth::U32, dtype, &mut Vec::new());
        assert_eq!(convert(SampleIdType::Uint16), Err((1, 65_536)));
        assert_eq!(convert(SampleIdType::Int32), Err((2, 1 << 31)));
        assert_eq!(convert(SampleIdType::Uint32), Ok(()));
    }
}
