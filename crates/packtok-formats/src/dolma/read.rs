//! Opens a file of OLMo or dolma.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use packtok_jobs::with_suffix;
use packtok_pbin::MappedFile;

use super::index;
use crate::error::{Error, Result};
use crate::flat_file::{FlatFile, FlatParts, StoredType};
use crate::format::TokenFormat;
use crate::loss_mask::MaskBytes;
use crate::npy::Element;
use crate::open_options::OpenOptions;

/// The two files of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DolmaPaths {
    /// The tokens.
    pub data: PathBuf,
    /// The documents.
    pub index: PathBuf,
    /// The loss mask, a byte for each token, if there is one.
    pub loss_mask: PathBuf,
}

impl DolmaPaths {
    /// The files whose name without endings is `prefix`.
    pub fn of_prefix(prefix: &Path) -> Self {
        Self {
            data: with_suffix(prefix, ".npy"),
            index: with_suffix(prefix, ".csv.gz"),
            loss_mask: loss_mask_path(prefix),
        }
    }

    /// The files at `path`, the name of the tokens, with or without `.npy`. `None` if one of them
    /// does not exist.
    pub fn find(path: &Path) -> Option<Self> {
        let is_data = path.extension().is_some_and(|extension| extension == "npy");
        let of_data = is_data.then(|| Self::of_prefix(&path.with_extension("")));
        let mut candidates = of_data.into_iter().chain([Self::of_prefix(path)]);
        candidates.find(|paths| paths.data.is_file() && paths.index.is_file())
    }
}

/// Opens these files; `path` is what the caller gave.
///
/// The type of the ids follows from the bytes of the tokens and their number.
///
/// # Errors
/// A file cannot be mapped; the index is damaged, or does not match the size of the tokens.
pub fn open(path: &Path, paths: &DolmaPaths, options: &OpenOptions) -> Result<FlatFile> {
    let documents = index::read(&paths.index)?;
    let map = MappedFile::open(&paths.data)?;
    let (num_bytes, num_tokens) = (map.bytes().len() as u64, documents.num_tokens());
    let has_width = |element: &Element| num_tokens.checked_mul(element.bytes()) == Some(num_bytes);
    let elements = [Element::U16, Element::U32, Element::U8, Element::U64];
    let element = elements.into_iter().find(has_width);
    let expected = options.dtype.unwrap_or(Element::U16);
    let element = element.ok_or_else(|| Error::DataLength {
        path: paths.data.clone(),
        index: paths.index.clone(),
        found: num_bytes,
        expected: num_tokens.saturating_mul(expected.bytes()),
    })?;
    let stored_type = StoredType::of(element).ok_or_else(|| Error::DtypeOfNoIds {
        path: paths.data.clone(),
        dtype: element.name(),
    })?;
    let loss_mask = MaskBytes::find(&paths.loss_mask, num_tokens, &paths.data)?;
    let file = FlatFile::new(FlatParts {
        format: TokenFormat::Dolma,
        path: path.into(),
        data_path: paths.data.clone(),
        map,
        first_byte: 0,
        stored_type,
        num_tokens,
        documents: Box::new(documents),
    })?;
    Ok(file.with_loss_mask(loss_mask))
}

/// The path of the loss mask of the tokens whose name without endings is `prefix`.
///
/// Where the tokens have a name of open-instruct or OLMo, the mask has theirs. Otherwise it is in a folder of
/// its own, so that a pattern that matches all tokens does not match it.
pub fn loss_mask_path(prefix: &Path) -> PathBuf {
    let name = prefix.file_name().unwrap_or_default().as_bytes();
    let renamed = [("token_ids", "labels_mask"), ("input_ids", "label_mask")]
        .into_iter()
        .find_map(|(tokens, mask)| {
            let rest = name.strip_prefix(tokens.as_bytes())?;
            Some([mask.as_bytes(), rest].concat())
        });
    let place = match renamed {
        Some(renamed) => prefix.with_file_name(OsStr::from_bytes(&renamed)),
        None => prefix
            .with_file_name("label_masks")
            .join(OsStr::from_bytes(name)),
    };
    with_suffix(&place, ".npy")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::TokenFile;
    use crate::dolma::{DolmaRow, write_index};
    use crate::test_support::{documents, golden, golden_documents};

    #[test]
    fn files_of_dolma_are_read() {
        for (name, expected) in golden_documents("dolma") {
            let prefix = golden("dolma").join(&name);
            for path in [prefix.clone(), prefix.with_extension("npy")] {
                let file = TokenFile::open(&path).unwrap();
                assert_eq!(file.format(), TokenFormat::Dolma);
                assert_eq!(documents(&file), expected, "{name}");
            }
        }
    }

    #[test]
    fn what_is_written_is_read_and_does_not_depend_on_the_day() {
        let folder = tempfile::tempdir().unwrap();
        let paths = DolmaPaths::of_prefix(&folder.path().join("a"));
        let lengths = [3, 0, 2];
        let rows = || {
            lengths.iter().zip(0..).map(|(&length, id)| {
                Ok(DolmaRow {
                    length,
                    id,
                    source: "a \"b\", c".to_owned(),
                    line: id + 1,
                })
            })
        };
        let index = write_index(Vec::new(), &paths.index, rows()).unwrap();
        assert_eq!(
            index,
            write_index(Vec::new(), &paths.index, rows()).unwrap()
        );
        // The time in the header of gzip.
        assert_eq!(index[4..8], [0; 4]);
        fs::write(&paths.index, index).unwrap();
        fs::write(&paths.data, [1, 0, 2, 0, 3, 0, 4, 0, 5, 0]).unwrap();
        let file = TokenFile::open(&paths.data).unwrap();
        assert_eq!(documents(&file), [vec![1, 2, 3], vec![], vec![4, 5]]);
    }

    #[test]
    fn faults_of_the_index_are_named() {
        let long = format!("0,5,{},a,1\n", "x".repeat(1 << 16));
        for (rows, expected) in [
            (
                "5\n",
                "the number of columns of a row is 1 (byte 0); expected 2 to 5;",
            ),
            (
                "0,5,a,b,1,2\n",
                "the number of columns of a row is 6 (byte 0); expected 2 to 5;",
            ),
            (
                "0,3,a,b,1\n4,5,a,b,2\n",
                "the start of a document is 4 (byte 10); expected 3,",
            ),
            (
                "0,3,a,b,1\n3,2,a,b,2\n",
                "the end of a document is 2 (byte 10); expected at least 3,",
            ),
            ("0,-1,a,b,1\n", "the end of a document is \"-1\" (byte 0)"),
            (
                "start,end,id,src,loc\n",
                "the start of a document is \"start\" (byte 0)",
            ),
            (&long, "the number of bytes of a row is more than 65536"),
            (
                "0,4,a,b,1\n",
                "has 10 bytes; expected 8, the end of the last document in",
            ),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let paths = DolmaPaths::of_prefix(&folder.path().join("a"));
            let mut index = GzEncoder::new(Vec::new(), Compression::fast());
            index.write_all(rows.as_bytes()).unwrap();
            fs::write(&paths.index, index.finish().unwrap()).unwrap();
            fs::write(&paths.data, [0; 10]).unwrap();
            let message = TokenFile::open(&paths.data).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        let folder = tempfile::tempdir().unwrap();
        let paths = DolmaPaths::of_prefix(&folder.path().join("a"));
        fs::write(&paths.index, b"no gzip").unwrap();
        fs::write(&paths.data, [0; 10]).unwrap();
        assert!(TokenFile::open(&paths.data).is_err());
    }
}
