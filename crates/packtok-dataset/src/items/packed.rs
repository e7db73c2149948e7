//! The rows of a plan as files have them: whole documents, with the labels in the same list of ids.

use crate::error::Result;
use crate::items::items::Items;
use crate::items::loss::LossMarkers;
use crate::items::token_stream::FileSpan;

/// A row of documents, or of parts of long ones. Each has one id more than inputs: the last id is only a
/// label. Reused from row to row to avoid allocations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackedRow {
    /// The ids of all documents.
    pub ids: Vec<u32>,
    /// Whether the label of each id, which is the id after it, counts in the loss. Never of the last id of a
    /// document.
    pub loss_mask: Vec<bool>,
    /// Where each document starts.
    pub starts: Vec<u32>,
    /// Number of documents of one token in all rows that were read: they have no label, and are in no row.
    pub num_left_out: u64,
}

impl PackedRow {
    /// Replaces the row by item `i`, which must be below [`Items::len`] and consist of parts of single
    /// documents, as those of a plan do.
    ///
    /// # Errors
    /// The errors of opening its files; damaged offsets or a damaged plan.
    pub fn read(&mut self, items: &Items, i: u64, loss_markers: Option<LossMarkers>) -> Result<()> {
        self.ids.clear();
        self.loss_mask.clear();
        self.starts.clear();
        let files = items.stream().files();
        for piece in items.pieces(i)? {
            let FileSpan { file, mut tokens } = piece?;
            if tokens.is_empty() {
                continue;
            }
            let mut documents = files.token_file(file)?.documents_from(tokens.start)?;
            let document = match documents.next().transpose()? {
                Some((_, document)) => document,
                None => tokens.clone(),
            };
            // The label of the last input of a part.
            tokens.end += u64::from(tokens.end < document.end);
            if tokens.end - tokens.start < 2 {
                self.num_left_out += u64::from(tokens == document);
                continue;
            }
            let at = self.ids.len();
            self.starts.push(at as u32);
            let bytes = files.tokens(file, tokens.clone())?;
            self.ids.extend(files.width().ids(bytes));
            self.loss_mask.resize(self.ids.len(), true);
            let last = self.ids.len() - 1;
            self.loss_mask[last] = false;
            let labels = tokens.start + 1..tokens.end;
            let mut ignore = |range: std::ops::Range<usize>| {
                self.loss_mask[at + range.start..at + range.end].fill(false)
            };
            if let Some(mask) = files.token_file(file)?.loss_mask() {
                mask.ignored(labels.clone(), &mut ignore)?;
            }
            if let Some(markers) = loss_markers {
                markers.ignored(files, file, labels, ignore)?;
            }
        }
        Ok(())
    }
}
