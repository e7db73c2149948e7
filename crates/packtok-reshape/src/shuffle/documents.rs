//! Writes documents of token files in another order.

use std::ops::Range;
use std::path::Path;

use packtok_formats::{LossMask, TokenFile};
use packtok_pbin::{CHECKED_DATA_BYTES, Origin, Reader, TokenWidth, Writer};

use super::buckets::{Buckets, Budget, GROUP_LEN, InputSpan, Sink, fetch};
use super::meter::Meter;
use super::order::inverted;
use crate::convert::check_vocabulary;
use crate::error::Result;
use crate::loss_mask::append_loss_mask;

/// Bytes of documents that are written at a time.
const BATCH_BYTES: usize = 256 << 10;
/// Bytes that are read before mapped pages are released.
const MAPPED_BYTES: u64 = 64 << 20;
/// Documents between two calls of the monitor.
const DOCUMENTS_PER_CALL: u64 = 1 << 16;
/// Memory for the place of a document, and for its origin, when all are in memory.
const SPAN_BYTES: u64 = 8;
const ORIGIN_BYTES: u64 = 16;

/// Documents of a file that are used.
#[derive(Debug, Clone)]
pub(crate) struct UsedDocuments<'a> {
    /// The file.
    pub(crate) file: &'a TokenFile,
    /// The pbin that records the origins of the documents; `None` if they are not written.
    pub(crate) origins: Option<&'a Reader>,
    /// Whether each token counts in the loss; `None` if all do.
    pub(crate) loss_mask: Option<LossMask<'a>>,
    /// Numbers of the documents in the file.
    pub(crate) documents: Range<u64>,
    /// How often each of them is used; `None` if each is used once.
    pub(crate) copies: Option<&'a [u8]>,
    /// Index of the first source of the file among the sources of all files.
    pub(crate) first_source: u64,
    /// The vocabulary that ids of a file that is no pbin must be in, if it is known.
    pub(crate) vocab_size: Option<u64>,
}

/// [`UsedDocuments`] with their bytes.
struct Part<'a> {
    used: UsedDocuments<'a>,
    /// The tokens of the documents, counted from the start of the file.
    tokens: Range<u64>,
    /// The same tokens, as bytes.
    bytes: &'a [u8],
    /// Number of the first document among those of all parts.
    first: u64,
}

/// Documents of several files with one token width.
pub(crate) struct Parts<'a> {
    parts: Vec<Part<'a>>,
    num_documents: u64,
    width: TokenWidth,
    has_origins: bool,
}

impl<'a> Parts<'a> {
    /// # Errors
    /// A file is damaged.
    pub(crate) fn new(
        files: impl IntoIterator<Item = UsedDocuments<'a>>,
        width: TokenWidth,
    ) -> Result<Self> {
        let (mut parts, mut first) = (Vec::new(), 0);
        let mut has_origins = false;
        for used in files {
            let tokens = used.tokens()?;
            let num_documents = used.num_documents();
            has_origins |= used.origins.is_some();
            parts.push(Part {
                bytes: used.file.tokens(tokens.clone())?,
                tokens,
                used,
                first,
            });
            first += num_documents;
        }
        Ok(Self {
            parts,
            num_documents: first,
            width,
            has_origins,
        })
    }

    /// Number of documents, each as often as it is used.
    pub(crate) fn num_documents(&self) -> u64 {
        self.num_documents
    }

