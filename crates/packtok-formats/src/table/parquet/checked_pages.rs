//! The pages of a column chunk, for the decoders of the `parquet` crate.
//!
//! The crate reserves memory for as many bytes as the header of a page declares, and decompresses
//! gzip and Brotli to the end, whatever the header declares. Here, each header is checked before
//! the crate reads the page. A page that the crate would not bound is decompressed here, with
//! memory that grows as bytes arrive.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parquet::basic::{Compression, Encoding, Type as PhysicalType};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use super::large_pages::LARGE_BYTES;
use super::page_bytes::PageBytes;
use super::page_header::{DATA, DATA_V2, DICTIONARY, PageHeader};
use crate::table::fault::Fault;
use crate::table::window::Window;

/// Values for each byte that lengths in the encodings DELTA_* can have at most: blocks of 128 values of
/// the same difference have five bytes.
const MAX_DELTAS_PER_BYTE: usize = 32;

/// The pages of a column chunk, each checked before it is read.
pub(super) struct CheckedPages {
    /// At the same page as this reader.
    inner: SerializedPageReader<Window>,
    bytes: PageBytes,
    /// Position of the next page header, and the end of the chunk.
    next_page: u64,
    end: u64,
    num_data_pages: usize,
    /// The fewest bytes of a value in a dictionary.
    value_bytes: usize,
    /// Values that the next pages may have.
    max_values: Arc<AtomicU64>,
    /// Whether pages start with repetition levels and with definition levels.
    has_levels: [bool; 2],
}

impl CheckedPages {
    pub(super) fn open(
        window: &Window,
        chunk: &ColumnChunkMetaData,
        row_group: usize,
        num_rows: usize,
    ) -> Result<Self, Fault> {
        let (start, len) = chunk.byte_range();
        let value_bytes = match chunk.column_type() {
            PhysicalType::FIXED_LEN_BYTE_ARRAY => {
                usize::try_from(chunk.column_descr().type_length()).unwrap_or(0)
            }
            // The length of a value.
            _ => 4,
        };
        let column = chunk.column_path().string();
        let descr = chunk.column_descr();
        Ok(Self {
            inner: SerializedPageReader::new(Arc::new(window.clone()), chunk, num_rows, None)?,
            bytes: PageBytes::new(window, chunk.compression(), row_group, column),
            next_page: start,
            end: start.saturating_add(len),
            num_data_pages: 0,
            value_bytes,
            max_values: Arc::new(AtomicU64::new(u64::MAX)),
            has_levels: [descr.max_rep_level() > 0, descr.max_def_level() > 0],
        })
    }

    /// The same pages, of which all together may have so many values: the crate keeps the values of a
    /// list in memory, and a page of few bytes can declare many.
    pub(super) fn with_max_values(self, max_values: u64) -> Self {
        self.max_values.store(max_values, Ordering::Relaxed);
        self
    }

