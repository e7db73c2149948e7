//! Opens a Megatron dataset.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use packtok_jobs::with_suffix;
use packtok_pbin::{MappedFile, Reader};

use super::index::{Index, MAGIC};
use crate::error::{Error, Result};
use crate::first_bytes::first_bytes;
use crate::flat_file::{DocumentIndex, FlatFile, FlatParts, StoredType};
use crate::format::TokenFormat;

/// The two files of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MegatronPaths {
    /// The tokens.
    pub data: PathBuf,
    /// The index.
    pub index: PathBuf,
}

impl MegatronPaths {
    /// The files of a dataset whose prefix is `prefix`, as Megatron's tools take it.
    pub fn of_prefix(prefix: &Path) -> Self {
        Self {
            data: with_suffix(prefix, ".bin"),
            index: with_suffix(prefix, ".idx"),
        }
    }

    /// The dataset at `path`: its prefix, its `.bin` or its `.idx`. `None` if there is no index
    /// that starts as Megatron's do.
    pub fn find(path: &Path) -> Option<Self> {
        let is_part = matches!(
            path.extension().and_then(OsStr::to_str),
            Some("bin" | "idx")
        );
        let of_part = is_part.then(|| Self::of_prefix(&path.with_extension("")));
        let of_prefix = (!path.exists()).then(|| Self::of_prefix(path));
        let mut candidates = of_part.into_iter().chain(of_prefix);
        candidates.find(|paths| starts_with_magic(&paths.index))
    }
}

/// Opens the dataset with these files; `path` is what the caller gave.
///
/// # Errors
/// A file cannot be mapped; the index is damaged, or of a type that is not integer; its positions
/// do not match the size of `.bin`.
pub fn open(path: &Path, paths: MegatronPaths) -> Result<FlatFile> {
    let index = Index::open(&paths.index)?;
    let map = MappedFile::open(&paths.data)?;
    let end = index.first_byte() + index.num_tokens() * index.stored_type().bytes();
    let num_bytes = map.bytes().len() as u64;
    if num_bytes != end && !is_pbin_ending_at(&paths.data, &index, end) {
        return Err(Error::DataLength {
            path: paths.data,
            index: paths.index,
            found: num_bytes,
            expected: end,
        });
    }
    let extras = index.extras();
    let file = FlatFile::new(FlatParts {
        format: TokenFormat::Megatron,
        path: path.into(),
        data_path: paths.data,
        map,
        // The index has checked that it is this small.
        first_byte: index.first_byte() as u32,
        stored_type: index.stored_type(),
        num_tokens: index.num_tokens(),
        documents: Box::new(index),
    })?;
    Ok(file.with_extras(extras))
}

/// Whether the file of the tokens is a linked pbin, whose data are the tokens of the index.
fn is_pbin_ending_at(data: &Path, index: &Index, end: u64) -> bool {
    Reader::open(data).is_ok_and(|reader| {
        let first_byte = packtok_pbin::HEADER_BYTES;
        index.first_byte() == first_byte
            && index.num_documents() == reader.len()
            && StoredType::Token(reader.width()) == index.stored_type()
            && first_byte + reader.data_bytes() == end
    })
}

