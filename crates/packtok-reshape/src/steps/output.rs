//! Writes the used documents.

use std::ops::ControlFlow;
use std::path::PathBuf;

use packtok_formats::{OpenOptions, TokenFile, TokenFormat};
use packtok_jobs::Monitor;
use packtok_pbin::{
    Counts, Finished, Metadata, Options, Origin, Reader, ShuffleGenerator, TokenWidth, Writer,
};
use serde::Serialize;

use super::inputs::Input;
use super::removed::RemovalReport;
use super::retokenize::{RetokenizeReport, Retokenizing};
use super::selection::{Reshaper, StepReport, next_number};
use super::truncation::shortened;
use crate::convert::{
    ConvertOptions, ConvertReport, Kept, Losing, ORIGINS, Place, check_extras, check_outputs,
    convert, convert_width, unknown_losses,
};
use crate::error::Result;
use crate::existing::{compare, prepare};
use crate::loss_mask::{LOSS_MASK, append_loss_mask};
use crate::shuffle::documents::{Parts, PbinSink, UsedDocuments};
use crate::shuffle::meter::Meter;
use crate::shuffle::{Budget, Seed, Shuffle, Sink, checked_len};

/// The name of the step that shortens documents.
const SHUFFLE: &str = "shuffle";
const TRUNCATE: &str = "truncate";
/// The name of the step that tokenizes documents again.
const RETOKENIZE: &str = "retokenize";
/// The name of the step that cuts documents into rows.
const ROWS: &str = Metadata::ROWS_STEP;
/// What an output with documents of files with and without origins is called in errors.
const MIXED: &str = "an output that joins inputs with and without them";
/// Documents that are tokenized again at a time.
const RETOKENIZED_DOCUMENTS: usize = 1024;
/// Documents, and bytes, between two calls of the monitor.
const DOCUMENTS_PER_CALL: u64 = 1 << 12;
const BYTES_PER_CALL: u64 = 4 << 20;
/// Bytes that are read before mapped pages are released.
const MAPPED_BYTES: u64 = 64 << 20;

/// What the order is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShuffledUnit {
    /// Single documents.
    Documents,
    /// Blocks: as many consecutive documents as have this many tokens together.
    Blocks {
        /// Least number of tokens.
        min_tokens: u64,
    },
}

/// A new order of the documents: a permutation of packtok.
#[derive(Debug, Clone, Copy)]
pub struct Shuffling {
    /// The seed of the permutation.
    pub seed: u64,
    /// What changes its place.
    pub unit: ShuffledUnit,
    /// The memory to use.
    pub budget: Budget,
}

/// What is written, and where.
pub struct WriteOptions {
    /// The output and its format. Its inputs are those of the reshaper.
    pub convert: ConvertOptions,
    /// Documents are tokenized again.
    pub retokenizing: Option<Retokenizing>,
    /// The most tokens of a document. A longer one is cut, and ends with EOD again if it did before.
    pub truncate_to: Option<u64>,
    /// Documents get a new order.
    pub shuffling: Option<Shuffling>,
    /// Documents are joined and cut into rows of so many tokens.
    pub row_tokens: Option<u64>,
}

/// What was written.
#[derive(Debug, Serialize)]
pub struct ReshapeReport {
    /// The written file, or what several share.
    pub output: PathBuf,
    /// The written files of tokens.
    pub files: Vec<PathBuf>,
    /// Documents of the input.
    pub documents_in: u64,
    /// Tokens of the input.
    pub tokens_in: u64,
    /// Documents of the output.
    pub documents: u64,
    /// Tokens of the output.
    pub tokens: u64,
    /// Bytes of the files.
    pub file_bytes: u64,
    /// What each step has left out or repeated.
    pub steps: Vec<StepReport>,
    /// Documents that were cut.
    pub truncated: u64,
    /// What is known about listed documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<RemovalReport>,
    /// What happened to documents that were tokenized again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retokenized: Option<RetokenizeReport>,
    /// Whether the output already existed and equals the result.
    pub skipped_existing: bool,
    /// Where the output has what the inputs record.
    pub kept: Kept,
    /// Sentences for the user.
    pub notes: Vec<String>,
    /// The conversion, if the output is no pbin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub converted: Option<ConvertReport>,
}

