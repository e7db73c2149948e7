//! Faults at one position of an index or a trailer: details of
//! [`Error::Pickle`](crate::Error::Pickle) and [`Error::Trailer`](crate::Error::Trailer).
//!
//! A fault is never returned alone; the error that holds it has the path and the position.

/// The part of a file that a checksum covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages describe variants and fields")]
pub enum Checked {
    #[error("data")]
    Data,
    #[error("trailer section of type {0}")]
    Section(u32),
}

/// A fault at one position of a pickled index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages describe variants and fields")]
pub enum PickleFault {
    #[error("pickle ends without STOP; the file is truncated")]
    Truncated,
    /// An opcode that no list of pairs needs. It is not executed.
    #[error("opcode {name} is not allowed; an index is a pickled list of pairs of integers")]
    Refused {
        /// The opcode's name in Python's pickletools.
        name: &'static str,
    },
    #[error("0x{byte:02x} is not a pickle opcode; this is not an index")]
    NoOpcode { byte: u8 },
    /// An opcode at a position where no list of pairs has it.
    #[error("opcode {name} is not valid at this position in a list of pairs")]
    Misplaced {
        /// The opcode's name in Python's pickletools.
        name: &'static str,
    },
    /// A protocol outside `2..=5`.
    #[error("pickle protocol {found}, expected 2 to 5")]
    Protocol { found: u8 },
    /// A frame that starts inside another, exceeds the file or splits an opcode.
    #[error("frame of {bytes} bytes does not match the opcodes around it")]
    Frame {
        /// Length of the frame according to its header.
        bytes: u64,
    },
    /// A negative offset or length.
    #[error("offset or length is negative")]
    Negative,
    /// An offset or length that exceeds 64 bits.
    #[error("offset or length exceeds 64 bits")]
    TooLarge,
    /// An offset and length whose sum exceeds 64 bits.
    #[error("offset {offset} plus length {len} exceeds 64 bits")]
    SpanTooLarge { offset: u64, len: u64 },
}

/// A fault at one position of a trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages describe variants and fields")]
pub enum TrailerFault {
    #[error("format version is {found}, this packtok reads 1; use a newer packtok")]
    Version { found: u32 },
    #[error("CRC32C of the tail is {found:08x}, expected {expected:08x}; the file is damaged")]
    TailChecksum {
        /// CRC32C of the bytes.
        found: u32,
        /// CRC32C in the tail.
        expected: u32,
    },
    #[error(
        "CRC32C of the section table is {found:08x}, expected {expected:08x}; the file is damaged"
    )]
    TableChecksum {
        /// CRC32C of the bytes.
        found: u32,
        /// CRC32C in the tail.
        expected: u32,
    },
    /// The copy of the header differs from the header.
    #[error("copy of the header differs from the header; one of them is damaged")]
    HeaderCopy,
    /// The trailer length leaves no room for the index or for the trailer's own parts.
    #[error("trailer of {bytes} bytes does not fit in this file")]
    TrailerBytes {
        /// Length of the trailer according to the tail.
        bytes: u64,
    },
    #[error("start magic is missing")]
    StartMagic,
    /// The index does not end where the trailer starts.
    #[error("index before it does not end with STOP and at most 7 zero bytes")]
    IndexEnd,
    /// The section table is too long or not between the sections and the tail.
    #[error("section table is misplaced or does not have 1 to 1024 entries of 32 bytes")]
    TablePlace,
    #[error("section of type {section}: reserved bits are set")]
    Reserved {
        /// The section's type.
        section: u32,
    },
    /// A section overlaps another or leaves a gap.
    #[error("section of type {section}: starts at byte {found}, expected {expected}")]
    SectionPlace {
        /// The section's type.
        section: u32,
        /// File offset of the section according to the table.
        found: u64,
        /// The expected file offset.
        expected: u64,
    },
    #[error("section of type {section}: {bytes} bytes do not fit before the section table")]
    SectionTooLong {
        /// The section's type.
        section: u32,
        /// Length of the section according to the table.
        bytes: u64,
    },
    #[error("section of type {section}: {found} bytes, expected {expected}")]
    SectionBytes {
        /// The section's type.
        section: u32,
        /// Length of the section according to the table.
        found: u64,
        /// The required length, or the maximum.
        expected: u64,
    },
    #[error("padding is not zero")]
    Padding,
    #[error("section of type {section} follows one of type {previous}, expected ascending types")]
    Order {
        /// The section's type.
        section: u32,
        /// The type of the preceding section.
        previous: u32,
    },
    #[error("section of type {section} is required but unknown; use a newer packtok")]
    UnknownRequired {
        /// The section's type.
        section: u32,
    },
    #[error("section of document offsets is missing")]
    NoOffsets,
    /// The document offsets do not start and end with the data.
    #[error("document offsets run from {first} to {last}, expected 0 to {data_bytes}")]
    OffsetsEnds {
        first: u64,
        last: u64,
        /// Bytes of the data segment.
        data_bytes: u64,
    },
}
