//! The index of a file of datatrove.

use std::path::Path;

use packtok_pbin::MappedFile;

use crate::error::{Error, Fault, Result};
use crate::flat_file::DocumentIndex;

/// Bytes of the end of a document.
const END_BYTES: u64 = 8;

/// A checked index: the ends of documents do not decrease.
#[derive(Debug)]
pub(super) struct Index {
    map: MappedFile,
}

impl Index {
    /// Opens and checks the index at `path`, in time that grows with the number of documents.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let index = Self {
            map: MappedFile::open(path)?,
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
        let num_bytes = index.file_bytes();
        if !num_bytes.is_multiple_of(END_BYTES) {
            let what = "the number of bytes";
            let expected = format!("a multiple of {END_BYTES}");
            return Err(fault(num_bytes, what, num_bytes, expected));
        }
        let mut least = 0;
        for i in 0..index.num_documents() {
            let end = index.start(i + 1);
            if end < least {
                let expected = format!("at least {least}, the end of the document before it");
                return Err(fault(i * END_BYTES, "the end of a document", end, expected));
            }
            least = end;
        }
        Ok(index)
    }

    /// Number of tokens of all documents.
    pub(super) fn num_tokens(&self) -> u64 {
        self.start(self.num_documents())
    }
}

impl DocumentIndex for Index {
    fn num_documents(&self) -> u64 {
        self.file_bytes() / END_BYTES
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

    fn extras(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn crc32c(&self) -> u32 {
        crc32c::crc32c(self.map.bytes())
    }

    fn file_bytes(&self) -> u64 {
        self.map.bytes().len() as u64
    }
}
