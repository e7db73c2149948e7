//! Reads corpora: expands inputs into files, and reads the records in them with their positions.
//!
//! A corpus is a list of files of any [`Format`], plain or compressed. This crate finds them
//! ([`expand`]), reads them in order and divides them into chunks of complete records ([`Reader`]).
//! A record is a line of JSON, or a text; [`field`] extracts the text of a line. [`pipeline`]
//! processes the chunks on all threads, and [`cut`](cut()) divides a file among shards. Each format
//! has a reader of one source (`source_reader.rs`, `open.rs`); `sequential.rs` goes over the sources.
#![forbid(unsafe_code)]

mod cbor;
mod chunk;
mod column;
mod columns;
mod csv;
mod cut;
mod detect;
mod digest;
mod document;
mod error;
mod expand;
pub mod field;
mod file;
mod file_name;
mod folder;
mod foreign;
mod format;
mod found;
mod frames;
mod ignored;
#[cfg(feature = "remote")]
mod in_store;
mod indexed;
mod kind;
mod label;
mod line_counter;
mod lines;
mod list;
mod location;
mod natural;
mod open;
mod other_format;
pub mod pipeline;
mod place;
mod plain;
mod plugin;
mod plugin_reader;
mod reader;
mod reason;
mod recognize;
mod record;
mod record_reader;
mod selection;
mod sequential;
mod source_reader;
mod split;
mod stream;
mod stream_reader;
#[cfg(feature = "tables")]
mod table;
mod text;
mod text_format;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

pub use chunk::{Chunk, Records};
pub use column::Columns;
pub use columns::{Description, describe};
pub use cut::cut;
pub use digest::digests;
pub use document::{OnBadDocument, text_of};
pub use error::{Error, Result};
pub use expand::{Expansion, expand, expand_with};
pub use file::is_url;
pub use file::{CorpusFile, len_of};
pub use folder::{PLAN_OF_SHARDS, TOKENIZER_OF_SHARDS};
pub use foreign::ForeignFiles;
pub use format::counts_records;
pub use format::{Format, is_corpus_name, offset_unit};
pub use frames::Frame;
pub use ignored::{Ignored, IgnoredReason, Unread};
pub use kind::kind;
pub use label::CurrentFolder;
pub use line_counter::LineCounter;
pub use list::{Listed, base_of, base_of_list, list_of, read_list, written_list};
pub use location::{Location, RecordNumber};
pub use natural::sort_naturally;
pub use open::check;
pub use other_format::OtherFormat;
pub use place::Place;
pub use plain::{check_plain, not_lines};
pub use plugin::{DocumentBatch, Documents, PartOfCorpus, Plugin, PluginCorpora};
pub use reader::Reader;
pub use reason::Reason;
pub use record::{Body, Record};
pub use record_reader::{RecordPosition, RecordReader};
pub use selection::Selection;
pub use stream::{Compression, compression, is_named_compressed};
#[cfg(feature = "tables")]
pub(crate) use table::group_starts;
#[cfg(feature = "tables")]
pub use table::is_panic_contained;
pub use text::unescaped;
pub use text_format::text_format;

/// The byte order mark that some tools write at the start of a file. It is not part of the text.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// One file of a corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Path or URL of the file; for a source plug-in, its corpus and part, separated by `/`.
    pub path: PathBuf,
    /// Its path relative to the common folder of all sources, separated by `/`; the file name if it
    /// is the only source.
    pub label: String,
    /// Its length on disk when the inputs were expanded, in bytes; 0 for a source plug-in, because
    /// it is not known in advance.
    pub bytes: u64,
    /// The format it is read as.
    pub format: Format,
    /// Index of the input that named it.
    pub input: usize,
    /// The byte range to read, complete lines of an uncompressed file or complete groups of rows;
    /// `None` for the whole file.
    pub range: Option<Range<u64>>,
    /// What reads the file, if packtok does not know its URL.
    pub files: Option<ForeignFiles>,
}

impl Source {
    /// The range of raw bytes to read.
    pub fn span(&self) -> Range<u64> {
        self.range.clone().unwrap_or(0..self.bytes)
    }

    /// Number of raw bytes to read.
    pub fn span_bytes(&self) -> u64 {
        let span = self.span();
        span.end - span.start
    }
}

/// Target length of a chunk of lines. Long enough to make locking negligible, short enough that
/// lines, texts and tokens of a chunk stay in a core's L2 cache (4 to 7 % less CPU time than 1 MiB
/// on code and multi, within noise on prose; one core of an AMD EPYC, Zen 4).
pub const CHUNK_BYTES: usize = 1 << 18;

/// How sources are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOptions {
    /// Target length of a chunk of lines in bytes; a longer line gets its own chunk.
    pub chunk_bytes: usize,
    /// Longest line that is kept, in bytes without its `\n`.
    pub max_document_bytes: u64,
    /// Base-2 logarithm of the largest window in bytes that a zstd frame may request.
    pub zstd_window_log_max: u32,
    /// The column of a table that contains the texts, for each input.
    pub columns: Columns,
    /// The text between two documents of a plain text; `None` if a file is one document.
    pub text_separator: Option<Arc<[u8]>>,
    /// The corpora of a source plug-in; `None` if the inputs are files.
    pub plugin: Option<PluginCorpora>,
}

impl ReadOptions {
    /// For JSON lines that need not be decompressed with an unusually large window.
    pub fn for_json_lines(max_document_bytes: u64) -> Self {
        Self {
            chunk_bytes: CHUNK_BYTES,
            max_document_bytes,
            zstd_window_log_max: 27,
            columns: Columns::of_pattern(""),
            text_separator: None,
            plugin: None,
        }
    }
}

#[cfg(test)]
mod tests;
