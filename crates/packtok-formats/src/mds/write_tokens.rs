//! Writes documents as the samples of a shard file.

use std::path::{Path, PathBuf};

use packtok_pbin::{TempFile, TokenWidth};

use crate::error::Result;
use crate::mds::columns::Columns;
use crate::mds::encoding::{Dtype, Value, shape_bytes};
use crate::mds::entry::{FileEntry, ShardEntry, shard_name};
use crate::mds::options::Options;
use crate::mds::sized::SizedWriter;
use crate::npy::Element;
use crate::token_write::{OutputPaths, TokenWrite};

/// The column of ids, as LLM Foundry's scripts name it.
const IDS_COLUMN: &str = "tokens";

/// The path of shard file `number` of a folder.
pub fn shard_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(shard_name(number, None))
}

/// How LLM Foundry writes shard files of tokens.
pub(crate) struct Mds;

impl TokenWrite for Mds {
    fn paths(output: &Path) -> OutputPaths {
        OutputPaths::of_data(output.to_owned(), Vec::new())
    }

    fn element(width: TokenWidth) -> Element {
        Element::signed_if_four_bytes(width)
    }
}

/// Writes the documents of one shard file. Each is an array in the column `tokens`, of uint16 or, as LLM
/// Foundry writes it, of int32.
pub struct TokensWriter {
    writer: SizedWriter,
    dtype: Dtype,
}

impl TokensWriter {
    /// Starts shard file `number` of `folder` with documents of these lengths, of which none is 0: MDS has no
    /// empty arrays.
    ///
    /// # Errors
    /// A length is an error; as [`SizedWriter::create`].
    pub fn create(
        folder: &Path,
        number: u64,
        width: TokenWidth,
        lengths: impl Iterator<Item = Result<u64>>,
    ) -> Result<Self> {
        let dtype = dtype_of(width);
        let columns = columns(dtype)?;
        let mut sizes = Vec::new();
        for length in lengths {
            // The size of the value, and the value: its shape, and the ids.
            let length = length?;
            sizes.push(4 + shape_bytes(length) + length.saturating_mul(dtype.bytes()));
        }
        let writer = SizedWriter::create(folder, columns, options(number), sizes)?;
        Ok(Self { writer, dtype })
    }

    /// Writes the next document, whose ids are little-endian and of the width of the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn push(&mut self, ids: &[u8]) -> Result<()> {
        self.writer.write(&[Value::row(self.dtype, ids)])
    }

    /// The complete file under a temporary name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<TempFile> {
        let (file, _) = self.writer.into_file()?;
        Ok(file)
    }
}

/// The entry of the index for a shard file that [`TokensWriter`] has written.
///
/// # Errors
/// None, because the columns are valid.
pub fn tokens_entry(
    number: u64,
    width: TokenWidth,
    num_documents: u64,
    file_bytes: u64,
) -> Result<ShardEntry> {
    let file = FileEntry {
        basename: shard_name(number, None),
        bytes: file_bytes,
        hashes: Default::default(),
    };
    Ok(columns(dtype_of(width))?.entry(file, num_documents))
}

fn columns(dtype: Dtype) -> Result<Columns> {
    Columns::new([(IDS_COLUMN, format!("ndarray:{}", dtype.name()).as_str())])
}

fn options(number: u64) -> Options {
    Options {
        size_limit: None,
        // The index of hashed files could be written only after reading files that exist.
        hashes: Vec::new(),
        compression: None,
        first_shard: number,
    }
}

fn dtype_of(width: TokenWidth) -> Dtype {
    match width {
        TokenWidth::U8 => Dtype::U8,
        TokenWidth::U16 => Dtype::U16,
        TokenWidth::U32 => Dtype::I32,
    }
}
