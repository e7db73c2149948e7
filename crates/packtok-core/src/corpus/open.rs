//! Opens a source with the reader of its format.

use super::csv::Csv;
use super::lines::Lines;
use super::source_reader::SourceReader;
use super::text::Text;
use super::{Format, ReadOptions, Source};
use crate::error::Result;

/// A reader of `source` from its start.
pub(super) fn open(source: &Source, options: &ReadOptions) -> Result<Box<dyn SourceReader>> {
    Ok(match source.format {
        Format::Jsonl => Box::new(Lines::open(source, options)?),
        Format::Text => Box::new(Text::open(source, options)?),
        Format::Csv | Format::Tsv => Box::new(Csv::open(source, options)?),
        #[cfg(feature = "tables")]
        Format::Parquet | Format::Arrow => Box::new(super::table::Table::open(source, options)?),
        #[cfg(not(feature = "tables"))]
        Format::Parquet | Format::Arrow => {
            return Err(crate::error::Error::Corpus(super::CorpusError::NoTables {
                path: source.path.clone(),
                format: source.format,
            }));
        }
    })
}

/// Checks that `source` can be opened: that its first bytes are those of its format, and that a table
/// has the text column.
pub(crate) fn check(source: &Source, options: &ReadOptions) -> Result<()> {
    open(source, options).map(drop)
}