/// Counts of documents that were changed.
#[derive(Default)]
struct Changes {
    truncated: u64,
    truncated_tokens: u64,
    /// Tokens that do not fill a row.
    rest_tokens: u64,
    retokenized: Option<RetokenizeReport>,
}

impl Reshaper {
    /// Writes the used documents. `started` receives what is kept before anything is written, and may stop.
    ///
    /// # Errors
    /// A file is damaged; the output exists and may not be replaced, or differs from the result;
    /// writing fails; the monitor breaks.
    pub fn write(
        &mut self,
        options: &WriteOptions,
        started: &mut dyn FnMut(&Kept) -> ControlFlow<()>,
        monitor: &mut Monitor<'_>,
    ) -> Result<ReshapeReport> {
        let is_pbin = options.convert.to == TokenFormat::Pbin;
        let (inputs, output) = (&options.convert.inputs, options.convert.output.as_path());
        let existing = options.convert.existing;
        // Other formats have several files, which the conversion compares.
        let keeps = is_pbin && prepare(inputs, output, existing)?;
        if !is_pbin {
            packtok_pbin::remove_abandoned(&[output])?;
            check_outputs(&options.convert)?;
        }
        let kept = self.kept(options)?;
        if started(&kept).is_break() {
            return Err(packtok_jobs::Error::Cancelled.into());
        }
        self.add_changing_steps(options);
        let passes = 1 + u64::from(options.shuffling.is_some());
        let mut meter = Meter::new(monitor, passes * self.inputs.data_bytes());
        let (finished, changes) = self.written(options, &mut meter)?;
        let summary = finished.summary();
        for report in &mut self.steps {
            match report.step.step.as_str() {
                TRUNCATE => report.left_out_tokens = changes.truncated_tokens,
                ROWS => report.left_out_tokens = changes.rest_tokens,
                _ => {}
            }
        }
        let written = Reader::open(finished.path())?;
        let is_retokenized = options.retokenizing.is_some();
        let removed = self.prove_removal(&written, options.truncate_to, is_retokenized)?;
        drop(written);
        let mut report = ReshapeReport {
            output: output.to_owned(),
            files: vec![output.to_owned()],
            documents_in: self.inputs.num_documents,
            tokens_in: self.inputs.num_tokens(),
            documents: summary.documents,
            tokens: summary.tokens,
            file_bytes: summary.file_bytes,
            steps: self.steps.clone(),
            truncated: changes.truncated,
            removed,
            retokenized: changes.retokenized,
            skipped_existing: keeps,
            kept,
            notes: unknown_losses(
                self.inputs.files.iter().map(|input| &input.file),
                &options.convert.accept_loss,
            )
            .into_iter()
            .collect(),
            converted: None,
        };
        if keeps {
            compare(finished.path(), output)?;
        } else if is_pbin {
            finished.publish(existing.replace())?;
        } else {
            let mut accept_loss = options.convert.accept_loss.clone();
            // The pbin has no other.
            accept_loss.retain(|name| [ORIGINS, LOSS_MASK].contains(&name.as_str()));
            let conversion = ConvertOptions {
                inputs: vec![finished.path().to_owned()],
                accept_loss,
                open: OpenOptions::default(),
                source_name: inputs.first().cloned(),
                ..options.convert.clone()
            };
            let mut started = |_: &_| ControlFlow::Continue(());
            let converted = convert(&conversion, &mut started, monitor)?;
            report.files.clone_from(&converted.files);
            report.file_bytes = converted.file_bytes;
            report.skipped_existing = converted.skipped_existing;
            report.notes.extend_from_slice(&converted.notes);
            report.converted = Some(converted);
        }
        Ok(report)
    }

