//! Writes an NPY file of documents. The lengths of all documents come first.

use std::io::Write;
use std::path::Path;

use packtok_pbin::TokenWidth;

use super::{Element, NpyHeader};
use crate::error::{Error, Result};

/// Bytes that are encoded at a time; they stay in the cache until they are written.
const BUFFER_BYTES: usize = 64 * 1024;

/// The types of elements that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdType {
    /// 8 bytes per token, as `numpy.save` writes lists of Python integers.
    Int64,
    /// 4 bytes per token.
    Uint32,
}

impl IdType {
    /// The type that NumPy calls `name`.
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "int64" => Some(Self::Int64),
            "uint32" => Some(Self::Uint32),
            _ => None,
        }
    }

    /// NumPy's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int64 => "int64",
            Self::Uint32 => "uint32",
        }
    }

    /// The type of the elements.
    pub fn element(self) -> Element {
        match self {
            Self::Int64 => Element::I64,
            Self::Uint32 => Element::U32,
        }
    }
}

/// The length and the checksum of a written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// CRC32C of all bytes of the file.
    pub crc32c: u32,
}

/// Writes the documents of one file: their number, all lengths, all ids.
#[derive(Debug)]
pub struct DocumentsWriter<'a, W> {
    out: W,
    path: &'a Path,
    id_type: IdType,
    buffer: Vec<u8>,
    written: Written,
    lengths_left: u64,
    tokens_left: u64,
}

impl<'a, W: Write> DocumentsWriter<'a, W> {
    /// Starts a file of `num_documents` documents with `num_tokens` tokens; `path` is for errors.
    ///
    /// # Errors
    /// [`Error::NpyDoesNotFit`]; [`Error::Io`].
    pub fn start(
        out: W,
        path: &'a Path,
        id_type: IdType,
        num_documents: u64,
        num_tokens: u64,
    ) -> Result<Self> {
        let elements = num_documents
            .checked_add(num_tokens)
            .and_then(|sum| sum.checked_add(1));
        let elements = elements.filter(|&elements| elements < 1 << 60);
        let Some(elements) = elements else {
            return Err(does_not_fit(
                path,
                "the number of elements",
                num_tokens,
                id_type,
            ));
        };
        let mut buffer = NpyHeader::encode(id_type.element(), elements);
        buffer.reserve(BUFFER_BYTES);
        let mut writer = Self {
            out,
            path,
            id_type,
            buffer,
            written: Written {
                file_bytes: 0,
                crc32c: 0,
            },
            lengths_left: num_documents,
            tokens_left: num_tokens,
        };
        writer.push("the number of documents", num_documents)?;
        Ok(writer)
    }

    /// Writes the length of the next document; all lengths come before the first id.
    ///
    /// # Errors
    /// [`Error::NpyDoesNotFit`]; [`Error::Io`].
    pub fn push_length(&mut self, num_tokens: u64) -> Result<()> {
        self.lengths_left = self.lengths_left.saturating_sub(1);
        self.push("the length of a document", num_tokens)
    }

    /// Writes the next ids, little-endian numbers of `width`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn push_ids(&mut self, ids: &[u8], width: TokenWidth) -> Result<()> {
        let num_ids = width.tokens_in(ids.len() as u64);
        self.tokens_left = self.tokens_left.saturating_sub(num_ids);
        let at_a_time = BUFFER_BYTES / 8 * width.bytes() as usize;
        for ids in ids.chunks(at_a_time) {
            if self.buffer.len() + BUFFER_BYTES > self.buffer.capacity() {
                self.flush()?;
            }
            match (self.id_type, width) {
                (IdType::Uint32, TokenWidth::U32) => self.buffer.extend_from_slice(ids),
                (IdType::Uint32, TokenWidth::U16) => {
                    widen(ids, &mut self.buffer, |[a, b]: [u8; 2]| [a, b, 0, 0]);
                }
                (IdType::Uint32, TokenWidth::U8) => {
                    widen(ids, &mut self.buffer, |[a]: [u8; 1]| [a, 0, 0, 0]);
                }
                (IdType::Int64, TokenWidth::U32) => {
                    widen(ids, &mut self.buffer, |id: [u8; 4]| {
                        u64::from(u32::from_le_bytes(id)).to_le_bytes()
                    });
                }
                (IdType::Int64, TokenWidth::U16) => {
                    widen(ids, &mut self.buffer, |id: [u8; 2]| {
                        u64::from(u16::from_le_bytes(id)).to_le_bytes()
                    });
                }
                (IdType::Int64, TokenWidth::U8) => {
                    widen(ids, &mut self.buffer, |[a]: [u8; 1]| {
                        u64::from(a).to_le_bytes()
                    });
                }
            }
        }
        Ok(())
    }

    /// Writes the buffered bytes and returns the output.
    ///
    /// # Errors
    /// [`Error::NpyLengths`] if fewer lengths or ids were written than announced;
    /// [`Error::Io`].
    pub fn finish(mut self) -> Result<(W, Written)> {
        if self.lengths_left + self.tokens_left > 0 {
            return Err(Error::NpyLengths {
                path: self.path.into(),
                documents: self.lengths_left,
                sum: self.tokens_left,
                tokens: 0,
            });
        }
        self.flush()?;
        Ok((self.out, self.written))
    }

    fn push(&mut self, what: &'static str, number: u64) -> Result<()> {
        if self.buffer.len() + 8 > self.buffer.capacity() {
            self.flush()?;
        }
        match self.id_type {
            IdType::Int64 => self.buffer.extend(number.to_le_bytes()),
            IdType::Uint32 => match u32::try_from(number) {
                Ok(number) => self.buffer.extend(number.to_le_bytes()),
                Err(_) => return Err(does_not_fit(self.path, what, number, self.id_type)),
            },
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.written.file_bytes += self.buffer.len() as u64;
        self.written.crc32c = crc32c::crc32c_append(self.written.crc32c, &self.buffer);
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(Error::io(self.path))
    }
}

