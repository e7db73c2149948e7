//! Batches: writes many items into the caller's arrays, each element once.
//!
//! A row is an item's inputs, followed by padding. A segment is a range of a row that belongs to
//! one document; the padding of a row is one segment too, so that segments tile the batch.

use std::ops::Range;

use packtok_formats::TokenFile;
use packtok_pbin::TokenWidth;

use crate::error::{Error, Result};
use crate::files::file_set::Files;
use crate::items::ids::{IdsMut, write_ids};
use crate::items::items::{Items, LastLabel};
use crate::items::loss::LossMarkers;
use crate::items::token_stream::{FileSpan, TokenStream};

#[cfg(target_arch = "x86_64")]
const CACHE_LINE_BYTES: usize = 64;

/// The arrays of a batch in row-major order, one row per item.
#[derive(Debug)]
pub struct Batch<'a> {
    /// Inputs; padding is [`Filling::pad_token_id`].
    pub input_ids: IdsMut<'a>,
    /// The target of each input, or the input itself if labels are aligned.
    pub labels: Option<IdsMut<'a>>,
    /// Position of each input in its segment, from 0.
    pub position_ids: Option<IdsMut<'a>>,
    /// Segment number of each input in its row, from 0; for padding see
    /// [`Filling::number_padding`].
    pub document_ids: Option<IdsMut<'a>>,
    /// Whether the label counts in the loss.
    pub loss_mask: Option<&'a mut [bool]>,
}

/// Values and options of the arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filling {
    /// Input id of padding.
    pub pad_token_id: i32,
    /// Label of inputs without a target.
    pub ignore_index: i32,
    /// Whether labels equal the inputs, for models that shift labels themselves.
    pub aligned: bool,
    /// Whether to compute the segments of the batch.
    pub segments: bool,
    /// Whether, in arrays of unsigned integers, the document number of padding follows the number
    /// of the last document; otherwise the number is −1.
    pub number_padding: bool,
    /// The markers between which labels count in the loss, if the loss mask of the file lets them; `None`
    /// for all labels.
    pub loss_markers: Option<LossMarkers>,
}

/// Segment boundaries of a batch, over its concatenated rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segments {
    /// Start of each segment, and finally the number of tokens of the batch.
    pub cu_seqlens: Vec<i32>,
    /// Length of the longest segment.
    pub max_seqlen: i32,
}

/// Writes `rows`, each an item of a source. Its ordinal must be below [`Items::len`], and all
/// sources must have rows of the same length.
///
/// # Errors
/// [`Error::NoRows`], [`Error::RowsDiffer`], [`Error::BatchTooLong`], [`Error::IdTooLarge`], and
/// the errors of reading files. The content of the arrays is unspecified afterwards.
///
/// # Panics
/// If an array is too short for its rows.
pub fn fill<'a>(
    rows: &[(&'a Items, u64)],
    filling: Filling,
    batch: &mut Batch<'_>,
) -> Result<Option<Segments>> {
    let len = context_length(rows.iter().map(|&(source, _)| source))?.unwrap_or(0) as usize;
    let wants_segments =
        filling.segments || batch.position_ids.is_some() || batch.document_ids.is_some();
    let mut segments = Segments::new(filling, rows.len(), len)?;
    let mut row = Row::default();
    let mut next = Row::default();
    let mut upcoming = rows.iter();
    let mut read = |row: &mut Row<'a>| match upcoming.next() {
        Some(&(source, item)) => row.read(source, item, len, wants_segments, filling),
        None => Ok(()),
    };
    read(&mut next)?;
    for (i, &(source, _)) in rows.iter().enumerate() {
        let place = i * len..(i + 1) * len;
        // Fetching the next row prefetches its tokens while this row is written.
        std::mem::swap(&mut row, &mut next);
        read(&mut next)?;
        row.write_tokens(source.stream(), filling, batch, place.clone())?;
        row.write_segments(filling, batch, place.clone());
        if let Some(segments) = &mut segments {
            row.append_to(segments, place.start);
        }
    }
    if let Some(segments) = &mut segments {
        segments.end(rows.len() * len);
    }
    Ok(segments)
}