/// Whether the file at `index` starts as indices of Megatron do.
pub fn starts_with_magic(index: &Path) -> bool {
    first_bytes(index) == Some(MAGIC)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use packtok_pbin::TokenWidth;

    use super::*;
    use crate::TokenFile;
    use crate::megatron::write_index;
    use crate::test_support::{documents, golden, golden_documents};

    fn ids(file: &TokenFile, tokens: std::ops::Range<u64>) -> Vec<u32> {
        let bytes = file.tokens(tokens).unwrap();
        file.width().ids(bytes).collect()
    }

    #[test]
    fn every_type_and_every_name_of_a_dataset_is_read() {
        for (name, expected) in golden_documents("megatron") {
            let prefix = golden("megatron").join(name);
            let paths = MegatronPaths::of_prefix(&prefix);
            for path in [&prefix, &paths.data, &paths.index] {
                let file = TokenFile::open(path).unwrap();
                assert_eq!(file.path(), path);
                assert_eq!(documents(&file), expected, "{}", path.display());
                let num_tokens = expected.iter().map(Vec::len).sum::<usize>() as u64;
                assert_eq!(file.num_tokens(), num_tokens);
                assert_eq!(ids(&file, 0..num_tokens), expected.concat());
                for token in 0..num_tokens {
                    let (document, tokens) =
                        file.documents_from(token).unwrap().next().unwrap().unwrap();
                    assert!(tokens.contains(&token));
                    assert_eq!(file.document_tokens(document).unwrap(), tokens);
                }
                assert!(file.documents_from(num_tokens).is_err());
                assert!(file.document_tokens(expected.len() as u64).is_err());
            }
        }
    }

    /// A copy of a golden dataset whose files can be changed.
    fn copy(name: &str) -> (tempfile::TempDir, MegatronPaths) {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = [golden("megatron"), folder.path().into()]
            .map(|folder: PathBuf| MegatronPaths::of_prefix(&folder.join(name)));
        fs::copy(from.data, &to.data).unwrap();
        fs::copy(from.index, &to.index).unwrap();
        (folder, to)
    }

    fn message(paths: &MegatronPaths) -> String {
        TokenFile::open(&paths.index).unwrap_err().to_string()
    }

    #[test]
    fn faults_of_the_index_name_their_byte() {
        // Of the golden file: 8 sequences and 8 boundaries; lengths from byte 34, positions from
        // byte 66, boundaries from byte 130.
        let cases: [(usize, &[u8], &str); 13] = [
            (9, &[2], "the version is 2 (byte 9); expected 1;"),
            (
                17,
                &[7],
                "the code of the token type is 7 (float32) (byte 17); expected 1, 2, 3, 4, 5 or 8",
            ),
            (17, &[9], "the code of the token type is 9 (byte 17)"),
            (
                18,
                &[9],
                "the number of bytes after the header and its counts is 160 (byte 34); expected 172 for 9 sequences and 8 boundaries",
            ),
            (18, &[0xff; 8], "(byte 34); expected"),
            (26, &[0xff; 8], "(byte 34); expected"),
            (
                34,
                &[0xff; 4],
                "the number of tokens of a sequence is -1 (byte 34); expected at least 0;",
            ),
            (
                34,
                &[6],
                "the position of a sequence is 10 (byte 74); expected 12, the end of the sequence before it;",
            ),
            (
                66,
                &[0xff; 8],
                "the position of the first sequence is -1 (byte 66)",
            ),
            (
                82,
                &[9],
                "the position of a sequence is 9 (byte 82); expected 16,",
            ),
            (
                130,
                &[1],
                "the first sequence of a document is 1 (byte 130); expected a number in 0..=0;",
            ),
            (
                138,
                &[5],
                "the first sequence of a document is 1 (byte 146); expected a number in 5..=8;",
            ),
            (
                186,
                &[7],
                "the first sequence of a document is 7 (byte 186); expected 8, the number of sequences;",
            ),
        ];
        for (offset, bytes, expected) in cases {
            let (_folder, paths) = copy("uint16");
            let mut index = fs::read(&paths.index).unwrap();
            index[offset..offset + bytes.len()].copy_from_slice(bytes);
            fs::write(&paths.index, &index).unwrap();
            let message = message(&paths);
            assert!(message.contains(expected), "{message}");
            assert!(message.starts_with(&paths.index.display().to_string()));
        }
        let (_folder, paths) = copy("uint16");
        let index = fs::read(&paths.index).unwrap();
        for bytes in 9..index.len() {
            fs::write(&paths.index, &index[..bytes]).unwrap();
            let message = message(&paths);
            assert!(message.contains("the number of bytes"), "{message}");
        }
    }

    #[test]
    fn tokens_that_were_cut_or_grew_are_errors() {
        for (bytes, expected) in [
            (77, "has 77 bytes; expected 78,"),
            (79, "has 79 bytes; expected 78,"),
            (0, "has 0 bytes; expected 78,"),
        ] {
            let (_folder, paths) = copy("uint16");
            let file = fs::File::options().write(true).open(&paths.data).unwrap();
            file.set_len(bytes).unwrap();
            let message = message(&paths);
            assert!(message.contains(expected), "{message}");
        }
        let (_folder, paths) = copy("uint16");
        fs::remove_file(&paths.data).unwrap();
        assert!(message(&paths).contains("uint16.bin"));
    }

    #[test]
    fn a_wide_id_beyond_32_bits_names_its_byte() {
        let (_folder, paths) = copy("int64");
        let mut data = fs::read(&paths.data).unwrap();
        data[16..24].copy_from_slice(&(-5i64).to_le_bytes());
        fs::write(&paths.data, data).unwrap();
        let file = TokenFile::open(&paths.data).unwrap();
        let message = file.tokens(0..1).unwrap_err().to_string();
        assert!(
            message.contains("an id is -5 (byte 16); expected a number in 0..=4294967295"),
            "{message}"
        );
    }

    #[test]
    fn an_index_over_a_linked_pbin_is_read_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let pbin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/example.pbin");
        let paths = MegatronPaths::of_prefix(&folder.path().join("a"));
        fs::copy(&pbin, &paths.data).unwrap();
        let reader = Reader::open(&pbin).unwrap();
        let lengths = || {
            (0..reader.len()).map(|i| {
                let tokens = reader.document_tokens(i).unwrap();
                Ok(tokens.end - tokens.start)
            })
        };
        let mut index = Vec::new();
        write_index(
            &mut index,
            &paths.index,
            reader.width(),
            packtok_pbin::HEADER_BYTES,
            lengths,
        )
        .unwrap();
        fs::write(&paths.index, &index).unwrap();
        let linked = TokenFile::open(&paths.index).unwrap();
        assert_eq!(
            documents(&linked),
            documents(&TokenFile::open(&pbin).unwrap())
        );
        // Another index over the same bytes does not fit.
        index.truncate(index.len() - 8);
        index[26] -= 1;
        fs::write(&paths.index, &index).unwrap();
        assert!(TokenFile::open(&paths.index).is_err());
    }

    #[test]
    fn what_is_written_is_what_megatron_writes() {
        for (name, expected) in golden_documents("megatron") {
            let width = match name.as_str() {
                "uint8" => TokenWidth::U8,
                "uint16" => TokenWidth::U16,
                "int32" => TokenWidth::U32,
                _ => continue,
            };
            let lengths = || expected.iter().map(|document| Ok(document.len() as u64));
            let mut written = Vec::new();
            write_index(&mut written, Path::new("a.idx"), width, 0, lengths).unwrap();
            // The golden documents have several sequences. Megatron's tool writes one for each.
            let file = Path::new("a");
            let folder = tempfile::tempdir().unwrap();
            let paths = MegatronPaths::of_prefix(&folder.path().join(file));
            fs::write(&paths.index, &written).unwrap();
            fs::copy(
                golden("megatron").join(name).with_extension("bin"),
                &paths.data,
            )
            .unwrap();
            assert_eq!(documents(&TokenFile::open(&paths.index).unwrap()), expected);
        }
        let too_long = || [Ok(1), Ok(1 << 31)].into_iter();
        let error = write_index(
            &mut Vec::new(),
            Path::new("a.idx"),
            TokenWidth::U16,
            0,
            too_long,
        );
        let message = error.unwrap_err().to_string();
        assert!(
            message.contains("a.idx: document 1 has 2147483648 tokens"),
            "{message}"
        );
    }
}
