//! The uncompressed bytes of one source. Counts its raw bytes and checksums them if they differ
//! from the uncompressed ones.

use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::time::Instant;

use crate::bytes::frames::{Frame, Frames};
use crate::detect::recognize;
use crate::error::{Error, Result};
use crate::inputs::corpus_file::CorpusFile;
use crate::{ReadOptions, Source};

/// Large enough that the cost of system calls is negligible next to decompression.
pub(crate) const RAW_BUFFER_BYTES: usize = 256 * 1024;

/// The uncompressed bytes of a source. Its first bytes determine the compression.
pub(crate) struct Decompressed {
    source: Source,
    zstd_window_log_max: u32,
    deadline: Option<Instant>,
    compression: Compression,
    decoder: Decoder,
}

enum Decoder {
    Plain(RawFile),
    Frames(Box<Frames<BufReader<RawFile>>>),
}

impl Decoder {
    /// Decompresses `raw`, which is at the start of a frame.
    fn new(
        raw: RawFile,
        compression: Compression,
        window_log_max: u32,
        frame: Frame,
    ) -> io::Result<Self> {
        let buffered = |raw| BufReader::with_capacity(RAW_BUFFER_BYTES, raw);
        Ok(match compression {
            Compression::None => Self::Plain(raw),
            Compression::Gzip => Self::Frames(Box::new(Frames::gzip(buffered(raw), frame))),
            Compression::Zstd => {
                let frames = Frames::zstd(buffered(raw), window_log_max, frame)?;
                Self::Frames(Box::new(frames))
            }
        })
    }
}

/// The compression of a file, determined by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// The file is not compressed.
    None,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// The compression of a file that starts with `head`.
    fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// The compression of `source`.
pub fn compression(source: &Source) -> Result<Compression> {
    open(source).map(|(_, compression)| compression)
}

/// Opens `source` and reads its first bytes; the file position stays at the start.
pub(crate) fn open(source: &Source) -> Result<(CorpusFile, Compression)> {
    let mut file = CorpusFile::of(source)?;
    let head = recognize::first_bytes(&mut file);
    let head = head.map_err(|cause| Error::io(&source.path, cause))?;
    file.rewind()
        .map_err(|cause| Error::io(&source.path, cause))?;
    if head.is_empty() && is_named_compressed(source) {
        return Err(Error::DamagedCompression {
            path: source.path.clone(),
            position_bytes: 0,
            source: io::ErrorKind::UnexpectedEof.into(),
        });
    }
    recognize::check(source, &head, false)?;
    Ok((file, Compression::of(&head)))
}

/// Whether the name implies a compression header. An empty file of such a name is damaged, not
/// empty.
pub fn is_named_compressed(source: &Source) -> bool {
    let extension = source.path.extension();
    extension.is_some_and(|extension| extension == "gz" || extension == "zst")
}

impl Decompressed {
    /// Opens `source` at the start of the range to read.
    pub(crate) fn open(source: &Source, options: &ReadOptions) -> Result<Self> {
        let (file, compression) = open(source)?;
        let is_checksummed = compression != Compression::None;
        let raw = RawFile::new(file, source, is_checksummed)
            .map_err(|cause| Error::io(&source.path, cause))?;
        // Only uncompressed files have ranges. The first bytes do not matter, even if they have
        // changed.
        let compression = match &source.range {
            Some(_) => Compression::None,
            None => compression,
        };
        let window_log_max = options.zstd_window_log_max;
        let decoder = Decoder::new(raw, compression, window_log_max, Frame::default())
            .map_err(|cause| Error::io(&source.path, cause))?;
        Ok(Self {
            source: source.clone(),
            zstd_window_log_max: options.zstd_window_log_max,
            deadline: options.deadline,
            compression,
            decoder,
        })
    }

    /// The last frame of a compressed source that starts at or before the uncompressed `offset`, from
    /// which [`Decompressed::skip`] can start.
    pub(crate) fn frame_before(&mut self, offset: u64) -> Option<Frame> {
        match &mut self.decoder {
            Decoder::Plain(_) => None,
            Decoder::Frames(frames) => frames.frame_before(offset),
        }
    }

