//! The errors of this module.

use std::path::PathBuf;

/// Why token files cannot be opened, listed or fetched.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// No files were given.
    #[error("no pbin given; give at least one")]
    NoFiles,
    /// Files have different token widths.
    #[error(
        "{}: tokens are {found} bytes wide, in {} they are {expected}; pack both with the same tokenizer",
        path.display(), first.display()
    )]
    WidthDiffers {
        /// The file.
        path: PathBuf,
        /// Its width.
        found: u64,
        /// The first file.
        first: PathBuf,
        /// That file's width.
        expected: u64,
    },
    /// A file changed since it was listed.
    #[error(
        "{}: {what} is {found}, expected {expected}; the file was replaced since it was listed or first opened",
        path.display()
    )]
    FileReplaced {
        /// The file.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// The value found; 0 if there is no checksum.
        found: u64,
        /// The expected value.
        expected: u64,
    },
    /// The files of a manifest changed since it was recorded.
    #[error(
        "{}: the fingerprint of the listed files is {found}, expected {expected}; the manifest was replaced since it was first opened",
        path.display()
    )]
    ManifestReplaced {
        /// The manifest.
        path: PathBuf,
        /// Fingerprint of the files listed now.
        found: String,
        /// Fingerprint of the files listed before.
        expected: String,
    },
    /// A line of a manifest is invalid.
    #[error("{}:{line}: not a valid manifest entry", path.display())]
    ManifestLine {
        /// The manifest.
        path: PathBuf,
        /// 1-based number of the line.
        line: usize,
        /// The error of the JSON parser.
        source: serde_json::Error,
    },
    /// The numbers of an entry are impossible for a pbin.
    #[error("{}: {tokens} tokens of {token_bytes} bytes do not fit in {file_bytes} bytes; the manifest entry is wrong", path.display())]
    ImpossibleEntry {
        /// The file.
        path: PathBuf,
        /// Number of tokens in the entry.
        tokens: u64,
        /// Bytes of one token in the entry.
        token_bytes: u64,
        /// Bytes of the file in the entry.
        file_bytes: u64,
    },
    /// A path is not UTF-8, so JSON cannot represent it.
    #[error("{}: the path is not UTF-8, so a manifest cannot contain it", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
    },
    /// The number of tokens or documents exceeds 64 bits.
    #[error("{}: with this file the total exceeds 2^64 tokens or documents; its manifest entry is wrong", path.display())]
    TooMany {
        /// The file at which the count overflows.
        path: PathBuf,
    },
    /// The size limit of the cache for object stores is not a number.
    #[error("PACKTOK_CACHE_BYTES is {found:?}, expected a number of bytes")]
    CacheBytes {
        /// The value found.
        found: String,
    },
    /// The cache for object stores is full.
    #[error(
        "{}: the open files need more than the {bytes} bytes that this cache of object-store files may hold; raise PACKTOK_CACHE_BYTES",
        folder.display()
    )]
    CacheFull {
        /// The cache folder.
        folder: PathBuf,
        /// The size limit.
        bytes: u64,
    },
    /// A file has no checksums to verify its data with.
    #[error("{}: file has no checksums to verify; pack it again, or remove verify", path.display())]
    NoChecksums {
        /// The file.
        path: PathBuf,
    },
}