impl Segments {
    /// Empty segments for `num_rows` rows of `len` tokens; `None` if `filling` does not request
    /// segments.
    ///
    /// # Errors
    /// [`Error::BatchTooLong`].
    pub(super) fn new(filling: Filling, num_rows: usize, len: usize) -> Result<Option<Self>> {
        let num_tokens = (num_rows as u64).saturating_mul(len as u64);
        if filling.segments && num_tokens > i32::MAX as u64 {
            return Err(Error::BatchTooLong { tokens: num_tokens });
        }
        Ok(filling.segments.then(|| Self {
            cu_seqlens: Vec::with_capacity(num_rows * 2 + 1),
            max_seqlen: 0,
        }))
    }

    /// Ends the last segment at the end of the batch.
    pub(super) fn end(&mut self, num_tokens: usize) {
        self.cu_seqlens.push(num_tokens as i32);
    }
}

/// Number of inputs in a row of each of `sources`; `None` if there are no sources.
///
/// # Errors
/// [`Error::NoRows`]; [`Error::RowsDiffer`].
pub fn context_length<'a>(sources: impl IntoIterator<Item = &'a Items>) -> Result<Option<u64>> {
    let mut lengths = sources
        .into_iter()
        .map(|source| source.context_length().ok_or(Error::NoRows));
    let Some(first) = lengths.next().transpose()? else {
        return Ok(None);
    };
    for length in lengths {
        let length = length?;
        if length != first {
            return Err(Error::RowsDiffer {
                first,
                found: length,
            });
        }
    }
    Ok(Some(first))
}

/// One row; reused from row to row to avoid allocations.
#[derive(Default)]
pub(super) struct Row<'a> {
    /// The tokens, in order.
    parts: Vec<Part<'a>>,
    /// Positions of inputs without a target, unless inputs are their own labels.
    unlabelled: Vec<usize>,
    /// Ranges of inputs whose labels do not count, because they are not between loss markers, or by the loss
    /// mask of the file.
    ignored: Vec<Range<usize>>,
    /// Starts of segments in ascending order, if requested. The first is 0 unless the row is all
    /// padding.
    pub(super) starts: Vec<usize>,
    /// End of the inputs, start of the padding.
    pub(super) end: usize,
    /// End of the row.
    pub(super) len: usize,
}

/// Tokens of a row that are contiguous in one file.
struct Part<'a> {
    piece: FileSpan,
    bytes: &'a [u8],
    /// Position of the first token in the row.
    at: usize,
    /// Number of inputs. The label of the last input is the token after it.
    num_inputs: usize,
    /// Whether the first token is not a label of any input.
    starts_span: bool,
}

impl<'a> Row<'a> {
    /// Reads the item `item` into a row of `len` inputs.
    fn read(
        &mut self,
        source: &'a Items,
        item: u64,
        len: usize,
        wants_segments: bool,
        filling: Filling,
    ) -> Result<()> {
        self.parts.clear();
        self.unlabelled.clear();
        self.ignored.clear();
        self.starts.clear();
        self.end = 0;
        self.len = len;
        let files = source.stream().files();
        for span in source.spans(item)? {
            let (num_inputs, last_label) = source.inputs(&span);
            let end = self.end + num_inputs as usize;
            let mut is_labelled = last_label == LastLabel::Next;
            let mut starts_span = true;
            for piece in source.stream().pieces(span) {
                let mut piece = piece?;
                let (at, file) = (self.end, piece.file);
                let num_inputs = (piece.len() as usize).min(end - at);
                let separator = source.separator();
                if num_inputs > 0
                    && separator.is_none()
                    && (wants_segments || last_label == LastLabel::NextOfDocument)
                {
                    let inputs = piece.tokens.start..piece.tokens.start + num_inputs as u64;
                    let goes_on = self.find_segments(files.token_file(file)?, inputs)?;
                    if last_label == LastLabel::NextOfDocument {
                        is_labelled = goes_on;
                        piece.tokens.end += u64::from(goes_on);
                    }
                }
                let checked = files.checked_file(file)?;
                let bytes = checked.tokens(piece.tokens.clone())?;
                let has_loss_mask = checked.token_file().has_loss_mask();
                fetch(bytes);
                if let Some(separator) = separator.filter(|_| wants_segments && num_inputs > 0) {
                    // Excludes the token that is only the label of the last input.
                    let inputs = num_inputs * files.width().bytes() as usize;
                    self.separate(files.width(), &bytes[..inputs], separator);
                }
                let part = Part {
                    piece,
                    bytes,
                    at,
                    num_inputs,
                    starts_span,
                };
                if has_loss_mask || filling.loss_markers.is_some() {
                    self.find_ignored(files, &part, filling)?;
                }
                self.parts.push(part);
                starts_span = false;
                self.end += num_inputs;
            }
            if num_inputs > 0 && !is_labelled {
                self.unlabelled.push(self.end - 1);
            }
        }
        Ok(())
    }

