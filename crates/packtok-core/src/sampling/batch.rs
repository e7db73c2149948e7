//! Many items at once: each array of a batch is written once, into the caller's memory.
//!
//! A row is an item's inputs and padding behind them. Segments are the stretches of a row that belong to one
//! document; the padding of a row is one segment too, so that segments tile the batch.

use std::ops::Range;

use super::error::{Error, Result};
use super::ids::{Id, IdsMut, write_ids};
use super::items::{Inputs, Items};
use super::stream::{Piece, Stream};

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

/// Writes the rows of `items`, ordinals below [`Items::len`], each of [`Items::context_length`] tokens.
///
/// # Errors
/// [`Error::NoRows`], [`Error::BatchTooLong`], [`Error::IdTooLarge`], and what reading files may find. What is
/// in the arrays then is not specified.
///
/// # Panics
/// If an array is shorter than its rows.
pub fn fill(
    source: &Items,
    items: &[u64],
    filling: Filling,
    batch: &mut Batch<'_>,
) -> Result<Option<Segments>> {
    let len = source.context_length().ok_or(Error::NoRows)? as usize;
    let num_tokens = (items.len() as u64).saturating_mul(len as u64);
    if filling.segments && num_tokens > i32::MAX as u64 {
        return Err(Error::BatchTooLong { tokens: num_tokens });
    }
    let walks = filling.segments || batch.position_ids.is_some() || batch.document_ids.is_some();
    let mut row = Row::default();
    let mut segments = filling.segments.then(|| Segments {
        cu_seqlens: Vec::with_capacity(items.len() * 2 + 1),
        max_seqlen: 0,
    });
    for (i, &item) in items.iter().enumerate() {
        let inputs = source.inputs(item)?;
        let place = i * len..(i + 1) * len;
        write_tokens(source.stream(), &inputs, filling, batch, place.clone())?;
        if walks {
            row.find_segments(source.stream(), &inputs, len)?;
            row.write(batch, place.clone());
            if let Some(segments) = &mut segments {
                row.append_to(segments, place.start);
            }
        }
    }
    if let Some(segments) = &mut segments {
        segments.cu_seqlens.push(num_tokens as i32);
    }
    Ok(segments)
}

/// Writes the fields of one row that are tokens or follow from their number.
fn write_tokens(
    stream: &Stream,
    inputs: &Inputs,
    filling: Filling,
    batch: &mut Batch<'_>,
    place: Range<usize>,
) -> Result<()> {
    let Inputs {
        tokens,
        next_is_label,
    } = inputs;
    let end = place.start + (tokens.end - tokens.start) as usize;
    copy(stream, tokens.clone(), &mut batch.input_ids, place.start)?;
    batch.input_ids.set(end..place.end, filling.pad_token_id);
    // A row without tokens has no label to lose.
    let first = tokens.end.min(tokens.start + 1);
    let labelled = match (filling.aligned, next_is_label) {
        (true, _) => tokens.clone(),
        (false, true) => tokens.start + 1..tokens.end + 1,
        (false, false) => first..tokens.end,
    };
    let labels_end = place.start + (labelled.end - labelled.start) as usize;
    if let Some(labels) = &mut batch.labels {
        copy(stream, labelled, labels, place.start)?;
        labels.set(labels_end..place.end, filling.ignore_index);
    }
    if let Some(loss_mask) = &mut batch.loss_mask {
        loss_mask[place.start..labels_end].fill(true);
        loss_mask[labels_end..place.end].fill(false);
    }
    Ok(())
}

/// Writes virtual tokens `tokens` to `out`, from `at` on.
fn copy(stream: &Stream, tokens: Range<u64>, out: &mut IdsMut<'_>, at: usize) -> Result<()> {
    match out {
        IdsMut::I32(out) => copy_tokens(stream, tokens, &mut out[at..]),
        IdsMut::I64(out) => copy_tokens(stream, tokens, &mut out[at..]),
    }
}

/// Writes virtual tokens `tokens` to the start of `out`.
///
/// # Errors
/// [`Error::IdTooLarge`], and what reading files may find.
///
/// # Panics
/// If `out` is too short.
pub fn copy_tokens<T: Id>(stream: &Stream, tokens: Range<u64>, mut out: &mut [T]) -> Result<()> {
    let files = stream.files();
    for Piece { file, tokens } in stream.pieces(tokens) {
        let Range { start, end: stop } = tokens;
        let bytes = files.tokens(file, tokens)?;
        let (ids, rest) = out.split_at_mut((stop - start) as usize);
        write_ids(files.width(), bytes, ids).map_err(|id| Error::IdTooLarge {
            path: files.path(file).into(),
            start,
            stop,
            id,
            dtype: T::DTYPE,
        })?;
        out = rest;
    }
    Ok(())
}

/// The segments of one row; kept from row to row, so that their memory is asked for once.
#[derive(Default)]
struct Row {
    /// Where segments start, ascending; the first is 0 unless the row is all padding.
    starts: Vec<usize>,
    /// Where padding starts.
    end: usize,
    /// Where the row ends.
    len: usize,
}

impl Row {
    /// Finds where documents start among `inputs`, in a row of `len` tokens.
    fn find_segments(&mut self, stream: &Stream, inputs: &Inputs, len: usize) -> Result<()> {
        self.starts.clear();
        let mut at = 0;
        for Piece { file, tokens } in stream.pieces(inputs.tokens.clone()) {
            let reader = stream.files().reader(file)?;
            let mut document = reader.document_at(tokens.start)?;
            let mut start = tokens.start;
            while start < tokens.end {
                self.starts.push(at + (start - tokens.start) as usize);
                // Documents without tokens are passed over: no segment is empty.
                let mut stop = start;
                while stop <= start {
                    stop = reader.document_tokens(document)?.end;
                    document += 1;
                }
                start = stop;
            }
            at += (tokens.end - tokens.start) as usize;
        }
        self.end = at;
        self.len = len;
        Ok(())
    }

    /// Writes the fields of the row that follow from its segments.
    fn write(&self, batch: &mut Batch<'_>, place: Range<usize>) {
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
