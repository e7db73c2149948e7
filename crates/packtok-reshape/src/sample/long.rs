//! Rows of long documents, as ProLong's training reads them: whole documents packed by best fit, or pieces of fixed lengths.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use packtok_core::pack::Existing;
use packtok_core::pipeline::{Monitor, Progress};
use packtok_formats::TokenFile;
use packtok_formats::mds::{
    self, Columns, Compression, Dtype, Finished, INDEX_FILE, Marker, Value, Writer,
};
use packtok_sampling::files::file_set::Files;
use packtok_sampling::files::manifest::Entry;
use packtok_sampling::plans::best_fit::plan_best_fit;
use packtok_sampling::plans::split::document_hash;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use xxhash_rust::xxh64::xxh64;

use crate::error::{Error, Result};
use crate::sample::error::SampleError;
use crate::sample::output::hex;
use crate::sample::plan::report;
use crate::sample::publish::{WORK_FOLDER, is_of_plan, put_file, remove_samples};
use crate::sample::recipe::IdType;
use crate::sample::tokens::{OpenFiles, each_document};

/// The longest row: its tokens have positions of 32 bits, and best fit keeps a few words for each.
const MAX_ROW_TOKENS: u64 = 1 << 24;
/// A member of the marker's details.
const SHORT_ROWS: &str = "short_rows";

/// A domain and its token files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongDomain {
    /// Its name, which is also that of its folder.
    pub name: String,
    /// Its files.
    pub files: Vec<PathBuf>,
}

/// How long documents are packed into rows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongRecipe {
    /// The folder to write to.
    pub output: PathBuf,
    /// The domains.
    pub domains: Vec<LongDomain>,
    /// The most tokens of a row.
    pub length: u64,
    /// Documents with fewer tokens are not used.
    pub min_length: u64,
    /// Lengths of pieces; if there are any, each length has rows of its own.
    pub by_length: Vec<u64>,
    /// Compression of the MDS files.
    pub compression: Option<String>,
    /// The largest MDS file in bytes.
    pub size_limit: u64,
    /// What to do with finished outputs.
    pub existing: Existing,
}

/// What was packed.
#[derive(Debug, Serialize)]
pub struct LongReport {
    /// The folder.
    pub output: PathBuf,
    /// Rows of all domains.
    pub rows: u64,
    /// Their tokens.
    pub tokens: u64,
    /// The domains.
    pub domains: Vec<LongDomainReport>,
}

/// What became of the documents of a domain.
#[derive(Debug, Default, Serialize)]
pub struct LongDomainReport {
    /// The domain.
    pub domain: String,
    /// Its documents.
    pub documents: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Documents that are shorter than the minimum, or empty.
    pub too_short: u64,
    /// Their tokens.
    pub too_short_tokens: u64,
    /// Documents that are cut into several pieces.
    pub cut: u64,
    /// Tokens at the ends of documents that are shorter than every length of pieces.
    pub left_over_tokens: u64,
    /// Rows.
    pub rows: u64,
    /// Their tokens.
    pub row_tokens: u64,
    /// Rows that are shorter than the length.
    pub short_rows: u64,
    /// Whether all rows were there before.
    pub kept: bool,
}

impl LongRecipe {
    fn check(&self) -> Result<()> {
        let fault = |option, found: u64, expected| {
            let found = found.to_string();
            Err(SampleError::Option {
                option,
                found,
                expected,
            }
            .into())
        };
        if !(1..=MAX_ROW_TOKENS).contains(&self.length) {
            return fault("--length", self.length, "1 to 2^24");
        }
        match self
            .by_length
            .iter()
            .find(|&&piece| piece == 0 || !self.length.is_multiple_of(piece))
        {
            Some(&piece) => fault(
                "--by-length",
                piece,
                "lengths that divide the length of a row",
            ),
            None => Ok(()),
        }
    }

    /// The lengths of the pieces of a document in order, and the tokens left over.
    fn pieces(&self, mut len: u64) -> (Vec<u64>, u64) {
        let mut lengths = self.by_length.clone();
        lengths.sort_unstable();
        let mut pieces = Vec::new();
        while let Some(&piece) = lengths.iter().rev().find(|&&piece| piece <= len) {
            pieces.push(piece);
            len -= piece;
        }
        (pieces, len)
    }

    /// The folders of a domain below the output, by the length of their pieces; 0 for whole documents.
    fn folders(&self, domain: &str) -> BTreeMap<u64, String> {
        if self.by_length.is_empty() {
            return BTreeMap::from([(0, domain.to_owned())]);
        }
        let folders = self.by_length.iter();
        folders
            .map(|&piece| (piece, format!("{domain}/{piece}-{}", self.length)))
            .collect()
    }
}

