//! Changes each sample by itself, on the caller's thread: adds BOS and EOS, and pads.

use serde::{Deserialize, Serialize};

use super::Sample;
use super::builder::{OperatorSpec, Site};
use super::node::{Node, Stateless, Transform};
use super::sample::{DocumentPart, IDS_COLUMN, Name, RowFields, RowLayout, TokenForm};
use super::value::Value;
use crate::error::{Error, Result};

/// The column of the attention mask, which is extended like the ids, if a sample has it.
const MASK_COLUMN: &str = "attention_mask";

/// Adds ids at the start and at the end of each document.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EndsSpec {
    /// The column of ids.
    column: String,
    /// The first and the last id.
    ends: (Option<i64>, Option<i64>),
    /// Whether the ids are added even to a document that already has them.
    always: bool,
}

impl OperatorSpec for EndsSpec {
    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>> {
        let ends = Ends {
            column: self.column.as_str().into(),
            mask_column: MASK_COLUMN.into(),
            ends: self.ends,
            always: self.always,
        };
        Ok(Box::new(Stateless::new(site.input()?, ends)))
    }
}

/// Extends columns on the right.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PadSpec {
    /// The columns and their padding.
    values: Vec<(String, i64)>,
    /// The length of the columns after it.
    chunk_length: usize,
    /// The fields of the rows; `None` keeps the fields that the rows have.
    fields: Option<RowFields>,
}

impl OperatorSpec for PadSpec {
    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>> {
        let values = self.values.iter();
        let pad = Pad {
            values: values
                .map(|(name, value)| (name.as_str().into(), *value))
                .collect(),
            length: self.chunk_length,
            fields: self.fields,
        };
        Ok(Box::new(Stateless::new(site.input()?, pad)))
    }
}

/// The ids that are missing at the start and at the end. If both ids are equal, one of them
/// suffices, and it is added at the end.
fn missing_ends<T: Copy + PartialEq>(
    (first_id, last_id): (Option<T>, Option<T>),
    (first, last): (Option<T>, Option<T>),
) -> (Option<T>, Option<T>) {
    let has_first = first.is_none_or(|first| first_id == Some(first));
    let has_last = last.is_none_or(|last| last_id == Some(last));
    let is_one = first == last && first.is_some();
    if is_one && (has_first || has_last) {
        return (None, None);
    }
    let first = first.filter(|_| !has_first && !is_one);
    (first, last.filter(|_| !has_last))
}

/// Adds the first and the last id where they are missing.
pub(super) fn ensure_ends(ids: &mut Vec<u32>, ends: (Option<u32>, Option<u32>)) {
    let own = (ids.first().copied(), ids.last().copied());
    let (first, last) = missing_ends(own, ends);
    ids.splice(0..0, first);
    ids.extend(last);
}

/// The transform that adds ids.
struct Ends {
    column: Name,
    mask_column: Name,
    ends: (Option<i64>, Option<i64>),
    always: bool,
}

impl Ends {
    fn add_to(&self, sample: &mut Sample) -> Result<()> {
        let has_fields = |layout: &RowLayout| layout.fields != RowFields::default();
        if sample.layout.as_deref().is_some_and(has_fields) {
            return Err(Error::EndsOfRow);
        }
        // Added tokens change the row, so the document of each token is no longer known.
        sample.layout = None;
        sample.form = TokenForm::Tensor;
        let ids = sample.take_required_tokens(&self.column)?;
        let last = ids.num_tokens().and_then(|len| len.checked_sub(1));
        let own = (ids.token(0), last.and_then(|last| ids.token(last)));
        let ends = if self.always {
            self.ends
        } else {
            missing_ends(own, self.ends)
        };
        if self.column != self.mask_column
            && let Some(mask) = sample.take_tokens(&self.mask_column)?
        {
            sample.set(&self.mask_column, masked_ends(mask, ends));
        }
        sample.set(&self.column, ids.with_ends(ends));
        Ok(())
    }
}

impl Transform for Ends {
    fn next(&mut self, upstream: &mut dyn Node) -> Result<Option<Sample>> {
        let Some(mut sample) = upstream.next()? else {
            return Ok(None);
        };
        self.add_to(&mut sample)?;
        Ok(Some(sample))
    }
}

/// The mask of ids to which `ends` were added.
fn masked_ends(mask: Value, ends: (Option<i64>, Option<i64>)) -> Value {
    let ones = (ends.0.map(|_| 1), ends.1.map(|_| 1));
    match mask {
        Value::Ones(len) => Value::Ones(len + ones.0.iter().count() + ones.1.iter().count()),
        mask => mask.with_ends(ones),
    }
}

/// The transform that extends columns.
struct Pad {
    values: Vec<(Name, i64)>,
    length: usize,
    fields: Option<RowFields>,
}

impl Pad {
    /// Extends columns; the documents of the row stay as they are, so the rest is padding.
    fn extend(&self, sample: &mut Sample) -> Result<()> {
        let Self {
            values,
            length,
            fields,
        } = self;
        let (length, fields) = (*length, *fields);
        if sample.foreign.is_some() && fields.is_some() {
            return Err(Error::NoRow);
        }
        let mut columns = Vec::with_capacity(values.len());
        for (name, padding) in values {
            let tokens = sample.take_required_tokens(name)?;
            let len = tokens.num_tokens().unwrap_or(0);
            if len > length {
                return Err(Error::TooLong {
                    at: sample.shown_place(),
                    column: name.to_string(),
                    len,
                    length,
                });
            }
            columns.push((name, tokens, len, *padding));
        }
        let ids = columns.iter().find(|(name, ..)| ***name == *IDS_COLUMN);
        let ids = ids.or(columns.first());
        if let (None, None, Some((name, _, len, _))) = (&sample.layout, &sample.foreign, ids) {
            sample.layout = Some(Box::new(RowLayout {
                segments: (*len > 0).then_some(*len as u32).into_iter().collect(),
                parts: vec![DocumentPart {
                    place: sample.place.clone(),
                    start: 0,
                }],
                ids: Some((*name).clone()),
                ..RowLayout::default()
            }));
        }
        if let (Some(layout), Some(fields)) = (&mut sample.layout, fields) {
            layout.fields = fields;
        }
        sample.form = TokenForm::Tensor;
        for (name, tokens, _, padding) in columns {
            sample.set(name, tokens.padded(padding, length));
        }
        Ok(())
    }
}

impl Transform for Pad {
    fn next(&mut self, upstream: &mut dyn Node) -> Result<Option<Sample>> {
        let Some(mut sample) = upstream.next()? else {
            return Ok(None);
        };
        self.extend(&mut sample)?;
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
            let mut result = ids.to_vec();
            ensure_ends(&mut result, ends);
            assert_eq!(result, expected, "{ids:?} {ends:?}");
        }
    }
}
