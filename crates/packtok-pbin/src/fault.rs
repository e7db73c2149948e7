//! What can be wrong at one place of an index or a trailer: the details of two variants of `Error`.
//!
//! None of these is returned on its own; path and place stand in the error that holds it.

/// What a checksum covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Checked {
    /// One checked piece of the data segment.
    #[error("data")]
    Data,
    /// A section of the trailer.
    #[error("trailer section of type {0}")]
    Section(u32),
}

/// What is wrong at one place of a pickled index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PickleFault {
    /// The bytes end inside the pickle.
    #[error("pickle ends without STOP; the file is truncated")]
    Truncated,
    /// An opcode that lists of pairs do not need; nothing is executed.
    #[error("opcode {name} is not allowed; an index is a pickled list of pairs of integers")]
    Refused {
        /// The opcode's name in Python's pickletools.
        name: &'static str,
    },
    /// A byte that is no opcode.
    #[error("0x{byte:02x} is not a pickle opcode; this is not an index")]
    NoOpcode {
        /// The byte.
        byte: u8,
    },
    /// An opcode at a place where a list of pairs cannot have it.
    #[error("opcode {name} is not valid at this position in a list of pairs")]
    Misplaced {
        /// The opcode's name in Python's pickletools.
        name: &'static str,
    },
    /// A protocol outside `2..=5`.
    #[error("pickle protocol {found}, expected 2 to 5")]
    Protocol {
        /// The protocol announced.
        found: u8,
    },
    /// A frame that opens inside another, overruns the file or cuts an opcode.
    #[error("frame of {bytes} bytes does not match the opcodes around it")]
    Frame {
        /// Bytes the frame announces.
        bytes: u64,
    },
    /// A negative offset or length.
    #[error("offset or length is negative")]
    Negative,
    /// An offset or length over 64 bits.
    #[error("offset or length exceeds 64 bits")]
    TooLarge,
    /// An offset and length whose sum is over 64 bits.
    #[error("offset {offset} plus length {len} exceeds 64 bits")]
    SpanTooLarge {
        /// The pair's first number.
        offset: u64,
        /// The pair's second number.
        len: u64,
    },
}

/// What is wrong at one place of a trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TrailerFault {
    /// A version this reader does not know.
    #[error("format version is {found}, this packtok reads 1; use a newer packtok")]
    Version {
        /// The version announced.
        found: u32,
    },
    /// A damaged tail.
    #[error("CRC32C of the tail is {found:08x}, expected {expected:08x}; the file is damaged")]
    TailChecksum {
        /// CRC32C of the bytes.
        found: u32,
        /// CRC32C in the tail.
        expected: u32,
    },
    /// A damaged section table.
    #[error(
        "CRC32C of the section table is {found:08x}, expected {expected:08x}; the file is damaged"
    )]
    TableChecksum {
        /// CRC32C of the bytes.
        found: u32,
        /// CRC32C in the tail.
        expected: u32,
    },
    /// A header that is not the one the trailer was written for.
    #[error("copy of the header differs from the header; one of them is damaged")]
    HeaderCopy,
    /// A length that leaves no room for the index or no room for the trailer's own parts.
    #[error("trailer of {bytes} bytes does not fit in this file")]
    TrailerBytes {
        /// Bytes the tail announces.
        bytes: u64,
    },
    /// No magic where the trailer starts.
    #[error("start magic is missing")]
    StartMagic,
    /// An index that does not end where the trailer starts.
    #[error("index before it does not end with STOP and at most 7 zero bytes")]
    IndexEnd,
    /// A section table that is not between the sections and the tail, or too long.
    #[error("section table is misplaced or does not have 1 to 1024 entries of 32 bytes")]
    TablePlace,
    /// Bits that this version keeps zero.
    #[error("section of type {section}: reserved bits are set")]
    Reserved {
        /// The section's type.
        section: u32,
    },
    /// A section that overlaps its neighbour or leaves a gap.
    #[error("section of type {section}: starts at byte {found}, expected {expected}")]
    SectionPlace {
        /// The section's type.
        section: u32,
        /// Its file offset by the table.
        found: u64,
        /// The only file offset it can have.
        expected: u64,
    },
    /// A section that runs into the section table.
    #[error("section of type {section}: {bytes} bytes do not fit before the section table")]
    SectionTooLong {
        /// The section's type.
        section: u32,
        /// Its bytes by the table.
        bytes: u64,
    },
    /// A section of a size it cannot have.
    #[error("section of type {section}: {found} bytes, expected {expected}")]
    SectionBytes {
        /// The section's type.
        section: u32,
        /// Its bytes by the table.
        found: u64,
        /// The bytes it must have, or the most it may have.
        expected: u64,
    },
    /// Padding that holds something.
    #[error("padding is not zero")]
    Padding,
    /// Sections that are not in ascending order of type.
    #[error("section of type {section} follows one of type {previous}, expected ascending types")]
    Order {
        /// The section's type.
        section: u32,
        /// The type of the section before it.
        previous: u32,
    },
    /// A required section that this reader does not know.
    #[error("section of type {section} is required but unknown; use a newer packtok")]
    UnknownRequired {
        /// The section's type.
        section: u32,
    },
    /// No document offsets.
    #[error("section of document offsets is missing")]
    NoOffsets,
    /// Document offsets that do not span the data.
    #[error("document offsets run from {first} to {last}, expected 0 to {data_bytes}")]
    OffsetsEnds {
        /// The first offset.
        first: u64,
        /// The last offset.
        last: u64,
        /// Bytes of the data segment.
        data_bytes: u64,
    },
}