/// Packs the documents of all domains into rows.
///
/// # Errors
/// A number out of range; an output of another plan; a file that cannot be read or written.
pub fn pack_long(recipe: &LongRecipe, monitor: &mut Monitor<'_>) -> Result<LongReport> {
    recipe.check()?;
    let mut domains = Vec::new();
    for domain in &recipe.domains {
        domains.push(Domain { recipe, domain }.pack(monitor)?);
    }
    let work = recipe.output.join(WORK_FOLDER);
    if work.exists() {
        fs::remove_dir_all(&work).map_err(Error::io(&work))?;
    }
    Ok(LongReport {
        output: recipe.output.clone(),
        rows: domains.iter().map(|domain| domain.rows).sum(),
        tokens: domains.iter().map(|domain| domain.row_tokens).sum(),
        domains,
    })
}

struct Domain<'a> {
    recipe: &'a LongRecipe,
    domain: &'a LongDomain,
}

impl Domain<'_> {
    fn pack(&self, monitor: &mut Monitor<'_>) -> Result<LongDomainReport> {
        let files: Vec<Entry> = Files::open(&self.domain.files, false)?
            .entries()
            .cloned()
            .collect();
        let (mut counts, fingerprint) = self.survey(&files, monitor)?;
        let folders = self.recipe.folders(&self.domain.name);
        let mut finished = Vec::new();
        for folder in folders.values() {
            finished.push(is_of_plan(
                &self.recipe.output.join(folder),
                &fingerprint,
                self.recipe.existing,
            )?);
        }
        // The folders of a domain are published one after the other; the missing ones have no rows or are written again.
        if finished.iter().all(|&is_finished| is_finished) {
            return self.kept(counts, &folders);
        }
        let work = self
            .recipe
            .output
            .join(WORK_FOLDER)
            .join(&fingerprint[..32]);
        let mut rows = BTreeMap::new();
        for (&piece, name) in &folders {
            rows.insert(
                piece,
                Rows::new(self.recipe, &files, name, &work.join(piece.to_string()))?,
            );
        }
        let progress = Progress {
            total_bytes: counts.tokens,
            ..Progress::default()
        };
        if self.recipe.by_length.is_empty() {
            self.best_fit(&files, &mut rows, progress, monitor)?;
        } else {
            self.fixed(&files, &mut rows, progress, monitor)?;
        }
        for ((piece, rows), is_finished) in rows.into_iter().zip(finished) {
            counts.rows += rows.num_rows;
            counts.row_tokens += rows.num_tokens;
            counts.short_rows += rows.short_rows;
            let (folder, short_rows) = (self.recipe.output.join(&folders[&piece]), rows.short_rows);
            let written = rows.writer.finish().map_err(SampleError::Mds)?;
            if !is_finished {
                self.publish(&folder, &fingerprint, short_rows, written)?;
            }
        }
        Ok(counts)
    }

    /// The report of rows that were there before.
    fn kept(
        &self,
        mut counts: LongDomainReport,
        folders: &BTreeMap<u64, String>,
    ) -> Result<LongDomainReport> {
        counts.kept = true;
        counts.row_tokens = counts.tokens - counts.too_short_tokens - counts.left_over_tokens;
        for folder in folders.values() {
            if let Some(marker) =
                Marker::of_folder(&self.recipe.output.join(folder)).map_err(SampleError::Mds)?
            {
                counts.rows += marker.stop;
                counts.short_rows += marker
                    .details
                    .get(SHORT_ROWS)
                    .and_then(serde_json::Value::as_u64)
                    .unwrap_or(0);
            }
        }
        Ok(counts)
    }

    /// Reads all documents once: verifies checksums, counts, and identifies their tokens.
    fn survey(
        &self,
        files: &[Entry],
        monitor: &mut Monitor<'_>,
    ) -> Result<(LongDomainReport, String)> {
        let mut counts = LongDomainReport {
            domain: self.domain.name.clone(),
            ..LongDomainReport::default()
        };
        let mut progress = Progress {
            total_bytes: files
                .iter()
                .map(|file| file.tokens * file.token_bytes)
                .sum(),
            ..Progress::default()
        };
        let mut digest = 0u64;
        for file in files {
            each_document(&file.path, |bytes, width, tokens| {
                let len = tokens.end - tokens.start;
                digest = xxh64(&document_hash(bytes, width, 0).to_le_bytes(), digest);
                self.count(&mut counts, len);
                progress.bytes_read += bytes.len() as u64;
                progress.documents += 1;
                progress.tokens += len;
                report(monitor, &progress)
            })?;
        }
        let recipe = self.recipe;
        let key = json!([
            "long",
            1,
            self.domain.name,
            recipe.length,
            recipe.min_length,
            recipe.by_length,
            recipe.compression,
            recipe.size_limit,
            counts.documents,
            counts.tokens,
            digest,
        ]);
        Ok((counts, hex(&Sha256::digest(key.to_string()))))
    }

    fn count(&self, counts: &mut LongDomainReport, len: u64) {
        counts.documents += 1;
        counts.tokens += len;
        if len == 0 || len < self.recipe.min_length {
            counts.too_short += 1;
            counts.too_short_tokens += len;
        } else if self.recipe.by_length.is_empty() {
            counts.cut += u64::from(len > self.recipe.length);
        } else {
            let (pieces, left) = self.recipe.pieces(len);
            counts.cut += u64::from(pieces.len() > 1 || (left > 0 && !pieces.is_empty()));
            counts.left_over_tokens += left;
        }
    }

    /// Packs whole documents, of which only those that are longer than a row are cut.
    fn best_fit(
        &self,
        files: &[Entry],
        rows: &mut BTreeMap<u64, Rows<'_>>,
        mut progress: Progress,
        monitor: &mut Monitor<'_>,
    ) -> Result<()> {
        let Some(rows) = rows.get_mut(&0) else {
            return Ok(());
        };
        let mut failure = None;
        let outcome = plan_best_fit(
            Documents::new(files, self.recipe.min_length),
            self.recipe.length,
            &mut |pieces| {
                let tokens = pieces
                    .iter()
                    .map(|piece| piece.start..piece.start + u64::from(piece.len_tokens));
                let written = rows.write(tokens).and_then(|()| {
                    progress.bytes_read = rows.num_tokens;
                    progress.documents = rows.num_rows;
                    report(monitor, &progress)
                });
                written.map_err(|error| {
                    failure = Some(error);
                    packtok_sampling::Error::Cancelled
                })
            },
        );
        match failure {
            Some(error) => Err(error),
            None => Ok(outcome?),
        }
    }

    /// Cuts documents into pieces of the given lengths, the longest first, and fills rows with pieces of one length.
    fn fixed(
        &self,
        files: &[Entry],
        rows: &mut BTreeMap<u64, Rows<'_>>,
        mut progress: Progress,
        monitor: &mut Monitor<'_>,
    ) -> Result<()> {
        let mut open: BTreeMap<u64, Vec<Range<u64>>> = BTreeMap::new();
        for document in Documents::new(files, self.recipe.min_length) {
            let Range { mut start, end } = document?;
            for piece in self.recipe.pieces(end - start).0 {
                let row = open.entry(piece).or_default();
                row.push(start..start + piece);
                if row.len() as u64 * piece == self.recipe.length
                    && let Some(rows) = rows.get_mut(&piece)
                {
                    rows.write(row.drain(..))?;
                }
                start += piece;
                progress.bytes_read += piece;
            }
            report(monitor, &progress)?;
        }
        for (piece, row) in open {
            if let Some(rows) = rows.get_mut(&piece).filter(|_| !row.is_empty()) {
                rows.write(row.into_iter())?;
            }
        }
        Ok(())
    }

    fn publish(
        &self,
        folder: &Path,
        fingerprint: &str,
        short_rows: u64,
        written: Finished,
    ) -> Result<()> {
        if written.num_samples == 0 {
            return Ok(());
        }
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        if self.recipe.existing == Existing::Replace {
            remove_samples(folder)?;
        }
        for entry in &written.entries {
            let name = &entry.stored().basename;
            put_file(&written.folder.join(name), &folder.join(name))?;
        }
        let marker = Marker {
            version: 1,
            kind: "long documents".to_owned(),
            plan: fingerprint.to_owned(),
            side: "train".to_owned(),
            domain: self.domain.name.clone(),
            start: 0,
            stop: written.num_samples,
            index_sha256: None,
            shards: None,
            details: [(SHORT_ROWS.to_owned(), json!(short_rows))]
                .into_iter()
                .collect(),
        };
        let finished = Finished {
            folder: folder.to_owned(),
            ..written
        };
        Ok(finished.publish(Some(marker)).map_err(SampleError::Mds)?)
    }
}

