//! The errors of this crate.

use std::io;
use std::path::{Path, PathBuf};

use crate::detect::format::FORMATS;
use crate::inputs::ignored::{IgnoredReason, Unread};

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a corpus cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An I/O operation failed.
    #[error("{}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// An object store returned an error.
    #[cfg(feature = "remote")]
    #[error(transparent)]
    Store(#[from] packtok_store::Error),
    /// An error of threads, or the caller requested to stop.
    #[error(transparent)]
    Jobs(#[from] packtok_jobs::Error),
    /// An error of a file that is published, such as a list of rejects.
    #[error(transparent)]
    Pbin(#[from] packtok_pbin::Error),
    /// A jq pattern does not compile.
    #[error("jq pattern {pattern:?}: {reason}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// The reason.
        reason: crate::field::PatternError,
    },
    /// A raw index was requested for a file in a format that packtok reads only without an index.
    #[error(
        "{}: is {found}, but a raw index lists lines of JSON; pack the file without one",
        path.display()
    )]
    NotLines {
        /// The source.
        path: PathBuf,
        /// Format of the source.
        found: crate::OtherFormat,
    },
    /// A worker panicked. The thread only knows the number of the source; `name_panic` adds the
    /// path.
    #[error("a worker panicked in source {source_index} at offset {offset}")]
    Panicked {
        /// Index of the source.
        source_index: usize,
        /// Offset of the record, in bytes or in rows.
        offset: u64,
    },
    /// A worker panicked while it processed a document.
    #[error(
        "{}: {place}: packtok panicked on this document; this is a bug, please report it with this document",
        path.display()
    )]
    DocumentPanicked {
        /// The source.
        path: PathBuf,
        /// The document, as in `byte 5`.
        place: String,
    },
    /// The list of inputs is empty.
    #[error("no input given; give at least one file, folder or glob")]
    NoInput,
    /// A file that a list names cannot be read.
    #[error(
        "{}:{line}: the list names {}, which cannot be read; write absolute paths, or set --root (root) if relative lines do not start at the folder of the list",
        list.display(),
        path.display()
    )]
    Listed {
        /// The list.
        list: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The file.
        path: PathBuf,
        /// The reason why the file cannot be read.
        source: std::io::Error,
    },
    /// A line of a list is not UTF-8.
    #[error("{}:{line}: the line is not UTF-8; give the file itself as an input", list.display())]
    ListNotUtf8 {
        /// The list.
        list: PathBuf,
        /// The line, from 1.
        line: u64,
    },
    /// A list names no file.
    #[error("{}: the list names no file; a file whose own name starts with @ is given as ./@name", list.display())]
    EmptyList {
        /// The list.
        list: PathBuf,
    },
    /// A path cannot be a line of a list.
    #[error("{}: the name has a line break or is not UTF-8, so it cannot be a line of a list; rename the file", path.display())]
    NotALine {
        /// The file.
        path: PathBuf,
    },
    /// An input is neither a file nor a folder.
    #[error("{}: is a {found}, not a file; give a regular file, a folder or a glob", path.display())]
    NotAFile {
        /// The input.
        path: PathBuf,
        /// The kind of the path, as in `folder`.
        found: &'static str,
    },
    /// A folder contains no corpus file.
    #[error(
        "{}: the folder contains no {} file{}; give the files or a glob",
        path.display(),
        extensions(*format),
        besides(ignored)
    )]
    EmptyFolder {
        /// The folder.
        path: PathBuf,
        /// The format of the files, if the user chose one.
        format: Option<crate::Format>,
        /// The files that are not read, below the folder, and why.
        ignored: Vec<(PathBuf, IgnoredReason)>,
    },
    /// A folder contains token files and no corpus.
    #[error(
        "{}: the folder contains token files such as {}, not a corpus; give the texts that they were made from",
        path.display(),
        file.display()
    )]
    FolderOfTokens {
        /// The folder.
        path: PathBuf,
        /// One of the files, below the folder.
        file: PathBuf,
    },
    /// A folder contains files that look like data and cannot be read.
    #[error(
        "{}: {} data but cannot be read: {}; finish, convert or extract {}, or leave {} out with --ignore (ignore), such as --ignore {:?}",
        path.display(),
        match files.len() { 1 => "a file looks like", _ => "files look like" },
        with_reasons(files),
        them(files.len()),
        them(files.len()),
        pattern_of(files)
    )]
    UnreadData {
        /// The folder.
        path: PathBuf,
        /// The files, below the folder, and the reason why each cannot be read.
        files: Vec<(PathBuf, Unread)>,
    },
    /// The globs of `ignore` leave out all inputs.
    #[error("--ignore (ignore) leaves out all inputs; give files that it does not match")]
    AllIgnored,
    /// A folder contains files that belong to a split and files that do not.
    #[error(
        "{}: {} of no split, beside the splits {}: {}; read all files with --split all (split), or leave {} out with --ignore (ignore)",
        path.display(),
        match files.len() { 1 => "a file is".to_owned(), number => format!("{number} files are") },
        known.join(", "),
        list(files.iter().map(|file| file.display().to_string())),
        them(files.len())
    )]
    FilesOfNoSplit {
        /// The folder.
        path: PathBuf,
        /// The files of the folder without a split, below the folder.
        files: Vec<PathBuf>,
        /// The splits of the other files.
        known: Vec<String>,
    },
    /// A folder has no file of the split to read.
    #[error(
        "{}: no split {split:?}; the folder has {}; set --split (split) to one of them, or to all",
        path.display(),
        known.join(", ")
    )]
    NoSplit {
        /// The folder.
        path: PathBuf,
        /// The split to read.
        split: String,
        /// The splits of the folder.
        known: Vec<String>,
    },
    /// A glob matches no file.
    #[error("{pattern:?}: no file matches; globs skip hidden files, give those by name")]
    NothingMatches {
        /// The glob.
        pattern: String,
    },
    /// A glob is invalid.
    #[error("{pattern:?}: not a valid glob; write [[] for a literal bracket")]
    BadGlob {
        /// The glob.
        pattern: String,
        /// Position and reason.
        source: glob::PatternError,
    },
    /// An input is a URL, and this build does not support object stores.
    #[error(
        "an input is a URL, but packtok was built without object-store support; build it with the feature remote"
    )]
    NoStores,
    /// A file is given twice, perhaps through a link.
    #[error(
        "{}: same file as the earlier input {}; give each file once",
        path.display(),
        first.display()
    )]
    DuplicateInput {
        /// The second path of the file.
        path: PathBuf,
        /// The first path of the file.
        first: PathBuf,
    },
    /// The length of a source changed.
    #[error(
        "{}: file changed while it was read: found {found_bytes} bytes, expected {expected_bytes}; run again when no process writes to it",
        path.display()
    )]
    SourceChanged {
        /// The source.
        path: PathBuf,
        /// Length of the source at the start.
        expected_bytes: u64,
        /// Current length of the source.
        found_bytes: u64,
    },
    /// The records before a saved position have changed since the position was saved.
    #[error(
        "{}: the file has other content than when the state was saved; restore it, or start without the state",
        path.display()
    )]
    OtherContent {
        /// The source.
        path: PathBuf,
    },
    /// A CBOR file is damaged, so no further items can be read from it.
    #[error(
        "{}: the item at byte {offset_bytes} is no CBOR, or the file is truncated",
        path.display()
    )]
    DamagedCbor {
        /// The source.
        path: PathBuf,
        /// Offset of the item that is damaged.
        offset_bytes: u64,
    },
    /// A CBOR item is too long, so that the start of the next one is unknown.
    #[error(
        "{}: the item at byte {offset_bytes} is longer than max_document_bytes; raise --max-document-bytes (max_document_bytes)",
        path.display()
    )]
    LongCborItem {
        /// The source.
        path: PathBuf,
        /// Offset of the item.
        offset_bytes: u64,
    },
    /// Compressed data cannot be decompressed.
    #[error(
        "{}: compressed data is corrupt, truncated or followed by other data near byte {position_bytes} of the file; download the file again or repair it",
        path.display()
    )]
    DamagedCompression {
        /// The source.
        path: PathBuf,
        /// Number of bytes that the decompressor had consumed.
        position_bytes: u64,
        /// The error of the decompressor.
        source: io::Error,
    },
    /// A zstd frame needs more memory than allowed.
    #[error(
        "{}: a zstd frame needs a window larger than 2^{window_log_max} bytes; raise --zstd-window-log (zstd_window_log), to at most 31",
        path.display()
    )]
    ZstdWindow {
        /// The source.
        path: PathBuf,
        /// The current limit.
        window_log_max: u32,
    },
    /// Reading a table requires a temporary file, and the file cannot be written.
    #[error(
        "{}: a large dictionary of this table must be written to a temporary file, which is not possible in {}; set TMPDIR to a folder with space",
        path.display(),
        folder.display()
    )]
    Temporary {
        /// The source.
        path: PathBuf,
        /// The folder for temporary files.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A zstd frame was compressed with a dictionary.
    #[error(
        "{}: a zstd frame near byte {position_bytes} of the file was compressed with a dictionary, which packtok cannot read; decompress the file with zstd -d -D DICTIONARY",
        path.display()
    )]
    ZstdDictionary {
        /// The source.
        path: PathBuf,
        /// Number of bytes that the decompressor had consumed.
        position_bytes: u64,
    },
    /// A raw index is used or requested for a compressed file.
    #[error(
        "{}: file is compressed, but a raw index needs an uncompressed file; decompress it, or pack it without an index",
        path.display()
    )]
    IndexedCompressed {
        /// The source.
        path: PathBuf,
    },
    /// An entry of an index exceeds the file.
    #[error(
        "{}: index entry {entry} covers {len_bytes} bytes from byte {offset_bytes}, but the file \
         has {file_bytes} bytes; rebuild the index from this file",
        path.display()
    )]
    IndexEntryOutside {
        /// The source.
        path: PathBuf,
        /// Number of the entry, from 0.
        entry: usize,
        /// Start of the entry in the file.
        offset_bytes: u64,
        /// Length of the entry.
        len_bytes: u64,
        /// Length of the file.
        file_bytes: u64,
    },
    /// A file does not have the format that it is read as.
    #[error("{}: is {found}, not {expected}; {}", path.display(), found.remedy())]
    OtherFormat {
        /// The source.
        path: PathBuf,
        /// Actual format of the source.
        found: crate::OtherFormat,
        /// The format it is read as.
        expected: crate::Format,
    },
    /// A file has the name of another text format, but contains JSON lines.
    #[error(
        "{}: is named as {named} but starts with a JSON object; set --format (format) to say what it is",
        path.display()
    )]
    JsonLinesOrNot {
        /// The source.
        path: PathBuf,
        /// The format that the name stands for.
        named: crate::Format,
    },
    /// A folder contains files of several formats.
    #[error("{}: the folder contains files of several formats: {}; set --format (format) to the one to read, or leave the others out with --ignore (ignore)", path.display(), listed(counts))]
    MixedFolder {
        /// The folder.
        path: PathBuf,
        /// Number of files of each format.
        counts: Vec<(crate::Format, usize)>,
    },
    /// A table has no text column, because the pattern is not a plain path.
    #[error(
        "{}: is {format}, whose text column is a plain path of names such as .text, but --field (jq_pattern) is {pattern:?}",
        path.display()
    )]
    NoColumn {
        /// The source.
        path: PathBuf,
        /// Its format.
        format: crate::Format,
        /// The pattern.
        pattern: String,
    },
    /// A table does not have the text column.
    #[error(
        "{}: no column {column:?}; the table has {}",
        path.display(),
        existing(columns)
    )]
    ColumnMissing {
        /// The source.
        path: PathBuf,
        /// The column.
        column: String,
        /// The existing columns.
        columns: Vec<String>,
    },
    /// The column with the texts exists twice.
    #[error(
        "{}: the columns {first} and {second} are both named {column:?}; expected one, so rename or remove the other",
        path.display()
    )]
    ColumnTwice {
        /// The source.
        path: PathBuf,
        /// The column.
        column: String,
        /// The number of the first, from 1.
        first: usize,
        /// The number of the second.
        second: usize,
    },
    /// The content of a file is not of the format that the user chose or that the file name
    /// implies.
    #[error(
        "{}: is not a file of {format}; rename it, or set --format (format) to its format",
        path.display()
    )]
    NotThisFormat {
        /// The source.
        path: PathBuf,
        /// The format it is read as.
        format: crate::Format,
    },
    /// A table cannot be read.
    #[error("{}: {format}: {reason}; the file is damaged or truncated: write it again", path.display())]
    DamagedTable {
        /// The source.
        path: PathBuf,
        /// Its format.
        format: crate::Format,
        /// The fault and its position.
        reason: String,
    },
    /// A table uses a feature that packtok cannot read.
    #[error("{}: {format}: {reason}", path.display())]
    UnsupportedTable {
        /// The source.
        path: PathBuf,
        /// Its format.
        format: crate::Format,
        /// The unsupported feature, and the remedy.
        reason: String,
    },
    /// A source plug-in failed.
    #[error("{plugin}: {place}: {cause}")]
    Plugin {
        /// The plug-in.
        plugin: String,
        /// The corpus, with the part and the number of the document if known.
        place: String,
        /// The fault, as the plug-in or packtok describes it.
        cause: String,
    },
    /// A source plug-in does not yield the same documents as in the interrupted run.
    #[error(
        "{plugin}: {}: yields other documents than in the interrupted run; make it yield the same ones every time, or pack again from the start with --restart (restart: true)",
        path.display()
    )]
    OtherDocuments {
        /// The plug-in.
        plugin: String,
        /// The corpus and its part.
        path: PathBuf,
    },
    /// This build was compiled without support for tables.
    #[error("{}: is {format}, but packtok was built without it; build it with the feature tables", path.display())]
    NoTables {
        /// The source.
        path: PathBuf,
        /// Its format.
        format: crate::Format,
    },
}