    /// Appends the starts of documents among the inputs `tokens` of a file, which come next in the
    /// row. Returns whether the last document continues after the inputs.
    fn find_segments(&mut self, file: &TokenFile, tokens: Range<u64>) -> Result<bool> {
        let mut start = tokens.start;
        for document in file.documents_from(start)? {
            let (_, document) = document?;
            // Empty documents are skipped: no segment is empty.
            if document.end > start {
                self.starts.push(self.end + (start - tokens.start) as usize);
                start = document.end;
            }
            if start >= tokens.end {
                break;
            }
        }
        Ok(start > tokens.end)
    }

    /// Appends the inputs whose labels are tokens of a part and do not count in the loss.
    fn find_ignored(&mut self, files: &Files, part: &Part<'_>, filling: Filling) -> Result<()> {
        let mut tokens = part.piece.tokens.clone();
        // Position in the row of the input whose label is the first token.
        let mut at = part.at;
        if filling.aligned {
            tokens.end = tokens.start + part.num_inputs as u64;
        } else if part.starts_span {
            tokens.start += 1;
        } else {
            at -= 1;
        }
        if tokens.is_empty() {
            return Ok(());
        }
        let mut ignore = |range: Range<usize>| self.ignored.push(at + range.start..at + range.end);
        if let Some(mask) = files.token_file(part.piece.file)?.loss_mask() {
            mask.ignored(tokens.clone(), &mut ignore)?;
        }
        match filling.loss_markers {
            Some(markers) => markers.ignored(files, part.piece.file, tokens, ignore),
            None => Ok(()),
        }
    }

    /// Appends the starts of documents among the inputs `bytes` of a file, which come next in the
    /// row: the first input, and each input after a separator.
    fn separate(&mut self, width: TokenWidth, bytes: &[u8], separator: u32) {
        match width {
            TokenWidth::U8 => self.separate_each(bytes, separator, u8::from_le_bytes),
            TokenWidth::U16 => self.separate_each(bytes, separator, u16::from_le_bytes),
            TokenWidth::U32 => self.separate_each(bytes, separator, u32::from_le_bytes),
        }
    }

    fn separate_each<const N: usize, W: Into<u32>>(
        &mut self,
        bytes: &[u8],
        separator: u32,
        decode: impl Fn([u8; N]) -> W,
    ) {
        let (tokens, _) = bytes.as_chunks::<N>();
        let mut starts = true;
        for (i, &token) in tokens.iter().enumerate() {
            if starts {
                self.starts.push(self.end + i);
            }
            starts = decode(token).into() == separator;
        }
    }