/// Documents of at least a minimum of tokens, by their positions in the files laid end to end.
struct Documents<'a> {
    files: std::slice::Iter<'a, Entry>,
    open: Option<TokenFile>,
    next: u64,
    /// Tokens of the files before the open one.
    before: u64,
    min_length: u64,
}

impl<'a> Documents<'a> {
    fn new(files: &'a [Entry], min_length: u64) -> Self {
        Self {
            files: files.iter(),
            open: None,
            next: 0,
            before: 0,
            min_length: min_length.max(1),
        }
    }

    fn step(&mut self) -> Result<Option<Range<u64>>> {
        loop {
            let Some(open) = &self.open else {
                let Some(file) = self.files.next() else {
                    return Ok(None);
                };
                (self.open, self.next) = (Some(TokenFile::open(&file.path)?), 0);
                continue;
            };
            if self.next == open.num_documents() {
                self.before += open.num_tokens();
                self.open = None;
                continue;
            }
            let tokens = open.document_tokens(self.next)?;
            self.next += 1;
            if tokens.end - tokens.start >= self.min_length {
                return Ok(Some(self.before + tokens.start..self.before + tokens.end));
            }
        }
    }
}

impl Iterator for Documents<'_> {
    type Item = packtok_sampling::Result<Range<u64>>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.step() {
            Ok(document) => document.map(Ok),
            Err(Error::Formats(error)) => Some(Err(error.into())),
            Err(Error::Sampling(error)) => Some(Err(*error)),
            Err(_) => Some(Err(packtok_sampling::Error::Cancelled)),
        }
    }
}

