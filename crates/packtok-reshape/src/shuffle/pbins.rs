//! Shuffles the documents of pbins.

use std::ops::Range;

use packtok_jobs::Monitor;
use packtok_pack::merge::copy_tokenizer;
use packtok_pbin::{CHECKED_DATA_BYTES, Joined, Origin, PartInfo, Reader, ShuffleInfo, Writer};

use super::buckets::{Buckets, GROUP_LEN, InputSpan, Sink, fetch};
use super::meter::Meter;
use super::order::{checked_len, inverted};
use super::{ShuffleOptions, ShuffleReport, chunk};
use crate::error::{Error, Result};

/// Bytes of documents that are written at a time.
const BATCH_BYTES: usize = 256 << 10;
/// Bytes that are read before mapped pages are released.
const MAPPED_BYTES: u64 = 64 << 20;
/// Documents between two calls of the monitor.
const DOCUMENTS_PER_CALL: u64 = 1 << 16;
/// Memory for the place of a document, and for its origin, when all are in memory.
const SPAN_BYTES: u64 = 8;
const ORIGIN_BYTES: u64 = 16;

/// Shuffles the documents of pbins, or a chunk of each, into one pbin.
///
/// Inputs are verified while they are read. The result has the metadata of a merge of the inputs,
/// with the seed; origins are kept.
///
/// # Errors
/// An input is damaged, or the inputs are incompatible; the chunk does not exist or has no
/// documents; the output exists and must not be replaced, or differs from the result.
pub fn shuffle_pbins(options: &ShuffleOptions, monitor: &mut Monitor<'_>) -> Result<ShuffleReport> {
    let keeps = options.prepare()?;
    let mut parts = Parts::open(options)?;
    let data_bytes: u64 = parts
        .parts
        .iter()
        .map(|part| part.data.end - part.data.start)
        .sum();
    let mut meter = Meter::new(monitor, 2 * data_bytes);
    if keeps {
        return prove(options, &mut parts, &mut meter);
    }
    for part in &parts.parts {
        // The pickled index is not used, so it is not verified.
        part.reader.verify_trailer(&mut |_| meter.check())?;
        part.reader.release_pages();
    }
    let len = checked_len(parts.num_documents())?;
    let order = options.shuffle.order(len, &mut || meter.add(0, 0))?;
    let width = parts
        .joined
        .width()
        .ok_or_else(|| packtok_pbin::Error::NoParts {
            path: options.output.clone(),
        })?;
    let has_origins = parts.joined.has_origins();
    let mut sink = PbinSink::new(Writer::create(&options.output, width, has_origins)?);
    let per_document = SPAN_BYTES + if has_origins { ORIGIN_BYTES } else { 0 };
    if (options.budget).fits_in_memory(data_bytes + u64::from(len) * per_document) {
        parts.gather(&order, &mut sink, &mut meter)?;
    } else {
        let buckets = Buckets::create(
            &options.output,
            (len, data_bytes),
            has_origins,
            &options.budget,
        )?;
        let buckets = parts.distribute(inverted(order), buckets, &mut meter)?;
        write(&parts, buckets, &mut sink, &mut meter)?;
    }
    publish(options, parts, sink)
}

/// Writes the trailer and publishes the file.
fn publish(options: &ShuffleOptions, parts: Parts, sink: PbinSink) -> Result<ShuffleReport> {
    let (mut metadata, sources) = parts.finish()?;
    metadata.rearranged = true;
    metadata.shuffle = Some(options.info());
    let finished = sink.finish()?.finish(&metadata, &sources)?;
    let summary = finished.publish(options.existing.replace())?;
    Ok(ShuffleReport {
        output: options.output.clone(),
        num_inputs: options.inputs.len(),
        documents: summary.documents,
        tokens: Some(summary.tokens),
        file_bytes: summary.file_bytes,
        generator: options.shuffle.generator,
        seed: options.shuffle.seed.to_string(),
        tokenizer_path: copy_tokenizer(&options.output, &options.inputs, None)?,
        skipped_existing: false,
    })
}

impl ShuffleOptions {
    /// The shuffle as the trailer records it.
    fn info(&self) -> ShuffleInfo {
        ShuffleInfo {
            generator: self.shuffle.generator,
            seed: self.shuffle.seed.to_string(),
            chunk: self.chunk,
        }
    }
}

