//! Reads several shards in turn: one record of the first, one of the second, and so on.
//!
//! The shards of an epoch are in a list, shuffled if requested. The first `num_active` shards are
//! open. A record is read from the shard at the head of a queue, which then moves to the end of
//! the queue. A shard without further records leaves the queue, and the next shard of the list
//! joins at the end. Shards of two epochs are never open at the same time. This is the order of
//! epochraft's `from_files`.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::Arc;

use packtok_corpus::OnBadDocument;
use packtok_corpus::{Body, Frame, ReadOptions, Record, RecordPosition, RecordReader, Source};
use packtok_dataset::order::permutation::Permutation;

use super::Sample;
use super::node::Node;
use super::position::{Numbers, Position, damaged};
use super::sample::{Name, OriginFiles, SampleOrigin, SourceRecord};
use crate::error::{Error, Result};

/// Options of a ring: its order, and the handling of its documents.
#[derive(Debug, Clone)]
pub(super) struct RingOptions {
    /// Number of shards that are open at the same time, at least 1.
    pub(super) num_active: usize,
    /// Whether an epoch follows another without end.
    pub(super) repeat: bool,
    /// The seed of the order of the shards; `None` for the order of the list.
    pub(super) shuffle_seed: Option<u64>,
    /// The name of the column of a source whose records are texts.
    pub(super) text_column: Name,
    /// The action for a document without text, at whichever step of the stream it is detected.
    pub(super) on_bad_document: OnBadDocument,
}

/// The ring of shards.
pub(super) struct Ring {
    sources: Arc<[Source]>,
    read: ReadOptions,
    options: RingOptions,
    epoch: u64,
    /// Index of the next shard to open in the order of this epoch.
    next_shard: u64,
    active: VecDeque<OpenFile>,
    /// Records read in all epochs.
    num_records: u64,
    /// Value of `num_records` at the start of this epoch.
    num_records_before: u64,
}

struct OpenFile {
    source: usize,
    reader: RecordReader,
}

impl Ring {
    pub(super) fn new(sources: Arc<[Source]>, read: ReadOptions, options: RingOptions) -> Self {
        Self {
            sources,
            read,
            options,
            epoch: 0,
            next_shard: 0,
            active: VecDeque::new(),
            num_records: 0,
            num_records_before: 0,
        }
    }

    /// The source at position `i` of this epoch.
    fn source_at(&self, i: u64) -> Option<usize> {
        let len = NonZeroU64::new(self.sources.len() as u64)?;
        (i < len.get()).then(|| match self.options.shuffle_seed {
            Some(seed) => Permutation::new(len, seed, self.epoch).at(i) as usize,
            None => i as usize,
        })
    }

    /// Opens the next shard of this epoch; returns false if no shard is left.
    fn open_next(&mut self) -> Result<bool> {
        let Some(source) = self.source_at(self.next_shard) else {
            return Ok(false);
        };
        let start = RecordPosition::default();
        let reader = RecordReader::open(&self.sources[source], &self.read, start)?;
        self.active.push_back(OpenFile { source, reader });
        self.next_shard += 1;
        Ok(true)
    }

    /// Opens the first shards of the current epoch, or of the next epoch if the current one has
    /// ended. Returns false at the end.
    fn open_epoch(&mut self) -> Result<bool> {
        if self.next_shard > 0 {
            if !self.options.repeat {
                return Ok(false);
            }
            if self.num_records == self.num_records_before {
                return Err(Error::EmptyEpoch);
            }
            self.epoch += 1;
            self.next_shard = 0;
            self.num_records_before = self.num_records;
        }
        while self.active.len() < self.options.num_active && self.open_next()? {}
        Ok(!self.active.is_empty())
    }

