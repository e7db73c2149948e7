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
pub enum PlanFault {
    /// The file is shorter than the header.
    #[error("file is {found} bytes, shorter than the {HEADER_BYTES}-byte header")]
    TooShort {
        /// Bytes of the file.
        found: u64,
    },
    /// The magic is wrong.
    #[error("not a plan file: the magic bytes differ")]
    Magic,
    /// The format version is unknown.
    #[error("format version is {found}, expected {VERSION}")]
    Version {
        /// The version found.
        found: u32,
    },
    /// The header is damaged.
    #[error("CRC32C of the header is {found:08x}, expected {expected:08x}; the file is damaged")]
    HeaderChecksum {
        /// CRC32C of the bytes.
        found: u32,
        /// CRC32C in the header.
        expected: u32,
    },
    /// The kind is unknown.
    #[error("unknown kind {found}")]
    UnknownKind {
        /// The kind found.
        found: u32,
    },
    /// A plan where a split is expected, or the reverse.
    #[error("file holds {found}, expected {expected}")]
    Kind {
        /// The kind of the file.
        found: &'static str,
        /// The expected kind.
        expected: &'static str,
    },
    /// The file was built from other data or with other options.
    #[error("file was built {found}, expected {expected}; the data or the options have changed")]
    Key {
        /// The key of the file.
        found: Box<str>,
        /// The expected key.
        expected: Box<str>,
    },
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
    /// The body is damaged.
    #[error("CRC32C of the body is {found:08x}, expected {expected:08x}; the file is damaged")]
    BodyChecksum {
        /// CRC32C of the bytes.
        found: u32,
        /// CRC32C in the header.
        expected: u32,
    },
    /// An entry of the body is invalid.
    #[error("{what} {number} is out of range; the file is damaged")]
    Entry {
        /// The kind of the entry.
        what: &'static str,
        /// The number of the entry.
        number: u64,
    },
}
