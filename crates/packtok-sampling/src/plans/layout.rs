//! Limits of plan files, and what can be wrong with one.

/// Bytes before the body.
pub const HEADER_BYTES: usize = 128;
/// Raised when the layout changes, or what a planner works out from the same data and options.
pub(crate) const VERSION: u32 = 1;
/// Most tokens that a block may have: planners hold a few words for each.
pub const MAX_BLOCK_TOKENS: u64 = 1 << 24;

/// What is wrong with a plan file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanFault {
    /// No room for the header.
    #[error("file is {found} bytes, shorter than the {HEADER_BYTES}-byte header")]
    TooShort {
        /// Bytes of the file.
        found: u64,
    },
    /// Other first bytes.
    #[error("not a plan file: the magic bytes differ")]
    Magic,
    /// A layout of another packtok.
    #[error("format version is {found}, expected {VERSION}")]
    Version {
        /// The version there.
        found: u32,
    },
    /// A header that is no longer what was written.
    #[error("CRC32C of the header is {found:08x}, expected {expected:08x}; the file is damaged")]
    HeaderChecksum {
        /// CRC32C of the bytes.
        found: u32,
        /// CRC32C in the header.
        expected: u32,
    },
    /// A number that stands for nothing.
    #[error("unknown kind {found}")]
    UnknownKind {
        /// The number.
        found: u32,
    },
    /// A plan where a split is needed, or the other way round.
    #[error("file holds {found}, expected {expected}")]
    Kind {
        /// What the file holds.
        found: &'static str,
        /// What it must hold.
        expected: &'static str,
    },
    /// A file worked out from other tokens or with other options.
    #[error("file was built {found}, expected {expected}; the data or the options have changed")]
    Key {
        /// What it was made from.
        found: Box<str>,
        /// What it must be made from.
        expected: Box<str>,
    },
    /// A body that does not end where the header says.
    #[error(
        "file has {found} bytes, its header specifies {expected}; the file is truncated or damaged"
    )]
    Length {
        /// Bytes of the file.
        found: u64,
        /// Bytes by the header.
        expected: u64,
    },
    /// A body that is no longer what was written.
    #[error("CRC32C of the body is {found:08x}, expected {expected:08x}; the file is damaged")]
    BodyChecksum {
        /// CRC32C of the bytes.
        found: u32,
        /// CRC32C in the header.
        expected: u32,
    },
    /// An entry that cannot be right.
    #[error("{what} {number} is out of range; the file is damaged")]
    Entry {
        /// What the entry describes.
        what: &'static str,
        /// Its number.
        number: u64,
    },
}
