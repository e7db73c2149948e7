//! The rows of all domains: the documents or pieces in each row, and the rows in each file.
//!
//! One process makes the plan once, in the folder of unfinished work. The plan contains positions
//! and no tokens. The rows of each group are in a file, which is read part by part.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use packtok_dataset::files::file_set::Files;
use packtok_dataset::files::manifest::Entry;
use packtok_dataset::plans::best_fit::plan_best_fit;
use packtok_dataset::plans::split::document_hash;
use packtok_formats::TokenFile;
use packtok_formats::mds::{self, Columns, Dtype, Writer};
use packtok_jobs::{Monitor, Progress, hex, report_progress};
use packtok_pbin::{Replace, TempFile, publish_bytes};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use xxhash_rust::xxh64::xxh64;

use crate::error::{Error, Result};
use crate::sample::long::recipe::{LongDomain, LongDomainReport, LongRecipe};
use crate::sample::output::{Output, Part};
use crate::sample::plan::{modified, wait_for_lock};
use crate::sample::recipe::Side;
use crate::sample::tokens::each_document;

const PLAN_FILE: &str = "long.json";
const VERSION: u64 = 1;
const PIECE_BYTES: usize = 12;

/// Consecutive tokens of a document in a row, located by their position in the concatenated files
/// of the domain.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowPiece {
    pub(super) start: u64,
    pub(super) len: u32,
}

/// Rows that are written into the same folder.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct RowGroup {
    /// The length of the pieces; 0 for whole documents.
    length: u64,
    rows: u64,
    tokens: u64,
    /// Rows that are shorter than the length.
    pub(super) short_rows: u64,
    parts: Vec<RowGroupPart>,
    rows_bytes: u64,
}

/// Rows of one MDS file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct RowGroupPart {
    rows: Range<u64>,
    tokens: u64,
    /// Offset of the rows in the file of rows.
    offset: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct DomainPlan {
    counts: LongDomainReport,
    fingerprint: String,
    groups: Vec<RowGroup>,
}

/// An open plan.
#[derive(Debug)]
pub(super) struct LongPlan {
    /// The files of each domain.
    pub(super) files: Vec<Vec<Entry>>,
    domains: Vec<DomainPlan>,
    work: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Content {
    version: u64,
    key: Value,
    files: Vec<Vec<Entry>>,
    domains: Vec<DomainPlan>,
}

impl LongPlan {
    /// Opens the plan in the folder `work`, or makes the plan there while other processes wait.
    pub(super) fn find_or_make(
        recipe: &LongRecipe,
        work: &Path,
        monitor: &mut Monitor<'_>,
    ) -> Result<Self> {
        fs::create_dir_all(work).map_err(Error::io(work))?;
        let files = recipe
            .domains
            .iter()
            .map(|domain| {
                Ok(Files::open(&domain.files, false)?
                    .entries()
                    .cloned()
                    .collect())
            })
            .collect::<Result<Vec<Vec<Entry>>>>()?;
        let key = key(recipe, &files)?;
        if let Some(plan) = Self::open(work, &files, &key) {
            return Ok(plan);
        }
        let _lock = wait_for_lock(work, monitor)?;
        if let Some(plan) = Self::open(work, &files, &key) {
            return Ok(plan);
        }
        let mut domains = Vec::new();
        for (number, domain) in recipe.domains.iter().enumerate() {
            let files = &files[number];
            domains.push(
                Planner {
                    recipe,
                    domain,
                    number,
                    files,
                    work,
                }
                .plan(monitor)?,
            );
        }
        let content = Content {
            version: VERSION,
            key,
            files,
            domains,
        };
        let path = work.join(PLAN_FILE);
        let bytes = serde_json::to_vec(&content).map_err(|error| Error::io(&path)(error.into()))?;
        publish_bytes(&path, &bytes, Replace::Existing)?;
        Ok(Self {
            files: content.files,
            domains: content.domains,
            work: work.to_owned(),
        })
    }

    /// Opens the plan if it was made for these files and options.
    fn open(work: &Path, files: &[Vec<Entry>], key: &Value) -> Option<Self> {
        let bytes = fs::read(work.join(PLAN_FILE)).ok()?;
        let content: Content = serde_json::from_slice(&bytes).ok()?;
        if content.version != VERSION || content.key != *key || content.files != files {
            return None;
        }
        let plan = Self {
            files: content.files,
            domains: content.domains,
            work: work.to_owned(),
        };
        let is_complete = plan.domains.iter().enumerate().all(|(number, domain)| {
            domain.groups.iter().all(|group| {
                let rows = fs::metadata(rows_path(work, number, group.length));
                rows.is_ok_and(|rows| rows.len() == group.rows_bytes)
            })
        });
        is_complete.then_some(plan)
    }