    /// What the output will have of what the inputs record. Truncation may make a single shard, which keeps more,
    /// of what looks like several here.
    ///
    /// # Errors
    /// The caller does not accept to lose what nothing will have.
    fn kept(&self, options: &WriteOptions) -> Result<Kept> {
        let (to, inputs) = (options.convert.to, &self.inputs.files);
        let losing = |to| Losing {
            to,
            accept_loss: &options.convert.accept_loss,
        };
        for input in inputs {
            check_extras(&input.file, &options.convert)?;
        }
        let is_pbin = to == TokenFormat::Pbin;
        let place_of_rest = if is_pbin {
            Place::Files
        } else if self.has_no_rest(&options.convert)? {
            Place::Nowhere
        } else {
            Place::Beside
        };
        let files = inputs.iter().map(|input| &input.file);
        let meaning = match &options.retokenizing {
            Some(retokenizing) => retokenizing.meaning(),
            None => self.meaning(),
        };
        let mut kept = Kept::of_format(to, &meaning, files);
        if let Some(path) = &self.inputs.lost_origins {
            kept.put(ORIGINS, Place::Nowhere, path, losing(MIXED))?;
        } else if let Some(input) = inputs.first().filter(|_| self.inputs.has_origins) {
            let (place, to) = match options.row_tokens {
                Some(_) => (Place::Nowhere, ROWS),
                None => (place_of_rest, to.name()),
            };
            kept.put(ORIGINS, place, input.file.path(), losing(to))?;
        }
        if let Some(input) = inputs.iter().find(|input| input.loss_mask().is_some()) {
            let (place, to) = match options.retokenizing {
                Some(_) => (Place::Nowhere, RETOKENIZE),
                None if to.records_loss_masks() => (Place::Files, to.name()),
                None => (place_of_rest, to.name()),
            };
            kept.put(LOSS_MASK, place, input.file.path(), losing(to))?;
        }
        Ok(kept)
    }

    /// Whether the conversion keeps nothing beside its output of what the format has no room for.
    fn has_no_rest(&self, convert: &ConvertOptions) -> Result<bool> {
        let max_tokens = match convert.sharding {
            Some(sharding) => sharding.max_tokens_of(convert.to),
            None => u64::MAX,
        };
        let mut num_tokens = 0;
        for number in self.used_from(0) {
            num_tokens += self.inputs.length(number)? * u64::from(self.copies[number as usize]);
        }
        Ok(convert.to == TokenFormat::CepeNpy || num_tokens > max_tokens)
    }

    /// Records the steps that change documents or their order.
    fn add_changing_steps(&mut self, options: &WriteOptions) {
        if let Some(Retokenizing { to, .. }) = &options.retokenizing {
            let name = to.tokenizer().name().to_owned();
            self.start_step(RETOKENIZE, Some(name));
        }
        if let Some(length) = options.truncate_to {
            self.start_step(TRUNCATE, Some(length.to_string()));
        }
        if let Some(Shuffling { seed, unit, .. }) = options.shuffling {
            let value = match unit {
                ShuffledUnit::Documents => format!("documents, seed {seed}"),
                ShuffledUnit::Blocks { min_tokens } => {
                    format!("blocks of {min_tokens} tokens, seed {seed}")
                }
            };
            self.start_step(SHUFFLE, Some(value));
        }
        if let Some(row_tokens) = options.row_tokens {
            self.start_step(ROWS, Some(row_tokens.to_string()));
        }
    }

    /// What the output is written to.
    fn sink(&self, options: &WriteOptions) -> Result<PbinSink> {
        let (output, width) = (options.convert.output.as_path(), self.width(options));
        let has_origins = self.inputs.has_origins && options.row_tokens.is_none();
        let writer = self.with_loss_mask(Writer::create(output, width, has_origins)?, options)?;
        Ok(match options.row_tokens {
            None => PbinSink::new(writer),
            Some(row_tokens) => {
                let row_bytes = row_tokens.saturating_mul(width.bytes());
                PbinSink::of_rows(writer, row_bytes as usize)
            }
        })
    }

