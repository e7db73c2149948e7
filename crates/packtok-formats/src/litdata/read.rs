//! Opens a chunk file.

use std::path::Path;

use packtok_pbin::MappedFile;

use super::index::{INDEX_FILE, IndexedFolder};
use super::write::MAX_CHUNK_BYTES;
use crate::copied::CopiedDocuments;
use crate::error::{Error, Fault, Result};
use crate::flat_file::{DocumentIndex, FlatFile, FlatParts, StoredType};
use crate::format::TokenFormat;
use crate::npy::Element;
use crate::open_options::OpenOptions;

/// Bytes of the number of items, and of a position.
const WORD_BYTES: u64 = 4;

/// Opens the chunk at `path`; `None` if no index in its folder lists it.
///
/// # Errors
/// As [`open`] and [`IndexedFolder::open`].
pub fn open_if_listed(path: &Path, options: &OpenOptions) -> Result<Option<FlatFile>> {
    // Most files have another name, or no index beside them.
    let is_named = path.extension().is_some_and(|extension| extension == "bin");
    if !is_named || !path.with_file_name(INDEX_FILE).is_file() {
        return Ok(None);
    }
    recorded(path, (*IndexedFolder::open_beside(path)?).as_ref())
        .map(|recorded| open_chunk(path, &recorded, options))
        .transpose()
}

/// The record of a chunk in the index.
#[derive(Default)]
struct Recorded {
    /// The type of the ids.
    element: Option<Element>,
    /// The number of tokens.
    num_tokens: Option<u64>,
    /// Whether each item starts with its number of bytes.
    has_sizes: bool,
}

/// The record of the chunk at `path` in `index`.
fn recorded(path: &Path, index: Option<&IndexedFolder>) -> Option<Recorded> {
    let index = index?;
    let entry = index.chunk(path.file_name()?.to_str()?)?;
    Some(Recorded {
        element: Some(index.element()),
        num_tokens: entry.dim,
        has_sizes: index.has_sizes(),
    })
}

/// Opens the chunk at `path`. The type of its ids is that in the index, or without an index, that in
/// `options`.
///
/// # Errors
/// The file cannot be mapped; the type of its ids is not known, not one of ids, or not the one in
/// `options`; a position in it is damaged; it has another number of tokens than the index says.
pub fn open(path: &Path, options: &OpenOptions) -> Result<FlatFile> {
    let index = IndexedFolder::open_beside(path)?;
    let recorded = recorded(path, (*index).as_ref());
    open_chunk(path, &recorded.unwrap_or_default(), options)
}

fn open_chunk(path: &Path, recorded: &Recorded, options: &OpenOptions) -> Result<FlatFile> {
    let element = match (recorded.element, options.dtype) {
        (Some(element), Some(dtype)) if element != dtype => {
            return Err(Error::OtherDtype {
                path: path.into(),
                found: element.name(),
                expected: dtype.name(),
            });
        }
        (Some(element), _) | (None, Some(element)) => element,
        (None, None) => return Err(Error::UnknownDtype { path: path.into() }),
    };
    let Some(stored_type) = StoredType::of(element) else {
        return Err(Error::LitdataIndex {
            path: path.with_file_name(INDEX_FILE),
            reason: format!(
                "has ids of the type {}; expected uint8, uint16, uint32, int32, int64 or uint64",
                element.name()
            ),
        });
    };
    if recorded.has_sizes {
        return open_sized(path, element, stored_type.bytes());
    }
    let items = Items::open(path, stored_type.bytes())?;
    let num_in_file = items.start(items.num_documents());
    let num_tokens = recorded.num_tokens;
    if let Some(expected) = num_tokens.filter(|&expected| expected != num_in_file) {
        return Err(Error::fault(Fault {
            path: path.into(),
            offset: 0,
            what: "the number of tokens",
            found: num_in_file.to_string(),
            expected: format!("{expected}, as in {INDEX_FILE}"),
            remedy: "the file is damaged, or belongs to another index",
        }));
    }
    FlatFile::new(FlatParts {
        format: TokenFormat::Litdata,
        path: path.into(),
        data_path: path.into(),
        first_byte: items.position(0),
        map: MappedFile::open(path)?,
        stored_type,
        num_tokens: num_in_file,
        documents: Box::new(items),
    })
}

