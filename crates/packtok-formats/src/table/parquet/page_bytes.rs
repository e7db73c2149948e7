//! The bytes of a page, decompressed while they are read, so that memory is bounded whatever the
//! header of the page declares.

use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parquet::basic::Compression;

use super::lz::{Format, LzReader};
use super::page_header::{DICTIONARY, PageHeader};
use crate::table::fault::Fault;
use crate::table::window::{Window, WindowReader};

const BUFFER_BYTES: usize = 1 << 16;

/// Decompressed bytes of a page, in order.
pub(super) type Decompressed = BufReader<io::Take<Box<dyn Read + Send>>>;

/// Reads the pages of a column chunk.
pub(super) struct PageBytes {
    window: Window,
    pub(super) compression: Compression,
    /// The row group and the column, for messages.
    row_group: usize,
    column: String,
    /// Whether the system failed to read the file. All other errors of readers are about the
    /// content.
    has_failed: Arc<AtomicBool>,
}

impl PageBytes {
    /// The pages of `column`, which is its path, in a row group.
    pub(super) fn new(
        window: &Window,
        compression: Compression,
        row_group: usize,
        column: String,
    ) -> Self {
        Self {
            window: window.clone(),
            compression,
            row_group,
            column,
            has_failed: Arc::default(),
        }
    }

    /// The header at `position`, and the position of the first byte after it.
    pub(super) fn header(&self, position: u64) -> Result<(PageHeader, u64), Fault> {
        PageHeader::read(&self.window, position)
    }

    /// Refuses a page that is longer than the caller allows to have in memory.
    pub(super) fn check_page_bytes(&self, header: &PageHeader) -> Result<(), Fault> {
        let bytes = header.uncompressed_bytes.max(header.compressed_bytes);
        self.window.check_bytes("a page of the column", bytes)
    }

    /// Fails after the deadline of the caller, if there is one.
    pub(super) fn check_time(&self) -> Result<(), Fault> {
        Ok(self.window.check_time()?)
    }

    /// Refuses a page that declares more bytes than its compressed bytes can hold, because decoders
    /// reserve memory for them. `number` is that of the page among the data pages.
    pub(super) fn check_declared_bytes(
        &self,
        header: &PageHeader,
        number: usize,
    ) -> Result<(), Fault> {
        let Some(expansion) = largest_expansion(self.compression).filter(|_| header.is_compressed)
        else {
            return Ok(());
        };
        let declared = header.uncompressed_bytes;
        // The levels of a page of version 2 are not compressed.
        let level_bytes = header.level_bytes.0.saturating_add(header.level_bytes.1);
        let compressed = header.compressed_bytes.saturating_sub(level_bytes);
        let most = compressed
            .saturating_mul(expansion)
            .saturating_add(level_bytes);
        if declared <= most {
            return Ok(());
        }
        let name = name_of(self.compression);
        Err(self.damaged(
            header,
            number,
            &format!(
                "its header declares {declared} bytes after decompression, but its {} bytes \
                 of {name} hold at most {most}",
                header.compressed_bytes
            ),
        ))
    }

    /// A fault of one page. `number` is that of the page among the data pages.
    pub(super) fn damaged(&self, header: &PageHeader, number: usize, reason: &str) -> Fault {
        let Self {
            row_group, column, ..
        } = self;
        let page = match header.kind {
            DICTIONARY => "dictionary page".to_owned(),
            _ => format!("page {number}"),
        };
        Fault::Damaged(format!(
            "row group {row_group}, column {column:?}, {page}: {reason}"
        ))
    }

    /// Verifies the checksum of a page, if its header has one.
    pub(super) fn check_crc(&self, header: &PageHeader, body: u64) -> Result<(), Fault> {
        let Some(expected) = header.crc else {
            return Ok(());
        };
        let mut reader = flate2::CrcReader::new(self.raw(body, header.compressed_bytes));
        io::copy(&mut reader, &mut io::sink())?;
        if reader.crc().sum() == expected {
            Ok(())
        } else {
            Err(Fault::Damaged(
                "the checksum of a page does not match".to_owned(),
            ))
        }
    }