    /// The writer, which also records the loss mask if there is one. The tokens of another tokenizer have
    /// none.
    fn with_loss_mask(&self, writer: Writer, options: &WriteOptions) -> Result<Writer> {
        let has_loss_mask = self.inputs.has_loss_mask() && options.retokenizing.is_none();
        Ok(if has_loss_mask {
            writer.with_loss_mask()?
        } else {
            writer
        })
    }

    /// The pbin of the used documents under a temporary name.
    fn written(
        &self,
        options: &WriteOptions,
        meter: &mut Meter<'_, '_>,
    ) -> Result<(Finished, Changes)> {
        let Some(shuffling) = &options.shuffling else {
            return self.written_in_turn(self.sink(options)?, options, meter);
        };
        let output = options.convert.output.as_path();
        let width = self.width(options);
        let is_changed = options.retokenizing.is_some() || options.truncate_to.is_some();
        let mut files = self.inputs.files.iter();
        let can_be_copied = !is_changed && files.all(|input| input.file.width() == width);
        let mut sink = self.sink(options)?;
        let budget = &shuffling.budget;
        if can_be_copied {
            let used = self.inputs.files.iter().map(|input| self.used_of(input));
            let parts = Parts::new(used, width)?;
            let lengths = self.used_from(0).flat_map(|number| {
                let length = self.inputs.length(number);
                let copies = self.copies[number as usize];
                (0..copies).map(move |_| length.as_ref().map_or(0, |&length| length))
            });
            let order = order_of(parts.num_documents(), lengths, shuffling, meter)?;
            parts.write_in_order(order, &mut sink, output, budget, meter)?;
            let changes = Changes::of_rest(&sink, width);
            return Ok((self.finished(sink, options)?, changes));
        }
        let documents = Writer::create(output, width, self.inputs.has_origins)?;
        let documents = PbinSink::new(self.with_loss_mask(documents, options)?);
        let (changed, mut changes) = self.written_in_turn(documents, options, meter)?;
        let file = TokenFile::open(changed.path())?;
        let TokenFile::Pbin(reader) = &file else {
            return Ok((changed, changes));
        };
        let used = UsedDocuments {
            file: &file,
            origins: Some(reader).filter(|_| self.inputs.has_origins),
            loss_mask: file.loss_mask(),
            documents: 0..file.num_documents(),
            copies: None,
            first_source: 0,
            vocab_size: None,
        };
        let parts = Parts::new([used], width)?;
        let lengths = (0..file.num_documents()).map(|i| {
            let tokens = file.document_tokens(i);
            tokens.map_or(0, |tokens| tokens.end - tokens.start)
        });
        let order = order_of(parts.num_documents(), lengths, shuffling, meter)?;
        parts.write_in_order(order, &mut sink, output, budget, meter)?;
        changes.rest_tokens = Changes::of_rest(&sink, width).rest_tokens;
        Ok((self.finished(sink, options)?, changes))
    }

    /// As [`Reshaper::written`], without a new order.
    fn written_in_turn(
        &self,
        mut sink: PbinSink,
        options: &WriteOptions,
        meter: &mut Meter<'_, '_>,
    ) -> Result<(Finished, Changes)> {
        let width = self.width(options);
        let mut changes = Changes::default();
        match &options.retokenizing {
            None => {
                let eod = self.inputs.metadata.eod.as_ref().map(|eod| eod.id);
                for input in &self.inputs.files {
                    let limit = (options.truncate_to, eod);
                    self.copy_documents(input, width, limit, &mut sink, &mut changes, meter)?;
                }
            }
            Some(retokenizing) => {
                let limit = options.truncate_to;
                self.retokenize(retokenizing, width, limit, &mut sink, &mut changes, meter)?;
            }
        }
        changes.rest_tokens = Changes::of_rest(&sink, width).rest_tokens;
        Ok((self.finished(sink, options)?, changes))
    }