    /// Bytes of the parts of the files in which documents are used.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes.len() as u64).sum()
    }

    /// Writes the documents in an order, in memory or through buckets beside `output`, after
    /// verifying them. Returns the CRC32C of the used data of each file.
    ///
    /// # Errors
    /// A file is damaged; writing fails; the meter breaks.
    pub(crate) fn write_in_order(
        &self,
        order: Vec<u32>,
        sink: &mut PbinSink,
        output: &Path,
        budget: &Budget,
        meter: &mut Meter<'_, '_>,
    ) -> Result<Vec<u32>> {
        if sink.has_loss_mask() {
            self.write_loss_masks(&order, sink, meter)?;
        }
        let per_document = SPAN_BYTES + if self.has_origins { ORIGIN_BYTES } else { 0 };
        let (num_documents, data_bytes) = (order.len() as u32, self.data_bytes());
        if budget.fits_in_memory(data_bytes + u64::from(num_documents) * per_document) {
            let checksums = self.checksums(meter)?;
            self.gather(&order, sink, meter)?;
            return Ok(checksums);
        }
        let mut buckets = Buckets::create(
            output,
            (num_documents, data_bytes),
            self.has_origins,
            budget,
        )?;
        let checksums = self.distribute(inverted(order), &mut buckets, meter)?;
        self.write(buckets, sink, meter)?;
        Ok(checksums)
    }

    /// Writes the loss masks of documents in an order. They are read in that order, because they are
    /// small compared with the tokens.
    fn write_loss_masks(
        &self,
        order: &[u32],
        sink: &mut PbinSink,
        meter: &mut Meter<'_, '_>,
    ) -> Result<()> {
        let mut starts = Vec::with_capacity(order.len());
        for part in &self.parts {
            part.used.for_each(|tokens, _| {
                starts.push((tokens.start, tokens.end - tokens.start));
                Ok(())
            })?;
        }
        let mut is_counted = Vec::new();
        for documents in order.chunks(DOCUMENTS_PER_CALL as usize) {
            for &document in documents {
                let (start, len) = starts[document as usize];
                let mask = self.part_of(document).used.loss_mask;
                is_counted.clear();
                append_loss_mask(mask, start..start + len, &mut is_counted)?;
                sink.loss_mask(&is_counted)?;
            }
            meter.add(0, 0)?;
        }
        Ok(())
    }

    /// The bytes of the part that a document is in.
    #[inline]
    fn bytes_of(&self, document: u32) -> &'a [u8] {
        self.part_of(document).bytes
    }

    #[inline]
    fn part_of(&self, document: u32) -> &Part<'a> {
        let next = match &*self.parts {
            [_] => 1,
            parts => parts.partition_point(|part| part.first <= u64::from(document)),
        };
        &self.parts[next - 1]
    }

    /// Writes documents in an order from the mapped files.
    fn gather(&self, order: &[u32], sink: &mut PbinSink, meter: &mut Meter<'_, '_>) -> Result<()> {
        let mut origins = Vec::new();
        // Start and length of each document in the data of its part, which fits in memory.
        let mut spans = Vec::with_capacity(order.len());
        for part in &self.parts {
            part.for_each(self.width, |span, origin| {
                spans.push((span.start as u32, (span.end - span.start) as u32));
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
                    *content = &self.bytes_of(document)[start as usize..][..len as usize];
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

    /// Verifies the used data of each file and returns its CRC32C.
    pub(super) fn checksums(&self, meter: &mut Meter<'_, '_>) -> Result<Vec<u32>> {
        let mut checksums = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let mut checked = CheckedData::new(part, self.width)?;
            let (mut start, stop) = (0, part.bytes.len() as u64);
            while start < stop {
                let end = (start + MAPPED_BYTES).min(stop);
                checked.up_to(end)?;
                meter.add(end - start, 0)?;
                start = end;
            }
            checksums.push(checked.finish()?);
        }
        Ok(checksums)
    }

    /// Distributes the documents to buckets by their positions, reading each file once.
    fn distribute(
        &self,
        positions: Vec<u32>,
        buckets: &mut Buckets,
        meter: &mut Meter<'_, '_>,
    ) -> Result<Vec<u32>> {
        let mut checksums = Vec::with_capacity(self.parts.len());
        let mut positions = positions.into_iter();
        for (file, part) in (0..).zip(&self.parts) {
            let mut checked = CheckedData::new(part, self.width)?;
            let mut released = 0;
            part.for_each(self.width, |span, origin| {
                checked.up_to(span.end)?;
                let input = InputSpan {
                    file,
                    offset: span.start,
                    bytes: span.end - span.start,
                };
                let bytes = &part.bytes[span.start as usize..span.end as usize];
                // There are as many positions as documents.
                let position = positions.next().unwrap_or(0);
                buckets.push(position, bytes, input, origin)?;
                if span.end - released >= MAPPED_BYTES {
                    part.used.file.release_pages();
                    meter.add(span.end - released, 0)?;
                    released = span.end;
                }
                Ok(())
            })?;
            checksums.push(checked.finish()?);
            part.used.file.release_pages();
            meter.add(part.bytes.len() as u64 - released, 0)?;
        }
        Ok(checksums)
    }

    /// Writes buckets of documents.
    fn write(
        &self,
        buckets: Buckets,
        sink: &mut PbinSink,
        meter: &mut Meter<'_, '_>,
    ) -> Result<()> {
        let mut written = 0;
        let mut refer = |span: InputSpan, sink: &mut PbinSink| {
            let part = &self.parts[span.file as usize];
            let document = &part.bytes[span.offset as usize..][..span.bytes as usize];
            for pieces in document.chunks(MAPPED_BYTES as usize) {
                pieces
                    .chunks(BATCH_BYTES)
                    .try_for_each(|piece| sink.piece(piece))?;
                part.used.file.release_pages();
            }
            Ok(())
        };
        buckets.write_with(sink, &mut refer, &mut |sink, num_documents| {
            let data = std::mem::replace(&mut written, sink.num_bytes())..sink.num_bytes();
            sink.writer.start_writeback(data.clone());
            meter.add(data.end - data.start, num_documents)
        })
    }
}

impl UsedDocuments<'_> {
    /// The tokens from the first document to the last.
    fn tokens(&self) -> Result<Range<u64>> {
        let Range { start, end } = self.documents;
        if start >= end {
            return Ok(0..0);
        }
        let first = self.file.document_tokens(start)?.start;
        let last = self.file.document_tokens(end - 1)?.end;
        Ok(first..last.max(first))
    }

    fn num_documents(&self) -> u64 {
        match self.copies {
            None => self.documents.end - self.documents.start,
            Some(copies) => copies.iter().map(|&copies| u64::from(copies)).sum(),
        }
    }

    /// How often a document of the file is used.
    #[inline]
    fn copies_of(&self, document: u64) -> u8 {
        if !self.documents.contains(&document) {
            return 0;
        }
        let copies = |copies: &[u8]| copies[(document - self.documents.start) as usize];
        self.copies.map_or(1, copies)
    }

    /// Calls `each` with the tokens of each document, as often as it is used, and with its origin in
    /// the result.
    ///
    /// # Errors
    /// The file is damaged; those of `each`.
    pub(crate) fn for_each(
        &self,
        mut each: impl FnMut(Range<u64>, Option<Origin>) -> Result<()>,
    ) -> Result<()> {
        let mut each = |document: u64, origin: Option<Origin>| {
            let copies = self.copies_of(document);
            if copies == 0 {
                return Ok(());
            }
            let tokens = self.file.document_tokens(document)?;
            (0..copies).try_for_each(|_| each(tokens.clone(), origin))
        };
        let Some(reader) = self.origins else {
            return self.documents.clone().try_for_each(|i| each(i, None));
        };
        reader.for_each_origin(|i, origin| {
            let source = origin.source.saturating_add(self.first_source);
            each(i, Some(Origin { source, ..origin }))
        })
    }
}

impl Part<'_> {
    /// As [`UsedDocuments::for_each`], with positions in `bytes`.
    fn for_each(
        &self,
        width: TokenWidth,
        mut each: impl FnMut(Range<u64>, Option<Origin>) -> Result<()>,
    ) -> Result<()> {
        let (first, width) = (self.tokens.start, width.bytes());
        self.used.for_each(|tokens, origin| {
            let start = tokens.start.saturating_sub(first) * width;
            each(start..tokens.end.saturating_sub(first) * width, origin)
        })
    }
}

