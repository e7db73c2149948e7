//! Sources whose documents have numbers and can be read in any order: token files, and plain files
//! of JSON lines with a raw index. A position is one number.

use std::fs::File;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use packtok_corpus::OnBadDocument;
use packtok_corpus::{Error as CorpusError, Source};
use packtok_dataset::files::file_set::Files;
use packtok_dataset::order::permutation::Permutation;
use packtok_jobs::Shard;
use packtok_pbin::TokenWidth;

use super::Sample;
use super::lane_files::described;
use super::node::Node;
use super::position::{Numbers, Position};
use super::sample::{Name, OriginFiles, SampleOrigin, SourceRecord};
use super::value::Value;
use crate::error::{Error, Result};

/// Documents that are read in any order.
pub(super) trait Numbered: Send + Sync {
    /// The number of documents.
    fn num_documents(&self) -> u64;

    /// The files, in words.
    fn described(&self) -> String;

    /// Document `i`.
    ///
    /// # Errors
    /// The document cannot be read.
    fn document(&self, i: u64) -> Result<Sample>;

    /// The first document that starts at or after a share of the bytes or tokens, `index / count`.
    ///
    /// # Errors
    /// A file cannot be read.
    fn boundary(&self, index: u64, count: u64) -> Result<u64>;
}

/// The order in which the documents are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberedOptions {
    /// Whether an epoch follows another without end.
    pub(super) repeat: bool,
    /// The seed of the permutation of each epoch; `None` for the order of the files.
    pub(super) shuffle_seed: Option<u64>,
}

/// The numbers of the documents of a lane; without a lane, of all documents.
///
/// # Errors
/// The lane has no documents, or a file cannot be read.
pub(super) fn documents_of_lane(
    documents: &dyn Numbered,
    lane: Option<Shard>,
) -> Result<Range<u64>> {
    let Some(lane) = lane else {
        return Ok(0..documents.num_documents());
    };
    let (index, count) = (lane.index() as usize, lane.count());
    let boundaries = (0..=count).map(|index| documents.boundary(index, count));
    let mut boundaries = boundaries.collect::<Result<Vec<_>>>()?;
    if boundaries.windows(2).any(|pair| pair[0] == pair[1]) {
        // Some lane has no document, because a document before it is long. Divide by number of
        // documents instead.
        let num_documents = documents.num_documents();
        if num_documents < count {
            return Err(Error::EmptyLane {
                data: documents.described(),
                lane: lane.index(),
                num_lanes: count,
                possible: num_documents,
                has_whole: false,
            });
        }
        boundaries = (0..=count)
            .map(|index| share_of(num_documents, index, count))
            .collect();
    }
    Ok(boundaries[index]..boundaries[index + 1])
}

/// The node that reads documents by their numbers.
pub(super) struct NumberedNode {
    documents: Arc<dyn Numbered>,
    range: Range<u64>,
    options: NumberedOptions,
    /// Number of the next sample, counted over all epochs.
    number: u64,
    /// The order of an epoch.
    permutation: Option<(u64, Permutation)>,
}

impl NumberedNode {
    pub(super) fn new(
        documents: Arc<dyn Numbered>,
        range: Range<u64>,
        options: NumberedOptions,
    ) -> Self {
        Self {
            documents,
            range,
            options,
            number: 0,
            permutation: None,
        }
    }

    /// The document at `number`; `None` after the last one.
    fn document_at(&mut self, number: u64) -> Result<Option<u64>> {
        let Some(len) = NonZeroU64::new(self.range.end - self.range.start) else {
            return if self.options.repeat {
                Err(Error::EmptyEpoch)
            } else {
                Ok(None)
            };
        };
        let (epoch, mut i) = (number / len, number % len);
        if epoch > 0 && !self.options.repeat {
            return Ok(None);
        }
        if let Some(seed) = self.options.shuffle_seed {
            let is_current = self
                .permutation
                .as_ref()
                .is_some_and(|(known, _)| *known == epoch);
            if !is_current {
                self.permutation = Some((epoch, Permutation::new(len, seed, epoch)));
            }
            if let Some((_, permutation)) = &self.permutation {
                i = permutation.at(i);
            }
        }
        Ok(Some(self.range.start + i))
    }
}

impl Node for NumberedNode {
    fn next(&mut self) -> Result<Option<Sample>> {
        let Some(document) = self.document_at(self.number)? else {
            return Ok(None);
        };
        self.number = self.number.saturating_add(1);
        self.documents.document(document).map(Some)
    }