    fn copy_documents(
        &self,
        input: &Input,
        width: TokenWidth,
        (truncate_to, eod): (Option<u64>, Option<u32>),
        sink: &mut PbinSink,
        changes: &mut Changes,
        meter: &mut Meter<'_, '_>,
    ) -> Result<()> {
        let from = input.file.width();
        let (mut converted, mut is_counted) = (Vec::new(), Vec::new());
        let (mut read_bytes, mut released, mut num_documents) = (0, 0, 0);
        self.used_of(input).for_each(|tokens, origin| {
            let bytes = input.tokens(tokens.clone())?;
            let (start, end) = shortened(bytes, from, truncate_to, eod);
            for piece in [start, end] {
                if from == width {
                    sink.piece(piece)?;
                } else if !piece.is_empty() {
                    converted.clear();
                    convert_width(piece, from, width, &mut converted);
                    sink.piece(&converted)?;
                }
            }
            sink.end(origin)?;
            if sink.has_loss_mask() {
                let num_first = from.tokens_in(start.len() as u64);
                let num_last = from.tokens_in(end.len() as u64);
                let mask = input.loss_mask();
                is_counted.clear();
                append_loss_mask(
                    mask,
                    tokens.start..tokens.start + num_first,
                    &mut is_counted,
                )?;
                append_loss_mask(mask, tokens.end - num_last..tokens.end, &mut is_counted)?;
                sink.loss_mask(&is_counted)?;
            }
            changes.add_cut(from.tokens_in((bytes.len() - start.len() - end.len()) as u64));
            read_bytes += bytes.len() as u64;
            num_documents += 1;
            if read_bytes >= BYTES_PER_CALL || num_documents >= DOCUMENTS_PER_CALL {
                released += read_bytes;
                meter.add(std::mem::take(&mut read_bytes), num_documents)?;
                num_documents = 0;
                if released >= MAPPED_BYTES {
                    input.file.release_pages();
                    released = 0;
                }
            }
            Ok(())
        })?;
        input.file.release_pages();
        meter.add(read_bytes, num_documents)
    }

    fn retokenize(
        &self,
        retokenizing: &Retokenizing,
        width: TokenWidth,
        truncate_to: Option<u64>,
        sink: &mut PbinSink,
        changes: &mut Changes,
        meter: &mut Meter<'_, '_>,
    ) -> Result<()> {
        let mut report = RetokenizeReport::default();
        let mut first = 0;
        let mut bytes = Vec::new();
        while let Some(numbers) = self.batch(first)? {
            for numbers in numbers.chunks(RETOKENIZED_DOCUMENTS) {
                let before: u64 = self.lengths(numbers)?.iter().sum();
                let check = &mut || meter.check();
                let documents = self.retokenized(numbers, retokenizing, &mut report, check)?;
                report.tokens_before += before;
                for (&number, ids) in numbers.iter().zip(documents) {
                    bytes.clear();
                    ids.iter().for_each(|id| bytes.extend(id.to_le_bytes()));
                    let eod = Some(retokenizing.eod.id);
                    let (start, end) = shortened(&bytes, TokenWidth::U32, truncate_to, eod);
                    let mut converted = Vec::with_capacity(bytes.len());
                    convert_width(start, TokenWidth::U32, width, &mut converted);
                    convert_width(end, TokenWidth::U32, width, &mut converted);
                    let num_cut = (bytes.len() - start.len() - end.len()) as u64;
                    let origin = self.recorded_origin(number)?;
                    for _ in 0..self.copies[number as usize] {
                        sink.piece(&converted)?;
                        sink.end(origin)?;
                        changes.add_cut(TokenWidth::U32.tokens_in(num_cut));
                    }
                }
                meter.add(before * self.inputs.width.bytes(), numbers.len() as u64)?;
            }
            self.inputs.release_pages();
            first = next_number(&numbers);
        }
        changes.retokenized = Some(report);
        Ok(())
    }

