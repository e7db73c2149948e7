//! What can go wrong here, with the data to say so.

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
    /// A folder holds no corpus file.
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
    /// A glob cannot be understood.
    #[error("{pattern:?}: not a valid glob; write [[] for a literal bracket")]
    BadGlob {
        /// The glob.
        pattern: String,
        /// Where and why.
        source: glob::PatternError,
    },
    /// An input is a URL, and this build knows no object stores.
    #[error(
        "an input is a URL, but packtok was built without object-store support; build it with the feature remote"
    )]
    NoStores,
    /// A file is named twice, perhaps through a link.
    #[error(
        "{}: same file as the earlier input {}; give each file once",
        path.display(),
        first.display()
    )]
    DuplicateInput {
        /// The file as named the second time.
        path: PathBuf,
        /// The file as named the first time.
        first: PathBuf,
    },
    /// A source has another length than it had at the start.
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
        /// How much of the file the decompressor had taken in.
        position_bytes: u64,
        /// What the decompressor said.
        source: io::Error,
    },
    /// A zstd frame asks for more memory than is allowed.
    #[error(
        "{}: a zstd frame needs a window larger than 2^{window_log_max} bytes; raise zstd_window_log (at most 31)",
        path.display()
    )]
    ZstdWindow {
        /// The source.
        path: PathBuf,
        /// The limit in force.
        window_log_max: u32,
    },
    /// An index was given for, or asked of, a compressed file.
    #[error(
        "{}: file is compressed, but a raw index needs an uncompressed file; decompress it, or pack it without an index",
        path.display()
    )]
    IndexedCompressed {
        /// The source.
        path: PathBuf,
    },
    /// An entry of an index does not lie in the file.
    #[error(
        "{}: index entry {entry} covers {len_bytes} bytes from byte {offset_bytes}, but the file \
         has {file_bytes} bytes; rebuild the index from this file",
        path.display()
    )]
    IndexEntryOutside {
        /// The source.
        path: PathBuf,
        /// Position of the entry in the index, from 0.
        entry: usize,
        /// Where it starts.
        offset_bytes: u64,
        /// Its length.
        len_bytes: u64,
        /// Length of the file.
        file_bytes: u64,
    },
    /// A file is something else than JSON lines.
    #[error("{}: is {format}, not JSON lines; {}", path.display(), format.remedy())]
    NotJsonLines {
        /// The source.
        path: PathBuf,
        /// What it is.
        format: super::format::Format,
    },
}