    /// The number of values that the next pages may have, which the caller can change.
    pub(super) fn max_values(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.max_values)
    }

    /// The next page with values: its header and the start of its content. Others are skipped.
    fn next_header(&mut self) -> Result<Option<(PageHeader, u64)>, Fault> {
        while self.next_page < self.end {
            let (header, body) = self.bytes.header(self.next_page)?;
            if matches!(header.kind, DATA | DATA_V2 | DICTIONARY) {
                return Ok(Some((header, body)));
            }
            self.next_page = body.saturating_add(header.compressed_bytes);
            self.inner.skip_next_page()?;
        }
        Ok(None)
    }

    /// The next page that contains values; `None` at the end of the chunk.
    fn next_page(&mut self) -> Result<Option<Page>, Fault> {
        let Some((header, body)) = self.next_header()? else {
            return Ok(None);
        };
        self.next_page = body.saturating_add(header.compressed_bytes);
        self.bytes.check_page_bytes(&header)?;
        self.bytes
            .check_declared_bytes(&header, self.num_data_pages)?;
        if header.kind != DICTIONARY {
            self.check_budget(&header)?;
        }
        let page = if self.is_bounded(&header) {
            self.inner.get_next_page()?
        } else {
            self.inner.skip_next_page()?;
            Some(self.decompressed(&header, body)?)
        };
        match &page {
            // The crate reserves memory for all values of a dictionary.
            Some(Page::DictionaryPage {
                buf, num_values, ..
            }) => self.check_num_values(&header, buf.len(), *num_values as usize)?,
            page => {
                if let Some(page) = page {
                    self.check_num_deltas(&header, page)?;
                }
                self.num_data_pages += 1;
            }
        }
        Ok(page)
    }

    /// Skips the next page that contains values.
    fn skip_page(&mut self) -> Result<(), Fault> {
        if let Some((header, body)) = self.next_header()? {
            self.next_page = body.saturating_add(header.compressed_bytes);
            self.num_data_pages += usize::from(header.kind != DICTIONARY);
            self.inner.skip_next_page()?;
        }
        Ok(())
    }

    /// Whether the memory that the crate needs for a page is bounded by the length of the page in
    /// the file, or small.
    fn is_bounded(&self, header: &PageHeader) -> bool {
        match self.bytes.compression {
            Compression::UNCOMPRESSED | Compression::LZ4 | Compression::LZO => true,
            Compression::GZIP(_) | Compression::BROTLI(_) => !header.is_compressed,
            Compression::SNAPPY | Compression::ZSTD(_) | Compression::LZ4_RAW => {
                !header.is_compressed || header.uncompressed_bytes <= LARGE_BYTES
            }
        }
    }

    fn check_budget(&mut self, header: &PageHeader) -> Result<(), Fault> {
        let num_values = header.num_values;
        let max_values = self.max_values.load(Ordering::Relaxed);
        match max_values.checked_sub(num_values) {
            Some(left) => {
                self.max_values.store(left, Ordering::Relaxed);
                Ok(())
            }
            None => {
                let reason = format!(
                    "its header declares {num_values} values, and at most {max_values} more are accepted"
                );
                Err(self.bytes.damaged(header, self.num_data_pages, &reason))
            }
        }
    }

    /// Checks the number of lengths in a page of byte arrays whose lengths are stored as differences:
    /// the crate reserves memory for as many.
    fn check_num_deltas(&self, header: &PageHeader, page: &Page) -> Result<(), Fault> {
        let (values, encoding) = match page {
            Page::DataPage { buf, encoding, .. } => (self.without_levels(buf), encoding),
            Page::DataPageV2 { buf, encoding, .. } => {
                let (repetition, definition) = header.level_bytes;
                let levels = repetition.saturating_add(definition);
                let values = usize::try_from(levels)
                    .ok()
                    .and_then(|levels| buf.get(levels..));
                (values, encoding)
            }
            Page::DictionaryPage { .. } => return Ok(()),
        };
        // The lengths of the parts that values share with the one before, and of the rest.
        let num_lists = match encoding {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
            Encoding::DELTA_BYTE_ARRAY => 2,
            _ => 0,
        };
        let mut lists = values;
        for _ in 0..num_lists {
            let Some(bytes) = lists else { break };
            let (num_values, end) = deltas(bytes);
            let most = bytes.len().saturating_mul(MAX_DELTAS_PER_BYTE);
            if num_values > most as u64 {
                let num_bytes = bytes.len();
                let reason = format!(
                    "it declares {num_values} values, but its {num_bytes} bytes hold at most {most}"
                );
                return Err(self.bytes.damaged(header, self.num_data_pages, &reason));
            }
            lists = end.and_then(|end| bytes.get(end..));
        }
        Ok(())
    }

    /// The values in the content of a page of version 1, whose levels have their lengths before them.
    fn without_levels<'a>(&self, content: &'a [u8]) -> Option<&'a [u8]> {
        let mut rest = content;
        for _ in self.has_levels.into_iter().filter(|&has| has) {
            let (length, levels) = rest.split_first_chunk::<4>()?;
            rest = levels.get(u32::from_le_bytes(*length) as usize..)?;
        }
        Some(rest)
    }

    fn check_num_values(
        &self,
        header: &PageHeader,
        num_bytes: usize,
        num_values: usize,
    ) -> Result<(), Fault> {
        // Values of no bytes are equal, so there is at most one.
        let most = num_bytes.checked_div(self.value_bytes).unwrap_or(1);
        if num_values <= most {
            return Ok(());
        }
        let reason = format!(
            "its header declares {num_values} values, but its {num_bytes} bytes hold at most {most}"
        );
        Err(self.bytes.damaged(header, self.num_data_pages, &reason))
    }

    /// Decompresses the page whose content starts at `body`.
    fn decompressed(&self, header: &PageHeader, body: u64) -> Result<Page, Fault> {
        let (repetition, definition) = header.level_bytes;
        let level_bytes = repetition.saturating_add(definition);
        let too_short = || Fault::Damaged("a page is shorter than its levels".to_owned());
        let compressed = header.compressed_bytes.checked_sub(level_bytes);
        let compressed = compressed.ok_or_else(too_short)?;
        let num_bytes = header.uncompressed_bytes.checked_sub(level_bytes);
        let num_bytes = num_bytes.ok_or_else(too_short)?;
        let read = || {
            self.bytes.check_crc(header, body)?;
            let mut buffer =
                Vec::with_capacity(header.uncompressed_bytes.min(LARGE_BYTES) as usize);
            self.bytes.raw(body, level_bytes).read_to_end(&mut buffer)?;
            let values = body.saturating_add(level_bytes);
            // A byte more shows that the page is longer than its header declares.
            let limit = num_bytes.saturating_add(1);
            self.bytes
                .decompressed(values, compressed, num_bytes, limit)?
                .read_to_end(&mut buffer)?;
            Ok(buffer)
        };
        let buffer = read().map_err(|fault| self.bytes.fault(fault))?;
        let declared = header.uncompressed_bytes;
        if buffer.len() as u64 == declared {
            return page_of(header, buffer);
        }
        let num_bytes = if buffer.len() as u64 > declared {
            "more".to_owned()
        } else {
            buffer.len().to_string()
        };
        let reason = format!(
            "its header declares {declared} bytes after decompression, but it has {num_bytes}"
        );
        Err(self.bytes.damaged(header, self.num_data_pages, &reason))
    }
}