/// Opens a chunk whose items start with their number of bytes: their ids are not back to back, and are
/// copied.
fn open_sized(path: &Path, element: Element, id_bytes: u64) -> Result<FlatFile> {
    let items = Items::open(path, 1)?;
    let bytes = items.map.bytes();
    let mut documents = CopiedDocuments::new(path)?;
    let is_signed = matches!(element, Element::I32 | Element::I64);
    for item in 0..items.num_items {
        let (start, stop) = (items.position(item), items.position(item + 1));
        let fault = |offset: u64, what, value: String, expected: String| {
            Error::fault(Fault {
                path: path.into(),
                offset: u64::from(start) + offset,
                what,
                found: value,
                expected,
                remedy: "the file is damaged, or has items of another kind than tokens",
            })
        };
        // Opening has checked that positions are within the file and ascend.
        let bytes = bytes.get(start as usize..stop as usize);
        let bytes = bytes.unwrap_or_default();
        let (size, ids) = match bytes.split_first_chunk() {
            Some((size, ids)) => (u32::from_le_bytes(*size), ids),
            None => (u32::MAX, bytes),
        };
        if u64::from(size) != ids.len() as u64 || !u64::from(size).is_multiple_of(id_bytes) {
            let expected = format!("{}, a whole number of ids of {id_bytes} bytes", ids.len());
            return Err(fault(
                0,
                "the number of bytes of an item",
                size.to_string(),
                expected,
            ));
        }
        documents.push_integers(ids, (id_bytes as usize, is_signed), |token, id| {
            let expected = "a number in 0..=4294967295".to_owned();
            fault(4 + token * id_bytes, "an id", id.to_string(), expected)
        })?;
    }
    let file_bytes = bytes.len() as u64;
    documents.finish(TokenFormat::Litdata, file_bytes)
}

/// The items of a chunk, each a document.
#[derive(Debug)]
struct Items {
    map: MappedFile,
    num_items: u32,
    id_bytes: u64,
}

impl Items {
    /// Checks all positions of the chunk at `path`, in time that grows with their number.
    fn open(path: &Path, id_bytes: u64) -> Result<Self> {
        let map = MappedFile::open(path)?;
        let file_bytes = map.bytes().len() as u64;
        let fault = |offset: u64, what, value: String, expected: String| {
            Error::fault(Fault {
                path: path.into(),
                offset,
                what,
                found: value,
                expected,
                remedy: "the file is damaged, or no chunk of litdata",
            })
        };
        if file_bytes > MAX_CHUNK_BYTES {
            let expected = format!("at most {MAX_CHUNK_BYTES}");
            return Err(fault(
                0,
                "the number of bytes",
                file_bytes.to_string(),
                expected,
            ));
        }
        let mut items = Self {
            map,
            num_items: 0,
            id_bytes,
        };
        items.num_items = items.word(0);
        let first = WORD_BYTES * (u64::from(items.num_items) + 2);
        if first > file_bytes {
            let number = items.num_items.to_string();
            let expected = format!("what {file_bytes} bytes can hold");
            return Err(fault(0, "the number of items", number, expected));
        }
        let mut least = first as u32;
        for i in 0..=items.num_items {
            let position = items.position(i);
            let is_first = i == 0 && u64::from(position) != first;
            let is_within_id = (u64::from(position) - first.min(position.into())) % id_bytes != 0;
            if is_first || position < least || is_within_id {
                let expected = if i == 0 {
                    format!("{first}, the end of the positions")
                } else {
                    format!(
                        "at least {least}, and a whole number of ids of {id_bytes} bytes after {first}"
                    )
                };
                let offset = WORD_BYTES * (u64::from(i) + 1);
                return Err(fault(
                    offset,
                    "the position of an item",
                    position.to_string(),
                    expected,
                ));
            }
            least = position;
        }
        if u64::from(least) != file_bytes {
            let expected = format!("{least}, the end of the last item");
            return Err(fault(
                file_bytes,
                "the number of bytes",
                file_bytes.to_string(),
                expected,
            ));
        }
        Ok(items)
    }

    /// Word `i` of the file. Opening has checked that it is there; if another program changes the file,
    /// reading tokens fails.
    fn word(&self, i: u64) -> u32 {
        let start = (i * WORD_BYTES) as usize;
        let bytes = self.map.bytes().get(start..start + WORD_BYTES as usize);
        bytes
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, u32::from_le_bytes)
    }

    /// The position in the file of item `i`, or of the end of the last.
    fn position(&self, i: u32) -> u32 {
        self.word(u64::from(i) + 1)
    }
}

impl DocumentIndex for Items {
    fn num_documents(&self) -> u64 {
        self.num_items.into()
    }

    fn start(&self, i: u64) -> u64 {
        let first = self.position(0);
        let position = self.position(i as u32);
        u64::from(position.saturating_sub(first)) / self.id_bytes
    }

    fn crc32c(&self) -> u32 {
        let head_bytes = self.position(0) as usize;
        crc32c::crc32c(self.map.bytes().get(..head_bytes).unwrap_or_default())
    }