/// Documents of a file that are used.
struct Part {
    reader: Reader,
    documents: Range<u64>,
    /// The bytes of the documents, counted from the start of the data.
    data: Range<u64>,
    /// Number of the first document among the documents of all parts.
    first: u64,
    /// Index of the first source of the file among the sources of all files.
    first_source: u64,
}

struct Parts {
    parts: Vec<Part>,
    joined: Joined,
}

impl Parts {
    fn open(options: &ShuffleOptions) -> Result<Self> {
        let mut joined = Joined::new(None);
        let mut parts = Vec::new();
        let mut first = 0;
        let mut lens = Vec::new();
        for path in &options.inputs {
            let reader = Reader::open(path)?;
            let documents = match options.chunk {
                Some(chunk) => chunk::documents(chunk, reader.len()),
                None => 0..reader.len(),
            };
            let first_source = joined.num_sources();
            joined.add_documents(&reader, documents.clone())?;
            lens.push(reader.len());
            let data = reader.documents_span(documents.clone())?;
            let num_documents = documents.end - documents.start;
            parts.push(Part {
                reader,
                documents,
                data,
                first,
                first_source,
            });
            first += num_documents;
        }
        match options.chunk {
            Some(chunk) if first == 0 => Err(chunk::empty(chunk, &lens)),
            _ => Ok(Self { parts, joined }),
        }
    }

    fn num_documents(&self) -> u64 {
        (self.parts.last()).map_or(0, |part| {
            part.first + part.documents.end - part.documents.start
        })
    }

    /// The used data of the part that a document is in.
    #[inline]
    fn data_of(&self, document: u32) -> &[u8] {
        let next = match &*self.parts {
            [_] => 1,
            parts => parts.partition_point(|part| part.first <= u64::from(document)),
        };
        let part = &self.parts[next - 1];
        &part.reader.data()[part.data.start as usize..part.data.end as usize]
    }

    /// Writes documents in an order from the mapped files, after verifying them.
    fn gather(
        &mut self,
        order: &[u32],
        sink: &mut PbinSink,
        meter: &mut Meter<'_, '_>,
    ) -> Result<()> {
        self.checksum(meter)?;
        let mut origins = Vec::new();
        // Start and length of each document in the data of its part, which fits in memory.
        let mut spans = Vec::with_capacity(order.len());
        for part in &self.parts {
            part.for_each(|i, origin| {
                let span = part.reader.document_span(i)?;
                let start = (span.start - part.data.start) as u32;
                spans.push((start, (span.end - span.start) as u32));
                origins.extend(origin);
                Ok(())
            })?;
        }
        for documents in order.chunks(DOCUMENTS_PER_CALL as usize) {
            let before = sink.num_bytes();
            for group in documents.chunks(GROUP_LEN) {
                let mut contents: [&[u8]; GROUP_LEN] = [&[]; GROUP_LEN];
                for (content, &document) in contents.iter_mut().zip(group) {
                    let (start, len) = spans[document as usize];
                    *content = &self.data_of(document)[start as usize..][..len as usize];
                }
                fetch(contents);
                for (content, &document) in contents.iter().zip(group) {
                    sink.piece(content)?;
                    sink.end(origins.get(document as usize).copied())?;
                }
            }
            meter.add(sink.num_bytes() - before, documents.len() as u64)?;
        }
        Ok(())
    }

    /// Verifies the used data, and lists the parts with its checksums.
    fn checksum(&mut self, meter: &mut Meter<'_, '_>) -> Result<()> {
        for part in &self.parts {
            let mut checked = CheckedData::new(part);
            let mut start = part.data.start;
            while start < part.data.end {
                let stop = (start + MAPPED_BYTES).min(part.data.end);
                checked.up_to(stop)?;
                meter.add(stop - start, 0)?;
                start = stop;
            }
            let data_crc32c = checked.finish()?;
            self.joined
                .list(&part.reader, part.documents.clone(), data_crc32c)?;
        }
        Ok(())
    }

