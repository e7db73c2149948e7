//! The errors of this module.

use std::io;
use std::path::PathBuf;

/// Why a corpus cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// The list of inputs is empty.
    #[error("no input given; give at least one file, folder or glob")]
    NoInput,
    /// An input is neither a file nor a folder.
    #[error("{}: is a {found}, not a file; give a regular file, a folder or a glob", path.display())]
    NotAFile {
        /// The input.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// A folder contains no corpus file.
    #[error(
        "{}: the folder contains no *.jsonl, *.jsonl.gz or *.jsonl.zst file; give the files or a glob",
        path.display()
    )]
    EmptyFolder {
        /// The folder.
        path: PathBuf,
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
        /// Its length at the start.
        expected_bytes: u64,
        /// Its length now.
        found_bytes: u64,
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
        "{}: a zstd frame needs a window larger than 2^{window_log_max} bytes; raise zstd_window_log (at most 31)",
        path.display()
    )]
    ZstdWindow {
        /// The source.
        path: PathBuf,
        /// The current limit.
        window_log_max: u32,
    },
    /// A raw index was given or requested for a compressed file.
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
        /// Its start.
        offset_bytes: u64,
        /// Its length.
        len_bytes: u64,
        /// Length of the file.
        file_bytes: u64,
    },
    /// A file is not JSON lines.
    #[error("{}: is {format}, not JSON lines; {}", path.display(), format.remedy())]
    NotJsonLines {
        /// The source.
        path: PathBuf,
        /// Its format.
        format: super::format::Format,
    },
}
