//! Values of a column chunk with large pages, one by one.
//!
//! Writers end a page after a number of rows, such as 1,024, so a page of long values can have
//! gigabytes. The `parquet` crate decompresses a page as a whole. This reader decompresses pages
//! incrementally, and writes a large dictionary to a temporary file.

use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};

use parquet::basic::{Compression, Type as PhysicalType};
use parquet::file::metadata::ColumnChunkMetaData;

use super::hybrid::Hybrid;
use super::page_bytes::{Decompressed, PageBytes};
use super::page_header::{DATA, DATA_V2, DICTIONARY, PageHeader};
use crate::table::fault::Fault;
use crate::table::values::{Value, Values};
use crate::table::window::Window;

/// Pages up to this length are decompressed as a whole. A longer page does not fit a cache, so
/// reading it in pieces is faster (1.3 times for pages of 12 MB). Short pages take the same time
/// either way.
pub(super) const LARGE_BYTES: u64 = 4 << 20;
/// Longer dictionaries are in a temporary file.
const DICTIONARY_BYTES: u64 = 16 << 20;

/// Skipped rows after which the time is checked.
const ROWS_PER_CHECK: u64 = 256;

// Encodings.
const PLAIN: i64 = 0;
const PLAIN_DICTIONARY: i64 = 2;
const RLE: i64 = 3;
const RLE_DICTIONARY: i64 = 8;

/// The values of a column chunk.
pub(super) struct LargePages {
    bytes: PageBytes,
    max_def_level: i16,
    /// Position of the next page header, and the end of the chunk.
    next_page: u64,
    end: u64,
    dictionary: Option<Dictionary>,
    page: Option<Page>,
    value: Vec<u8>,
}

/// The next row.
enum Row {
    Bytes,
    Oversize(u64),
    Null,
}

/// An open data page.
struct Page {
    /// Definition levels; `None` if the column has no nulls.
    levels: Option<Hybrid>,
    values: PageValues,
    rows_left: u64,
}

enum PageValues {
    Plain(Decompressed),
    /// Numbers of values of the dictionary.
    Dictionary(Hybrid),
}

impl LargePages {
    /// A reader of the column chunk, if the chunk has pages of more than `large_bytes` and all of
    /// its pages can be read in pieces.
    pub(super) fn open(
        window: &Window,
        chunk: &ColumnChunkMetaData,
        row_group: usize,
        large_bytes: u64,
    ) -> Result<Option<Self>, Fault> {
        if chunk.column_type() != PhysicalType::BYTE_ARRAY
            || u64::try_from(chunk.uncompressed_size()).is_ok_and(|bytes| bytes <= large_bytes)
        {
            return Ok(None);
        }
        let (start, len) = chunk.byte_range();
        let end = start.saturating_add(len).min(window.len_bytes());
        let reader = Self {
            bytes: PageBytes::new(
                window,
                chunk.compression(),
                row_group,
                chunk.column_path().string(),
            ),
            max_def_level: chunk.column_descr().max_def_level(),
            next_page: start,
            end,
            dictionary: None,
            page: None,
            value: Vec::new(),
        };
        Ok(reader
            .is_needed_and_possible(large_bytes)?
            .then_some(reader))
    }

    /// Whether a page is large and this reader supports the encodings of all pages.
    fn is_needed_and_possible(&self, large_bytes: u64) -> Result<bool, Fault> {
        let is_known = matches!(
            self.bytes.compression,
            Compression::UNCOMPRESSED
                | Compression::SNAPPY
                | Compression::GZIP(_)
                | Compression::BROTLI(_)
                | Compression::ZSTD(_)
                | Compression::LZ4_RAW
        );
        let (mut position, mut is_large, mut num_data_pages) = (self.next_page, false, 0);
        while position < self.end {
            let (header, body) = self.bytes.header(position)?;
            let has_known_encoding = match header.kind {
                DICTIONARY => matches!(header.encoding, PLAIN | PLAIN_DICTIONARY),
                DATA | DATA_V2 => {
                    matches!(header.encoding, PLAIN | PLAIN_DICTIONARY | RLE_DICTIONARY)
                        && (header.kind == DATA_V2
                            || self.max_def_level == 0
                            || header.level_encoding == RLE)
                }
                _ => true,
            };
            if !is_known || !has_known_encoding {
                return Ok(false);
            }
            self.bytes.check_declared_bytes(&header, num_data_pages)?;
            num_data_pages += usize::from(matches!(header.kind, DATA | DATA_V2));
            is_large |= header.uncompressed_bytes > large_bytes;
            position = self.end_of(&header, body)?;
        }
        Ok(is_large)
    }

    /// The end offset of the page whose content starts at `body`.
    fn end_of(&self, header: &PageHeader, body: u64) -> Result<u64, Fault> {
        body.checked_add(header.compressed_bytes)
            .filter(|&end| end <= self.end)
            .ok_or_else(|| damaged("a page is longer than its column"))
    }