    /// Reads some bytes into `buffer`; 0 means that the source ended completely and unchanged.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            return Err(Error::io(&self.source.path, io::ErrorKind::TimedOut.into()));
        }
        loop {
            let result = match &mut self.decoder {
                Decoder::Plain(raw) => raw.read(buffer),
                Decoder::Frames(frames) => frames.read(buffer),
            };
            match result {
                Ok(n) if n > 0 || buffer.is_empty() => return Ok(n),
                Ok(_) if self.raw().changed => return Err(self.changed()),
                Ok(_) => return Ok(0),
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(self.error(cause)),
            }
        }
    }

    /// Checks that the first decompressed bytes can be those of the format; uncompressed files were
    /// checked when they were opened.
    pub(crate) fn check_head(&self, head: &[u8]) -> Result<()> {
        match &self.decoder {
            Decoder::Plain(_) => Ok(()),
            Decoder::Frames(_) => recognize::check(&self.source, head, true),
        }
    }

    /// Whether the source is compressed.
    #[cfg(feature = "tables")]
    pub(crate) fn is_compressed(&self) -> bool {
        self.compression != Compression::None
    }

    /// Raw bytes read from the disk so far.
    pub(crate) fn raw_bytes(&self) -> u64 {
        self.raw().bytes_read
    }

    /// CRC32C of the raw bytes read so far; `None` if they equal the uncompressed ones.
    pub(crate) fn digest(&self) -> Option<u32> {
        self.raw().crc
    }

    /// Skips the first `num_bytes` uncompressed bytes; returns false if the source has fewer. Must
    /// be called before any read. A compressed source is decompressed from `frame`, if given.
    pub(crate) fn skip(&mut self, num_bytes: u64, frame: Option<Frame>) -> Result<bool> {
        let mut num_bytes = num_bytes;
        if let Some(frame) = frame.filter(|frame| *frame != Frame::default()) {
            if frame.raw > self.source.bytes || frame.content > num_bytes {
                return Ok(false);
            }
            self.start_at(frame)?;
            num_bytes -= frame.content;
        }
        if let Decoder::Plain(raw) = &mut self.decoder {
            raw.file
                .seek(SeekFrom::Start(num_bytes))
                .map_err(|cause| Error::io(&self.source.path, cause))?;
            raw.bytes_read = num_bytes;
            return Ok(num_bytes <= raw.expected_bytes);
        }
        let mut buffer = vec![0; RAW_BUFFER_BYTES];
        let mut rest = num_bytes;
        while rest > 0 {
            let room = rest.min(RAW_BUFFER_BYTES as u64) as usize;
            let n = self.read(&mut buffer[..room])?;
            if n == 0 {
                return Ok(false);
            }
            rest -= n as u64;
        }
        Ok(true)
    }

    /// Starts at a frame.
    fn start_at(&mut self, frame: Frame) -> Result<()> {
        let file = CorpusFile::of(&self.source)?;
        let start = || -> io::Result<Decoder> {
            let mut raw = RawFile::new(file, &self.source, true)?;
            raw.file.seek(SeekFrom::Start(frame.raw))?;
            raw.bytes_read = frame.raw;
            Decoder::new(raw, self.compression, self.zstd_window_log_max, frame)
        };
        self.decoder = start().map_err(|cause| Error::io(&self.source.path, cause))?;
        Ok(())
    }

    fn raw(&self) -> &RawFile {
        match &self.decoder {
            Decoder::Plain(raw) => raw,
            Decoder::Frames(frames) => frames.input().get_ref(),
        }
    }

    fn changed(&self) -> Error {
        match self.raw().file.len_bytes() {
            Ok(found_bytes) => Error::SourceChanged {
                path: self.source.path.clone(),
                expected_bytes: self.source.bytes,
                found_bytes,
            },
            Err(cause) => Error::io(&self.source.path, cause),
        }
    }

    fn error(&self, cause: io::Error) -> Error {
        let path = self.source.path.clone();
        let buffered = match &self.decoder {
            _ if self.raw().changed => return self.changed(),
            _ if self.raw().failed => {
                return Error::io(&path, cause);
            }
            Decoder::Plain(_) => {
                return Error::io(&path, cause);
            }
            Decoder::Frames(frames) => frames.input().buffer().len(),
        };
        let position_bytes = self.raw_bytes() - buffered as u64;
        // The library returns its error code only as text.
        let reason = cause.to_string();
        if reason.contains("Allocation error") {
            return Error::io(&path, io::ErrorKind::OutOfMemory.into());
        }
        if reason.contains("Dictionary mismatch") {
            return Error::ZstdDictionary {
                path,
                position_bytes,
            };
        }
        if reason.contains("too much memory") {
            return Error::ZstdWindow {
                path,
                window_log_max: self.zstd_window_log_max,
            };
        }
        Error::DamagedCompression {
            path,
            position_bytes,
            source: cause,
        }
    }
}

/// A file that must have exactly its initial length; or a range of it, while the file keeps that
/// length.
struct RawFile {
    file: CorpusFile,
    /// Length of the file or of the range to read.
    expected_bytes: u64,
    /// Length of the file, if only a range is read.
    whole_bytes: Option<u64>,
    bytes_read: u64,
    /// CRC32C of the bytes read, if requested.
    crc: Option<u32>,
    /// Whether the file is shorter or longer than expected.
    changed: bool,
    /// Whether the system reported an error, in contrast to faults of the data.
    failed: bool,
}

impl RawFile {
    fn new(mut file: CorpusFile, source: &Source, is_checksummed: bool) -> io::Result<Self> {
        if let Some(range) = &source.range {
            file.seek(SeekFrom::Start(range.start))?;
        }
        Ok(Self {
            file,
            expected_bytes: source.span_bytes(),
            whole_bytes: source.range.is_some().then_some(source.bytes),
            bytes_read: 0,
            crc: is_checksummed.then_some(0),
            changed: false,
            failed: false,
        })
    }

    /// How many of `len` bytes may be read without leaving the range.
    fn within_part(&mut self, len: usize) -> io::Result<usize> {
        let Some(whole_bytes) = self.whole_bytes else {
            return Ok(len);
        };
        let rest = self.expected_bytes - self.bytes_read;
        if rest == 0 {
            self.changed |= self.file.len_bytes()? != whole_bytes;
        }
        Ok(len.min(usize::try_from(rest).unwrap_or(usize::MAX)))
    }
}

impl Read for RawFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.within_part(buffer.len())?;
        let buffer = &mut buffer[..len];
        let result = self.file.read(buffer);
        match &result {
            Ok(0) if !buffer.is_empty() => self.changed |= self.bytes_read < self.expected_bytes,
            Ok(n) => {
                if let Some(crc) = &mut self.crc {
                    *crc = crc32c::crc32c_append(*crc, &buffer[..*n]);
                }
                self.bytes_read += *n as u64;
                if self.bytes_read > self.expected_bytes {
                    self.changed = true;
                    return Err(io::Error::other("longer than at the start"));
                }
            }
            Err(cause) => self.failed |= cause.kind() != io::ErrorKind::Interrupted,
        }
        result
    }
}
