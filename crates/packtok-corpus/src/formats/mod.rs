//! The formats of corpora. Each format has a reader of one source; [`open`] selects it.

pub(crate) mod cbor;
pub(crate) mod columns;
pub(crate) mod csv;
mod lines;
pub(crate) mod plugin;
mod plugin_reader;
pub(crate) mod source_reader;
#[cfg(feature = "tables")]
pub(crate) mod table;
pub(crate) mod text;

use crate::error::{Error, Result};
use crate::formats::cbor::Cbor;
use crate::formats::csv::Csv;
use crate::formats::lines::Lines;
use crate::formats::plugin_reader::PluginReader;
use crate::formats::source_reader::SourceReader;
use crate::formats::text::Text;
use crate::{Format, ReadOptions, Source};

/// A reader of `source` from its start.
pub(crate) fn open(source: &Source, options: &ReadOptions) -> Result<Box<dyn SourceReader>> {
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
        Format::Parquet | Format::Arrow => {
            Box::new(crate::formats::table::Table::open(source, options)?)
        }
        #[cfg(not(feature = "tables"))]
        Format::Parquet | Format::Arrow => {
            return Err(Error::NoTables {
                path: source.path.clone(),
                format: source.format,
            });
        }
    })
}

/// Checks that `source` can be opened: its first bytes must match its format, and a table must
/// have the text column.
pub fn check(source: &Source, options: &ReadOptions) -> Result<()> {
    open(source, options).map(drop)
}
