//! Opens a `.bin` file with a header.

use std::path::{Path, PathBuf};

use packtok_pbin::MappedFile;

use super::bos_index;
use super::header::{HEADER_BYTES, Header, version_of};
use crate::boundaries::{Tokens, documents_of};
use crate::error::Result;
use crate::first_bytes::first_bytes;
use crate::flat_file::{DocumentIndex, FlatFile, FlatParts, StoredType};
use crate::format::TokenFormat;
use crate::open_options::OpenOptions;

/// The path of the positions of BOS in the tokens at `data`.
pub fn bos_index_path(data: &Path) -> PathBuf {
    data.with_extension("bos.idx")
}

/// Opens the file at `path`, which starts with a known magic.
///
/// # Errors
/// The file cannot be mapped; its header, the positions of BOS beside it or the ends that `options`
/// names are damaged or belong to another file.
pub fn open(path: &Path, options: &OpenOptions) -> Result<FlatFile> {
    let map = MappedFile::open(path)?;
    let Header { width, num_tokens } = Header::parse(map.bytes(), path)?;
    let stored_type = StoredType::Token(width);
    let tokens = Tokens {
        path,
        map: &map,
        first_byte: HEADER_BYTES,
        stored_type,
        num_tokens,
    };
    let index = bos_index_path(path);
    let documents: Box<dyn DocumentIndex> = if options.boundaries.is_none() && index.is_file() {
        Box::new(bos_index::documents_of(tokens, &index)?)
    } else {
        documents_of(tokens, options)?
    };
    FlatFile::new(FlatParts {
        format: TokenFormat::LlmC,
        path: path.into(),
        data_path: path.into(),
        map,
        first_byte: HEADER_BYTES as u32,
        stored_type,
        num_tokens,
        documents,
    })
}