    fn mark(&self, mark: &mut Numbers) {
        mark.push(self.number);
    }

    fn advance(&mut self, mark: &mut Position<'_>) -> Result<()> {
        self.number = mark.number()?;
        Ok(())
    }

    fn save(&self, state: &mut Numbers) {
        state.push(self.number);
    }

    fn load(&mut self, state: &mut Position<'_>) -> Result<()> {
        self.advance(state)
    }

    fn set_recomputing(&mut self, _: bool) {}
}

/// The documents of token files.
pub(super) struct TokenDocuments {
    pub(super) files: Arc<Files>,
    /// The column of the ids.
    pub(super) column: Name,
}

impl Numbered for TokenDocuments {
    fn num_documents(&self) -> u64 {
        self.files.num_documents()
    }

    fn described(&self) -> String {
        described((0..self.files.len()).map(|file| self.files.path(file)))
    }

    fn document(&self, i: u64) -> Result<Sample> {
        let file = self.files.file_of_document(i);
        let number = i - self.files.documents_of(file).start;
        let read = || -> packtok_dataset::Result<Vec<u32>> {
            let tokens = self.files.token_file(file)?.document_tokens(number)?;
            let bytes = self.files.tokens(file, tokens)?;
            Ok(ids_of(self.files.width(), bytes))
        };
        let ids = read()?;
        Ok(Sample {
            place: Some(SampleOrigin {
                files: OriginFiles::Pbins(Arc::clone(&self.files)),
                file,
                offset: number,
            }),
            columns: vec![(self.column.clone(), Value::Ids(ids))],
            ..Sample::default()
        })
    }

    fn boundary(&self, index: u64, count: u64) -> Result<u64> {
        let files = &self.files;
        let token = share_of(files.num_tokens(), index, count);
        if token >= files.num_tokens() {
            return Ok(files.num_documents());
        }
        let file = files.file_of_token(token);
        let documents = files.documents_of(file);
        let first = token - files.tokens_of(file).start;
        let find = || -> packtok_dataset::Result<u64> {
            for document in files.token_file(file)?.documents_from(first)? {
                let (number, tokens) = document?;
                if tokens.start >= first {
                    return Ok(documents.start + number);
                }
            }
            Ok(documents.end)
        };
        Ok(find()?)
    }
}

/// The ids of little-endian tokens.
fn ids_of(width: TokenWidth, bytes: &[u8]) -> Vec<u32> {
    match width {
        TokenWidth::U8 => bytes.iter().map(|&id| id.into()).collect(),
        TokenWidth::U16 => {
            let (tokens, _) = bytes.as_chunks();
            let tokens = tokens.iter().copied().map(u16::from_le_bytes);
            tokens.map(u32::from).collect()
        }
        TokenWidth::U32 => {
            let (tokens, _) = bytes.as_chunks();
            tokens.iter().copied().map(u32::from_le_bytes).collect()
        }
    }
}

/// `index / count` of `total`.
fn share_of(total: u64, index: u64, count: u64) -> u64 {
    (u128::from(total) * u128::from(index) / u128::from(count)) as u64
}

/// The lines of plain files with a raw index each.
pub(super) struct IndexedLines {
    sources: Arc<[Source]>,
    files: Vec<File>,
    /// For each file, the number of its first line and the total length of the files before it in
    /// bytes. The last entry has the totals.
    starts: Vec<(u64, u64)>,
    /// Offset and length in bytes of each line, for all files one after the other.
    lines: Vec<(u64, u32)>,
    max_document_bytes: u64,
    on_bad_document: OnBadDocument,
}

