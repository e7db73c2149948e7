//! The trailer's layout: magic, sections, section table and tail, decoded and checked in O(1).
//!
//! Responsible for the positions of sections and for the check that every byte of the trailer
//! belongs to a known part. `reader` and `metadata` interpret the content of sections.

use std::ops::Range;
use std::path::Path;

use crate::error::{Error, Result};
use crate::fault::TrailerFault;
use crate::header::{HEADER_BYTES, Header};
use crate::loss_mask::LossMask;
use crate::opcode::STOP;
use crate::origins::Origins;

/// Bytes of data per checksum; the last piece may be shorter.
pub const CHECKED_DATA_BYTES: u64 = 1 << 20;
/// The maximum length of the metadata's JSON in bytes.
pub const MAX_METADATA_BYTES: u64 = 16 << 20;

pub(crate) const START_MAGIC: [u8; 8] = *b"\x89packtok";
// No pickle can end with these bytes, so no file without a trailer ends with them.
pub(crate) const TAIL_MAGIC: [u8; 8] = *b"packtok\x89";
pub(crate) const VERSION: u32 = 1;
pub(crate) const ALIGNMENT: u64 = 8;
pub(crate) const ENTRY_BYTES: u64 = 32;
pub(crate) const TAIL_BYTES: u64 = 48;
/// Bytes of the tail that the tail's checksum covers.
pub(crate) const CHECKED_TAIL_BYTES: usize = 36;
pub(crate) const REQUIRED: u32 = 1;
const MAX_SECTIONS: u64 = 1024;

pub(crate) const OFFSETS: u32 = 1;
pub(crate) const DATA_CHECKSUMS: u32 = 2;
pub(crate) const METADATA: u32 = 3;
pub(crate) const SOURCES: u32 = 4;
pub(crate) const ORIGINS: u32 = 5;
pub(crate) const LOSS_MASK: u32 = 6;

/// One entry of the section table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) crc32c: u32,
}

impl Section {
    pub(crate) fn encode(&self) -> [u8; ENTRY_BYTES as usize] {
        let mut entry = [0; ENTRY_BYTES as usize];
        entry[..4].copy_from_slice(&self.kind.to_le_bytes());
        entry[4..8].copy_from_slice(&self.flags.to_le_bytes());
        entry[8..16].copy_from_slice(&self.offset.to_le_bytes());
        entry[16..24].copy_from_slice(&self.bytes.to_le_bytes());
        entry[24..28].copy_from_slice(&self.crc32c.to_le_bytes());
        entry
    }

    /// Decodes an entry and the reserved field after it.
    fn decode(entry: &[u8; ENTRY_BYTES as usize]) -> (Self, u32) {
        let section = Self {
            kind: u32_at(entry, 0),
            flags: u32_at(entry, 4),
            offset: u64_at(entry, 8),
            bytes: u64_at(entry, 16),
            crc32c: u32_at(entry, 24),
        };
        (section, u32_at(entry, 28))
    }

    /// File offsets of the section.
    pub(crate) fn span(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes
    }
}

/// A trailer whose layout was checked against its file.
#[derive(Debug)]
pub(crate) struct Trailer {
    /// File offset of the start magic.
    pub(crate) start: u64,
    /// All sections in ascending order of type and offset, each within the file.
    pub(crate) sections: Vec<Section>,
}

impl Trailer {
    /// Decodes the trailer at the end of `file`; `None` if the file does not end with the magic of
    /// a trailer.
    pub(crate) fn decode(file: &[u8], header: Header, path: &Path) -> Result<Option<Self>> {
        if !file.ends_with(&TAIL_MAGIC) {
            return Ok(None);
        }
        let decoder = Decoder { file, header, path };
        decoder.decode().map(Some)
    }

    pub(crate) fn section(&self, kind: u32) -> Option<&Section> {
        self.sections.iter().find(|section| section.kind == kind)
    }
}

struct Decoder<'a> {
    file: &'a [u8],
    header: Header,
    path: &'a Path,
}