    /// The origin of a document, as the output records it.
    fn recorded_origin(&self, number: u64) -> Result<Option<Origin>> {
        if !self.inputs.has_origins {
            return Ok(None);
        }
        let (source, offset) = self.inputs.origin(number)?;
        Ok(Some(Origin { source, offset }))
    }

    fn used_of<'a>(&'a self, input: &'a Input) -> UsedDocuments<'a> {
        let num_documents = input.file.num_documents();
        let first = input.first as usize;
        UsedDocuments {
            file: &input.file,
            origins: input.reader().filter(|_| self.inputs.has_origins),
            loss_mask: input.loss_mask(),
            documents: 0..num_documents,
            copies: Some(&self.copies[first..first + num_documents as usize]),
            first_source: input.first_source,
            vocab_size: input.vocab_size,
        }
    }

    /// Bytes of a token of the output.
    fn width(&self, options: &WriteOptions) -> TokenWidth {
        match &options.retokenizing {
            Some(Retokenizing { to, .. }) => TokenWidth::for_vocab(to.tokenizer().vocab_size()),
            None => self.inputs.width,
        }
    }

    /// Writes the trailer.
    fn finished(&self, sink: PbinSink, options: &WriteOptions) -> Result<Finished> {
        let writer = sink.finish()?;
        let mut metadata = self.inputs.metadata.clone();
        if let Some(retokenizing) = &options.retokenizing {
            let meaning = retokenizing.meaning();
            metadata.tokenizer = meaning.tokenizer;
            metadata.eod = meaning.eod;
            metadata.bos = meaning.bos;
            metadata.options = Options::default();
        }
        if !self.steps.is_empty() {
            metadata.rearranged = true;
            let has_all_documents = self.steps.iter().all(|report| report.step.step == SHUFFLE);
            // The other counts describe all documents of the corpus.
            metadata.counts = Counts {
                documents: writer.num_documents(),
                tokens: writer.width().tokens_in(writer.data_bytes()),
                text: metadata.counts.text.filter(|_| has_all_documents),
                ..Counts::default()
            };
        }
        let steps = self.steps.iter().map(|report| report.step.clone());
        metadata.steps.extend(steps);
        Ok(writer.finish(&metadata, &self.inputs.sources)?)
    }
}

impl Changes {
    /// The tokens that do not fill a row, when all documents are in `sink`.
    fn of_rest(sink: &PbinSink, width: TokenWidth) -> Self {
        Self {
            rest_tokens: width.tokens_in(sink.rest_bytes()),
            ..Self::default()
        }
    }

    fn add_cut(&mut self, num_tokens: u64) {
        self.truncated += u64::from(num_tokens > 0);
        self.truncated_tokens += num_tokens;
    }
}

/// The order of documents with these lengths.
fn order_of(
    num_documents: u64,
    lengths: impl Iterator<Item = u64>,
    shuffling: &Shuffling,
    meter: &mut Meter<'_, '_>,
) -> Result<Vec<u32>> {
    let len = checked_len(num_documents)?;
    let order = Shuffle {
        generator: ShuffleGenerator::Packtok,
        seed: Seed::from(shuffling.seed),
    };
    let ShuffledUnit::Blocks { min_tokens } = shuffling.unit else {
        return order.order(len, &mut || meter.add(0, 0));
    };
    // The first document of each block, and the end of the last.
    let (mut starts, mut block_tokens) = (Vec::new(), 0);
    for (document, length) in (0..len).zip(lengths) {
        if block_tokens == 0 {
            starts.push(document);
        }
        block_tokens += length.max(1);
        if block_tokens >= min_tokens {
            block_tokens = 0;
        }
    }
    starts.push(len);
    let num_blocks = starts.len() as u32 - 1;
    let blocks = order.order(num_blocks, &mut || meter.add(0, 0))?;
    let documents = blocks.into_iter().flat_map(|block| {
        let block = block as usize;
        starts[block]..starts[block + 1]
    });
    Ok(documents.collect())
}