impl IndexedLines {
    /// Opens the files and reads their indexes.
    ///
    /// # Errors
    /// A file is not plain JSON lines, or its index is missing, damaged or belongs to another
    /// file.
    pub(super) fn open(
        sources: Vec<Source>,
        max_document_bytes: u64,
        on_bad_document: OnBadDocument,
    ) -> Result<Self> {
        let mut this = Self {
            files: Vec::with_capacity(sources.len()),
            starts: vec![(0, 0)],
            lines: Vec::new(),
            sources: Arc::from([]),
            max_document_bytes,
            on_bad_document,
        };
        for source in &sources {
            let io = |cause| Error::io(&source.path, cause);
            packtok_corpus::check_plain(source)?;
            this.files.push(File::open(&source.path).map_err(io)?);
            let first = this.lines.len();
            let index: PathBuf = source.path.with_extension("idx");
            if !index.exists() {
                return Err(Error::NoRawIndex {
                    path: source.path.clone(),
                    index,
                });
            }
            for (entry, (offset, len)) in packtok_pbin::read_raw_index(&index)?
                .into_iter()
                .enumerate()
            {
                if offset.checked_add(len).is_none_or(|end| end > source.bytes) {
                    let outside = CorpusError::IndexEntryOutside {
                        path: source.path.clone(),
                        entry,
                        offset_bytes: offset,
                        len_bytes: len,
                        file_bytes: source.bytes,
                    };
                    return Err(outside.into());
                }
                // A longer line is a bad document in any case.
                this.lines
                    .push((offset, u32::try_from(len).unwrap_or(u32::MAX)));
            }
            let end = this.lines[first..]
                .last()
                .map_or(0, |&(offset, len)| offset.saturating_add(u64::from(len)));
            check_index(source, this.files.last(), &this.lines[first..], end)?;
            let (_, bytes_before) = this.starts[this.starts.len() - 1];
            this.starts
                .push((this.lines.len() as u64, bytes_before + source.bytes));
        }
        this.sources = sources.into();
        Ok(this)
    }
}

/// Bytes after the last line that are read to see whether they are blank.
const MAX_BLANK_BYTES: u64 = 1 << 20;

/// Checks that an index matches the current file: its lines are in order, the first and the last
/// entry end at line ends, and no line follows the last entry.
fn check_index(source: &Source, file: Option<&File>, lines: &[(u64, u32)], end: u64) -> Result<()> {
    let stale = || Error::StaleRawIndex {
        path: source.path.clone(),
    };
    let (Some(file), Some(&(first, first_len))) = (file, lines.first()) else {
        return match source.bytes {
            0 => Ok(()),
            _ => Err(stale()),
        };
    };
    let is_ordered = lines
        .windows(2)
        .all(|pair| pair[0].0.saturating_add(pair[0].1.into()) < pair[1].0);
    let after = source.bytes - end;
    if !is_ordered || after > MAX_BLANK_BYTES {
        return Err(stale());
    }
    let mut rest = vec![0; after as usize];
    let read = |buffer: &mut [u8], offset| {
        file.read_exact_at(buffer, offset)
            .map_err(|cause| Error::io(&source.path, cause))
    };
    read(&mut rest, end)?;
    let mut ends = [0; 2];
    let first_end = first + u64::from(first_len);
    let len = (source.bytes - first_end).min(2) as usize;
    read(&mut ends[..len], first_end)?;
    // A `\r` before the line end is not part of a line.
    let ends_line = matches!(&ends[..len], [] | [b'\n', ..] | [b'\r', b'\n']);
    if ends_line && rest.iter().all(u8::is_ascii_whitespace) {
        Ok(())
    } else {
        Err(stale())
    }
}

impl Numbered for IndexedLines {
    fn num_documents(&self) -> u64 {
        self.lines.len() as u64
    }

    fn described(&self) -> String {
        described(self.sources.iter().map(|source| &*source.path))
    }

    fn document(&self, i: u64) -> Result<Sample> {
        let file = self.starts.partition_point(|&(first, _)| first <= i) - 1;
        let (offset, len) = self.lines[i as usize];
        let len_bytes = u64::from(len);
        let is_long = len_bytes > self.max_document_bytes || len == u32::MAX;
        let record = if is_long {
            SourceRecord::Oversize {
                len_bytes,
                max_document_bytes: self.max_document_bytes,
            }
        } else {
            let mut line = vec![0; len as usize];
            self.files[file]
                .read_exact_at(&mut line, offset)
                .map_err(|cause| Error::io(&self.sources[file].path, cause))?;
            SourceRecord::JsonLine(line)
        };
        Ok(Sample {
            place: Some(SampleOrigin {
                files: OriginFiles::Sources(Arc::clone(&self.sources)),
                file,
                offset,
            }),
            on_bad_document: self.on_bad_document,
            record: Some(record),
            ..Sample::default()
        })
    }

    fn boundary(&self, index: u64, count: u64) -> Result<u64> {
        let total = self.starts.last().map_or(0, |&(_, bytes)| bytes);
        let byte = share_of(total, index, count);
        if byte >= total {
            return Ok(self.num_documents());
        }
        let file = self.starts.partition_point(|&(_, before)| before <= byte) - 1;
        let (first, before) = self.starts[file];
        let lines = &self.lines[first as usize..self.starts[file + 1].0 as usize];
        let passed = lines.partition_point(|&(offset, _)| offset < byte - before);
        Ok(first + passed as u64)
    }
}