    /// Opens the next data page; returns false at the end of the chunk.
    fn open_page(&mut self) -> Result<bool, Fault> {
        while self.next_page < self.end {
            let (header, body) = self.bytes.header(self.next_page)?;
            self.next_page = self.end_of(&header, body)?;
            self.bytes.check_crc(&header, body)?;
            match header.kind {
                DICTIONARY => {
                    self.bytes.check_page_bytes(&header)?;
                    let bytes = self.decompressed(body, header.compressed_bytes, &header)?;
                    self.dictionary = Some(Dictionary::read(bytes, &header)?);
                }
                DATA | DATA_V2 => {
                    self.page = Some(self.data_page(&header, body)?);
                    return Ok(true);
                }
                _ => {}
            }
        }
        Ok(false)
    }

    fn data_page(&self, header: &PageHeader, body: u64) -> Result<Page, Fault> {
        let has_levels = self.max_def_level > 0;
        let bit_width = 16 - (self.max_def_level as u16).leading_zeros();
        let (levels, mut bytes) = if header.kind == DATA_V2 {
            let (repetition, definition) = header.level_bytes;
            let start = body.saturating_add(repetition);
            let num_level_bytes = repetition.saturating_add(definition);
            let left = header.compressed_bytes.checked_sub(num_level_bytes);
            let left = left.ok_or_else(|| damaged("a page is shorter than its levels"))?;
            let levels = exact(&mut self.bytes.raw(start, definition), definition, header)?;
            let values = start + definition;
            let uncompressed = PageHeader {
                uncompressed_bytes: header.uncompressed_bytes.saturating_sub(num_level_bytes),
                ..header.clone()
            };
            (levels, self.decompressed(values, left, &uncompressed)?)
        } else {
            let mut bytes = self.decompressed(body, header.compressed_bytes, header)?;
            let mut levels = Vec::new();
            if has_levels {
                let len = read_u32(&mut bytes)?;
                levels = exact(&mut bytes, len.into(), header)?;
            }
            (levels, bytes)
        };
        let values = match header.encoding {
            PLAIN => PageValues::Plain(bytes),
            _ => {
                let mut indices = Vec::new();
                let limit = most_hybrid_bytes(header);
                bytes.by_ref().take(limit).read_to_end(&mut indices)?;
                // A page of nulls may have no bytes.
                let width = if indices.is_empty() {
                    0
                } else {
                    indices.remove(0)
                };
                PageValues::Dictionary(hybrid(indices, width.into())?)
            }
        };
        Ok(Page {
            levels: has_levels.then(|| hybrid(levels, bit_width)).transpose()?,
            values,
            rows_left: header.num_values,
        })
    }

    /// The decompressed bytes of `len` bytes of the file.
    fn decompressed(
        &self,
        start: u64,
        len: u64,
        header: &PageHeader,
    ) -> Result<Decompressed, Fault> {
        let num_bytes = header.uncompressed_bytes;
        if header.is_compressed {
            self.bytes.decompressed(start, len, num_bytes, num_bytes)
        } else {
            Ok(self.bytes.uncompressed(start, len, num_bytes))
        }
    }
}

impl LargePages {
    /// Moves on by `rows` rows, as far as there are rows. Pages of fewer rows are not decompressed.
    pub(super) fn skip(&mut self, mut rows: u64) -> Result<(), Fault> {
        while rows > 0 {
            let is_between_pages = self.page.as_ref().is_none_or(|page| page.rows_left == 0);
            if is_between_pages && self.next_page < self.end {
                let (header, body) = self.bytes.header(self.next_page)?;
                let is_data = matches!(header.kind, DATA | DATA_V2);
                if is_data && header.num_values <= rows {
                    self.next_page = self.end_of(&header, body)?;
                    rows -= header.num_values;
                    continue;
                }
            }
            let row = self.next_row(0).map_err(|fault| self.bytes.fault(fault))?;
            if row.is_none() {
                return Ok(());
            }
            rows -= 1;
            if rows.is_multiple_of(ROWS_PER_CHECK) {
                self.bytes.check_time()?;
            }
        }
        Ok(())
    }

    /// Reads the next row and puts its value into `value`. `None` at the end of the chunk.
    fn next_row(&mut self, max_bytes: u64) -> Result<Option<Row>, Fault> {
        while self.page.as_ref().is_none_or(|page| page.rows_left == 0) {
            if !self.open_page()? {
                return Ok(None);
            }
        }
        let Some(page) = &mut self.page else {
            return Ok(None);
        };
        page.rows_left -= 1;
        if let Some(levels) = &mut page.levels {
            let level = levels.next();
            let level = level.ok_or_else(|| damaged("a page has fewer levels than rows"))?;
            if i64::from(level) < i64::from(self.max_def_level) {
                return Ok(Some(Row::Null));
            }
        }
        self.value.clear();
        let len = match &mut page.values {
            PageValues::Plain(bytes) => {
                let len = read_u32(bytes)?.into();
                let is_kept = len <= max_bytes;
                copy_value(bytes, len, &mut |piece| {
                    if is_kept {
                        self.value.extend_from_slice(piece);
                    }
                    Ok(())
                })?;
                len
            }
            PageValues::Dictionary(indices) => {
                let index = indices.next();
                let index = index.ok_or_else(|| damaged("a page has fewer values than rows"))?;
                let dictionary = self.dictionary.as_mut();
                let dictionary = dictionary.ok_or_else(|| damaged("it has no dictionary page"))?;
                dictionary.value(index, max_bytes, &mut self.value)?
            }
        };
        Ok(Some(if len > max_bytes {
            Row::Oversize(len)
        } else {
            Row::Bytes
        }))
    }
}