/// How many differences a list of them at the start of `bytes` declares, and where it ends if it is
/// complete. Source: DELTA_BINARY_PACKED in the Parquet format's `Encodings.md`.
fn deltas(bytes: &[u8]) -> (u64, Option<usize>) {
    let mut position = 0;
    let mut varint = || varint_at(bytes, &mut position);
    let header = [varint(), varint(), varint()];
    let [Some(block_values), Some(num_parts), Some(num_values)] = header else {
        return (0, None);
    };
    // The first value.
    let is_complete = varint().is_some();
    let part_values = block_values.checked_div(num_parts).unwrap_or(0);
    if !is_complete || part_values == 0 {
        return (num_values, None);
    }
    let mut left = num_values.saturating_sub(1);
    while left > 0 {
        // The smallest difference, and the widths of the parts.
        let widths = varint_at(bytes, &mut position).and_then(|_| {
            let end = position.checked_add(usize::try_from(num_parts).ok()?)?;
            bytes.get(position..end)
        });
        let Some(widths) = widths else {
            return (num_values, None);
        };
        position += widths.len();
        for &width in widths {
            if left == 0 {
                break;
            }
            let num_bytes = u64::from(width).saturating_mul(part_values) / 8;
            position = position.saturating_add(usize::try_from(num_bytes).unwrap_or(usize::MAX));
            left = left.saturating_sub(part_values);
        }
    }
    (num_values, Some(position))
}

/// The number at `position`, in as many bytes as it needs; moves `position` after it.
fn varint_at(bytes: &[u8], position: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*position)?;
        *position += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// The page of `header`, whose decompressed bytes are `buffer`.
