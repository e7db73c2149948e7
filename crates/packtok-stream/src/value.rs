//! The values of the columns of a sample.

use std::ops::Range;

use serde_json::Value as Json;

/// The content of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found<T, Reason> {
    /// The content has the requested type.
    Value(T),
    /// The content has another type; the reason.
    Unfit(Reason),
    /// The column does not exist.
    Missing,
}

/// The value of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Token ids.
    Ids(Vec<u32>),
    /// Token ids that may be negative, such as labels or padding.
    Signed(Vec<i64>),
    /// A mask of ones, as long as the ids, such as an attention mask.
    Ones(usize),
    /// A number.
    Integer(i64),
}

impl Value {
    /// The tokens `ids`; an id above 4294967295 is unfit.
    pub fn of_ids(ids: Vec<i64>) -> Found<Self, String> {
        let (lowest, highest) = ids
            .iter()
            .fold((0, 0), |(low, high), &id| (id.min(low), id.max(high)));
        if highest > i64::from(u32::MAX) {
            return Found::Unfit(format!(
                "has the id {highest}, expected at most {}",
                u32::MAX
            ));
        }
        Found::Value(match lowest {
            0 => Self::Ids(ids.into_iter().map(|id| id as u32).collect()),
            _ => Self::Signed(ids),
        })
    }

    /// The tokens in a column of a JSON object: an integer, a list of integers, or null for
    /// no tokens.
    pub(super) fn of_json_line(line: &[u8], column: &str) -> Found<Self, String> {
        let object: Result<serde_json::Map<String, Json>, _> = serde_json::from_slice(line);
        let Some(value) = object.ok().and_then(|mut object| object.remove(column)) else {
            return Found::Missing;
        };
        let ids = match value {
            Json::Null => Vec::new(),
            Json::Array(mut rows) if matches!(&rows[..], [Json::Array(_)]) => match rows.pop() {
                Some(Json::Array(ids)) => ids,
                _ => Vec::new(),
            },
            Json::Array(ids) => ids,
            value => vec![value],
        };
        let integers = ids.iter().map(|id| id.as_i64().ok_or(id));
        match integers.collect::<Result<Vec<_>, _>>() {
            Ok(ids) => Self::of_ids(ids),
            Err(Json::Array(_)) => Found::Unfit("has several rows, expected one".to_owned()),
            Err(value) => Found::Unfit(format!("has {value}, expected integers")),
        }
    }

    /// Length of a column of tokens; `None` for a number.
    pub fn num_tokens(&self) -> Option<usize> {
        match self {
            Self::Ids(ids) => Some(ids.len()),
            Self::Signed(ids) => Some(ids.len()),
            Self::Ones(len) => Some(*len),
            Self::Integer(_) => None,
        }
    }

    /// The token at `i`.
    pub(super) fn token(&self, i: usize) -> Option<i64> {
        match self {
            Self::Ids(ids) => ids.get(i).map(|&id| id.into()),
            Self::Signed(ids) => ids.get(i).copied(),
            Self::Ones(len) => (i < *len).then_some(1),
            Self::Integer(_) => None,
        }
    }

    /// The tokens as ids; empty for a number.
    pub(super) fn into_signed(self) -> Vec<i64> {
        match self {
            Self::Ids(ids) => ids.into_iter().map(i64::from).collect(),
            Self::Signed(ids) => ids,
            Self::Ones(len) => vec![1; len],
            Self::Integer(_) => Vec::new(),
        }
    }

    /// No tokens yet, of the kind of these, with memory for `capacity` of them.
    pub(super) fn empty_like(&self, capacity: usize) -> Self {
        match self {
            Self::Ids(_) => Self::Ids(Vec::with_capacity(capacity)),
            Self::Signed(_) => Self::Signed(Vec::with_capacity(capacity)),
            Self::Ones(_) | Self::Integer(_) => Self::Ones(0),
        }
    }