/// Verifies a piece of the data of a file: by its checksum, or by the vocabulary.
///
/// # Errors
/// The data is damaged, or has an id that is not in the vocabulary.
pub(crate) fn check_piece(file: &TokenFile, piece: u64, vocab_size: Option<u64>) -> Result<()> {
    file.verify_data_piece(piece)?;
    let piece_tokens = CHECKED_DATA_BYTES / file.width().bytes();
    let start = piece * piece_tokens;
    let stop = (start + piece_tokens).min(file.num_tokens());
    file.check_signs(start..stop)?;
    let Some(vocab_size) = vocab_size else {
        return Ok(());
    };
    check_vocabulary(file, start..stop, vocab_size)
}

/// Verifies the data of a part piece by piece, and computes its checksum.
struct CheckedData<'a, 'b> {
    part: &'a Part<'b>,
    /// Position of the part in the data of the file.
    first_byte: u64,
    next_piece: u64,
    /// The checksum so far; `None` if the file already records the checksum.
    crc32c: Option<u32>,
    recorded: u32,
}

impl<'a, 'b> CheckedData<'a, 'b> {
    fn new(part: &'a Part<'b>, width: TokenWidth) -> Result<Self> {
        let file = part.used.file;
        let is_whole = part.tokens == (0..file.num_tokens());
        let recorded = match file {
            TokenFile::Pbin(reader) if is_whole => reader.data_crc32c()?,
            _ => None,
        };
        let first_byte = part.tokens.start * width.bytes();
        Ok(Self {
            part,
            first_byte,
            next_piece: first_byte / CHECKED_DATA_BYTES,
            crc32c: recorded.is_none().then_some(0),
            recorded: recorded.unwrap_or(0),
        })
    }

