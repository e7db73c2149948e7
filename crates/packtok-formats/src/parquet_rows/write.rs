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
/// The same of packed rows: Megatron-Bridge reads a row group for each row, in a random order.
const PACKED_GROUP_ROWS: usize = 64;

/// Writes documents as rows.
pub struct RowsWriter<W: Write + Send> {
    path: PathBuf,
    writer: SerializedFileWriter<W>,
    ids: ListColumn,
    /// The columns after the ids.
    others: Option<(OtherColumns, [ListColumn; 2])>,
    rows: usize,
}

/// The columns after the ids.
#[derive(Debug, Clone, Copy)]
enum OtherColumns {
    /// Those of a document with a loss mask: `attention_mask` and `labels`.
    Labels,
    /// Those of packed rows: `loss_mask` and `seq_start_id`.
    Packed,
}

/// The label of a token that does not count in the loss.
const IGNORED: i32 = -100;

/// The lists of a row group, as Parquet stores them.
#[derive(Default)]
struct ListColumn {
    values: Vec<i32>,
    def_levels: Vec<i16>,
    rep_levels: Vec<i16>,
}

impl<W: Write + Send> RowsWriter<W> {
    /// Starts a file. `path` is for messages.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn new(out: W, path: &Path) -> Result<Self> {
        Self::with_columns(out, path, None)
    }

    /// Starts a file of documents with a loss mask, in the columns `attention_mask`, of ones, and `labels`,
    /// where -100 does not count. Transformers, TRL and axolotl read them.
    ///
    /// # Errors
    /// As [`RowsWriter::new`].
    pub fn masked(out: W, path: &Path) -> Result<Self> {
        Self::with_columns(out, path, Some(OtherColumns::Labels))
    }

    /// Starts a file of rows of several documents, with the columns `loss_mask` and `seq_start_id`, as
    /// Megatron-Bridge reads them.
    ///
    /// # Errors
    /// As [`RowsWriter::new`].
    pub fn packed(out: W, path: &Path) -> Result<Self> {
        Self::with_columns(out, path, Some(OtherColumns::Packed))
    }

    fn with_columns(out: W, path: &Path, others: Option<OtherColumns>) -> Result<Self> {
        let error = |source| parquet_error(path, source);
        let list = |name: &str, kind: &str| {
            format!(
                "required group {name} (LIST) {{ repeated group list {{ required int32 element{kind}; }} }} "
            )
        };
        let mut columns = list(IDS_COLUMN, "");
        let int8 = " (INTEGER(8,true))";
        match others {
            None => {}
            Some(OtherColumns::Labels) => {
                columns += &list("attention_mask", int8);
                columns += &list("labels", "");
            }
            Some(OtherColumns::Packed) => {
                columns += &list("loss_mask", int8);
                columns += &list("seq_start_id", "");
            }
        }
        let message = format!("message schema {{ {columns}}}");
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
            ids: ListColumn::default(),
            others: others.map(|others| (others, Default::default())),
            rows: 0,
        })
    }

    /// Appends a document.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn push(&mut self, ids: impl Iterator<Item = i32>) -> Result<()> {
        self.ids.push(ids);
        self.end_row()
    }

    /// Appends a document to a file that was started as [`masked`](RowsWriter::masked): its ids, and whether
    /// each of them counts in the loss where it is a label.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn push_masked(
        &mut self,
        ids: impl Iterator<Item = i32>,
        loss_mask: &[bool],
    ) -> Result<()> {
        self.ids.push(ids);
        if let Some((_, [attention, labels])) = &mut self.others {
            attention.push(loss_mask.iter().map(|_| 1));
            let ids = &self.ids.values[self.ids.values.len() - loss_mask.len()..];
            let counted = ids.iter().zip(loss_mask);
            labels.push(counted.map(|(&id, &is_counted)| if is_counted { id } else { IGNORED }));
        }
        self.end_row()
    }

    /// Appends a row of several documents to a file that was started as [`packed`](RowsWriter::packed):
    /// whether the label of each id counts in the loss, and where each document starts.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn push_packed(
        &mut self,
        ids: impl Iterator<Item = i32>,
        loss_mask: &[bool],
        starts: &[u32],
    ) -> Result<()> {
        self.ids.push(ids);
        if let Some((_, [masks, all_starts])) = &mut self.others {
            masks.push(loss_mask.iter().map(|&counts| counts.into()));
            all_starts.push(starts.iter().map(|&start| start as i32));
        }
        self.end_row()
    }

    fn end_row(&mut self) -> Result<()> {
        self.rows += 1;
        let max_rows = match self.others {
            Some((OtherColumns::Packed, _)) => PACKED_GROUP_ROWS,
            Some((OtherColumns::Labels, _)) | None => ROW_GROUP_ROWS,
        };
        if self.ids.values.len() >= ROW_GROUP_IDS || self.rows >= max_rows {
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
            let others = self.others.iter_mut().flat_map(|(_, others)| others);
            for lists in [&mut self.ids].into_iter().chain(others) {
                if let Some(mut column) = row_group.next_column()? {
                    column.typed::<Int32Type>().write_batch(
                        &lists.values,
                        Some(&lists.def_levels),
                        Some(&lists.rep_levels),
                    )?;
                    column.close()?;
                }
                lists.clear();
            }
            row_group.close()?;
            Ok(())
        };
        write().map_err(|source| parquet_error(&self.path, source))?;
        self.rows = 0;
        Ok(())
    }
}

impl ListColumn {
    /// Appends the list of the next row.
    fn push(&mut self, values: impl Iterator<Item = i32>) {
        let before = self.values.len();
        self.values.extend(values);
        let length = self.values.len() - before;
        // A list without elements has an entry of level 0.
        self.rep_levels.push(0);
        self.rep_levels
            .extend(std::iter::repeat_n(1, length.saturating_sub(1)));
        let level = i16::from(length > 0);
        self.def_levels
            .extend(std::iter::repeat_n(level, length.max(1)));
    }

    fn clear(&mut self) {
        self.values.clear();
        self.def_levels.clear();
        self.rep_levels.clear();
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
