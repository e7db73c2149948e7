//! Many items at once: each array of a batch is written once, into the caller's memory.
//!
//! A row is an item's inputs and padding behind them. Segments are the stretches of a row that belong to one
//! document; the padding of a row is one segment too, so that segments tile the batch.

use std::ops::Range;

use super::error::SamplingError;
use super::ids::IdsMut;
use super::items::{Items, LastLabel};
use super::stream::{Piece, Stream};
use crate::error::Result;

/// The arrays of a batch, each of as many rows as there are items, row by row.
#[derive(Debug)]
pub struct Batch<'a> {
    /// Inputs; padding is [`Filling::pad_token_id`].
    pub input_ids: IdsMut<'a>,
    /// What each input is to predict, or the input itself if labels are aligned.
    pub labels: Option<IdsMut<'a>>,
    /// Place of each input in its segment, from 0.
    pub position_ids: Option<IdsMut<'a>>,
    /// Which segment of its row each input is in, from 0; −1 in padding.
    pub document_ids: Option<IdsMut<'a>>,
    /// Whether the label is one.
    pub loss_mask: Option<&'a mut [bool]>,
}

/// What is written where there is a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filling {
    /// Id of inputs that are padding.
    pub pad_token_id: i32,
    /// Label of inputs that predict nothing.
    pub ignore_index: i32,
    /// Whether labels are the inputs themselves, for models that shift inside.
    pub aligned: bool,
    /// Whether the segments of the batch are wanted.
    pub segments: bool,
}

/// Where the segments of a batch start and stop, over its rows laid end to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segments {
    /// Start of each segment and, last, the number of tokens of the batch.
    pub cu_seqlens: Vec<i32>,
    /// Length of the longest segment.
    pub max_seqlen: i32,
}

/// Writes `rows`, each an item of some source: its ordinal is below [`Items::len`], and all sources have rows of
/// one length.
///
/// # Errors
/// [`SamplingError::NoRows`], [`SamplingError::RowsDiffer`], [`SamplingError::BatchTooLong`],
/// [`SamplingError::IdTooLarge`], and what reading files may find. What is in the arrays then is not specified.
///
/// # Panics
/// If an array is shorter than its rows.
pub fn fill(
    rows: &[(&Items, u64)],
    filling: Filling,
    batch: &mut Batch<'_>,
) -> Result<Option<Segments>> {
    let len = context_length(rows.iter().map(|&(source, _)| source))?.unwrap_or(0) as usize;
    let num_tokens = (rows.len() as u64).saturating_mul(len as u64);
    if filling.segments && num_tokens > i32::MAX as u64 {
        return Err(SamplingError::BatchTooLong { tokens: num_tokens }.into());
    }
    let wants_segments =
        filling.segments || batch.position_ids.is_some() || batch.document_ids.is_some();
    let mut segments = filling.segments.then(|| Segments {
        cu_seqlens: Vec::with_capacity(rows.len() * 2 + 1),
        max_seqlen: 0,
    });
    let mut row = Row::default();
    for (i, &(source, item)) in rows.iter().enumerate() {
        let place = i * len..(i + 1) * len;
        row.read(source, item, len, wants_segments)?;
        row.write_tokens(source.stream(), filling, batch, place.clone())?;
        row.write_segments(batch, place.clone());
        if let Some(segments) = &mut segments {
            row.append_to(segments, place.start);
        }
    }
    if let Some(segments) = &mut segments {
        segments.cu_seqlens.push(num_tokens as i32);
    }
    Ok(segments)
}

/// Inputs in a row of each of `sources`; `None` if there are none.
///
/// # Errors
/// [`SamplingError::NoRows`]; [`SamplingError::RowsDiffer`].
pub fn context_length<'a>(sources: impl IntoIterator<Item = &'a Items>) -> Result<Option<u64>> {
    let mut lengths = sources
        .into_iter()
        .map(|source| source.context_length().ok_or(SamplingError::NoRows));
    let Some(first) = lengths.next().transpose()? else {
        return Ok(None);
    };
    for found in lengths {
        let found = found?;
        if found != first {
            return Err(SamplingError::RowsDiffer { first, found }.into());
        }
    }
    Ok(Some(first))
}

/// Writes virtual tokens `tokens` to `out`, from `at` on.
fn copy(stream: &Stream, tokens: Range<u64>, out: &mut IdsMut<'_>, at: usize) -> Result<()> {
    match out {
        IdsMut::I32(out) => stream.copy(tokens, &mut out[at..]),
        IdsMut::I64(out) => stream.copy(tokens, &mut out[at..]),
    }
}