    /// Writes the fields that are tokens or depend on their number.
    fn write_tokens(
        &self,
        stream: &TokenStream,
        filling: Filling,
        batch: &mut Batch<'_>,
        place: Range<usize>,
    ) -> Result<()> {
        let width = stream.files().width();
        for part in &self.parts {
            let inputs = part.inputs(width);
            let at = place.start + part.at;
            part.write(stream, inputs, &mut batch.input_ids, at)?;
            if let Some(labels) = &mut batch.labels {
                if filling.aligned {
                    part.write(stream, inputs, labels, at)?;
                } else if part.starts_span {
                    part.write(stream, &part.bytes[width.bytes() as usize..], labels, at)?;
                } else {
                    part.write(stream, part.bytes, labels, at - 1)?;
                }
            }
        }
        let (inputs, padding) = (
            place.start..place.start + self.end,
            place.start + self.end..place.end,
        );
        batch.input_ids.set(padding.clone(), filling.pad_token_id);
        if let Some(labels) = &mut batch.labels {
            labels.set(padding.clone(), filling.ignore_index);
        }
        if let Some(loss_mask) = &mut batch.loss_mask {
            loss_mask[inputs].fill(true);
            loss_mask[padding].fill(false);
        }
        let unlabelled = if filling.aligned {
            &[][..]
        } else {
            &self.unlabelled
        };
        let unlabelled = unlabelled.iter().map(|&i| i..i + 1);
        for range in unlabelled.chain(self.ignored.iter().cloned()) {
            let range = place.start + range.start..place.start + range.end;
            if let Some(labels) = &mut batch.labels {
                labels.set(range.clone(), filling.ignore_index);
            }
            if let Some(loss_mask) = &mut batch.loss_mask {
                loss_mask[range].fill(false);
            }
        }
        Ok(())
    }

    /// Writes the fields that depend on the segments.
    pub(super) fn write_segments(
        &self,
        filling: Filling,
        batch: &mut Batch<'_>,
        place: Range<usize>,
    ) {
        for (document, segment) in self.segments().enumerate() {
            let segment = place.start + segment.start..place.start + segment.end;
            if let Some(position_ids) = &mut batch.position_ids {
                position_ids.count(segment.clone());
            }
            if let Some(document_ids) = &mut batch.document_ids {
                document_ids.set(segment, document as i32);
            }
        }
        let padding = place.start + self.end..place.end;
        if let Some(position_ids) = &mut batch.position_ids {
            position_ids.count(padding.clone());
        }
        if let Some(document_ids) = &mut batch.document_ids {
            let document = if filling.number_padding {
                self.starts.len() as i32
            } else {
                -1
            };
            document_ids.set(padding, document);
        }
    }

    /// Appends the segments of the row, which starts at `origin` of the batch. The last segment is
    /// the padding, if any.
    pub(super) fn append_to(&self, segments: &mut Segments, origin: usize) {
        let padding = (self.end < self.len).then_some(self.end..self.len);
        for segment in self.segments().chain(padding) {
            segments.cu_seqlens.push((origin + segment.start) as i32);
            let len = (segment.end - segment.start) as i32;
            segments.max_seqlen = segments.max_seqlen.max(len);
        }
    }

    /// The segments without padding.
    fn segments(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let ends = self.starts.iter().skip(1).copied().chain([self.end]);
        self.starts.iter().zip(ends).map(|(&start, end)| start..end)
    }
}

impl Part<'_> {
    fn inputs(&self, width: TokenWidth) -> &[u8] {
        &self.bytes[..self.num_inputs * width.bytes() as usize]
    }

    /// Writes `bytes`, tokens of this part, to `out` from position `at` on.
    fn write(
        &self,
        stream: &TokenStream,
        bytes: &[u8],
        out: &mut IdsMut<'_>,
        at: usize,
    ) -> Result<()> {
        let width = stream.files().width();
        let place = at..at + bytes.len() / width.bytes() as usize;
        match out {
            IdsMut::U16(out) => write_ids(width, bytes, &mut out[place])
                .map_err(|id| stream.too_large::<u16>(&self.piece, id)),
            IdsMut::U32(out) => write_ids(width, bytes, &mut out[place])
                .map_err(|id| stream.too_large::<u32>(&self.piece, id)),
            IdsMut::I32(out) => write_ids(width, bytes, &mut out[place])
                .map_err(|id| stream.too_large::<i32>(&self.piece, id)),
            IdsMut::I64(out) => write_ids(width, bytes, &mut out[place])
                .map_err(|id| stream.too_large::<i64>(&self.piece, id)),
        }
    }
}

/// Prefetches the cache lines of `bytes`.
#[cfg(target_arch = "x86_64")]
fn fetch(bytes: &[u8]) {
    bytes
        .chunks(CACHE_LINE_BYTES)
        .for_each(|line| safe_arch::prefetch_t0(&line[0]));
}

/// Does nothing: safe code has no prefetch instruction on this architecture.
#[cfg(not(target_arch = "x86_64"))]
fn fetch(_: &[u8]) {}