    /// All folders with rows, and their division into files.
    pub(super) fn outputs(&self, recipe: &LongRecipe, work: &Path) -> (Vec<Output>, Vec<Part>) {
        let (mut outputs, mut parts) = (Vec::new(), Vec::new());
        for (number, domain) in self.domains.iter().enumerate() {
            for (shard, group) in (0..)
                .zip(&domain.groups)
                .filter(|(_, group)| group.rows > 0)
            {
                parts.extend((0..).zip(&group.parts).map(|(file, part)| Part {
                    output: outputs.len(),
                    number: file,
                    samples: part.rows.clone(),
                }));
                outputs.push(Output {
                    side: Side::Train,
                    domain: number,
                    shard,
                    folder: recipe.folder(&recipe.domains[number].name, group.length),
                    work: work
                        .join(&domain.fingerprint[..32])
                        .join(group.length.to_string()),
                    fingerprint: domain.fingerprint.clone(),
                    samples: 0..group.rows,
                });
            }
        }
        (outputs, parts)
    }

    /// The rows of an output.
    pub(super) fn group(&self, output: &Output) -> &RowGroup {
        &self.domains[output.domain].groups[output.shard as usize]
    }

    pub(super) fn part_tokens(&self, output: &Output, part: &Part) -> u64 {
        self.group(output).parts[part.number as usize].tokens
    }

    /// Tokens before each file of a domain.
    pub(super) fn starts(&self, domain: usize) -> Vec<u64> {
        let mut next = 0;
        let starts = self.files[domain].iter().map(|file| {
            next += file.tokens;
            next - file.tokens
        });
        starts.collect()
    }

    /// Calls `each` with the pieces of every row of a part.
    pub(super) fn each_row(
        &self,
        output: &Output,
        part: &Part,
        mut each: impl FnMut(&[RowPiece]) -> Result<()>,
    ) -> Result<()> {
        let group = self.group(output);
        let path = rows_path(&self.work, output.domain, group.length);
        let io = |source| Error::Io {
            path: path.clone(),
            source,
        };
        let mut file = BufReader::new(File::open(&path).map_err(io)?);
        let offset = group.parts[part.number as usize].offset;
        file.seek(SeekFrom::Start(offset)).map_err(io)?;
        let mut pieces = Vec::new();
        for _ in part.samples.clone() {
            let mut count = [0; 4];
            file.read_exact(&mut count).map_err(io)?;
            pieces.clear();
            for _ in 0..u32::from_le_bytes(count) {
                let mut bytes = [0; PIECE_BYTES];
                file.read_exact(&mut bytes).map_err(io)?;
                pieces.push(RowPiece::decode(&bytes));
            }
            each(&pieces)?;
        }
        Ok(())
    }

