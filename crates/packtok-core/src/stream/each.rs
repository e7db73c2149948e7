//! Changes each sample by itself, on the caller's thread: adds BOS and EOS, and pads.

use super::node::{Node, Operator};
use super::sample::{DocumentPart, IDS_COLUMN, Name, RowFields, RowLayout, TokenForm, Value};
use super::{Sample, StreamError};
use crate::error::{Error, Result};

/// What is done to a sample.
#[derive(Debug, Clone)]
pub enum Change {
    /// Ids are added at the start and at the end of a document.
    Ends {
        /// The column of ids.
        column: Name,
        /// The column whose length follows, if a sample has it.
        mask_column: Name,
        /// The first and the last id.
        ends: (Option<u32>, Option<u32>),
        /// Whether they are added to a document that has them.
        always: bool,
    },
    /// Columns are extended on the right.
    Pad {
        /// The columns and their padding.
        values: Vec<(Name, i64)>,
        /// The length of the columns after it.
        length: usize,
        /// The fields of the rows, if not those that they have.
        fields: Option<RowFields>,
    },
}

/// The ids that are missing at the start and at the end. If both are the same, one of them suffices,
/// and the last one is added.
fn missing_ends(
    ids: &[u32],
    (first, last): (Option<u32>, Option<u32>),
) -> (Option<u32>, Option<u32>) {
    let has_first = first.is_none_or(|first| ids.first() == Some(&first));
    let has_last = last.is_none_or(|last| ids.last() == Some(&last));
    let is_one = first == last && first.is_some();
    if is_one && (has_first || has_last) {
        return (None, None);
    }
    let first = first.filter(|_| !has_first && !is_one);
    (first, last.filter(|_| !has_last))
}

/// Adds the first and the last id where they are missing.
pub(super) fn ensure_ends(ids: &mut Vec<u32>, ends: (Option<u32>, Option<u32>)) {
    let missing = missing_ends(ids, ends);
    add_ends(ids, missing);
}

fn add_ends(ids: &mut Vec<u32>, (first, last): (Option<u32>, Option<u32>)) {
    ids.splice(0..0, first);
    ids.extend(last);
}

fn no_tokens(column: &Name) -> Error {
    Error::Stream(StreamError::NoTokens {
        column: column.to_string(),
    })
}

impl Change {
    fn apply(&self, sample: &mut Sample) -> Result<()> {
        match self {
            Self::Ends {
                column,
                mask_column,
                ends,
                always,
            } => {
                let has_fields = |layout: &RowLayout| layout.fields != RowFields::default();
                if sample.layout.as_deref().is_some_and(has_fields) {
                    return Err(Error::Stream(StreamError::EndsOfRow));
                }
                // Of a row that gets more tokens, the documents are no longer known.
                sample.layout = None;
                sample.form = TokenForm::Tensor;
                let tokens = sample.take_tokens(column);
                let Some(Value::Ids(mut ids)) = tokens else {
                    return Err(no_tokens(column));
                };
                let ends = match always {
                    true => *ends,
                    false => missing_ends(&ids, *ends),
                };
                add_ends(&mut ids, ends);
                if column != mask_column && sample.has(mask_column) {
                    let ones = (ends.0.map(|_| 1), ends.1.map(|_| 1));
                    let mask = match sample.take_tokens(mask_column) {
                        Some(Value::Ids(mut mask)) => {
                            add_ends(&mut mask, ones);
                            Value::Ids(mask)
                        }
                        _ => Value::Ones(ids.len()),
                    };
                    sample.set(mask_column, mask);
                }
                sample.set(column, Value::Ids(ids));
                Ok(())
            }
            Self::Pad {
                values,
                length,
                fields,
            } => pad(sample, values, *length, *fields),
        }
    }
}

/// Extends columns; the documents of the row stay as they are, so the rest is padding.
fn pad(
    sample: &mut Sample,
    values: &[(Name, i64)],
    length: usize,
    fields: Option<RowFields>,
) -> Result<()> {
    if sample.foreign.is_some() && fields.is_some() {
        return Err(Error::Stream(StreamError::NoRow));
    }
    let is_ids = |(name, _): &&(Name, i64)| &**name == IDS_COLUMN;
    let ids = values.iter().find(is_ids).or(values.first());
    let ids = ids.map(|(name, _)| name);
    let num_tokens = ids
        .and_then(|name| sample.column(name))
        .and_then(Value::num_tokens);
    if let (None, Some(len)) = (&sample.layout, num_tokens) {
        sample.layout = Some(Box::new(RowLayout {
            segments: (len > 0).then_some(len as u32).into_iter().collect(),
            parts: vec![DocumentPart {
                place: sample.place.clone(),
                start: 0,
            }],
            ids: ids.cloned(),
            ..RowLayout::default()
        }));
    }
    if let (Some(layout), Some(fields)) = (&mut sample.layout, fields) {
        layout.fields = fields;
    }
    sample.form = TokenForm::Tensor;
    for (name, value) in values {
        if sample.column(name).is_none()
            && let Some(foreign) = &mut sample.foreign
        {
            foreign.pad(name, *value, length)?;
            continue;
        }
        let mut ids = match sample.take_tokens(name) {
            Some(Value::Ids(ids)) => ids,
            Some(Value::Ones(len)) => vec![1; len],
            _ => return Err(no_tokens(name)),
        };
        if ids.len() > length {
            return Err(Error::Stream(StreamError::TooLong {
                column: name.to_string(),
                len: ids.len(),
                length,
            }));
        }
        let Ok(id) = u32::try_from(*value) else {
            let has_fields = |layout: &RowLayout| {
                layout.ids.as_ref() == Some(name) && layout.fields != RowFields::default()
            };
            if sample.layout.as_deref().is_some_and(has_fields) {
                return Err(Error::Stream(StreamError::Padding {
                    column: name.to_string(),
                    value: *value,
                }));
            }
            let mut signed: Vec<_> = ids.into_iter().map(i64::from).collect();
            signed.resize(length, *value);
            sample.set(name, Value::Signed(signed));
            continue;
        };
        ids.resize(length, id);
        sample.set(name, Value::Ids(ids));
    }
    Ok(())
}

impl Operator for Change {
    fn next(&mut self, upstream: &mut dyn Node) -> Result<Option<Sample>> {
        let Some(mut sample) = upstream.next()? else {
            return Ok(None);
        };
        self.apply(&mut sample)?;
        Ok(Some(sample))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_ids_are_added() {
        for (ids, ends, expected) in [
            (&[5][..], (Some(1), Some(2)), &[1, 5, 2][..]),
            (&[1, 5, 2], (Some(1), Some(2)), &[1, 5, 2]),
            (&[1, 5], (Some(1), Some(2)), &[1, 5, 2]),
            (&[5], (None, None), &[5]),
            (&[5], (Some(9), Some(9)), &[5, 9]),
            (&[9, 5], (Some(9), Some(9)), &[9, 5]),
            (&[], (Some(1), Some(2)), &[1, 2]),
            (&[], (Some(9), Some(9)), &[9]),
        ] {
            let mut found = ids.to_vec();
            ensure_ends(&mut found, ends);
            assert_eq!(found, expected, "{ids:?} {ends:?}");
        }
    }
}
