//! Reads corpora: expands inputs into files, and reads the records in them with their positions.
//!
//! A corpus is a list of files of any [`Format`], plain or compressed. Data flows through the modules in
//! this order:
//!
//! - `inputs`: inputs are expanded into files ([`expand`]), which are the sources;
//! - `detect`: each file has a format;
//! - `bytes`: its bytes are decompressed and counted;
//! - `formats`: the reader of its format returns records, each a line of JSON or a text;
//! - `reader`: all sources are read in order as chunks of complete records ([`Reader`]), on all threads
//!   ([`pipeline`]), or divided among shards ([`cut`](cut())); a few records with all their columns are
//!   read for a person who looks at them (`first_rows`, `record_at`);
//! - `document` and [`field`]: the text of a record, which [`field`] extracts from a line;
//! - [`rejects`]: the file that lists the records without a text.
#![forbid(unsafe_code)]

mod bytes;
mod detect;
mod document;
mod error;
pub mod field;
mod formats;
mod inputs;
mod reader;
pub mod rejects;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

pub use bytes::decompressed::{Compression, compression, is_named_compressed};
pub use bytes::frames::Frame;
pub use bytes::line_counter::LineCounter;
pub use detect::describe::{Description, describe};
pub use detect::format::counts_records;
pub use detect::format::{Format, format_of_name, is_corpus_name, offset_unit};
pub use detect::other_format::OtherFormat;
pub use detect::text_format::text_format;
pub use document::location::{Location, RecordNumber};
pub use document::plain::{check_plain, not_lines};
pub use document::reason::Reason;
pub use document::record::{Body, Record};
pub use document::resume_point::ResumePoint;
pub use document::{OnBadDocument, text_of};
pub use error::{Error, Result};
pub use formats::check;
pub use formats::columns::Columns;
pub use formats::plugin::{DocumentBatch, Documents, PartOfCorpus, Plugin, PluginCorpora};
#[cfg(feature = "tables")]
pub(crate) use formats::table::group_starts;
pub use formats::text::unescaped;
pub use inputs::corpus_file::is_url;
pub use inputs::corpus_file::{CorpusFile, len_of};
pub use inputs::folder::{PLAN_OF_SHARDS, TOKENIZER_OF_SHARDS};
pub use inputs::foreign::ForeignFiles;
pub use inputs::ignored::{Ignored, IgnoredReason, Unread};
pub use inputs::kind::kind;
pub use inputs::label::CurrentFolder;
pub use inputs::list::{Listed, base_of, base_of_list, list_of, read_list, written_list};
pub use inputs::natural::sort_naturally;
pub use inputs::selection::Selection;
pub use inputs::{Expansion, expand, expand_with};
pub use reader::chunk::{Chunk, Records};
pub use reader::cut::cut;
pub use reader::digest::digests;
#[cfg(feature = "tables")]
pub use reader::excerpt::{
    Excerpt, ExcerptRow, RecordOfSource, Shown, first_rows, is_late, record_at,
};
pub use reader::record_reader::{RecordPosition, RecordReader};
pub use reader::{Reader, pipeline};

/// The byte order mark that some tools write at the start of a file. It is not part of the text.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// One file of a corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Path or URL of the file; for a source plug-in, its corpus and part, separated by `/`.
    pub path: PathBuf,
    /// Path of the file relative to the common folder of all sources, separated by `/`; the file
    /// name if there is only one source.
    pub label: String,
    /// Length of the file on disk when the inputs were expanded, in bytes. 0 for a source plug-in,
    /// whose length is not known in advance.
    pub bytes: u64,
    /// The format it is read as.
    pub format: Format,
    /// Index of the input that named the file.
    pub input: usize,
    /// The byte range to read: complete lines of an uncompressed file or complete groups of rows.
    /// `None` for the whole file.
    pub range: Option<Range<u64>>,
    /// The reader of the file, if packtok does not support its URL.
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

/// Options for reading sources.
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
    /// When reading ends with an error of the kind [`std::io::ErrorKind::TimedOut`], for a caller who
    /// waits for a few records.
    pub deadline: Option<Instant>,
}

impl ReadOptions {
    /// Options for JSON lines, with zstd windows of at most 128 MiB.
    pub fn for_json_lines(max_document_bytes: u64) -> Self {
        Self {
            chunk_bytes: CHUNK_BYTES,
            max_document_bytes,
            zstd_window_log_max: 27,
            columns: Columns::of_pattern(""),
            text_separator: None,
            plugin: None,
            deadline: None,
        }
    }
}

#[cfg(test)]
mod tests;