/// Whether the file at `path` starts as these files do.
pub fn starts_with_magic(path: &Path) -> bool {
    let Some(start) = first_bytes::<8>(path) else {
        return false;
    };
    let [magic, version] = [0, 4].map(|at| {
        let bytes = start[at..at + 4].try_into();
        bytes.map_or(0, i32::from_le_bytes)
    });
    // Of a version that is damaged, too: the magic alone may be a number in any file, so both must
    // be plausible.
    version_of(magic).is_some() && (0..=16).contains(&version)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use packtok_pbin::TokenWidth;

    use super::*;
    use crate::TokenFile;
    use crate::llm_c::bos_index::write_bos_index;
    use crate::llm_c::header::encode_header;
    use crate::open_options::Boundaries;
    use crate::test_support::{documents, golden, golden_documents};

    /// The BOS of the golden files.
    const BOS: u32 = 3;

    #[test]
    fn files_of_all_writers_are_read() {
        for (name, expected) in golden_documents("llm_c") {
            let path = golden("llm_c").join(format!("{name}.bin"));
            let file = TokenFile::open(&path).unwrap();
            assert_eq!(file.format(), TokenFormat::LlmC);
            if bos_index_path(&path).exists() {
                // NeMo's writer counts bytes.
                assert_eq!(documents(&file), expected, "{name}");
                continue;
            }
            assert_eq!(documents(&file), [expected.concat()], "{name}");
            let options = OpenOptions {
                boundaries: Some(Boundaries::Bos(BOS)),
                ..OpenOptions::default()
            };
            let file = TokenFile::open_with(&path, &options).unwrap();
            assert_eq!(documents(&file), expected, "{name}");
        }
    }

    /// A file of three documents, with positions in tokens.
    fn written(width: TokenWidth) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("a.bin");
        let ids: [u32; 6] = [BOS, 7, 8, BOS, BOS, 9];
        let mut bytes = encode_header(width, 6, &data).unwrap();
        for id in ids {
            bytes.extend(&id.to_le_bytes()[..width.bytes() as usize]);
        }
        fs::write(&data, bytes).unwrap();
        let mut index = Vec::new();
        let lengths = [3, 1, 2].into_iter().map(Ok);
        write_bos_index(&mut index, &data, lengths).unwrap();
        fs::write(bos_index_path(&data), index).unwrap();
        (folder, data)
    }

    #[test]
    fn what_is_written_is_read() {
        for width in [TokenWidth::U16, TokenWidth::U32] {
            let (_folder, data) = written(width);
            let file = TokenFile::open(&data).unwrap();
            assert_eq!(file.width(), width);
            assert_eq!(documents(&file), [vec![BOS, 7, 8], vec![BOS], vec![BOS, 9]]);
        }
        let long = encode_header(TokenWidth::U16, 1 << 31, Path::new("a.bin")).unwrap_err();
        assert!(
            long.to_string()
                .contains("2147483648 tokens; expected at most 2147483647")
        );
    }

    #[test]
    fn one_position_in_bytes_is_told_from_one_in_tokens() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("a.bin");
        let num_tokens = 2000;
        let mut bytes = encode_header(TokenWidth::U16, num_tokens, &data).unwrap();
        bytes.resize((HEADER_BYTES + 2 * num_tokens) as usize, 7);
        fs::write(&data, bytes).unwrap();
        for (position, expected) in [
            (1024u32, vec![2000]),
            (1025, vec![1025, 975]),
            (0, vec![2000]),
        ] {
            fs::write(bos_index_path(&data), position.to_le_bytes()).unwrap();
            let file = TokenFile::open(&data).unwrap();
            let lengths = documents(&file).into_iter().map(|ids| ids.len());
            assert_eq!(lengths.collect::<Vec<_>>(), expected, "{position}");
        }
    }

    #[test]
    fn faults_name_file_and_byte() {
        let cases: [(&str, usize, &[u8], &str); 7] = [
            (".bin", 4, &[2], "the version is 2 (byte 4); expected 1;"),
            (
                ".bin",
                8,
                &[7],
                "the number of tokens is 7 (byte 8); expected 6, for the 12 bytes",
            ),
            (
                ".bin",
                8,
                &[0xff; 4],
                "the number of tokens is -1 (byte 8); expected 6",
            ),
            (
                ".bos.idx",
                4,
                &[1],
                "the position of a document is 1 (byte 4); expected that of a token",
            ),
            (
                ".bos.idx",
                4,
                &[0],
                "the position of a document is 0 (byte 4); expected one in 1..6",
            ),
            (
                ".bos.idx",
                4,
                &[6],
                "the position of a document is 6 (byte 4); expected one in 1..6",
            ),
            (
                ".bos.idx",
                12,
                &[1],
                "the number of bytes is 13 (byte 13); expected a multiple of 4;",
            ),
        ];
        for (ending, at, changed, expected) in cases {
            let (folder, data) = written(TokenWidth::U16);
            let path = folder.path().join(format!("a{ending}"));
            let mut bytes = fs::read(&path).unwrap();
            bytes.resize(bytes.len().max(at + changed.len()), 0);
            bytes[at..at + changed.len()].copy_from_slice(changed);
            fs::write(&path, bytes).unwrap();
            let message = TokenFile::open(&data).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        let (_folder, data) = written(TokenWidth::U16);
        let bytes = fs::read(&data).unwrap();
        fs::write(&data, &bytes[..1000]).unwrap();
        let message = TokenFile::open(&data).unwrap_err().to_string();
        assert!(
            message.contains("the number of bytes is 1000 (byte 1000); expected at least 1024"),
            "{message}"
        );
        // The magic that any width has.
        let mut other = 278_895_051i32.to_le_bytes().to_vec();
        other.extend([1i32, 6, 3].map(i32::to_le_bytes).concat());
        other.extend(&bytes[16..]);
        fs::write(&data, other).unwrap();
        let message = TokenFile::open(&data).unwrap_err().to_string();
        assert!(
            message.contains("the number of bytes of a token is 3 (byte 12); expected 2 or 4"),
            "{message}"
        );
    }
}