    /// The report of each domain: how its documents were used.
    pub(super) fn domains(&self, outputs: &[Output], finished: &[bool]) -> Vec<LongDomainReport> {
        let domains = self.domains.iter().enumerate();
        let reports = domains.map(|(number, domain)| {
            let mut of_domain = outputs
                .iter()
                .zip(finished)
                .filter(|(output, _)| output.domain == number)
                .peekable();
            LongDomainReport {
                rows: domain.groups.iter().map(|group| group.rows).sum(),
                row_tokens: domain.groups.iter().map(|group| group.tokens).sum(),
                short_rows: domain.groups.iter().map(|group| group.short_rows).sum(),
                kept: of_domain.peek().is_some() && of_domain.all(|(_, &is_finished)| is_finished),
                ..domain.counts.clone()
            }
        });
        reports.collect()
    }
}

/// Removes the files of the plan.
pub(super) fn remove(recipe: &LongRecipe, work: &Path) {
    let groups = recipe.groups();
    let rows = (0..recipe.domains.len())
        .flat_map(|domain| groups.iter().map(move |&length| (domain, length)))
        .map(|(domain, length)| rows_path(work, domain, length));
    for path in rows.chain([work.join(PLAN_FILE), work.join("lock")]) {
        // A file that cannot be removed is replaced by the next plan.
        drop(fs::remove_file(path));
    }
}

fn rows_path(work: &Path, domain: usize, length: u64) -> PathBuf {
    work.join(format!("long.{domain}.{length}.rows"))
}

/// The inputs of the plan other than the entries of the files.
fn key(recipe: &LongRecipe, files: &[Vec<Entry>]) -> Result<Value> {
    Ok(json!({
        "modified": files.iter().map(|files| modified(files)).collect::<Result<Vec<_>>>()?,
        "domains": recipe.domains.iter().map(|domain| &domain.name).collect::<Vec<_>>(),
        "length": recipe.length,
        "min_length": recipe.min_length,
        "by_length": recipe.by_length,
        "compression": recipe.compression,
        "size_limit": recipe.size_limit,
    }))
}

impl RowPiece {
    fn encode(self) -> [u8; PIECE_BYTES] {
        let mut bytes = [0; PIECE_BYTES];
        bytes[..8].copy_from_slice(&self.start.to_le_bytes());
        bytes[8..].copy_from_slice(&self.len.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; PIECE_BYTES]) -> Self {
        let (mut start, mut len) = ([0; 8], [0; 4]);
        start.copy_from_slice(&bytes[..8]);
        len.copy_from_slice(&bytes[8..]);
        Self {
            start: u64::from_le_bytes(start),
            len: u32::from_le_bytes(len),
        }
    }
}

/// The columns of a row, in the order of their names.
pub(super) fn columns() -> Result<Columns> {
    let columns = [
        ("domain", "str"),
        ("indices", "ndarray:uint32"),
        ("input_ids", "ndarray:uint32"),
        ("length", "int"),
    ];
    Ok(Columns::new(columns)?)
}

/// Calls `call` with the values of a row's columns.
pub(super) fn with_values<R>(
    domain: &str,
    ids: &[u8],
    indices: &[u8],
    call: impl FnOnce(&[mds::Value<'_>]) -> R,
) -> R {
    let shape: &[u64] = &[indices.len() as u64 / 8, 2];
    call(&[
        mds::Value::Str(domain),
        mds::Value::Array(Dtype::U32, shape.into(), indices),
        mds::Value::row(Dtype::U32, ids),
        mds::Value::Int((ids.len() / 4) as i64),
    ])
}

/// Plans the rows of one domain.
struct Planner<'a> {
    recipe: &'a LongRecipe,
    domain: &'a LongDomain,
    /// Number of the domain.
    number: usize,
    files: &'a [Entry],
    work: &'a Path,
}

impl Planner<'_> {
    fn plan(&self, monitor: &mut Monitor<'_>) -> Result<DomainPlan> {
        let (counts, progress, fingerprint) = self.survey(monitor)?;
        let mut groups = Vec::new();
        for length in self.recipe.groups() {
            groups.push(Spool::new(
                self.recipe,
                self.folder_name(length),
                self.path(length),
                length,
            )?);
        }
        if self.recipe.by_length.is_empty() {
            self.best_fit(&mut groups[0], &progress, monitor)?;
        } else {
            self.fixed(&mut groups, &progress, monitor)?;
        }
        let groups = groups.into_iter().map(Spool::finish);
        Ok(DomainPlan {
            counts,
            fingerprint,
            groups: groups.collect::<Result<_>>()?,
        })
    }

    fn path(&self, length: u64) -> PathBuf {
        rows_path(self.work, self.number, length)
    }

    fn folder_name(&self, length: u64) -> String {
        let folder = self.recipe.folder(&self.domain.name, length);
        let name = folder.strip_prefix(&self.recipe.output).unwrap_or(&folder);
        name.to_string_lossy().into_owned()
    }

    /// Reads all documents once: verifies checksums, counts, and identifies their tokens.
    fn survey(&self, monitor: &mut Monitor<'_>) -> Result<(LongDomainReport, Progress, String)> {
        let mut counts = LongDomainReport {
            domain: self.domain.name.clone(),
            ..LongDomainReport::default()
        };
        let mut progress = Progress {
            total_bytes: self
                .files
                .iter()
                .map(|file| file.tokens * file.token_bytes)
                .sum(),
            ..Progress::default()
        };
        let mut digest = 0u64;
        for file in self.files {
            each_document(&file.path, |bytes, width, tokens| {
                let len = tokens.end - tokens.start;
                digest = xxh64(&document_hash(bytes, width, 0).to_le_bytes(), digest);
                self.count(&mut counts, len);
                progress.bytes_read += bytes.len() as u64;
                progress.documents += 1;
                progress.tokens += len;
                Ok(report_progress(monitor, &progress)?)
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
        let fingerprint = hex(&Sha256::digest(key.to_string()));
        Ok((counts, progress, fingerprint))
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

    /// Packs whole documents. Only documents that are longer than a row are cut.
    fn best_fit(
        &self,
        rows: &mut Spool<'_>,
        progress: &Progress,
        monitor: &mut Monitor<'_>,
    ) -> Result<()> {
        let mut failure = None;
        let outcome = plan_best_fit(
            Documents::new(self.files, self.recipe.min_length),
            self.recipe.length,
            &mut |pieces| {
                let pieces = pieces.iter().map(|piece| RowPiece {
                    start: piece.start,
                    len: piece.len_tokens,
                });
                let written = rows
                    .write(pieces)
                    .and_then(|()| Ok(report_progress(monitor, progress)?));
                written.map_err(|error| {
                    failure = Some(error);
                    packtok_dataset::Error::from(packtok_jobs::Error::Cancelled)
                })
            },
        );
        match failure {
            Some(error) => Err(error),
            None => Ok(outcome?),
        }
    }

    /// Cuts documents into pieces of the given lengths, the longest first, and fills each row with
    /// pieces of one length.
    fn fixed(
        &self,
        rows: &mut [Spool<'_>],
        progress: &Progress,
        monitor: &mut Monitor<'_>,
    ) -> Result<()> {
        let mut open: Vec<Vec<RowPiece>> = vec![Vec::new(); rows.len()];
        for document in Documents::new(self.files, self.recipe.min_length) {
            let Range { mut start, end } = document?;
            for len in self.recipe.pieces(end - start).0 {
                // `rows` has an entry for each length, and no length exceeds the length of a row.
                let group = rows.partition_point(|rows| rows.group.length < len);
                let row = &mut open[group];
                row.push(RowPiece {
                    start,
                    len: len as u32,
                });
                if row.len() as u64 * len == self.recipe.length {
                    rows[group].write(row.drain(..))?;
                }
                start += len;
            }
            report_progress(monitor, progress)?;
        }
        for (rows, row) in rows.iter_mut().zip(open).filter(|(_, row)| !row.is_empty()) {
            rows.write(row.into_iter())?;
        }
        Ok(())
    }
}

/// Writes the planned rows of a group, and divides them into files as mosaicml-streaming's writer
/// does.
struct Spool<'a> {
    recipe: &'a LongRecipe,
    /// The value of the column `domain`.
    name: String,
    path: PathBuf,
    out: BufWriter<TempFile>,
    group: RowGroup,
    columns: Columns,
    /// Bytes of a file without rows, and of the open file.
    head_bytes: u64,
    file_bytes: u64,
    ids: Vec<u8>,
    indices: Vec<u8>,
}

impl<'a> Spool<'a> {
    fn new(recipe: &'a LongRecipe, name: String, path: PathBuf, length: u64) -> Result<Self> {
        let columns = columns()?;
        Ok(Self {
            recipe,
            name,
            out: BufWriter::with_capacity(1 << 18, TempFile::create(&path)?),
            path,
            group: RowGroup {
                length,
                ..RowGroup::default()
            },
            head_bytes: Writer::head_bytes(&columns, &recipe.options()?),
            columns,
            file_bytes: 0,
            // Sizes depend on the lengths only.
            ids: Vec::new(),
            indices: Vec::new(),
        })
    }

    fn write(&mut self, pieces: impl Iterator<Item = RowPiece>) -> Result<()> {
        let mut bytes = vec![0; 4];
        let (mut count, mut tokens) = (0u32, 0);
        for piece in pieces {
            bytes.extend_from_slice(&piece.encode());
            tokens += u64::from(piece.len);
            count += 1;
        }
        bytes[..4].copy_from_slice(&count.to_le_bytes());
        self.ids.resize(4 * tokens as usize, 0);
        self.indices.resize(8 * count as usize, 0);
        let row_bytes = with_values(&self.name, &self.ids, &self.indices, |values| {
            self.columns.sample_bytes(values)
        });
        let row_bytes = row_bytes? + 4;
        let group = &mut self.group;
        let is_full = self.file_bytes + row_bytes > self.recipe.size_limit;
        if group.parts.is_empty() || is_full {
            group.parts.push(RowGroupPart {
                rows: group.rows..group.rows,
                tokens: 0,
                offset: group.rows_bytes,
            });
            self.file_bytes = self.head_bytes;
        }
        if let Some(part) = group.parts.last_mut() {
            part.rows.end += 1;
            part.tokens += tokens;
        }
        self.file_bytes += row_bytes;
        group.rows += 1;
        group.tokens += tokens;
        group.short_rows += u64::from(tokens < self.recipe.length);
        group.rows_bytes += bytes.len() as u64;
        self.out.write_all(&bytes).map_err(Error::io(&self.path))
    }

    fn finish(self) -> Result<RowGroup> {
        let temp = self.out.into_inner().map_err(|error| Error::Io {
            path: self.path,
            source: error.into_error(),
        })?;
        temp.publish(Replace::Existing)?;
        Ok(self.group)
    }
}

/// Documents with at least a minimum number of tokens, by their positions in the concatenated
/// files.
struct Documents<'a> {
    files: std::slice::Iter<'a, Entry>,
    open: Option<TokenFile>,
    next: u64,
    /// Number of tokens in the files before the open file.
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
    type Item = packtok_dataset::Result<Range<u64>>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.step() {
            Ok(document) => document.map(Ok),
            Err(Error::Formats(error)) => Some(Err((*error).into())),
            Err(Error::Dataset(error)) => Some(Err(*error)),
            Err(_) => Some(Err(packtok_dataset::Error::from(
                packtok_jobs::Error::Cancelled,
            ))),
        }
    }
}
