//! Opens a file of datatrove.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use packtok_jobs::with_suffix;
use packtok_pbin::{MappedFile, TokenWidth};

use super::metadata::DatatroveMetadata;
use crate::ends::Ends;
use crate::error::{Error, Fault, Result};
use crate::flat_file::{FlatFile, FlatParts, StoredType};
use crate::format::TokenFormat;
use crate::loss_mask::MaskBytes;

/// The longest metadata that is read. The name of a tokenizer may be a path.
const MAX_METADATA_BYTES: u64 = 1 << 16;

/// The files of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatatrovePaths {
    /// The tokens.
    pub data: PathBuf,
    /// The ends of documents.
    pub index: PathBuf,
    /// Tokenizer and width.
    pub metadata: PathBuf,
    /// The loss mask, a byte for each token, if there is one.
    pub loss: PathBuf,
}

impl DatatrovePaths {
    /// The files beside `data`, whose name ends with `.ds`.
    pub fn of_data(data: &Path) -> Self {
        Self {
            data: data.into(),
            index: with_suffix(data, ".index"),
            metadata: with_suffix(data, ".metadata"),
            loss: with_suffix(data, ".loss"),
        }
    }

    /// The files at `path`, the name of the tokens, with or without `.ds`. `None` if there is no
    /// index beside them.
    pub fn find(path: &Path) -> Option<Self> {
        let is_data = path.extension().is_some_and(|extension| extension == "ds");
        let candidates = [
            is_data.then(|| path.to_owned()),
            Some(with_suffix(path, ".ds")),
        ];
        let mut paths = candidates
            .into_iter()
            .flatten()
            .map(|data| Self::of_data(&data));
        paths.find(|paths| paths.data.is_file() && paths.index.is_file())
    }
}

/// Opens these files; `path` is what the caller gave.
///
/// The width of a token follows from the bytes of the tokens and their number; metadata, if they
/// exist, must agree.
///
/// # Errors
/// A file cannot be mapped; the index is damaged, or does not match the size of the tokens; the
/// metadata are damaged or differ.
pub fn open(path: &Path, paths: &DatatrovePaths) -> Result<FlatFile> {
    let index = Ends::open(&paths.index)?;
    let map = MappedFile::open(&paths.data)?;
    let (num_bytes, num_tokens) = (map.bytes().len() as u64, index.num_tokens());
    let metadata = metadata(&paths.metadata)?;
    if let Some(metadata) = &metadata
        && metadata.num_tokens != num_tokens
    {
        return Err(Error::fault(Fault {
            path: paths.metadata.clone(),
            offset: 0,
            what: "the number of tokens in the metadata",
            found: metadata.num_tokens.to_string(),
            expected: format!("{num_tokens}, the last end in the index"),
            remedy: "the files do not belong together, write them again",
        }));
    }
    let recorded = metadata.map(|metadata| metadata.width);
    let width = recorded.unwrap_or_else(|| {
        let is_u16 = num_tokens.checked_mul(2) == Some(num_bytes);
        if is_u16 {
            TokenWidth::U16
        } else {
            TokenWidth::U32
        }
    });
    let expected = num_tokens.saturating_mul(width.bytes());
    if num_bytes != expected {
        return Err(Error::DataLength {
            path: paths.data.clone(),
            index: paths.index.clone(),
            found: num_bytes,
            expected,
        });
    }
    let loss_mask = MaskBytes::find(&paths.loss, num_tokens, &paths.data)?;
    let file = FlatFile::new(FlatParts {
        format: TokenFormat::Datatrove,
        path: path.into(),
        data_path: paths.data.clone(),
        map,
        first_byte: 0,
        stored_type: StoredType::Token(width),
        num_tokens,
        documents: Box::new(index),
    })?;
    Ok(file.with_loss_mask(loss_mask))
}

/// The metadata at `path`; `None` if the file does not exist.
fn metadata(path: &Path) -> Result<Option<DatatroveMetadata>> {
    let io = |source| Error::Io {
        path: path.into(),
        source,
    };
    let num_bytes = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        metadata => metadata.map_err(io)?.len(),
    };
    let content = if num_bytes <= MAX_METADATA_BYTES {
        fs::read(path).map_err(io)?
    } else {
        Vec::new()
    };
    let parsed = str::from_utf8(&content)
        .ok()
        .and_then(DatatroveMetadata::parse);
    parsed.map(Some).ok_or_else(|| {
        Error::fault(Fault {
            path: path.into(),
            offset: 0,
            what: "the content of the metadata",
            found: format!(
                "{:?}",
                String::from_utf8_lossy(&content[..content.len().min(80)])
            ),
            expected: "a line TOKENIZER|2 or TOKENIZER|4, and a line with the number of tokens"
                .to_owned(),
            remedy: "write the file again, or delete it if the index fits",
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokenFile;
    use crate::test_support::{documents, golden, golden_documents};
    use crate::write_ends;

    #[test]
    fn files_are_read_with_and_without_metadata() {
        for (name, expected) in golden_documents("datatrove") {
            let paths = DatatrovePaths::of_data(&golden("datatrove").join(format!("{name}.ds")));
            for path in [golden("datatrove").join(&name), paths.data.clone()] {
                assert_eq!(documents(&TokenFile::open(&path).unwrap()), expected);
            }
            let folder = tempfile::tempdir().unwrap();
            let copy = DatatrovePaths::of_data(&folder.path().join("a.ds"));
            fs::copy(&paths.data, &copy.data).unwrap();
            fs::copy(&paths.index, &copy.index).unwrap();
            assert_eq!(documents(&TokenFile::open(&copy.data).unwrap()), expected);
            let lengths = expected.iter().map(|document| Ok(document.len() as u64));
            let mut written = Vec::new();
            write_ends(&mut written, &copy.index, lengths).unwrap();
            assert_eq!(written, fs::read(&paths.index).unwrap());
        }
    }

    #[test]
    fn faults_name_file_and_byte() {
        let cases: [(&str, &[u8], &str); 6] = [
            (
                ".index",
                &[0; 9],
                "the number of bytes is 9 (byte 9); expected a multiple of 8;",
            ),
            (
                ".index",
                &[5, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0],
                "the end of a document is 4 (byte 8); expected at least 5,",
            ),
            (
                ".index",
                &[0xff; 8],
                "the number of tokens in the metadata is 39",
            ),
            ("", &[0; 77], "has 77 bytes; expected 78,"),
            (
                ".metadata",
                b"gpt2|3\n39\n",
                "the content of the metadata is \"gpt2|3\\n39\\n\" (byte 0)",
            ),
            (
                ".metadata",
                b"gpt2|4\n39\n39.0 T",
                "has 78 bytes; expected 156,",
            ),
        ];
        for (ending, bytes, expected) in cases {
            let folder = tempfile::tempdir().unwrap();
            for file in ["", ".index", ".metadata"] {
                let name = format!("two.ds{file}");
                fs::copy(golden("datatrove").join(&name), folder.path().join(&name)).unwrap();
            }
            let damaged = folder.path().join(format!("two.ds{ending}"));
            fs::write(&damaged, bytes).unwrap();
            let opened = TokenFile::open(&folder.path().join("two.ds"));
            let message = opened.unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
