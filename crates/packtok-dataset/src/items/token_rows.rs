//! Batches of rows whose tokens are in memory, as streams make them. They have the same fields as
//! batches of the items of files.

use std::ops::Range;

use crate::error::Result;
use crate::items::batch::{Batch, Filling, Row, Segments};
use crate::items::ids::IdsMut;

/// The ids of a row.
#[derive(Debug, Clone, Copy)]
pub enum RowIds<'a> {
    /// Ids that are not negative.
    Unsigned(&'a [u32]),
    /// Some may be negative.
    Signed(&'a [i64]),
}

impl RowIds<'_> {
    /// Number of ids.
    pub fn len(&self) -> usize {
        match self {
            Self::Unsigned(ids) => ids.len(),
            Self::Signed(ids) => ids.len(),
        }
    }

    /// Whether there are no ids.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes a range of the ids to `out` from position `at` on.
    fn write(&self, range: Range<usize>, out: &mut IdsMut<'_>, at: usize) {
        match self {
            Self::Unsigned(ids) => out.copy(at, &ids[range]),
            Self::Signed(ids) => out.copy_signed(at, &ids[range]),
        }
    }
}

/// A row in memory.
#[derive(Debug, Clone, Copy)]
pub struct TokenRow<'a> {
    /// The inputs of the row, followed by its padding.
    pub ids: RowIds<'a>,
    /// The number of inputs of each document, in order; never 0.
    pub segments: &'a [u32],
    /// The token after the last input, if it is the label of that input.
    pub next: Option<i64>,
    /// Whether the first token of the next document in the row is the label of a document's last
    /// token. If not, the last token has no label.
    pub joins_documents: bool,
}

/// Writes `rows` of `len` tokens each. The ids of a row include its padding.
///
/// # Errors
/// [`Error::BatchTooLong`](crate::Error::BatchTooLong).
///
/// # Panics
/// If an array is too short for its rows.
pub fn fill_token_rows(
    rows: &[TokenRow<'_>],
    len: usize,
    filling: Filling,
    batch: &mut Batch<'_>,
) -> Result<Option<Segments>> {
    let mut segments = Segments::new(filling, rows.len(), len)?;
    let mut layout = Row::default();
    for (i, row) in rows.iter().enumerate() {
        let start = i * len;
        layout.starts.clear();
        (layout.end, layout.len) = (0, len);
        for &num_inputs in row.segments {
            layout.starts.push(layout.end);
            layout.end += num_inputs as usize;
        }
        row.ids.write(0..row.ids.len(), &mut batch.input_ids, start);
        row.write_labels(&layout, filling, batch, start);
        layout.write_segments(filling, batch, start..start + len);
        if let Some(segments) = &mut segments {
            layout.append_to(segments, start);
        }
    }
    if let Some(segments) = &mut segments {
        segments.end(rows.len() * len);
    }
    Ok(segments)
}

impl TokenRow<'_> {
    /// Writes the labels and the loss mask of the row that starts at `start`.
    fn write_labels(
        &self,
        layout: &Row<'_>,
        filling: Filling,
        batch: &mut Batch<'_>,
        start: usize,
    ) {
        let end = layout.end;
        if let Some(loss_mask) = &mut batch.loss_mask {
            loss_mask[start..start + end].fill(true);
        }
        if let Some(labels) = &mut batch.labels
            && end > 0
        {
            if filling.aligned {
                self.ids.write(0..end, labels, start)
            } else {
                self.ids.write(1..end, labels, start);
                labels.copy_signed(start + end - 1, self.next.as_slice());
            }
        }
        let mut remove_label = |place: Range<usize>| {
            let place = start + place.start..start + place.end;
            if let Some(labels) = &mut batch.labels {
                labels.set(place.clone(), filling.ignore_index);
            }
            if let Some(loss_mask) = &mut batch.loss_mask {
                loss_mask[place].fill(false);
            }
        };
        remove_label(end..layout.len);
        if filling.aligned {
            return;
        }
        if !self.joins_documents {
            let later = layout.starts.iter().skip(1);
            later.for_each(|&at| remove_label(at - 1..at));
        }
        if self.next.is_none() && end > 0 {
            remove_label(end - 1..end);
        }
    }
}