    /// Appends a range of the tokens of `other`.
    pub(super) fn append(&mut self, other: &Self, range: Range<usize>) {
        match (&mut *self, other) {
            (Self::Ids(ids), Self::Ids(more)) => ids.extend_from_slice(&more[range]),
            (Self::Ids(ids), Self::Ones(_)) => ids.resize(ids.len() + range.len(), 1),
            (Self::Signed(ids), Self::Signed(more)) => ids.extend_from_slice(&more[range]),
            (Self::Signed(ids), Self::Ids(more)) => {
                ids.extend(more[range].iter().map(|&id| i64::from(id)));
            }
            (Self::Signed(ids), Self::Ones(_)) => ids.resize(ids.len() + range.len(), 1),
            (Self::Ones(len), Self::Ones(_)) => *len += range.len(),
            (Self::Ones(len), Self::Ids(more)) => {
                let mut ids = vec![1; *len];
                ids.extend_from_slice(&more[range]);
                *self = Self::Ids(ids);
            }
            (Self::Ids(_) | Self::Ones(_), Self::Signed(more)) => {
                let mut ids = std::mem::replace(self, Self::Ones(0)).into_signed();
                ids.extend_from_slice(&more[range]);
                *self = Self::Signed(ids);
            }
            // Numbers are no tokens.
            (Self::Integer(_), _) | (_, Self::Integer(_)) => {}
        }
    }

    /// The tokens, extended to `length` with `padding`.
    pub(super) fn padded(self, padding: i64, length: usize) -> Self {
        match (self, u32::try_from(padding)) {
            (Self::Ids(mut ids), Ok(padding)) => {
                ids.resize(length, padding);
                Self::Ids(ids)
            }
            (Self::Ones(len), Ok(padding)) => {
                let mut ids = vec![1; len];
                ids.resize(length, padding);
                Self::Ids(ids)
            }
            (tokens, _) => {
                let mut ids = tokens.into_signed();
                ids.resize(length, padding);
                Self::Signed(ids)
            }
        }
    }

    /// The tokens with `first` before and `last` after them.
    pub(super) fn with_ends(self, (first, last): (Option<i64>, Option<i64>)) -> Self {
        let narrow = |id: Option<i64>| id.map(u32::try_from).transpose();
        match (self, narrow(first), narrow(last)) {
            (Self::Ids(mut ids), Ok(first), Ok(last)) => {
                ids.splice(0..0, first);
                ids.extend(last);
                Self::Ids(ids)
            }
            (tokens, _, _) => {
                let mut ids = tokens.into_signed();
                ids.splice(0..0, first);
                ids.extend(last);
                Self::Signed(ids)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appended_tokens_are_of_the_kind_that_holds_all_of_them() {
        let kinds = [
            Value::Ones(3),
            Value::Ids(vec![7, 8, u32::MAX]),
            Value::Signed(vec![-100, 5, i64::MIN]),
        ];
        for first in &kinds {
            for second in &kinds {
                let mut joined = first.clone();
                joined.append(second, 1..3);
                let mut expected = first.clone().into_signed();
                expected.extend(&second.clone().into_signed()[1..]);
                assert_eq!(joined.clone().into_signed(), expected);
                let is_signed = |value: &Value| matches!(value, Value::Signed(_));
                let has_signed = is_signed(first) || is_signed(second);
                assert_eq!(is_signed(&joined), has_signed, "{first:?} {second:?}");
            }
        }
    }

    #[test]
    fn columns_of_json_lines_are_tokens_or_name_what_is_none() {
        let line =
            br#"{"a": [1, -100], "b": [[3]], "c": null, "d": 4, "e": [1.5], "f": "x", "g": [true],
            "h": [4294967296], "i": [[1], [2]], "j": []}"#;
        let unfit = |reason: &str| Found::Unfit(reason.to_owned());
        for (column, expected) in [
            ("a", Found::Value(Value::Signed(vec![1, -100]))),
            ("b", Found::Value(Value::Ids(vec![3]))),
            ("c", Found::Value(Value::Ids(vec![]))),
            ("d", Found::Value(Value::Ids(vec![4]))),
            ("e", unfit("has 1.5, expected integers")),
            ("f", unfit("has \"x\", expected integers")),
            ("g", unfit("has true, expected integers")),
            (
                "h",
                unfit("has the id 4294967296, expected at most 4294967295"),
            ),
            ("i", unfit("has several rows, expected one")),
            ("j", Found::Value(Value::Ids(vec![]))),
            ("k", Found::Missing),
        ] {
            assert_eq!(Value::of_json_line(line, column), expected, "{column}");
        }
    }
}
