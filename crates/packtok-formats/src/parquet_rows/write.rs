//! Writes a Parquet file of documents.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::Int32Type;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::IDS_COLUMN;
use crate::error::{Error, Result};

/// Ids of a row group. Readers hold a row group in memory.
const ROW_GROUP_IDS: usize = 1 << 22;
/// Rows of a row group.
const ROW_GROUP_ROWS: usize = 1 << 20;

/// Writes documents as rows.
pub struct RowsWriter<W: Write + Send> {
    path: PathBuf,
    writer: SerializedFileWriter<W>,
    ids: Vec<i32>,
    def_levels: Vec<i16>,
    rep_levels: Vec<i16>,
    rows: usize,
}

impl<W: Write + Send> RowsWriter<W> {
    /// Starts a file. `path` is for messages.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn new(out: W, path: &Path) -> Result<Self> {
        let error = |source| parquet_error(path, source);
        let message = format!(
            "message schema {{ required group {IDS_COLUMN} (LIST) {{ repeated group list {{ required int32 element; }} }} }}"
        );
        let schema = parse_message_type(&message).map_err(error)?;
        let level = ZstdLevel::try_new(1).map_err(error)?;
        let properties = WriterProperties::builder()
            .set_created_by("packtok".to_owned())
            .set_compression(Compression::ZSTD(level))
            .set_encoding(Encoding::PLAIN)
            .set_dictionary_enabled(false)
            .build();
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))
            .map_err(error)?;
        Ok(Self {
            path: path.into(),
            writer,
            ids: Vec::new(),
            def_levels: Vec::new(),
            rep_levels: Vec::new(),
            rows: 0,
        })
    }

    /// Appends a document.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn push(&mut self, ids: impl Iterator<Item = i32>) -> Result<()> {
        let before = self.ids.len();
        self.ids.extend(ids);
        let length = self.ids.len() - before;
        // A list without elements has an entry of level 0.
        self.rep_levels.push(0);
        self.rep_levels
            .extend(std::iter::repeat_n(1, length.saturating_sub(1)));
        let level = i16::from(length > 0);
        self.def_levels
            .extend(std::iter::repeat_n(level, length.max(1)));
        self.rows += 1;
        if self.ids.len() >= ROW_GROUP_IDS || self.rows >= ROW_GROUP_ROWS {
            self.write_row_group()?;
        }
        Ok(())
    }

    /// Completes the file and returns what it was written to.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<W> {
        if self.rows > 0 {
            self.write_row_group()?;
        }
        let path = self.path;
        self.writer
            .into_inner()
            .map_err(|source| parquet_error(&path, source))
    }

    fn write_row_group(&mut self) -> Result<()> {
        let mut write = || -> Result<(), ParquetError> {
            let mut row_group = self.writer.next_row_group()?;
            if let Some(mut column) = row_group.next_column()? {
                column.typed::<Int32Type>().write_batch(
                    &self.ids,
                    Some(&self.def_levels),
                    Some(&self.rep_levels),
                )?;
                column.close()?;
            }
            row_group.close()?;
            Ok(())
        };
        write().map_err(|source| parquet_error(&self.path, source))?;
        self.ids.clear();
        self.def_levels.clear();
        self.rep_levels.clear();
        self.rows = 0;
        Ok(())
    }
}

fn parquet_error(path: &Path, error: ParquetError) -> Error {
    let source = match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(cause) => *cause,
            Err(cause) => io::Error::other(cause),
        },
        other => io::Error::other(other),
    };
    Error::io(path)(source)
}