    /// Verifies the data of the part up to byte `stop`, at least.
    #[inline]
    fn up_to(&mut self, stop: u64) -> Result<()> {
        while self.next_piece * CHECKED_DATA_BYTES < self.first_byte + stop {
            self.verify_piece()?;
        }
        Ok(())
    }

    fn verify_piece(&mut self) -> Result<()> {
        let used = &self.part.used;
        check_piece(used.file, self.next_piece, used.vocab_size)?;
        let from = self.next_piece * CHECKED_DATA_BYTES;
        self.next_piece += 1;
        if let Some(crc32c) = &mut self.crc32c {
            let bytes = self.part.bytes;
            let start = from.saturating_sub(self.first_byte) as usize;
            let stop = (from + CHECKED_DATA_BYTES - self.first_byte) as usize;
            *crc32c = crc32c::crc32c_append(*crc32c, &bytes[start..stop.min(bytes.len())]);
        }
        Ok(())
    }

    /// Verifies the rest and returns the checksum of the part's data.
    fn finish(mut self) -> Result<u32> {
        self.up_to(self.part.bytes.len() as u64)?;
        Ok(self.crc32c.unwrap_or(self.recorded))
    }
}

/// Writes documents to a pbin in batches.
pub(crate) struct PbinSink {
    writer: Writer,
    batch: Vec<u8>,
    /// Bytes of the current document.
    document_bytes: u64,
    /// Bytes of a row, if rows are written instead of documents.
    row_bytes: Option<usize>,
    /// The loss mask of tokens that do not fill a row.
    mask_rest: Vec<bool>,
}

impl PbinSink {
    pub(crate) fn new(writer: Writer) -> Self {
        Self {
            writer,
            batch: Vec::with_capacity(2 * BATCH_BYTES),
            document_bytes: 0,
            row_bytes: None,
            mask_rest: Vec::new(),
        }
    }

    /// Joins the documents and cuts them into rows of this many bytes. What does not fill the last row is
    /// not written.
    pub(crate) fn of_rows(writer: Writer, row_bytes: usize) -> Self {
        Self {
            row_bytes: Some(row_bytes),
            ..Self::new(writer)
        }
    }

    pub(crate) fn has_loss_mask(&self) -> bool {
        self.writer.has_loss_mask()
    }

    /// Records the loss mask of the next tokens, before or after them.
    pub(crate) fn loss_mask(&mut self, tokens: &[bool]) -> Result<()> {
        let Some(row_bytes) = self.row_bytes else {
            return Ok(self.writer.push_loss_mask(tokens.iter().copied())?);
        };
        let row_tokens = self.writer.width().tokens_in(row_bytes as u64) as usize;
        self.mask_rest.extend_from_slice(tokens);
        let whole = self.mask_rest.len() / row_tokens * row_tokens;
        self.writer.push_loss_mask(self.mask_rest.drain(..whole))?;
        Ok(())
    }

    /// Bytes that do not fill a row.
    pub(crate) fn rest_bytes(&self) -> u64 {
        let rest = self
            .row_bytes
            .map_or(0, |row_bytes| self.batch.len() % row_bytes);
        rest as u64
    }

    pub(crate) fn num_bytes(&self) -> u64 {
        self.writer.data_bytes() + self.batch.len() as u64
    }

    fn flush(&mut self) -> Result<()> {
        let rest = self.rest_bytes() as usize;
        let whole = self.batch.len() - rest;
        self.writer.write_data(&self.batch[..whole])?;
        if let Some(row_bytes) = self.row_bytes {
            for _ in 0..whole / row_bytes {
                self.writer.push_document(row_bytes as u64)?;
            }
        }
        self.batch.copy_within(whole.., 0);
        self.batch.truncate(rest);
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<Writer> {
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
        if self.row_bytes.is_some() {
            return Ok(());
        }
        self.writer.push_document(self.document_bytes)?;
        self.document_bytes = 0;
        match origin {
            Some(origin) => Ok(self.writer.push_origins([origin])?),
            None => Ok(()),
        }
    }
}
