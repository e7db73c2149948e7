//! Limits of plan files, and their faults.

/// Bytes before the body.
pub const HEADER_BYTES: usize = 128;
/// Increases when the layout changes, or when a planner's result for the same data and options
/// changes.
pub(crate) const VERSION: u32 = 1;
/// Maximum number of tokens of a block: planners keep a few words for each.
pub const MAX_BLOCK_TOKENS: u64 = 1 << 24;

/// A fault of a plan file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages describe variants and fields")]
pub enum PlanFault {
    #[error("file is {found} bytes, shorter than the {HEADER_BYTES}-byte header")]
    TooShort {
        /// Bytes of the file.
        found: u64,
    },
    #[error("not a plan file: the magic bytes differ")]
    Magic,
    #[error("format version is {found}, expected {VERSION}")]
    Version { found: u32 },
    #[error("CRC32C of the header is {found:08x}, expected {expected:08x}; the file is damaged")]
    HeaderChecksum {
        /// CRC32C of the bytes.
        found: u32,
        /// CRC32C in the header.
        expected: u32,
    },
    #[error("unknown kind {found}")]
    UnknownKind { found: u32 },
    /// A plan where a split is expected, or the reverse.
    #[error("file holds {found}, expected {expected}")]
    Kind {
        found: &'static str,
        expected: &'static str,
    },
    /// The file was built from other data or with other options.
    #[error("file was built {found}, expected {expected}; the data or the options have changed")]
    Key { found: Box<str>, expected: Box<str> },
    /// The file does not end where the header specifies.
    #[error(
        "file has {found} bytes, its header specifies {expected}; the file is truncated or damaged"
    )]
    Length {
        /// Bytes of the file.
        found: u64,
        /// Bytes according to the header.
        expected: u64,
    },
    #[error("CRC32C of the body is {found:08x}, expected {expected:08x}; the file is damaged")]
    BodyChecksum {
        /// CRC32C of the bytes.
        found: u32,
        /// CRC32C in the header.
        expected: u32,
    },
    #[error("{what} {number} is out of range; the file is damaged")]
    Entry { what: &'static str, number: u64 },
}
