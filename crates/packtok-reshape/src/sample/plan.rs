//! Assigns documents to sides, and determines the order in which windows and documents are used.
//!
//! The plan depends on the tokens and on the recipe's windows, sides and seed, but not on the
//! numbers of samples: those numbers only limit how much of each order is used. The plan contains
//! positions and no tokens, in a file that is mapped.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use packtok_dataset::files::file_set::Files;
use packtok_dataset::files::manifest::Entry as FileEntry;
use packtok_dataset::plans::split::{document_hash, least_train_hash};
use packtok_jobs::{Monitor, Progress, report_progress};
use packtok_pbin::{MappedFile, Replace, TempFile, publish_bytes};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use xxhash_rust::xxh64::xxh64;

use crate::error::{Error, Result};
use crate::sample::recipe::{From, Recipe, Side};
use crate::sample::sorter::{Record, Sorter};
use crate::sample::tokens::each_document;

const ENTRY_BYTES: usize = 20;
/// Entries that may stay in this process's memory.
const KEPT_BYTES: usize = 32 << 20;
const PLAN_FILE: &str = "plan.json";
const ENTRIES_FILE: &str = "plan.entries";
const VERSION: u64 = 1;

/// Counts of the documents of one side of one domain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SideCounts {
    /// Documents, and their tokens.
    pub(super) documents: u64,
    pub(super) tokens: u64,
    /// Documents that are too short for a sample, and their tokens.
    pub(super) too_short: u64,
    pub(super) too_short_tokens: u64,
    /// Tokens after the last windows.
    pub(super) tail_tokens: u64,
    /// Samples or chunks that can be taken.
    pub(super) available: u64,
    /// Identifies the documents, in any order and division into files.
    pub(super) digest: u64,
}

/// The entries of one side of one domain.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Group {
    first: u64,
    /// Number of entries.
    pub(super) len: u64,
    pub(super) counts: SideCounts,
}

/// The first tokens of a sample, or a document of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Number of the file.
    pub(super) file: u32,
    /// Position in the file of the first token.
    pub(super) token: u64,
    /// Number of tokens from `token` on, or the position in the stream.
    pub(super) extra: u64,
}

/// An open plan.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) files: Vec<FileEntry>,
    groups: Vec<Group>,
    entries: MappedFile,
    num_domains: usize,
}

#[derive(Serialize, Deserialize)]
struct Content {
    version: u64,
    key: Value,
    files: Vec<FileEntry>,
    groups: Vec<Group>,
    entries_bytes: u64,
}

impl Plan {
    /// Opens the plan in the folder `work`, or makes the plan there while other processes wait.
    pub(super) fn find_or_make(
        recipe: &Recipe,
        work: &Path,
        monitor: &mut Monitor<'_>,
    ) -> Result<Self> {
        fs::create_dir_all(work).map_err(Error::io(work))?;
        let files = listed(recipe)?;
        let key = key(recipe, &files)?;
        if let Some(plan) = Self::open(recipe, work, &files, &key)? {
            return Ok(plan);
        }
        let _lock = wait_for_lock(work, monitor)?;
        if let Some(plan) = Self::open(recipe, work, &files, &key)? {
            return Ok(plan);
        }
        make(recipe, work, files.clone(), key.clone(), monitor)?;
        let made = Self::open(recipe, work, &files, &key)?;
        made.ok_or_else(|| Error::Io {
            path: work.join(PLAN_FILE),
            source: std::io::ErrorKind::NotFound.into(),
        })
    }

    /// Opens the plan if it was made for these files and options.
    fn open(
        recipe: &Recipe,
        work: &Path,
        files: &[FileEntry],
        key: &Value,
    ) -> Result<Option<Self>> {
        let Ok(bytes) = fs::read(work.join(PLAN_FILE)) else {
            return Ok(None);
        };
        let Ok(content) = serde_json::from_slice::<Content>(&bytes) else {
            return Ok(None);
        };
        if content.version != VERSION || content.key != *key || content.files != files {
            return Ok(None);
        }
        let Ok(entries) = MappedFile::open(&work.join(ENTRIES_FILE)) else {
            return Ok(None);
        };
        let is_complete = entries.bytes().len() as u64 == content.entries_bytes;
        Ok(is_complete.then_some(Self {
            files: content.files,
            groups: content.groups,
            entries,
            num_domains: recipe.domains.len(),
        }))
    }

