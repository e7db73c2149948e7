//! Writes the rows of a best-fit plan as Parquet files, as Megatron-Bridge reads them.

use std::ops::Range;
use std::path::PathBuf;

use packtok_dataset::items::items::Items;
use packtok_dataset::items::{LossMarkers, PackedRow};
use packtok_formats::parquet_rows::RowsWriter;
use packtok_formats::{TokenFile, TokenFormat};
use packtok_jobs::{Monitor, Progress};
use packtok_pack::pack::Existing;
use packtok_pbin::{TempFile, TokenWidth};
use serde::Serialize;

use super::kept::{Losing, lost_in_rows, unknown_losses};
use super::marker::meaning_of_all;
use super::meaning::Meaning;
use super::parts::{Parts, check_ids, check_vocabulary, names_its_tokenizer};
use super::run::check_signs;
use super::shards::{PARQUET_MAX_TOKENS, check_no_others};
use crate::declared_tokenizer::DeclaredTokenizer;
use crate::error::Result;

/// The name of what is written.
const FORMAT: &str = "packed-parquet";
/// The ending by which Megatron-Bridge tells packed files from others.
const ENDING: &str = "idx.parquet";
/// NumPy's name of the type of the ids.
const DTYPE: &str = "int32";
/// Rows that are written between two reports of progress.
const STEP_ROWS: u64 = 256;

/// The output and its options.
#[derive(Debug, Clone)]
pub struct PackedOptions {
    /// The folder of the files.
    pub output: PathBuf,
    /// The most tokens of a file; a longer row is a file of its own. `None` for 2^27.
    pub max_tokens: Option<u64>,
    /// The markers between which labels count in the loss; `None` if all labels count.
    pub loss_markers: Option<LossMarkers>,
    /// What the input records and the output may lose.
    pub accept_loss: Vec<String>,
    /// The tokenizer of files that do not record theirs.
    pub tokenizer: Option<DeclaredTokenizer>,
    /// The action if the output exists; it is not compared.
    pub existing: Existing,
}

/// What was written.
#[derive(Debug, Serialize)]
pub struct PackedReport {
    /// The folder.
    pub output: PathBuf,
    /// The written files.
    pub files: Vec<PathBuf>,
    /// Number of documents.
    pub documents: u64,
    /// Those of one token, which have no label, and are in no row.
    pub left_out_documents: u64,
    /// Number of rows.
    pub rows: u64,
    /// Number of tokens of all documents.
    pub tokens: u64,
    /// Bytes of the files.
    pub file_bytes: u64,
    /// The names of what the input records and the files do not have.
    pub lost: Vec<String>,
    /// The tokenizer, EOD and BOS, as far as they are known.
    pub meaning: Meaning,
    /// Sentences for the user.
    pub notes: Vec<String>,
}

/// Writes the items of a plan as rows.
///
/// # Errors
/// A file is damaged, or has ids outside the vocabulary or of more than 31 bits; the output exists and may
/// not be replaced, or is beside files that look like parts of it.
pub fn write_packed(
    items: &Items,
    options: &PackedOptions,
    monitor: &mut Monitor<'_>,
) -> Result<PackedReport> {
    let files = items.stream().files();
    let files = (0..files.len()).map(|file| files.token_file(file));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let meaning = meaning_of_all(files.iter().copied(), options.tokenizer.as_ref())?;
    let mut lost = Vec::new();
    let losing = Losing {
        to: FORMAT,
        accept_loss: &options.accept_loss,
    };
    for file in &files {
        lost.extend(lost_in_rows(file, losing)?);
    }
    lost.sort();
    lost.dedup();
    let shards = shards(items, options);
    let paths: Vec<_> = shards.iter().map(|(path, _)| path.as_path()).collect();
    check_no_others(&paths)?;
    for path in &paths {
        options.existing.keeps(path)?;
    }
    check_signs(files.iter().copied(), monitor)?;
    check_all_ids(&files, &meaning, monitor)?;
    let mut report = PackedReport {
        output: options.output.clone(),
        files: Vec::new(),
        documents: items.stream().num_documents(),
        left_out_documents: 0,
        rows: 0,
        tokens: items.stream().num_tokens(),
        file_bytes: 0,
        lost,
        meaning,
        notes: unknown_losses(files.iter().copied(), &options.accept_loss)
            .into_iter()
            .collect(),
    };
    let id_bytes = items.stream().files().width().bytes();
    let mut progress = Progress {
        total_bytes: report.tokens * id_bytes,
        ..Progress::default()
    };
    let mut row = PackedRow::default();
    for (path, rows) in shards {
        packtok_pbin::remove_abandoned(&[&path])?;
        let mut writer = RowsWriter::packed(TempFile::create(&path)?, &path)?;
        for number in rows {
            row.read(items, number, options.loss_markers)?;
            if row.ids.is_empty() {
                continue;
            }
            report.rows += 1;
            let ids = row.ids.iter().map(|&id| id as i32);
            writer.push_packed(ids, &row.loss_mask, &row.starts)?;
            progress.tokens += row.ids.len() as u64;
            progress.documents += row.starts.len() as u64;
            progress.bytes_read = progress.tokens * id_bytes;
            if number % STEP_ROWS == 0 && monitor(&progress).is_break() {
                return Err(packtok_jobs::Error::Cancelled.into());
            }
        }
        writer.finish()?.publish(options.existing.replace())?;
        report.file_bytes += path.metadata().map_or(0, |metadata| metadata.len());
        report.files.push(path);
    }
    report.left_out_documents = row.num_left_out;
    Ok(report)
}

/// The files to write, each with its rows; at least one.
fn shards(items: &Items, options: &PackedOptions) -> Vec<(PathBuf, Range<u64>)> {
    let max_tokens = options.max_tokens.unwrap_or(PARQUET_MAX_TOKENS);
    // A part of a long document has one id more than inputs.
    let row_tokens = items.context_length().unwrap_or(0) + 1;
    let num_rows = (max_tokens / row_tokens).max(1);
    let starts = (0..items.len().max(1)).step_by(num_rows as usize);
    let shards = starts.enumerate().map(|(i, start)| {
        let name = format!("shard_{i:05}.{ENDING}");
        (
            options.output.join(name),
            start..(start + num_rows).min(items.len()),
        )
    });
    shards.collect()
}

/// Checks the ids of all files before the first row is written.
fn check_all_ids(files: &[&TokenFile], meaning: &Meaning, monitor: &mut Monitor<'_>) -> Result<()> {
    let vocab_size = meaning
        .tokenizer
        .as_ref()
        .map(|tokenizer| tokenizer.vocab_size);
    let max_id = TokenFormat::Parquet.max_id(TokenWidth::U32);
    let is_checked = |file: &&TokenFile| {
        // Packing has checked that the ids are in the vocabulary.
        names_its_tokenizer(file) && vocab_size.is_some_and(|size| size <= max_id.into())
    };
    let unchecked = files.iter().copied().filter(|file| !is_checked(file));
    Parts::whole(unchecked).for_each_step(monitor, |file, tokens| {
        if let Some(vocab_size) = vocab_size {
            check_vocabulary(file, tokens.clone(), vocab_size)?;
        }
        check_ids(file, tokens, max_id, DTYPE)
    })
}