    /// None: the positions are in the file of the tokens.
    fn file_bytes(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use packtok_pbin::{Replace, TokenWidth};

    use super::*;
    use crate::TokenFile;
    use crate::litdata::write::encode_header;
    use crate::litdata::{ChunkEntry, publish_index};
    use crate::test_support::{documents, golden, golden_documents};

    #[test]
    fn chunks_of_litdata_are_read() {
        for (name, expected) in golden_documents("litdata") {
            let index = IndexedFolder::open(&golden("litdata").join(&name))
                .unwrap()
                .unwrap();
            let folder = index.path().parent().unwrap().to_owned();
            let paths: Vec<_> = index
                .into_names()
                .iter()
                .map(|file| folder.join(file))
                .collect();
            let files = paths.iter().map(|path| TokenFile::open(path).unwrap());
            let mut read = Vec::new();
            for file in files {
                assert_eq!(file.format(), TokenFormat::Litdata);
                assert_eq!(file.file_bytes(), file.path().metadata().unwrap().len());
                read.extend(documents(&file));
            }
            assert_eq!(read, expected, "{name}");
        }
    }

    /// A chunk of four documents, of which the second has no ids, with its index.
    fn written(width: TokenWidth) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chunk-0-0.bin");
        let lengths = [2, 0, 3, 1];
        let mut bytes = encode_header(width, 4, lengths.into_iter().map(Ok), &path).unwrap();
        for id in [7u32, 8, 9, 1, 2, 3] {
            bytes.extend(&id.to_le_bytes()[..width.bytes() as usize]);
        }
        let entry = ChunkEntry {
            chunk_bytes: bytes.len() as u64,
            chunk_size: 4,
            dim: Some(6),
            filename: "chunk-0-0.bin".to_owned(),
        };
        fs::write(&path, bytes).unwrap();
        publish_index(folder.path(), &[entry], width, 1 << 26, Replace::Never).unwrap();
        (folder, path)
    }

    #[test]
    fn what_is_written_is_read() {
        for width in [TokenWidth::U8, TokenWidth::U16, TokenWidth::U32] {
            let (_folder, path) = written(width);
            let file = TokenFile::open(&path).unwrap();
            assert_eq!(
                documents(&file),
                [vec![7, 8], vec![], vec![9, 1, 2], vec![3]]
            );
        }
        let large = [1 << 31, 1 << 31].into_iter().map(Ok);
        let error = encode_header(TokenWidth::U16, 2, large, Path::new("a.bin")).unwrap_err();
        assert!(error.to_string().contains("--max-tokens"), "{error}");
    }

    #[test]
    fn a_chunk_without_an_index_needs_a_type() {
        let (folder, path) = written(TokenWidth::U16);
        let other = OpenOptions {
            dtype: Some(Element::I32),
            ..OpenOptions::default()
        };
        let message = TokenFile::open_with(&path, &other).unwrap_err().to_string();
        assert!(message.contains("uint16 ids; expected int32"), "{message}");
        fs::remove_file(folder.path().join(INDEX_FILE)).unwrap();
        let mut options = OpenOptions {
            format: Some(TokenFormat::Litdata),
            ..OpenOptions::default()
        };
        let message = TokenFile::open_with(&path, &options)
            .unwrap_err()
            .to_string();
        assert!(message.contains("--input-dtype"), "{message}");
        options.dtype = Some(Element::U16);
        let file = TokenFile::open_with(&path, &options).unwrap();
        assert_eq!(file.num_documents(), 4);
    }

    #[test]
    fn damage_is_an_error_that_names_the_byte() {
        let (_folder, path) = written(TokenWidth::U16);
        let bytes = fs::read(&path).unwrap();
        for (at, value, expected) in [
            (0, 1 << 30, "the number of items is 1073741824 (byte 0)"),
            (0, 3, "the position of an item is 24 (byte 4); expected 20"),
            (
                8,
                25,
                "the position of an item is 25 (byte 8); expected at least 24",
            ),
            (
                12,
                26,
                "the position of an item is 26 (byte 12); expected at least 28",
            ),
            (20, 38, "the number of bytes is 36 (byte 36); expected 38"),
        ] {
            let mut damaged = bytes.clone();
            damaged[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
            fs::write(&path, damaged).unwrap();
            let message = TokenFile::open(&path).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        for len in 0..bytes.len() {
            fs::write(&path, &bytes[..len]).unwrap();
            assert!(TokenFile::open(&path).is_err(), "{len}");
        }
        // Whole items fewer than the index says.
        let shorter = encode_header(TokenWidth::U16, 0, std::iter::empty(), &path).unwrap();
        fs::write(&path, shorter).unwrap();
        let message = TokenFile::open(&path).unwrap_err().to_string();
        assert!(
            message.contains("the number of tokens is 0 (byte 0); expected 6, as in index.json"),
            "{message}"
        );
    }
}
