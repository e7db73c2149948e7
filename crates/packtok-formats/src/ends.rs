//! Documents by the token after the end of each.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use packtok_pbin::MappedFile;

use crate::error::{Error, Fault, Result};
use crate::flat_file::DocumentIndex;

/// Bytes of the end of a document.
const END_BYTES: u64 = 8;

/// The ends of documents as u64, which do not decrease, in a map that the system can evict.
#[derive(Debug)]
pub(crate) struct Ends {
    map: MappedFile,
    /// Bytes of the file that records them.
    file_bytes: u64,
    tail_tokens: u64,
}

/// The checksum of the index of documents with these lengths, whose ids are copied when their file is opened.
///
/// # Errors
/// A length is an error.
pub fn crc32c_of_lengths(lengths: impl Iterator<Item = Result<u64>>) -> Result<u32> {
    let (mut end, mut crc32c) = (0, 0);
    for length in lengths {
        end += length?;
        crc32c = crc32c::crc32c_append(crc32c, &u64::to_le_bytes(end));
    }
    Ok(crc32c)
}

impl Ends {
    /// Opens and checks the file of ends at `path`, in time that grows with the number of documents.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let map = MappedFile::open(path)?;
        let file_bytes = map.bytes().len() as u64;
        let ends = Self {
            map,
            file_bytes,
            tail_tokens: 0,
        };
        let fault = |offset, what, found: u64, expected: String| {
            Error::fault(Fault {
                path: path.into(),
                offset,
                what,
                found: found.to_string(),
                expected,
                remedy: "the index is damaged, write it again",
            })
        };
        if !file_bytes.is_multiple_of(END_BYTES) {
            let what = "the number of bytes";
            let expected = format!("a multiple of {END_BYTES}");
            return Err(fault(file_bytes, what, file_bytes, expected));
        }
        let mut least = 0;
        for i in 0..ends.num_documents() {
            let end = ends.start(i + 1);
            if end < least {
                let expected = format!("at least {least}, the end of the document before it");
                return Err(fault(i * END_BYTES, "the end of a document", end, expected));
            }
            least = end;
        }
        Ok(ends)
    }

    /// Keeps ends in a temporary file. `file_bytes` is the size of the file that records them, at
    /// `path`.
    pub(crate) fn keep(
        ends: impl Iterator<Item = Result<u64>>,
        path: &Path,
        file_bytes: u64,
    ) -> Result<Self> {
        let mut writer = EndsWriter::new(path)?;
        for end in ends {
            writer.push(end?)?;
        }
        writer.finish(file_bytes)
    }

    /// These ends, of which the last is no end of a document but that of the file.
    pub(crate) fn with_tail(self, tail_tokens: u64) -> Self {
        Self {
            tail_tokens,
            ..self
        }
    }

    /// Number of tokens of all documents.
    pub(crate) fn num_tokens(&self) -> u64 {
        self.start(self.num_documents())
    }
}

impl DocumentIndex for Ends {
    fn num_documents(&self) -> u64 {
        self.map.bytes().len() as u64 / END_BYTES
    }

    fn start(&self, i: u64) -> u64 {
        let Some(before) = i.checked_sub(1) else {
            return 0;
        };
        let start = (before * END_BYTES) as usize;
        let bytes = self.map.bytes().get(start..start + END_BYTES as usize);
        // Opening has checked the ends. If another program changes the file, reading tokens fails.
        bytes
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, u64::from_le_bytes)
    }

    fn crc32c(&self) -> u32 {
        crc32c::crc32c(self.map.bytes())
    }

    fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    fn tail_tokens(&self) -> u64 {
        self.tail_tokens
    }
}

/// Ends in a temporary file, one after the other.
pub(crate) struct EndsWriter {
    out: BufWriter<File>,
    /// The file that they belong to, for messages.
    path: PathBuf,
}

impl EndsWriter {
    pub(crate) fn new(path: &Path) -> Result<Self> {
        let file = tempfile::tempfile().map_err(|source| temporary_error(path, source))?;
        Ok(Self {
            out: BufWriter::new(file),
            path: path.into(),
        })
    }

    pub(crate) fn push(&mut self, end: u64) -> Result<()> {
        let written = self.out.write_all(&end.to_le_bytes());
        written.map_err(|source| temporary_error(&self.path, source))
    }

    /// The ends; `file_bytes` is the size of the file that records them.
    pub(crate) fn finish(self, file_bytes: u64) -> Result<Ends> {
        let path = self.path;
        let file = self.out.into_inner();
        let file = file.map_err(|error| temporary_error(&path, error.into_error()))?;
        Ok(Ends {
            map: MappedFile::of(&file).map_err(|source| temporary_error(&path, source))?,
            file_bytes,
            tail_tokens: 0,
        })
    }
}

fn temporary_error(path: &Path, source: io::Error) -> Error {
    Error::TemporaryIndex {
        path: path.into(),
        folder: std::env::temp_dir(),
        source,
    }
}

/// Writes the ends of documents with `lengths` tokens to `out`. `path` is for messages.
///
/// # Errors
/// A length is an error; `out` cannot be written.
pub fn write_ends(
    out: &mut impl Write,
    path: &Path,
    lengths: impl Iterator<Item = Result<u64>>,
) -> Result<()> {
    let mut end = 0u64;
    for length in lengths {
        end += length?;
        out.write_all(&end.to_le_bytes()).map_err(Error::io(path))?;
    }
    Ok(())
}
