//! Locates the documents from which the tokens of a sample come.

use super::Sample;
use super::sample::{DocumentPart, SampleOrigin};

/// The documents of a row.
pub enum LocatedRow {
    /// The sample is a document. `None` if the document is not from a file.
    Document(Option<SampleOrigin>),
    /// The sample is a row of tokens, with the number of tokens of each part.
    Row(Vec<(DocumentPart, u32)>),
}

/// Takes the documents out of each row of a batch, or of the sample as the only row.
pub fn take_located(sample: &mut Sample) -> Vec<LocatedRow> {
    match &mut sample.rows {
        Some(rows) => {
            let rows = rows.iter_mut().filter(|row| !row.is_absent);
            rows.map(take_parts).collect()
        }
        None => vec![take_parts(sample)],
    }
}

fn take_parts(row: &mut Sample) -> LocatedRow {
    let Some(layout) = &mut row.layout else {
        return LocatedRow::Document(row.place.take());
    };
    let parts = std::mem::take(&mut layout.parts).into_iter();
    LocatedRow::Row(parts.zip(layout.segments.iter().copied()).collect())
}