/// Writes rows into an MDS folder.
struct Rows<'a> {
    writer: Writer,
    files: OpenFiles<'a>,
    /// Tokens before each file, and at last of all files.
    starts: Vec<u64>,
    domain: String,
    length: u64,
    ids: Vec<u8>,
    indices: Vec<u8>,
    num_rows: u64,
    num_tokens: u64,
    short_rows: u64,
}

impl<'a> Rows<'a> {
    fn new(recipe: &LongRecipe, files: &'a [Entry], domain: &str, folder: &Path) -> Result<Self> {
        let columns = [
            ("domain", "str"),
            ("indices", "ndarray:uint32"),
            ("input_ids", "ndarray:uint32"),
            ("length", "int"),
        ];
        let options = mds::Options {
            size_limit: Some(recipe.size_limit),
            compression: (recipe
                .compression
                .as_deref()
                .map(Compression::parse)
                .transpose())
            .map_err(SampleError::Mds)?,
            ..mds::Options::default()
        };
        if folder.join(INDEX_FILE).exists() || folder.exists() {
            fs::remove_dir_all(folder).map_err(Error::io(folder))?;
        }
        let columns = Columns::new(columns).map_err(SampleError::Mds)?;
        let mut starts = vec![0];
        for file in files {
            starts.push(starts[starts.len() - 1] + file.tokens);
        }
        Ok(Self {
            writer: Writer::create(folder, columns, options).map_err(SampleError::Mds)?,
            files: OpenFiles::new(files),
            starts,
            domain: domain.to_owned(),
            length: recipe.length,
            ids: Vec::new(),
            indices: Vec::new(),
            num_rows: 0,
            num_tokens: 0,
            short_rows: 0,
        })
    }

    /// Writes a row of pieces.
    fn write(&mut self, pieces: impl Iterator<Item = Range<u64>>) -> Result<()> {
        self.ids.clear();
        self.indices.clear();
        let (mut end, mut num_pieces) = (0, 0);
        for piece in pieces {
            // Files without tokens start where the next one does.
            let file = self.starts.partition_point(|&start| start <= piece.start) - 1;
            let tokens = piece.start - self.starts[file]..piece.end - self.starts[file];
            self.files
                .append(file as u32, tokens, IdType::Uint32, &mut self.ids)?;
            let len = (piece.end - piece.start) as u32;
            self.indices.extend_from_slice(&u32::to_le_bytes(end));
            self.indices.extend_from_slice(&u32::to_le_bytes(end + len));
            end += len;
            num_pieces += 1;
        }
        let shape: &[u64] = &[num_pieces, 2];
        let values = [
            Value::Str(&self.domain),
            Value::Array(Dtype::U32, shape.into(), &self.indices),
            Value::row(Dtype::U32, &self.ids),
            Value::Int(i64::from(end)),
        ];
        self.writer.write(&values).map_err(SampleError::Mds)?;
        self.num_rows += 1;
        self.num_tokens += u64::from(end);
        self.short_rows += u64::from(u64::from(end) < self.length);
        Ok(())
    }
}
