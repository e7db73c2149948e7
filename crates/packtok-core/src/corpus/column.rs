//! The column of a table that contains the texts.

use std::sync::Arc;

use super::{CorpusError, Source};
use crate::error::{Error, Result};
use crate::field::names_of_path;

/// The column that a pattern names: `.text` is the column `text`, `.meta.text` the field `text` in
/// the column `meta`. A clone shares the names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column(Arc<Named>);

#[derive(Debug, PartialEq, Eq)]
struct Named {
    pattern: String,
    names: Option<Vec<String>>,
}

impl Column {
    /// The column for `pattern`, which need not be the path of a column unless a table is read.
    pub fn of_pattern(pattern: &str) -> Self {
        Self(Arc::new(Named {
            pattern: pattern.to_owned(),
            names: names_of_path(pattern),
        }))
    }

    /// The names from the table to the text, at least one.
    ///
    /// # Errors
    /// The pattern is not a plain path of names.
    pub(super) fn names(&self, source: &Source) -> Result<&[String]> {
        match &self.0.names {
            Some(names) => Ok(names),
            None => Err(Error::Corpus(CorpusError::NoColumn {
                path: source.path.clone(),
                format: source.format,
                pattern: self.0.pattern.clone(),
            })),
        }
    }
}