impl Values for LargePages {
    fn next_value(&mut self, max_bytes: u64) -> Result<Option<Value<'_>>, Fault> {
        let row = self.next_row(max_bytes);
        let row = row.map_err(|fault| self.bytes.fault(fault))?;
        Ok(row.map(|row| match row {
            Row::Bytes => Value::Bytes(&self.value),
            Row::Oversize(len) => Value::Oversize(len),
            Row::Null => Value::Null,
        }))
    }
}

/// The values of a dictionary page, by number.
struct Dictionary {
    /// The start of each value, and the end of the last one. A page has less than 2^31 bytes.
    offsets: Vec<u32>,
    store: Store,
}

enum Store {
    Memory(Vec<u8>),
    /// An unnamed temporary file.
    File(File),
}

impl Dictionary {
    fn read(mut page: Decompressed, header: &PageHeader) -> Result<Self, Fault> {
        let mut store = match header.uncompressed_bytes {
            0..=DICTIONARY_BYTES => Store::Memory(Vec::new()),
            _ => Store::File(tempfile::tempfile().map_err(in_temporary_folder)?),
        };
        let mut offsets = vec![0];
        let mut end = 0;
        for _ in 0..header.num_values {
            let len = read_u32(&mut page)?;
            copy_value(&mut page, len.into(), &mut |piece| match &mut store {
                Store::Memory(bytes) => {
                    bytes.extend_from_slice(piece);
                    Ok(())
                }
                Store::File(file) => file.write_all(piece).map_err(in_temporary_folder),
            })?;
            end += len;
            offsets.push(end);
        }
        if let Store::File(file) = &mut store {
            file.flush().map_err(in_temporary_folder)?;
        }
        Ok(Self { offsets, store })
    }

    /// Writes value `index` to `value` unless it is longer than `max_bytes`; returns its length.
    fn value(&mut self, index: u32, max_bytes: u64, value: &mut Vec<u8>) -> Result<u64, Fault> {
        let index = index as usize;
        let (Some(&start), Some(&end)) = (self.offsets.get(index), self.offsets.get(index + 1))
        else {
            return Err(damaged("a value is not in the dictionary"));
        };
        let len = u64::from(end - start);
        if len <= max_bytes {
            match &mut self.store {
                Store::Memory(bytes) => {
                    value.extend_from_slice(&bytes[start as usize..end as usize]);
                }
                Store::File(file) => {
                    file.seek(SeekFrom::Start(start.into()))
                        .map_err(in_temporary_folder)?;
                    let read = file.take(len).read_to_end(value);
                    read.map_err(in_temporary_folder)?;
                }
            }
        }
        Ok(len)
    }
}

/// Passes the next `len` bytes to `each`, piece by piece.
fn copy_value(
    bytes: &mut Decompressed,
    len: u64,
    each: &mut dyn FnMut(&[u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut left = len;
    while left > 0 {
        let buffered = bytes.fill_buf()?;
        if buffered.is_empty() {
            return Err(damaged("a page is shorter than its values"));
        }
        let num = left.min(buffered.len() as u64) as usize;
        each(&buffered[..num])?;
        bytes.consume(num);
        left -= num as u64;
    }
    Ok(())
}

/// `len` bytes of `reader`, which are levels of the page of `header`.
fn exact(reader: &mut dyn Read, len: u64, header: &PageHeader) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    let limit = len.min(most_hybrid_bytes(header));
    reader.take(limit).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == len {
        Ok(bytes)
    } else {
        Err(damaged(
            "the levels of a page have another length than it says",
        ))
    }
}

/// An upper bound on the encoded length of one integer per value: 32 bits each, and a run header
/// each.
fn most_hybrid_bytes(header: &PageHeader) -> u64 {
    64 + header.num_values * 6
}

fn read_u32(reader: &mut impl Read) -> Result<u32, Fault> {
    let mut bytes = [0; 4];
    reader.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn hybrid(bytes: Vec<u8>, bit_width: u32) -> Result<Hybrid, Fault> {
    Hybrid::new(bytes, bit_width).ok_or_else(|| damaged("a page has integers of over 32 bits"))
}

fn in_temporary_folder(cause: io::Error) -> Fault {
    Fault::Temporary(cause)
}

fn damaged(reason: &str) -> Fault {
    Fault::Damaged(reason.to_owned())
}