fn page_of(header: &PageHeader, buffer: Vec<u8>) -> Result<Page, Fault> {
    // All fit 32 bits, by `PageHeader`.
    let num_values = header.num_values as u32;
    let encoding = encoding_of(header.encoding)?;
    Ok(match header.kind {
        DICTIONARY => Page::DictionaryPage {
            buf: buffer.into(),
            num_values,
            encoding,
            is_sorted: false,
        },
        DATA_V2 => Page::DataPageV2 {
            buf: buffer.into(),
            num_values,
            encoding,
            num_nulls: header.num_nulls as u32,
            num_rows: header.num_rows as u32,
            def_levels_byte_len: header.level_bytes.1 as u32,
            rep_levels_byte_len: header.level_bytes.0 as u32,
            is_compressed: true,
            statistics: None,
        },
        _ => Page::DataPage {
            buf: buffer.into(),
            num_values,
            encoding,
            def_level_encoding: encoding_of(header.level_encoding)?,
            // Every writer has this one.
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        },
    })
}

fn encoding_of(number: i64) -> Result<Encoding, Fault> {
    Ok(match number {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        3 => Encoding::RLE,
        #[expect(deprecated, reason = "old writers use it for levels")]
        4 => Encoding::BIT_PACKED,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        7 => Encoding::DELTA_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        _ => {
            return Err(Fault::Damaged("a page has an unknown encoding".to_owned()));
        }
    })
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        self.next_page().map_err(parquet_error)
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        let header = self.next_header().map_err(parquet_error)?;
        Ok(header.map(|(header, _)| PageMetadata {
            num_rows: (header.kind == DATA_V2).then_some(header.num_rows as usize),
            num_levels: (header.kind != DICTIONARY).then_some(header.num_values as usize),
            is_dict: header.kind == DICTIONARY,
        }))
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.skip_page().map_err(parquet_error)
    }
}

fn parquet_error(fault: Fault) -> ParquetError {
    match fault {
        Fault::Io(cause) => ParquetError::External(Box::new(cause)),
        Fault::Unsupported(reason) => ParquetError::NYI(reason),
        Fault::Damaged(reason) => ParquetError::General(reason),
        fault => ParquetError::General(format!("{fault:?}")),
    }
}

