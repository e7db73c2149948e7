//! Headers of Parquet pages, in Thrift's compact protocol.
//!
//! Reads the fields that decoding values needs and skips all others, by
//! <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift> and
//! <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>.

use std::io::{self, BufReader, Read};

use crate::table::fault::Fault;
use crate::table::window::Window;

/// The longest header that is accepted; its statistics may contain values.
const MAX_HEADER_BYTES: u64 = 64 << 20;
/// Maximum nesting of the values of a skipped field.
const MAX_DEPTH: u32 = 16;
const BUFFER_BYTES: usize = 1 << 10;

// Types of Thrift values.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const STRUCT: u8 = 12;

/// A page header.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct PageHeader {
    /// 0 for data, 2 for a dictionary, 3 for data of version 2; others contain no values.
    pub(super) kind: i64,
    pub(super) uncompressed_bytes: u64,
    pub(super) compressed_bytes: u64,
    /// CRC-32 of the bytes of the page.
    pub(super) crc: Option<u32>,
    /// Values of the page, including nulls.
    pub(super) num_values: u64,
    /// The encoding of the values.
    pub(super) encoding: i64,
    /// The encoding of the definition levels of a data page of version 1.
    pub(super) level_encoding: i64,
    /// Nulls and rows of a data page of version 2.
    pub(super) num_nulls: u64,
    pub(super) num_rows: u64,
    /// Bytes of the repetition and definition levels of a data page of version 2.
    pub(super) level_bytes: (u64, u64),
    /// Whether the values of a data page of version 2 are compressed.
    pub(super) is_compressed: bool,
}

pub(super) const DATA: i64 = 0;
pub(super) const DICTIONARY: i64 = 2;
pub(super) const DATA_V2: i64 = 3;

impl PageHeader {
    /// The header at `position` of a file, and the position of the first byte after it.
    pub(super) fn read(window: &Window, position: u64) -> Result<(Self, u64), Fault> {
        let input = window.reader(position).take(MAX_HEADER_BYTES);
        let mut reader = Reader {
            input: BufReader::with_capacity(BUFFER_BYTES, input),
            num_bytes: 0,
        };
        let header = reader.header()?;
        Ok((header, position + reader.num_bytes))
    }
}

struct Reader<R> {
    input: R,
    /// Bytes read so far.
    num_bytes: u64,
}

impl<R: Read> Reader<R> {
    fn header(&mut self) -> Result<PageHeader, Fault> {
        let mut header = PageHeader {
            is_compressed: true,
            ..PageHeader::default()
        };
        let mut last = 0;
        while let Some((field, kind)) = self.field(&mut last)? {
            match field {
                1 => header.kind = self.integer()?,
                2 => header.uncompressed_bytes = self.size()?,
                3 => header.compressed_bytes = self.size()?,
                4 => header.crc = Some(self.integer()? as u32),
                5 | 7 | 8 if kind == STRUCT => self.values(&mut header, field)?,
                _ => self.skip(kind, 0)?,
            }
        }
        Ok(header)
    }

    /// Reads the part of the header that describes the values: of a data page (field 5), a
    /// dictionary (7) or a data page of version 2 (8).
    fn values(&mut self, header: &mut PageHeader, page: i16) -> Result<(), Fault> {
        let mut last = 0;
        while let Some((field, kind)) = self.field(&mut last)? {
            match (page, field) {
                (_, 1) => header.num_values = self.size()?,
                (5 | 7, 2) | (8, 4) => header.encoding = self.integer()?,
                (8, 2) => header.num_nulls = self.size()?,
                (8, 3) => header.num_rows = self.size()?,
                (5, 3) => header.level_encoding = self.integer()?,
                (8, 5) => header.level_bytes.1 = self.size()?,
                (8, 6) => header.level_bytes.0 = self.size()?,
                (8, 7) => header.is_compressed = kind == TRUE,
                _ => self.skip(kind, 0)?,
            }
        }
        Ok(())
    }

    /// The number and type of the next field; `None` at the end of the struct.
    fn field(&mut self, last: &mut i16) -> Result<Option<(i16, u8)>, Fault> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        *last = match byte >> 4 {
            0 => self.integer()? as i16,
            delta => last.wrapping_add(delta.into()),
        };
        Ok(Some((*last, byte & 15)))
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Result<(), Fault> {
        if depth > MAX_DEPTH {
            return Err(damaged());
        }
        match kind {
            TRUE | FALSE => {}
            3 => drop(self.byte()?),
            4..=6 => drop(self.varint()?),
            7 => self.skip_bytes(8)?,
            8 => {
                let len = self.varint()?;
                self.skip_bytes(len)?;
            }
            9 | 10 => {
                let byte = self.byte()?;
                let len = match byte >> 4 {
                    15 => self.varint()?,
                    len => len.into(),
                };
                for _ in 0..len {
                    self.skip_element(byte & 15, depth)?;
                }
            }
            11 => {
                let len = self.varint()?;
                let kinds = if len == 0 { 0 } else { self.byte()? };
                for _ in 0..len {
                    self.skip_element(kinds >> 4, depth)?;
                    self.skip_element(kinds & 15, depth)?;
                }
            }
            STRUCT => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip(kind, depth + 1)?;
                }
            }
            _ => return Err(damaged()),
        }
        Ok(())
    }

    /// Skips an element of a list or a map, where a boolean has a byte of its own.
    fn skip_element(&mut self, kind: u8, depth: u32) -> Result<(), Fault> {
        match kind {
            TRUE | FALSE => self.byte().map(drop),
            _ => self.skip(kind, depth + 1),
        }
    }

    fn skip_bytes(&mut self, len: u64) -> Result<(), Fault> {
        let skipped = io::copy(&mut self.input.by_ref().take(len), &mut io::sink())?;
        self.num_bytes += skipped;
        if skipped == len {
            Ok(())
        } else {
            Err(damaged())
        }
    }

    /// A length or a number, which must fit 32 bits and not be negative.
    fn size(&mut self) -> Result<u64, Fault> {
        let size = i32::try_from(self.integer()?).ok();
        let size = size.and_then(|size| u64::try_from(size).ok());
        size.ok_or_else(damaged)
    }

    fn integer(&mut self) -> Result<i64, Fault> {
        let zigzag = self.varint()?;
        Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    fn varint(&mut self) -> Result<u64, Fault> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(damaged())
    }

    fn byte(&mut self) -> Result<u8, Fault> {
        let mut byte = [0];
        self.input.read_exact(&mut byte)?;
        self.num_bytes += 1;
        Ok(byte[0])
    }
}

fn damaged() -> Fault {
    Fault::Damaged("a page header is not valid".to_owned())
}