    /// Distributes the documents to buckets by their positions, reading each file once.
    fn distribute(
        &mut self,
        positions: Vec<u32>,
        mut buckets: Buckets,
        meter: &mut Meter<'_, '_>,
    ) -> Result<Buckets> {
        for (file, part) in (0..).zip(&self.parts) {
            let mut checked = CheckedData::new(part);
            let mut released = part.data.start;
            part.for_each(|i, origin| {
                let span = part.reader.document_span(i)?;
                checked.up_to(span.end)?;
                let document = part.first + i - part.documents.start;
                let input = InputSpan {
                    file,
                    offset: span.start,
                    bytes: span.end - span.start,
                };
                let bytes = &part.reader.data()[span.start as usize..span.end as usize];
                buckets.push(positions[document as usize], bytes, input, origin)?;
                if span.end - released >= MAPPED_BYTES {
                    part.reader.release_pages();
                    meter.add(span.end - released, 0)?;
                    released = span.end;
                }
                Ok(())
            })?;
            let data_crc32c = checked.finish()?;
            part.reader.release_pages();
            meter.add(part.data.end - released, 0)?;
            self.joined
                .list(&part.reader, part.documents.clone(), data_crc32c)?;
        }
        Ok(buckets)
    }

    fn finish(self) -> Result<(packtok_pbin::Metadata, Vec<packtok_pbin::Source>)> {
        Ok(self.joined.finish())
    }
}

impl Part {
    /// Calls `each` with the number of each used document in the file, and the origin of the
    /// document in the result.
    fn for_each(&self, mut each: impl FnMut(u64, Option<Origin>) -> Result<()>) -> Result<()> {
        if !self.reader.has_origins() {
            return self.documents.clone().try_for_each(|i| each(i, None));
        }
        self.reader.for_each_origin(|i, origin| {
            if !self.documents.contains(&i) {
                return Ok(());
            }
            let source = origin.source.saturating_add(self.first_source);
            each(i, Some(Origin { source, ..origin }))
        })
    }
}

/// Verifies the data of a part piece by piece, and computes its checksum.
struct CheckedData<'a> {
    part: &'a Part,
    next_piece: u64,
    /// The checksum so far; `None` if the file already records the checksum.
    crc32c: Option<u32>,
}

impl<'a> CheckedData<'a> {
    fn new(part: &'a Part) -> Self {
        let is_whole = part.data == (0..part.reader.data_bytes());
        Self {
            part,
            next_piece: part.data.start / CHECKED_DATA_BYTES,
            crc32c: (!(is_whole && part.reader.has_data_checksums())).then_some(0),
        }
    }

    /// Verifies the data up to byte `stop`, at least.
    #[inline]
    fn up_to(&mut self, stop: u64) -> Result<()> {
        while self.next_piece * CHECKED_DATA_BYTES < stop {
            self.verify_piece()?;
        }
        Ok(())
    }

    fn verify_piece(&mut self) -> Result<()> {
        let Range { start, end } = self.part.data;
        self.part.reader.verify_data_piece(self.next_piece)?;
        let from = self.next_piece * CHECKED_DATA_BYTES;
        self.next_piece += 1;
        if let Some(crc32c) = &mut self.crc32c {
            let (from, stop) = (from.max(start), (from + CHECKED_DATA_BYTES).min(end));
            let piece = &self.part.reader.data()[from as usize..stop as usize];
            *crc32c = crc32c::crc32c_append(*crc32c, piece);
        }
        Ok(())
    }

    /// Verifies the rest and returns the checksum of the part's data.
    fn finish(mut self) -> Result<u32> {
        self.up_to(self.part.data.end)?;
        match self.crc32c {
            Some(crc32c) => Ok(crc32c),
            None => Ok(self.part.reader.data_crc32c()?.unwrap_or(0)),
        }
    }
}

/// Writes buckets of documents.
fn write(
    parts: &Parts,
    buckets: Buckets,
    sink: &mut PbinSink,
    meter: &mut Meter<'_, '_>,
) -> Result<()> {
    let mut written = 0;
    let mut refer = |span: InputSpan, sink: &mut PbinSink| {
        let reader = &parts.parts[span.file as usize].reader;
        let document = &reader.data()[span.offset as usize..][..span.bytes as usize];
        for pieces in document.chunks(MAPPED_BYTES as usize) {
            pieces
                .chunks(BATCH_BYTES)
                .try_for_each(|piece| sink.piece(piece))?;
            reader.release_pages();
        }
        Ok(())
    };
    buckets.write_with(sink, &mut refer, &mut |sink, num_documents| {
        let data = std::mem::replace(&mut written, sink.num_bytes())..sink.num_bytes();
        sink.writer.start_writeback(data.clone());
        meter.add(data.end - data.start, num_documents)
    })
}

