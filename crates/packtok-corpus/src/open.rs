//! Opens a source with the reader of its format.

use super::cbor::Cbor;
use super::csv::Csv;
use super::lines::Lines;
use super::plugin_reader::PluginReader;
use super::source_reader::SourceReader;
use super::text::Text;
use super::{Format, ReadOptions, Source};
use crate::error::{Error, Result};

/// A reader of `source` from its start.
pub(super) fn open(source: &Source, options: &ReadOptions) -> Result<Box<dyn SourceReader>> {
    Ok(match source.format {
        Format::Jsonl => Box::new(Lines::open(source, options)?),
        Format::Cbor => Box::new(Cbor::open(source, options)?),
        Format::Text => Box::new(Text::open(source, options)?),
        Format::Plugin => match &options.plugin {
            Some(corpora) => Box::new(PluginReader::open(corpora, source, options)),
            None => {
                return Err(Error::NotThisFormat {
                    path: source.path.clone(),
                    format: source.format,
                });
            }
        },
        Format::Csv | Format::Tsv => Box::new(Csv::open(source, options)?),
        #[cfg(feature = "tables")]
        Format::Parquet | Format::Arrow => Box::new(super::table::Table::open(source, options)?),
        #[cfg(not(feature = "tables"))]
        Format::Parquet | Format::Arrow => {
            return Err(Error::NoTables {
                path: source.path.clone(),
                format: source.format,
            });
        }
    })
}

/// Checks that `source` can be opened: that its first bytes are those of its format, and that a table
/// has the text column.
pub fn check(source: &Source, options: &ReadOptions) -> Result<()> {
    open(source, options).map(drop)
}