impl Error {
    /// Builds an [`Error::Io`] for `path`. Restores an [`Error::Store`] that a reader wrapped into
    /// an I/O error.
    #[must_use]
    pub fn io(path: &Path, source: io::Error) -> Self {
        #[cfg(feature = "remote")]
        let source = match source.downcast() {
            Ok(error) => return Self::Store(error),
            Err(source) => source,
        };
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}

/// The most files that a message lists.
const LISTED_FILES: usize = 10;

/// A list of names for the end of a message; long lists are truncated.
fn list(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(LISTED_FILES);
    let mut text = names.take(LISTED_FILES).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// Files with reasons, as in `a.tar (archive), b.jsonl.xz (unsupported compression)`.
fn with_reasons(files: &[(PathBuf, impl std::fmt::Display)]) -> String {
    let files = files.iter();
    list(files.map(|(file, reason)| format!("{} ({reason})", file.display())))
}

/// The ignored files, for a message that no files remain to read.
fn besides(ignored: &[(PathBuf, IgnoredReason)]) -> String {
    if ignored.is_empty() {
        String::new()
    } else {
        format!(", and these are not read: {}", with_reasons(ignored))
    }
}

fn them(number: usize) -> &'static str {
    match number {
        1 => "it",
        _ => "them",
    }
}

/// A glob for the extension of the first file.
fn pattern_of(files: &[(PathBuf, Unread)]) -> String {
    let extension = files.first().and_then(|(file, _)| file.extension());
    let extension = extension.map(|extension| extension.to_string_lossy().into_owned());
    format!("*.{}", extension.unwrap_or_default())
}

/// The numbers of files of several formats, as in "3 Parquet, 1 CSV".
fn listed(counts: &[(crate::Format, usize)]) -> String {
    let counts = counts
        .iter()
        .map(|(format, count)| format!("{count} {format}"));
    counts.collect::<Vec<_>>().join(", ")
}

/// The columns of a table and the remedy, for the end of a message.
fn existing(columns: &[String]) -> String {
    if columns.is_empty() {
        return "no columns".to_owned();
    }
    format!(
        "{}; set --field (jq_pattern) to one of them{}",
        quoted(columns),
        example(columns)
    )
}

/// An example of a pattern, if one of the columns can be written without quotes.
fn example(columns: &[String]) -> String {
    let is_plain = |name: &&String| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
        name.bytes().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit())
    };
    let plain = columns.iter().find(is_plain);
    plain.map_or_else(String::new, |name| format!(", such as .{name}"))
}

/// Names in quotes, as in `"a", "b"`. Long lists and long names are truncated.
fn quoted(names: &[String]) -> String {
    const SHOWN: usize = 20;
    const SHOWN_CHARS: usize = 40;
    let first_names = names.iter().take(SHOWN).map(|name| {
        let start: String = name.chars().take(SHOWN_CHARS).collect();
        let is_cut = start.len() < name.len();
        format!("{start:?}{}", if is_cut { "\u{2026}" } else { "" })
    });
    let mut text = first_names.collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

/// The extensions of the corpus files in a folder, as in `*.csv or *.tsv`.
fn extensions(format: Option<crate::Format>) -> String {
    let formats = FORMATS
        .into_iter()
        .filter(|known| format.is_none_or(|format| format == *known));
    let names = formats.flat_map(crate::detect::format::extensions);
    let names: Vec<String> = names.map(|extension| format!("*{extension}")).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
