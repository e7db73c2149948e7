//! Writes the formats whose documents are rows or samples: Parquet and MDS.

use std::path::Path;

use packtok_formats::mds::TokensWriter;
use packtok_formats::parquet_rows::RowsWriter;
use packtok_jobs::Monitor;
use packtok_pbin::TempFile;

use super::flat::FlatConversion;
use super::parts::convert_width;
use crate::error::Result;

/// A Parquet file with all documents, under a temporary name.
pub(super) fn parquet(
    conversion: &FlatConversion<'_>,
    monitor: &mut Monitor<'_>,
) -> Result<TempFile> {
    let dst = conversion.paths.data.as_path();
    let out = TempFile::create(dst)?;
    let has_mask = conversion.has_loss_mask();
    let mut writer = if has_mask {
        RowsWriter::masked(out, dst)?
    } else {
        RowsWriter::new(out, dst)?
    };
    let mut mask = Vec::new();
    conversion
        .parts
        .for_each_document(monitor, |file, tokens| {
            conversion.check_step(file, tokens.clone())?;
            let ids = file.width().ids(file.tokens(tokens.clone())?);
            let ids = ids.map(|id| id as i32);
            if !has_mask {
                return Ok(writer.push(ids)?);
            }
            mask.clear();
            conversion.masks.append_to(file, tokens, &mut mask)?;
            Ok(writer.push_masked(ids, &mask)?)
        })?;
    Ok(writer.finish()?)
}

/// Shard file `number` of an MDS folder with all documents, under a temporary name.
pub(super) fn mds(
    conversion: &FlatConversion<'_>,
    number: u64,
    monitor: &mut Monitor<'_>,
) -> Result<TempFile> {
    let folder = conversion.paths.data.parent().unwrap_or(Path::new(""));
    let width = conversion.width_of_output();
    let lengths = conversion.parts.lengths();
    let mut writer = TokensWriter::create(folder, number, width, lengths)?;
    let mut converted = Vec::new();
    conversion
        .parts
        .for_each_document(monitor, |file, tokens| {
            conversion.check_step(file, tokens.clone())?;
            let ids = file.tokens(tokens)?;
            if file.width() == width {
                return Ok(writer.push(ids)?);
            }
            converted.clear();
            convert_width(ids, file.width(), width, &mut converted);
            Ok(writer.push(&converted)?)
        })?;
    Ok(writer.finish()?)
}
