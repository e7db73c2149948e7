//! Where the tokens of a sample are from.

use std::ops::Range;

use super::Sample;
use super::sample::SamplePlace;

/// A part of a row that is from one document.
#[derive(Clone)]
pub struct LocatedPart {
    /// The document; `None` if it is not from a file.
    pub place: Option<SamplePlace>,
    /// Which of the document's tokens; `None` if the sample is the document itself.
    pub tokens: Option<Range<u64>>,
}

/// The documents of each row of a batch, or of the sample as the only row.
pub fn located(sample: &Sample) -> Vec<Vec<LocatedPart>> {
    match &sample.rows {
        Some(rows) => {
            let rows = rows.iter().filter(|row| !row.is_absent);
            rows.map(parts_of).collect()
        }
        None => vec![parts_of(sample)],
    }
}

fn parts_of(row: &Sample) -> Vec<LocatedPart> {
    let Some(layout) = &row.layout else {
        return vec![LocatedPart {
            place: row.place.clone(),
            tokens: None,
        }];
    };
    let parts = layout.parts.iter().zip(&layout.segments);
    parts
        .map(|(part, &len)| LocatedPart {
            place: part.place.clone(),
            tokens: Some(part.start..part.start + u64::from(len)),
        })
        .collect()
}