impl Iterator for CheckedPages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use parquet::basic::{BrotliLevel, GzipLevel, ZstdLevel};
    use parquet::data_type::{ByteArray, ByteArrayType};
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::SchemaDescriptor;
    use tempfile::NamedTempFile;

    use super::*;
    use crate::table::{Groups, TableFormat, Value};

    const SCHEMA: &str = "message schema { required binary text (UTF8); }";

    fn compressions() -> Vec<Compression> {
        vec![
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::GZIP(GzipLevel::default()),
            Compression::BROTLI(BrotliLevel::default()),
            Compression::LZ4,
            Compression::ZSTD(ZstdLevel::default()),
            Compression::LZ4_RAW,
        ]
    }

    fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value > 0x7f {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    /// The header of a page, with 32-bit integers as the fields of Thrift's compact protocol.
    fn header(kind: u64, uncompressed: u64, compressed: usize, num_values: u64) -> Vec<u8> {
        header_of(kind, uncompressed, compressed, num_values, 0)
    }

    fn header_of(
        kind: u64,
        uncompressed: u64,
        compressed: usize,
        num_values: u64,
        encoding: u64,
    ) -> Vec<u8> {
        let field = |value: u64| [vec![0x15], varint(value * 2)].concat();
        let (number, encodings) = if kind == DICTIONARY as u64 {
            (0x4c, vec![field(0)])
        } else {
            (0x2c, vec![field(encoding), field(3), field(3)])
        };
        let start = [field(kind), field(uncompressed), field(compressed as u64)].concat();
        let values = [vec![number], field(num_values), encodings.concat(), vec![0]].concat();
        [start, values, vec![0]].concat()
    }

    /// The length of the first page of a column chunk, or the fault.
    fn first_page(compression: Compression, header: &[u8], body: &[u8]) -> Result<usize, String> {
        let file = NamedTempFile::new().unwrap();
        fs::write(file.path(), [header, body].concat()).unwrap();
        let window = Window::new(file.into_file()).unwrap();
        let schema = SchemaDescriptor::new(Arc::new(parse_message_type(SCHEMA).unwrap()));
        let chunk = ColumnChunkMetaData::builder(schema.column(0))
            .set_compression(compression)
            .set_data_page_offset(0)
            .set_total_compressed_size((header.len() + body.len()) as i64)
            .build()
            .unwrap();
        let mut pages = CheckedPages::open(&window, &chunk, 3, 1).map_err(message)?;
        let page = pages.next_page().map_err(message)?;
        Ok(page.unwrap().buffer().len())
    }

    fn message(fault: Fault) -> String {
        match fault {
            Fault::Damaged(reason) => reason,
            fault => format!("{fault:?}"),
        }
    }

    /// The peak memory of this process. The kernel counts pages of each core first and adds them later, so a peak may be
    /// lower than an earlier one.
    fn peak_bytes() -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.unwrap().trim().trim_end_matches(" kB");
        kib.parse::<u64>().unwrap() << 10
    }

    #[test]
    fn pages_that_declare_more_than_they_can_hold_are_refused() {
        let before = peak_bytes();
        let body = [0x61; 100];
        for (compression, name, most) in [
            (Compression::SNAPPY, "SNAPPY", 2200),
            (Compression::GZIP(GzipLevel::default()), "GZIP", 103_200),
            (Compression::LZ4, "LZ4", 25_500),
            (Compression::LZ4_RAW, "LZ4_RAW", 25_500),
            (Compression::ZSTD(ZstdLevel::default()), "ZSTD", 3_276_800),
        ] {
            for (kind, page) in [(DATA, "page 0"), (DICTIONARY, "dictionary page")] {
                for declared in [most + 1, i32::MAX as u64] {
                    let header = header(kind as u64, declared, body.len(), 1);
                    assert_eq!(
                        first_page(compression, &header, &body),
                        Err(format!(
                            "row group 3, column \"text\", {page}: its header declares {declared} bytes \
                             after decompression, but its 100 bytes of {name} hold at most {most}"
                        ))
                    );
                }
            }
        }
        // Brotli has no bound that would refuse a page before it is decompressed.
        let mut body = Vec::new();
        let mut writer = brotli::CompressorWriter::new(&mut body, 4096, 1, 22);
        writer.write_all(b"text").unwrap();
        drop(writer);
        let header = header(DATA as u64, i32::MAX as u64, body.len(), 1);
        assert_eq!(
            first_page(Compression::BROTLI(BrotliLevel::default()), &header, &body),
            Err(
                "row group 3, column \"text\", page 0: its header declares 2147483647 bytes after \
                 decompression, but it has 4"
                    .to_owned()
            )
        );
        assert!(peak_bytes().saturating_sub(before) < 256 << 20);
    }

    #[test]
    fn lengths_that_a_page_cannot_hold_are_refused() {
        // Blocks of 128 values in 4 parts, and the number of values.
        let body =
            |num_values: u64| [varint(128), varint(4), varint(num_values), vec![0; 9]].concat();
        for encoding in [6, 7] {
            let bytes = body(1 << 31);
            let header = header_of(DATA as u64, bytes.len() as u64, bytes.len(), 1, encoding);
            assert_eq!(
                first_page(Compression::UNCOMPRESSED, &header, &bytes),
                Err(
                    "row group 3, column \"text\", page 0: it declares 2147483648 values, but its \
                     17 bytes hold at most 544"
                        .to_owned()
                )
            );
            let bytes = body(400);
            assert_eq!(deltas(&bytes), (400, None));
            let header = header_of(DATA as u64, bytes.len() as u64, bytes.len(), 1, encoding);
            let page = first_page(Compression::UNCOMPRESSED, &header, &bytes);
            assert_eq!(page, Ok(bytes.len()));
        }
    }

    #[test]
    fn the_second_list_of_a_page_is_checked_too() {
        // 129 differences of no bits, in two blocks; then a list that declares too many.
        let block = [0, 0, 0, 0, 0];
        let first = [
            varint(128),
            varint(4),
            varint(130),
            vec![0],
            block.repeat(2),
        ]
        .concat();
        assert_eq!(deltas(&first), (130, Some(first.len())));
        let second = [varint(128), varint(4), varint(1 << 31), vec![0; 9]].concat();
        let bytes = [first, second].concat();
        for (encoding, is_refused) in [(6, false), (7, true)] {
            let header = header_of(DATA as u64, bytes.len() as u64, bytes.len(), 130, encoding);
            let page = first_page(Compression::UNCOMPRESSED, &header, &bytes);
            assert_eq!(page.is_err(), is_refused, "{page:?}");
        }
    }

    #[test]
    fn pages_that_hold_more_than_they_declare_are_refused() {
        let zeros = vec![0; 1 << 20];
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut brotli = brotli::CompressorWriter::new(Vec::new(), 4096, 1, 22);
        for _ in 0..512 {
            gzip.write_all(&zeros).unwrap();
        }
        for _ in 0..8 {
            brotli.write_all(&zeros).unwrap();
        }
        let before = peak_bytes();
        for (compression, body) in [
            (
                Compression::GZIP(GzipLevel::default()),
                gzip.finish().unwrap(),
            ),
            (
                Compression::BROTLI(BrotliLevel::default()),
                brotli.into_inner(),
            ),
        ] {
            let header = header(DATA as u64, 100, body.len(), 1);
            assert_eq!(
                first_page(compression, &header, &body),
                Err(
                    "row group 3, column \"text\", page 0: its header declares 100 bytes after \
                     decompression, but it has more"
                        .to_owned()
                )
            );
        }
        assert!(peak_bytes().saturating_sub(before) < 256 << 20);
    }

    #[test]
    fn a_dictionary_that_declares_more_values_than_it_can_hold_is_refused() {
        let body = [0; 8];
        for num_values in [3, i32::MAX as u64] {
            let header = header(DICTIONARY as u64, 8, 8, num_values);
            assert_eq!(
                first_page(Compression::UNCOMPRESSED, &header, &body),
                Err(format!(
                    "row group 3, column \"text\", dictionary page: its header declares {num_values} \
                     values, but its 8 bytes hold at most 2"
                ))
            );
        }
        let header = header(DICTIONARY as u64, 8, 8, 2);
        assert_eq!(first_page(Compression::UNCOMPRESSED, &header, &body), Ok(8));
    }

    /// The texts of a file with one column, written with pages of any length.
    fn read_back(texts: &[Vec<u8>], properties: WriterProperties) -> Vec<Vec<u8>> {
        let mut file = NamedTempFile::new().unwrap();
        let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
        let mut writer =
            SerializedFileWriter::new(file.as_file_mut(), schema, Arc::new(properties)).unwrap();
        let mut rows = writer.next_row_group().unwrap();
        let mut column = rows.next_column().unwrap().unwrap();
        let values: Vec<_> = texts.iter().cloned().map(ByteArray::from).collect();
        let typed = column.typed::<ByteArrayType>();
        typed.write_batch(&values, None, None).unwrap();
        column.close().unwrap();
        rows.close().unwrap();
        writer.close().unwrap();
        let window = Window::new(file.into_file()).unwrap();
        let names = ["text".to_owned()];
        let groups = Groups::open(TableFormat::Parquet, &window, Some(&names)).unwrap();
        let mut values = groups.values(0, &window).unwrap();
        let mut texts = Vec::new();
        while let Some(value) = values.next_value(u64::MAX).unwrap() {
            let Value::Bytes(bytes) = value else {
                panic!("{value:?}");
            };
            texts.push(bytes.to_vec());
        }
        texts
    }

    #[test]
    fn pages_that_expand_much_are_read() {
        let texts = [vec![0; 2 << 20], vec![1; 3 << 20], b"short".to_vec()];
        for compression in compressions() {
            for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
                for (encoding, uses_dictionary) in [
                    (Encoding::PLAIN, false),
                    // Large pages of this encoding are not read in pieces.
                    (Encoding::DELTA_LENGTH_BYTE_ARRAY, false),
                    (Encoding::PLAIN, true),
                ] {
                    let properties = WriterProperties::builder()
                        .set_compression(compression)
                        .set_writer_version(version)
                        .set_encoding(encoding)
                        .set_dictionary_enabled(uses_dictionary)
                        .set_data_page_size_limit(1 << 30)
                        .set_dictionary_page_size_limit(1 << 30)
                        .build();
                    let what = format!("{compression:?} {version:?} {encoding:?}");
                    assert!(read_back(&texts, properties) == texts, "{what}");
                }
            }
        }
    }
}
