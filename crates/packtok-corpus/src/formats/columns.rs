//! The columns of tables that contain the texts.

use std::sync::Arc;

use crate::Source;
use crate::error::{Error, Result};
use crate::field::names_of_path;

/// The columns that patterns name: `.text` is the column `text`, `.meta.text` the field `text` in
/// the column `meta`. A single column for all inputs, or one per input. A clone shares them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns(Arc<[Named]>);

#[derive(Debug, PartialEq, Eq)]
struct Named {
    pattern: String,
    names: Option<Vec<String>>,
}

impl Columns {
    /// The column for `pattern`, for all inputs. The pattern may be any jq filter as long as no
    /// table is read.
    pub fn of_pattern(pattern: &str) -> Self {
        Self::of_patterns([pattern])
    }

    /// The columns for the patterns of the inputs. There must be at least one pattern.
    pub fn of_patterns<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Self {
        let named = |pattern: &str| Named {
            pattern: pattern.to_owned(),
            names: names_of_path(pattern),
        };
        Self(patterns.into_iter().map(named).collect())
    }

    /// The path of names from the root of the table `source` to the text; not empty.
    ///
    /// # Errors
    /// The pattern is not a plain path of names.
    pub(crate) fn names(&self, source: &Source) -> Result<&[String]> {
        let named = self.0.get(source.input).unwrap_or(&self.0[0]);
        match &named.names {
            Some(names) => Ok(names),
            None => Err(Error::NoColumn {
                path: source.path.clone(),
                format: source.format,
                pattern: named.pattern.clone(),
            }),
        }
    }
}