/// Writes documents to a pbin in batches.
struct PbinSink {
    writer: Writer,
    batch: Vec<u8>,
    /// Bytes of the current document.
    document_bytes: u64,
}

impl PbinSink {
    fn new(writer: Writer) -> Self {
        Self {
            writer,
            batch: Vec::with_capacity(2 * BATCH_BYTES),
            document_bytes: 0,
        }
    }

    fn num_bytes(&self) -> u64 {
        self.writer.data_bytes() + self.batch.len() as u64
    }

    fn flush(&mut self) -> Result<()> {
        self.writer.write_data(&self.batch)?;
        self.batch.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<Writer> {
        self.flush()?;
        Ok(self.writer)
    }
}

impl Sink for PbinSink {
    #[inline]
    fn piece(&mut self, bytes: &[u8]) -> Result<()> {
        self.batch.extend_from_slice(bytes);
        self.document_bytes += bytes.len() as u64;
        if self.batch.len() < BATCH_BYTES {
            return Ok(());
        }
        self.flush()
    }

    #[inline]
    fn end(&mut self, origin: Option<Origin>) -> Result<()> {
        self.writer.push_document(self.document_bytes)?;
        self.document_bytes = 0;
        match origin {
            Some(origin) => Ok(self.writer.push_origins([origin])?),
            None => Ok(()),
        }
    }
}

/// Proves that the existing output is the result: its trailer names this shuffle and parts with
/// the checksums of these inputs, and the file is undamaged.
fn prove(
    options: &ShuffleOptions,
    parts: &mut Parts,
    meter: &mut Meter<'_, '_>,
) -> Result<ShuffleReport> {
    let file = Reader::open(&options.output)?;
    let path = options.output.clone();
    let unknown = || Error::from(packtok_pack::Error::ExistingUnknown { path: path.clone() });
    let metadata = file.metadata()?.ok_or_else(unknown)?;
    let recorded = metadata.shuffle.as_ref();
    let expected = options.info();
    // Without a seed, a file in any order of packtok is the result.
    let compared = |info: &ShuffleInfo| {
        let seed = options.is_seed_given.then(|| info.seed.clone());
        (info.generator, seed, info.chunk)
    };
    if recorded.map(compared) != Some(compared(&expected)) {
        let json = |info: &ShuffleInfo| serde_json::to_string(info).unwrap_or_default();
        let recorded = recorded.map_or_else(|| "none".to_owned(), json);
        return Err(differs(options, "its shuffle", recorded, json(&expected)));
    }
    parts.checksum(meter)?;
    let joined = std::mem::replace(&mut parts.joined, Joined::new(None));
    let (expected, _) = joined.finish();
    let content = |part: &PartInfo| (part.documents, part.tokens, part.data_crc32c);
    let are_same = (metadata.parts.iter().map(content)).eq(expected.parts.iter().map(content));
    if !are_same {
        let json = |parts: &[PartInfo]| serde_json::to_string(parts).unwrap_or_default();
        let (recorded, expected) = (json(&metadata.parts), json(&expected.parts));
        return Err(differs(options, "its list of parts", recorded, expected));
    }
    file.verify(&mut |_| meter.check())?;
    Ok(ShuffleReport {
        output: options.output.clone(),
        num_inputs: options.inputs.len(),
        documents: file.len(),
        tokens: Some(file.num_tokens()),
        file_bytes: file.file_bytes(),
        generator: options.shuffle.generator,
        seed: recorded.map(|info| info.seed.clone()).unwrap_or_default(),
        tokenizer_path: None,
        skipped_existing: true,
    })
}

fn differs(options: &ShuffleOptions, what: &str, recorded: String, expected: String) -> Error {
    packtok_pack::Error::ExistingDiffers {
        path: options.output.clone(),
        what: what.to_owned(),
        found: recorded,
        expected,
    }
    .into()
}