/// One row; kept from row to row, so that its memory is asked for once.
#[derive(Default)]
struct Row {
    /// The inputs, and whether the token behind each span is the label of its last.
    spans: Vec<(Range<u64>, bool)>,
    /// Where segments start, ascending, if they are wanted; the first is 0 unless the row is all padding.
    starts: Vec<usize>,
    /// Where padding starts.
    end: usize,
    /// Where the row ends.
    len: usize,
}

impl Row {
    /// Looks up what belongs into the row of `item`, which has room for `len` inputs.
    fn read(&mut self, source: &Items, item: u64, len: usize, wants_segments: bool) -> Result<()> {
        self.spans.clear();
        self.starts.clear();
        self.end = 0;
        self.len = len;
        for span in source.spans(item)? {
            let (tokens, last_label) = source.inputs(span);
            let mut next_is_label = last_label == LastLabel::Next;
            if wants_segments || last_label == LastLabel::NextOfDocument {
                let goes_on = self.find_segments(source.stream(), tokens.clone())?;
                next_is_label |= goes_on && last_label == LastLabel::NextOfDocument;
            }
            self.end += (tokens.end - tokens.start) as usize;
            self.spans.push((tokens, next_is_label));
        }
        Ok(())
    }

    /// Appends where documents start among `tokens`; returns whether the last one goes on behind them.
    fn find_segments(&mut self, stream: &Stream, tokens: Range<u64>) -> Result<bool> {
        let mut at = self.end;
        let mut goes_on = false;
        for piece in stream.pieces(tokens) {
            let Piece { file, tokens } = piece?;
            let reader = stream.files().reader(file)?;
            let mut start = tokens.start;
            for document in reader.documents_from(tokens.start)? {
                let (_, document) = document?;
                // Documents without tokens are passed over: no segment is empty.
                if document.end > start {
                    self.starts.push(at + (start - tokens.start) as usize);
                    start = document.end;
                }
                if start >= tokens.end {
                    break;
                }
            }
            goes_on = start > tokens.end;
            at += (tokens.end - tokens.start) as usize;
        }
        Ok(goes_on)
    }

    /// Writes the fields that are tokens or follow from their number.
    fn write_tokens(
        &self,
        stream: &Stream,
        filling: Filling,
        batch: &mut Batch<'_>,
        place: Range<usize>,
    ) -> Result<()> {
        let mut at = place.start;
        for (tokens, next_is_label) in &self.spans {
            let end = at + (tokens.end - tokens.start) as usize;
            copy(stream, tokens.clone(), &mut batch.input_ids, at)?;
            let labelled = match (filling.aligned, next_is_label) {
                (true, _) => tokens.clone(),
                (false, true) => tokens.start + 1..tokens.end + 1,
                (false, false) => tokens.end.min(tokens.start + 1)..tokens.end,
            };
            let labels_end = at + (labelled.end - labelled.start) as usize;
            if let Some(labels) = &mut batch.labels {
                copy(stream, labelled, labels, at)?;
                labels.set(labels_end..end, filling.ignore_index);
            }
            if let Some(loss_mask) = &mut batch.loss_mask {
                loss_mask[at..labels_end].fill(true);
                loss_mask[labels_end..end].fill(false);
            }
            at = end;
        }
        let padding = at..place.end;
        batch.input_ids.set(padding.clone(), filling.pad_token_id);
        if let Some(labels) = &mut batch.labels {
            labels.set(padding.clone(), filling.ignore_index);
        }
        if let Some(loss_mask) = &mut batch.loss_mask {
            loss_mask[padding].fill(false);
        }
        Ok(())
    }

    /// Writes the fields that follow from the segments.
    fn write_segments(&self, batch: &mut Batch<'_>, place: Range<usize>) {
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
            document_ids.set(padding, -1);
        }
    }

    /// Appends the segments of the row, which starts at `origin` of the batch, padding as the last.
    fn append_to(&self, segments: &mut Segments, origin: usize) {
        let padding = (self.end < self.len).then_some(self.end..self.len);
        for segment in self.segments().chain(padding) {
            segments.cu_seqlens.push((origin + segment.start) as i32);
            let len = (segment.end - segment.start) as i32;
            segments.max_seqlen = segments.max_seqlen.max(len);
        }
    }

    /// The segments without the padding.
    fn segments(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let ends = self.starts.iter().skip(1).copied().chain([self.end]);
        self.starts.iter().zip(ends).map(|(&start, end)| start..end)
    }
}