    /// Reads the next record that is not blank and passes it to `take` with the index of its
    /// source; `None` at the end.
    fn read<T>(&mut self, take: impl FnOnce(usize, &Record<'_>) -> T) -> Result<Option<T>> {
        loop {
            if self.active.is_empty() && !self.open_epoch()? {
                return Ok(None);
            }
            let Some(mut shard) = self.active.pop_front() else {
                return Ok(None);
            };
            let record = loop {
                match shard.reader.next_record()? {
                    Some(record) if record.is_blank() => {}
                    record => break record,
                }
            };
            let Some(record) = record else {
                self.open_next()?;
                continue;
            };
            let taken = take(shard.source, &record);
            self.active.push_back(shard);
            self.num_records += 1;
            return Ok(Some(taken));
        }
    }
}

impl Node for Ring {
    fn next(&mut self) -> Result<Option<Sample>> {
        let (column, sources) = (self.options.text_column.clone(), Arc::clone(&self.sources));
        let on_bad_document = self.options.on_bad_document;
        let max_document_bytes = self.read.max_document_bytes;
        self.read(|source, record| {
            let place = SampleOrigin {
                files: OriginFiles::Sources(sources),
                file: source,
                offset: record.offset,
            };
            Sample {
                on_bad_document,
                ..sample(place, record, &column, max_document_bytes)
            }
        })
    }

    fn mark(&self, mark: &mut Numbers) {
        mark.push(self.num_records);
    }

    fn advance(&mut self, mark: &mut Position<'_>) -> Result<()> {
        let target = mark.number()?;
        while self.num_records < target {
            if self.read(|_, _| ())?.is_none() {
                return Err(damaged());
            }
        }
        Ok(())
    }

    fn save(&self, state: &mut Numbers) {
        state.push(self.epoch);
        state.push(self.next_shard);
        state.push(self.num_records);
        state.push(self.num_records_before);
        state.push(self.active.len() as u64);
        for shard in &self.active {
            state.push(shard.source as u64);
            save_position(&shard.reader.position(), state);
        }
    }

    fn load(&mut self, state: &mut Position<'_>) -> Result<()> {
        self.epoch = state.number()?;
        self.next_shard = state.number_to(self.sources.len() as u64)?;
        self.num_records = state.number()?;
        self.num_records_before = state.number_to(self.num_records)?;
        let num_active = state.number_to(self.next_shard)?;
        self.active.clear();
        for _ in 0..num_active {
            let source = state.number()? as usize;
            let position = load_position(state)?;
            let of = self.sources.get(source).ok_or_else(damaged)?;
            let reader = RecordReader::open(of, &self.read, position)?;
            self.active.push_back(OpenFile { source, reader });
        }
        Ok(())
    }

    fn set_recomputing(&mut self, _: bool) {}
}

fn save_position(position: &RecordPosition, state: &mut Numbers) {
    // Bit 0: there is a place; bit 1: there is a frame before it.
    let kind = u64::from(position.place.is_some()) + 2 * u64::from(position.frame.is_some());
    state.push(kind);
    if let Some((offset, crc32c)) = position.place {
        state.push(offset);
        state.push(u64::from(crc32c));
    }
    if let Some(frame) = position.frame {
        state.push(frame.raw);
        state.push(frame.content);
    }
    state.push(position.records);
    state.push(u64::from(position.crc32c));
}

fn load_position(state: &mut Position<'_>) -> Result<RecordPosition> {
    let kind = state.number_to(3)?;
    let crc32c = |state: &mut Position<'_>| -> Result<u32> {
        Ok(state.number_to(u64::from(u32::MAX))? as u32)
    };
    let place = match kind & 1 {
        0 => None,
        _ => Some((state.number()?, crc32c(state)?)),
    };
    let frame = match kind & 2 {
        0 => None,
        _ => Some(Frame {
            raw: state.number()?,
            content: state.number()?,
        }),
    };
    Ok(RecordPosition {
        place,
        frame,
        records: state.number()?,
        crc32c: crc32c(state)?,
    })
}

/// The sample of a record. The record is not parsed yet.
fn sample(
    place: SampleOrigin,
    record: &Record<'_>,
    text_column: &Name,
    max_document_bytes: u64,
) -> Sample {
    Sample {
        place: Some(place),
        record: Some(match record.body {
            Body::JsonLine(line) => SourceRecord::JsonLine(line.to_vec()),
            Body::Text(text) => SourceRecord::Text(text_column.clone(), text.to_vec()),
            Body::NoText(reason) => SourceRecord::NoText(reason),
            Body::Oversize => SourceRecord::Oversize {
                len_bytes: record.len_bytes,
                max_document_bytes,
            },
        }),
        ..Sample::default()
    }
}
