//! Writes documents as the rows of a Parquet file.

use std::path::Path;

use packtok_formats::parquet_rows::RowsWriter;
use packtok_jobs::{Monitor, Progress};
use packtok_pbin::TempFile;

use super::parts::{Parts, check_ids};
use crate::error::Result;

/// NumPy's name of the type of the ids.
pub(super) const DTYPE: &str = "int32";
/// Documents that are written between two reports of progress.
const STEP_DOCUMENTS: u64 = 1024;

/// The file `dst` with all documents, under a temporary name.
pub(super) fn written(
    parts: &Parts<'_>,
    dst: &Path,
    monitor: &mut Monitor<'_>,
) -> Result<TempFile> {
    let mut writer = RowsWriter::new(TempFile::create(dst)?, dst)?;
    let mut progress = Progress {
        total_bytes: parts.num_tokens() * parts.width().bytes(),
        ..Progress::default()
    };
    for span in parts.document_spans() {
        let (file, tokens) = span?;
        check_ids(file, tokens.clone(), i32::MAX as u32, DTYPE)?;
        let bytes = file.tokens(tokens)?;
        writer.push(file.width().ids(bytes).map(|id| id as i32))?;
        progress.bytes_read += bytes.len() as u64;
        progress.documents += 1;
        if progress.documents.is_multiple_of(STEP_DOCUMENTS) {
            file.release_pages();
            if monitor(&progress).is_break() {
                return Err(packtok_jobs::Error::Cancelled.into());
            }
        }
    }
    Ok(writer.finish()?)
}