    /// Removes the files of the plan.
    pub(super) fn remove(work: &Path) {
        for name in [PLAN_FILE, ENTRIES_FILE, "lock"] {
            // A file that cannot be removed is replaced by the next plan.
            drop(fs::remove_file(work.join(name)));
        }
    }

    pub(super) fn group(&self, side: Side, domain: usize) -> &Group {
        &self.groups[side as usize * self.num_domains + domain]
    }

    pub(super) fn entry(&self, group: &Group, i: u64) -> Entry {
        let at = (group.first + i) as usize * ENTRY_BYTES;
        let bytes = &self.entries.bytes()[at..at + ENTRY_BYTES];
        let mut file = [0; 4];
        let (mut token, mut extra) = ([0; 8], [0; 8]);
        token.copy_from_slice(&bytes[..8]);
        extra.copy_from_slice(&bytes[8..16]);
        file.copy_from_slice(&bytes[16..]);
        Entry {
            file: u32::from_le_bytes(file),
            token: u64::from_le_bytes(token),
            extra: u64::from_le_bytes(extra),
        }
    }

    /// Takes the entries of a large plan that were read out of this process's memory.
    pub(super) fn release_pages(&self) {
        if self.entries.bytes().len() > KEPT_BYTES {
            self.entries.release_pages();
        }
    }