    /// `len` bytes of the file.
    pub(super) fn raw(&self, start: u64, len: u64) -> io::Take<Raw> {
        let raw = Raw {
            reader: self.window.reader(start),
            has_failed: Arc::clone(&self.has_failed),
        };
        raw.take(len)
    }

    /// The decompressed bytes of `len` bytes of the file, which are to be `num_bytes`, but at most
    /// `limit` of them.
    pub(super) fn decompressed(
        &self,
        start: u64,
        len: u64,
        num_bytes: u64,
        limit: u64,
    ) -> Result<Decompressed, Fault> {
        let raw = self.raw(start, len);
        let reader: Box<dyn Read + Send> = match self.compression {
            // A page of no values may be empty, even in a compressed column.
            _ if num_bytes == 0 => Box::new(io::empty()),
            Compression::SNAPPY => Box::new(LzReader::new(raw, Format::Snappy, num_bytes)?),
            Compression::LZ4_RAW => Box::new(LzReader::new(raw, Format::Lz4, num_bytes)?),
            Compression::GZIP(_) => Box::new(flate2::read::MultiGzDecoder::new(raw)),
            Compression::ZSTD(_) => Box::new(zstd::stream::read::Decoder::new(raw)?),
            Compression::BROTLI(_) => Box::new(brotli::Decompressor::new(raw, BUFFER_BYTES)),
            _ => Box::new(raw),
        };
        Ok(BufReader::with_capacity(BUFFER_BYTES, reader.take(limit)))
    }

    /// As [`PageBytes::decompressed`], for a page that is not compressed.
    pub(super) fn uncompressed(&self, start: u64, len: u64, limit: u64) -> Decompressed {
        let reader: Box<dyn Read + Send> = Box::new(self.raw(start, len));
        BufReader::with_capacity(BUFFER_BYTES, reader.take(limit))
    }

    /// The fault for an error of a reader, which concerns the content unless the system failed.
    pub(super) fn fault(&self, fault: Fault) -> Fault {
        match fault {
            Fault::Io(cause) if !self.has_failed.load(Ordering::Relaxed) => {
                Fault::Damaged(cause.to_string())
            }
            fault => fault,
        }
    }
}

/// The most bytes that a compressed byte stands for, by the format of the compression: 64 bytes for
/// 3 (Snappy), 255 for a byte of a length (LZ4), 258 for 2 bits (deflate), a block of 128 KiB for 4
/// bytes (zstd). `None` without compression, and for Brotli, where a few bytes stand for 16 MiB.
fn largest_expansion(compression: Compression) -> Option<u64> {
    match compression {
        Compression::SNAPPY => Some(22),
        Compression::LZ4 | Compression::LZ4_RAW => Some(255),
        Compression::GZIP(_) => Some(1032),
        Compression::ZSTD(_) => Some(32 << 10),
        Compression::UNCOMPRESSED | Compression::BROTLI(_) | Compression::LZO => None,
    }
}

/// The name of a compression, as in the metadata of a file.
fn name_of(compression: Compression) -> &'static str {
    match compression {
        Compression::UNCOMPRESSED => "UNCOMPRESSED",
        Compression::SNAPPY => "SNAPPY",
        Compression::GZIP(_) => "GZIP",
        Compression::LZO => "LZO",
        Compression::BROTLI(_) => "BROTLI",
        Compression::LZ4 => "LZ4",
        Compression::ZSTD(_) => "ZSTD",
        Compression::LZ4_RAW => "LZ4_RAW",
    }
}

/// Compressed bytes of a page.
pub(super) struct Raw {
    reader: WindowReader,
    has_failed: Arc<AtomicBool>,
}

impl Read for Raw {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer);
        if read.is_err() {
            self.has_failed.store(true, Ordering::Relaxed);
        }
        read
    }
}