fn does_not_fit(path: &Path, what: &'static str, number: u64, id_type: IdType) -> Error {
    Error::NpyDoesNotFit {
        path: path.into(),
        what,
        found: number,
        dtype: id_type.name(),
    }
}

/// Appends an element of M bytes for each id of N bytes.
fn widen<const N: usize, const M: usize>(
    ids: &[u8],
    buffer: &mut Vec<u8>,
    wider: impl Fn([u8; N]) -> [u8; M],
) {
    let (ids, _) = ids.as_chunks::<N>();
    // Converts a fixed number of ids at a time, so that the compiler vectorizes the loop.
    let (blocks, rest) = ids.as_chunks::<64>();
    for block in blocks {
        buffer.extend_from_slice(block.map(&wider).as_flattened());
    }
    for &id in rest {
        buffer.extend_from_slice(&wider(id));
    }
}

#[cfg(test)]
mod tests {
    use super::super::NpyFile;
    use super::*;
    use crate::token_read::TokenRead;

    fn written(id_type: IdType, width: TokenWidth, documents: &[Vec<u32>]) -> Vec<u8> {
        let path = Path::new("a.npy");
        let num_tokens = documents.iter().map(|document| document.len() as u64).sum();
        let num_documents = documents.len() as u64;
        let mut writer =
            DocumentsWriter::start(Vec::new(), path, id_type, num_documents, num_tokens).unwrap();
        for document in documents {
            writer.push_length(document.len() as u64).unwrap();
        }
        for document in documents {
            let ids = document
                .iter()
                .flat_map(|id| id.to_le_bytes()[..width.bytes() as usize].to_vec());
            writer.push_ids(&ids.collect::<Vec<_>>(), width).unwrap();
        }
        let (bytes, summary) = writer.finish().unwrap();
        assert_eq!(summary.file_bytes, bytes.len() as u64);
        assert_eq!(summary.crc32c, crc32c::crc32c(&bytes));
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let many: Vec<Vec<u32>> = (0..3000).map(|i| (0..i % 90).collect()).collect();
        for documents in [
            vec![],
            vec![vec![]],
            vec![vec![1, 2], vec![], vec![250]],
            many,
        ] {
            for id_type in [IdType::Int64, IdType::Uint32] {
                for width in [TokenWidth::U8, TokenWidth::U16, TokenWidth::U32] {
                    let bytes = written(id_type, width, &documents);
                    let file = tempfile::NamedTempFile::new().unwrap();
                    std::fs::write(file.path(), &bytes).unwrap();
                    let file = NpyFile::open(file.path()).unwrap();
                    let expected: Vec<u8> = documents
                        .iter()
                        .flatten()
                        .flat_map(|id| id.to_le_bytes())
                        .collect();
                    assert_eq!(file.tokens(0..file.num_tokens()).unwrap(), expected);
                    assert!(
                        file.document_lengths()
                            .eq(documents.iter().map(|d| d.len() as u64))
                    );
                    assert_eq!(file.crc32c(), crc32c::crc32c(&bytes));
                }
            }
        }
    }

    #[test]
    fn numbers_beyond_the_type_are_errors() {
        let path = Path::new("a.npy");
        let mut writer =
            DocumentsWriter::start(Vec::new(), path, IdType::Uint32, 1, 1 << 32).unwrap();
        let error = writer.push_length(1 << 32).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a.npy: the length of a document is 4294967296, which does not fit in the elements' dtype uint32; use int64"
        );
        assert!(DocumentsWriter::start(Vec::new(), path, IdType::Int64, u64::MAX, 1).is_err());
        let unfinished = DocumentsWriter::start(Vec::new(), path, IdType::Int64, 1, 1).unwrap();
        assert!(unfinished.finish().is_err());
    }
}