    /// The number of the document that contains token `position` of a stream.
    pub(super) fn document_at(&self, group: &Group, position: u64) -> u64 {
        // Invariant: document `low` starts at or before the position, document `high` after it.
        let (mut low, mut high) = (0, group.len);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.entry(group, middle).extra <= position {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The files of all domains. Checks that all ids have the same meaning and width.
fn listed(recipe: &Recipe) -> Result<Vec<FileEntry>> {
    for domain in &recipe.domains {
        if domain.files.is_empty() && domain.proportion > 0.0 {
            let domain = domain.name.clone();
            return Err(Error::DomainWithoutFiles { domain });
        }
    }
    let paths: Vec<_> = recipe
        .domains
        .iter()
        .flat_map(|domain| domain.files.clone())
        .collect();
    Ok(Files::open(&paths, false)?.entries().cloned().collect())
}

/// Locks the folder of unfinished work until the result is dropped.
pub(super) fn wait_for_lock(work: &Path, monitor: &mut Monitor<'_>) -> Result<fs::File> {
    let path = work.join("lock");
    let lock = fs::File::create(&path).map_err(Error::io(&path))?;
    locked(lock, path, monitor)
}

/// Locks an output folder until the result is dropped. Runs that write different retrieval shards
/// share the test and train samples of the folder.
pub(super) fn wait_for_output(output: &Path, monitor: &mut Monitor<'_>) -> Result<fs::File> {
    fs::create_dir_all(output).map_err(Error::io(output))?;
    // The folder itself, so that no file remains.
    let folder = fs::File::open(output).map_err(Error::io(output))?;
    locked(folder, output.to_owned(), monitor)
}

fn locked(lock: fs::File, path: PathBuf, monitor: &mut Monitor<'_>) -> Result<fs::File> {
    while let Err(error) = lock.try_lock() {
        match error {
            fs::TryLockError::WouldBlock => {
                std::thread::sleep(std::time::Duration::from_millis(50))
            }
            fs::TryLockError::Error(source) => return Err(Error::Io { path, source }),
        }
        report_progress(monitor, &Progress::default())?;
    }
    Ok(lock)
}

/// The modification time of each file. Not all formats have checksums, so for some files only this
/// time shows a change that keeps the length.
pub(super) fn modified(files: &[FileEntry]) -> Result<Vec<Option<u64>>> {
    let modified = files.iter().map(|file| {
        let metadata = fs::metadata(&file.path).map_err(Error::io(&file.path))?;
        let modified = metadata.modified().ok();
        Ok(modified.and_then(|time| Some(time.duration_since(UNIX_EPOCH).ok()?.as_nanos() as u64)))
    });
    modified.collect()
}

/// The inputs of the plan other than the entries of the files.
fn key(recipe: &Recipe, files: &[FileEntry]) -> Result<Value> {
    Ok(json!({
        "modified": modified(files)?,
        "domains": recipe.domains.iter().map(|domain| json!([domain.name, domain.files.len()])).collect::<Vec<_>>(),
        "from": recipe.from,
        "context": recipe.context,
        "decoder": recipe.decoder,
        "min_tokens": recipe.min_tokens,
        "splits": recipe.splits,
        "seed": recipe.seed,
        "chunk": recipe.retrieval.as_ref().map(|retrieval| retrieval.chunk),
    }))
}

/// Reads all documents once and writes the plan.
fn make(
    recipe: &Recipe,
    work: &Path,
    files: Vec<FileEntry>,
    key: Value,
    monitor: &mut Monitor<'_>,
) -> Result<()> {
    let mut planner = Planner::new(recipe, work);
    let mut progress = Progress {
        total_bytes: files
            .iter()
            .map(|file| file.tokens * file.token_bytes)
            .sum(),
        ..Progress::default()
    };
    let domains = recipe.domains.iter().enumerate();
    let domain_of_file = domains.flat_map(|(i, domain)| domain.files.iter().map(move |_| i));
    for ((file, entry), domain) in (0..).zip(&files).zip(domain_of_file) {
        each_document(&entry.path, |bytes, width, tokens| {
            progress.bytes_read += bytes.len() as u64;
            progress.documents += 1;
            progress.tokens += tokens.end - tokens.start;
            if progress.documents.is_multiple_of(256) || bytes.len() > 1 << 20 {
                report_progress(monitor, &progress)?;
            }
            let hash = document_hash(bytes, width, recipe.seed);
            planner.add(domain, file, hash, tokens.start, tokens.end - tokens.start)
        })?;
    }
    let entries_path = work.join(ENTRIES_FILE);
    let (temp, groups) = planner.finish(&entries_path, &progress, monitor)?;
    let entries_bytes = groups.iter().map(|group| group.len).sum::<u64>() * ENTRY_BYTES as u64;
    temp.publish(Replace::Existing)?;
    let content = Content {
        version: VERSION,
        key,
        files,
        groups,
        entries_bytes,
    };
    let bytes = serde_json::to_vec(&content).map_err(|source| Error::Io {
        path: work.join(PLAN_FILE),
        source: source.into(),
    })?;
    Ok(publish_bytes(
        &work.join(PLAN_FILE),
        &bytes,
        Replace::Existing,
    )?)
}

/// Collects the records of all groups.
struct Planner<'a> {
    recipe: &'a Recipe,
    sorter: Sorter,
    counts: Vec<SideCounts>,
    least_train: u64,
    least_retrieval: u64,
}

impl<'a> Planner<'a> {
    fn new(recipe: &'a Recipe, work: &Path) -> Self {
        let splits = recipe.splits;
        Self {
            recipe,
            sorter: Sorter::new(work),
            counts: vec![SideCounts::default(); Side::ALL.len() * recipe.domains.len()],
            least_train: least_train_hash(splits.test),
            least_retrieval: least_train_hash(splits.test + splits.train),
        }
    }

    fn side(&self, hash: u64) -> Side {
        if hash < self.least_train {
            Side::Test
        } else if hash < self.least_retrieval {
            Side::Train
        } else {
            Side::Retrieval
        }
    }

    /// Adds a document.
    fn add(&mut self, domain: usize, file: u32, hash: u64, token: u64, len: u64) -> Result<()> {
        let side = self.side(hash);
        let group = side as usize * self.recipe.domains.len() + domain;
        let counts = &mut self.counts[group];
        counts.documents += 1;
        counts.tokens += len;
        counts.digest = counts.digest.wrapping_add(xxh64(&hash.to_le_bytes(), len));
        let record = Record {
            group: group as u32,
            key: hash,
            file,
            token,
            len,
        };
        match (side, self.recipe.from, &self.recipe.retrieval) {
            (Side::Retrieval, _, None) => Ok(()),
            (Side::Retrieval, _, Some(retrieval)) => {
                let chunk = retrieval.chunk;
                if len < chunk {
                    counts.too_short += 1;
                    counts.too_short_tokens += len;
                    return Ok(());
                }
                counts.available += len / chunk;
                counts.tail_tokens += len % chunk;
                self.spread(record, len / chunk, chunk, |start| {
                    (len - start).min(2 * chunk)
                })
            }
            (_, From::Stream, _) => {
                if len > 0 {
                    self.sorter.push(record)
                } else {
                    Ok(())
                }
            }
            (_, From::Documents, _) => {
                let window = self.recipe.window();
                let count = window.count(len);
                if len < self.recipe.min_tokens || count == 0 {
                    counts.too_short += 1;
                    counts.too_short_tokens += len;
                    return Ok(());
                }
                counts.available += count;
                counts.tail_tokens += window.tail(len);
                self.spread(record, count, window.decoder, |_| window.tokens())
            }
        }
    }

    /// Adds the windows of a document, each with a key of its own.
    fn spread(
        &mut self,
        document: Record,
        count: u64,
        stride: u64,
        len: impl Fn(u64) -> u64,
    ) -> Result<()> {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&document.key.to_le_bytes());
        for i in 0..count {
            bytes[8..].copy_from_slice(&i.to_le_bytes());
            self.sorter.push(Record {
                key: xxh64(&bytes, self.recipe.seed),
                token: document.token + i * stride,
                len: len(i * stride),
                ..document
            })?;
        }
        Ok(())
    }

    /// Writes the entries in order.
    fn finish(
        mut self,
        path: &Path,
        progress: &Progress,
        monitor: &mut Monitor<'_>,
    ) -> Result<(TempFile, Vec<Group>)> {
        let mut out = BufWriter::with_capacity(1 << 18, TempFile::create(path)?);
        let is_stream = self.recipe.from == From::Stream;
        let first_retrieval = Side::Retrieval as usize * self.recipe.domains.len();
        let mut lens = vec![0; self.counts.len()];
        let mut positions = vec![0; self.counts.len()];
        let mut written = 0u64;
        self.sorter.finish(&mut |record| {
            let group = record.group as usize;
            let extra = if is_stream && group < first_retrieval {
                positions[group] += record.len;
                positions[group] - record.len
            } else {
                record.len
            };
            lens[group] += 1;
            written += 1;
            if written.is_multiple_of(1 << 16) {
                report_progress(monitor, progress)?;
            }
            let mut bytes = [0; ENTRY_BYTES];
            bytes[..8].copy_from_slice(&record.token.to_le_bytes());
            bytes[8..16].copy_from_slice(&extra.to_le_bytes());
            bytes[16..].copy_from_slice(&record.file.to_le_bytes());
            out.write_all(&bytes).map_err(Error::io(path))
        })?;
        let temp = out.into_inner().map_err(|error| Error::Io {
            path: path.to_owned(),
            source: error.into_error(),
        })?;
        let window = self.recipe.window();
        if is_stream {
            for (counts, &tokens) in self.counts[..first_retrieval].iter_mut().zip(&positions) {
                counts.available = window.count(tokens);
                counts.tail_tokens = window.tail(tokens);
            }
        }
        let mut first = 0;
        let groups = lens.iter().zip(self.counts).map(|(&len, counts)| {
            let group = Group { first, len, counts };
            first += len;
            group
        });
        Ok((temp, groups.collect()))
    }
}