impl Decoder<'_> {
    fn decode(&self) -> Result<Trailer> {
        let file_bytes = self.file.len() as u64;
        let Some((_, tail)) = self.file.split_last_chunk::<{ TAIL_BYTES as usize }>() else {
            return Err(self.fault(0, TrailerFault::TrailerBytes { bytes: file_bytes }));
        };
        let tail_offset = file_bytes - TAIL_BYTES;
        self.check_tail(tail, tail_offset)?;
        let start = self.start(tail, tail_offset)?;
        let sections = self.sections(tail, start, tail_offset)?;
        let trailer = Trailer { start, sections };
        self.check_known(&trailer)?;
        Ok(trailer)
    }

    fn check_tail(&self, tail: &[u8; TAIL_BYTES as usize], tail_offset: u64) -> Result<()> {
        let (found, expected) = (
            crc32c::crc32c(&tail[..CHECKED_TAIL_BYTES]),
            u32_at(tail, CHECKED_TAIL_BYTES),
        );
        let fault = match u32_at(tail, 28) {
            _ if found != expected => TrailerFault::TailChecksum { found, expected },
            version if version != VERSION => TrailerFault::Version { found: version },
            _ if tail[16..28] != self.header.encode() => TrailerFault::HeaderCopy,
            _ => return Ok(()),
        };
        Err(self.fault(tail_offset, fault))
    }

    /// File offset of the start magic. Checks that the index ends right before it.
    fn start(&self, tail: &[u8; TAIL_BYTES as usize], tail_offset: u64) -> Result<u64> {
        let bytes = u64_at(tail, 8);
        let index_start = HEADER_BYTES.saturating_add(self.header.data_bytes);
        let least = START_MAGIC.len() as u64 + ENTRY_BYTES + TAIL_BYTES;
        let start = (self.file.len() as u64).checked_sub(bytes);
        let Some(start) =
            start.filter(|&start| bytes >= least && start > index_start && start % ALIGNMENT == 0)
        else {
            return Err(self.fault(tail_offset, TrailerFault::TrailerBytes { bytes }));
        };
        let (before, trailer) = self.file.split_at(start as usize);
        if !trailer.starts_with(&START_MAGIC) {
            return Err(self.fault(start, TrailerFault::StartMagic));
        }
        let index = &before[index_start as usize..];
        let padding = index.iter().rev().take_while(|&&byte| byte == 0).count();
        if padding >= ALIGNMENT as usize || index[..index.len() - padding].last() != Some(&STOP) {
            return Err(self.fault(start, TrailerFault::IndexEnd));
        }
        Ok(start)
    }

    fn sections(
        &self,
        tail: &[u8; TAIL_BYTES as usize],
        start: u64,
        tail_offset: u64,
    ) -> Result<Vec<Section>> {
        let table_offset = u64_at(tail, 0);
        let mut end = start + START_MAGIC.len() as u64;
        let table_bytes = tail_offset.checked_sub(table_offset).filter(|&bytes| {
            table_offset >= end
                && bytes.is_multiple_of(ENTRY_BYTES)
                && (1..=MAX_SECTIONS).contains(&(bytes / ENTRY_BYTES))
        });
        if table_bytes.is_none() {
            return Err(self.fault(tail_offset, TrailerFault::TablePlace));
        }
        let table = &self.file[table_offset as usize..tail_offset as usize];
        let (found, expected) = (crc32c::crc32c(table), u32_at(tail, 32));
        if found != expected {
            return Err(self.fault(
                table_offset,
                TrailerFault::TableChecksum { found, expected },
            ));
        }
        let mut sections: Vec<Section> = Vec::new();
        for (entry, place) in table
            .as_chunks()
            .0
            .iter()
            .zip((table_offset..).step_by(ENTRY_BYTES as usize))
        {
            let (section, reserved) = Section::decode(entry);
            let previous = sections.last().map(|section| section.kind);
            self.check_entry(&section, reserved, previous)
                .map_err(|fault| self.fault(place, fault))?;
            end = self
                .padded_end(&section, end, table_offset)
                .map_err(|fault| self.fault(place, fault))?;
            sections.push(section);
        }
        if end != table_offset {
            return Err(self.fault(tail_offset, TrailerFault::TablePlace));
        }
        Ok(sections)
    }

    fn check_entry(
        &self,
        section: &Section,
        reserved: u32,
        previous: Option<u32>,
    ) -> Result<(), TrailerFault> {
        let kind = section.kind;
        if reserved != 0 || section.flags & !REQUIRED != 0 {
            return Err(TrailerFault::Reserved { section: kind });
        }
        if let Some(previous) = previous.filter(|&previous| previous >= kind) {
            return Err(TrailerFault::Order {
                section: kind,
                previous,
            });
        }
        if section.flags & REQUIRED != 0 && !(OFFSETS..=LOSS_MASK).contains(&kind) {
            return Err(TrailerFault::UnknownRequired { section: kind });
        }
        Ok(())
    }

    /// The end of a section including padding. Checks that the section starts at `expected`.
    fn padded_end(
        &self,
        section: &Section,
        expected: u64,
        table_offset: u64,
    ) -> Result<u64, TrailerFault> {
        let &Section {
            kind,
            offset,
            bytes,
            ..
        } = section;
        if offset != expected {
            return Err(TrailerFault::SectionPlace {
                section: kind,
                found: offset,
                expected,
            });
        }
        let end = offset.checked_add(bytes).filter(|&end| end <= table_offset);
        let end = end.ok_or(TrailerFault::SectionTooLong {
            section: kind,
            bytes,
        })?;
        let padded = end.next_multiple_of(ALIGNMENT);
        let padding = self.file.get(end as usize..padded as usize);
        if padding.is_none_or(|padding| padding.iter().any(|&byte| byte != 0)) {
            return Err(TrailerFault::Padding);
        }
        Ok(padded)
    }

    /// Checks the sections that this version knows, as far as O(1) permits.
    fn check_known(&self, trailer: &Trailer) -> Result<()> {
        let data_bytes = self.header.data_bytes;
        let Some(offsets) = trailer.section(OFFSETS) else {
            return Err(self.fault(trailer.start, TrailerFault::NoOffsets));
        };
        self.check_bytes(offsets, offsets.bytes.next_multiple_of(8).max(8))?;
        let span = &self.file[offsets.offset as usize..(offsets.offset + offsets.bytes) as usize];
        let (first, last) = (u64_at(span, 0), u64_at(span, span.len() - 8));
        if first != 0 || last != data_bytes {
            return Err(self.fault(
                offsets.offset,
                TrailerFault::OffsetsEnds {
                    first,
                    last,
                    data_bytes,
                },
            ));
        }
        if let Some(checksums) = trailer.section(DATA_CHECKSUMS) {
            self.check_bytes(checksums, data_bytes.div_ceil(CHECKED_DATA_BYTES) * 4)?;
        }
        if let Some(origins) = trailer.section(ORIGINS) {
            let least = Origins::least_bytes(offsets.bytes / 8 - 1);
            self.check_bytes(origins, origins.bytes.max(least))?;
        }
        if let Some(mask) = trailer.section(LOSS_MASK) {
            let num_tokens = self.header.width.tokens_in(data_bytes);
            self.check_bytes(mask, LossMask::section_bytes(num_tokens))?;
        }
        match trailer.section(METADATA) {
            Some(metadata) if metadata.bytes > MAX_METADATA_BYTES => {
                self.check_bytes(metadata, MAX_METADATA_BYTES)
            }
            _ => Ok(()),
        }
    }

    fn check_bytes(&self, section: &Section, expected: u64) -> Result<()> {
        let &Section {
            kind,
            offset,
            bytes,
            ..
        } = section;
        if bytes == expected {
            return Ok(());
        }
        Err(self.fault(
            offset,
            TrailerFault::SectionBytes {
                section: kind,
                found: bytes,
                expected,
            },
        ))
    }

    fn fault(&self, offset: u64, fault: TrailerFault) -> Error {
        Error::Trailer {
            path: self.path.into(),
            offset,
            fault,
        }
    }
}

/// The u32 at `at`; the caller guarantees that it is within `bytes`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(value)
}

/// The u64 at `at`; the caller guarantees that it is within `bytes`.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(value)
}
