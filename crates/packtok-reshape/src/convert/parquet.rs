//! Writes documents as the rows of a Parquet file.

use std::path::Path;

use packtok_formats::parquet_rows::RowsWriter;
use packtok_jobs::{Monitor, Progress};
use packtok_pbin::{Replace, TempFile};

use super::parts::Parts;
use crate::error::{Error, Result};

/// NumPy's name of the type of the ids.
pub(super) const DTYPE: &str = "int32";
/// Documents that are written between two reports of progress.
const STEP_DOCUMENTS: u64 = 1024;

/// Writes all documents to `dst` and publishes it.
pub(super) fn write(
    parts: &Parts<'_>,
    dst: &Path,
    replace: Replace,
    monitor: &mut Monitor<'_>,
) -> Result<()> {
    let mut writer = RowsWriter::new(TempFile::create(dst)?, dst)?;
    let mut progress = Progress {
        total_bytes: parts.num_tokens() * parts.width().bytes(),
        ..Progress::default()
    };
    for span in parts.document_spans() {
        let (file, tokens) = span?;
        let bytes = file.tokens(tokens.clone())?;
        let ids = || file.width().ids(bytes).zip(tokens.clone());
        if let Some((id, token)) = ids().find(|&(id, _)| i32::try_from(id).is_err()) {
            let document = file.documents_from(token)?.next().transpose()?;
            let (document, of_document) = document.unwrap_or((0, 0..0));
            return Err(Error::IdBeyondType {
                path: file.path().into(),
                token: token.saturating_sub(of_document.start),
                document,
                id,
                dtype: DTYPE,
            });
        }
        writer.push(ids().map(|(id, _)| id as i32))?;
        progress.bytes_read += bytes.len() as u64;
        progress.documents += 1;
        if progress.documents.is_multiple_of(STEP_DOCUMENTS) {
            file.release_pages();
            if monitor(&progress).is_break() {
                return Err(packtok_jobs::Error::Cancelled.into());
            }
        }
    }
    Ok(writer.finish()?.publish(replace)?)
}
