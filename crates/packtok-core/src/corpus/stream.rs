//! The bytes of one source, uncompressed, with its raw bytes counted and, unless they are the same, checksummed.

use crate::corpus::CorpusError;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use flate2::bufread::MultiGzDecoder;

use super::file::CorpusFile;
use super::{ReadOptions, Source, recognize};
use crate::error::{Error, Result};

/// Large enough that the calls cost nothing beside the decompression.
const RAW_BUFFER_BYTES: usize = 256 * 1024;

/// Bytes of a source, decompressed as its first bytes ask for.
pub(super) struct Stream {
    source: Source,
    zstd_window_log_max: u32,
    decoder: Decoder,
}

enum Decoder {
    Plain(RawFile),
    Gzip(Box<MultiGzDecoder<BufReader<RawFile>>>),
    Zstd(Box<zstd::Decoder<'static, BufReader<RawFile>>>),
}

/// How a file is compressed, told by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// Compression of a file whose first bytes are `head`.
    fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// How `source` is compressed.
pub(crate) fn compression(source: &Source) -> Result<Compression> {
    open(source).map(|(_, compression)| compression)
}

/// Opens `source` and looks at its first bytes; the file is left at its start.
pub(super) fn open(source: &Source) -> Result<(CorpusFile, Compression)> {
    let mut file = CorpusFile::open(&source.path)?;
    let mut head = [0; recognize::HEAD_BYTES];
    let len = recognize::fill(&mut head, |buffer| file.read(buffer))
        .map_err(|cause| Error::io(&source.path, cause))?;
    file.rewind()
        .map_err(|cause| Error::io(&source.path, cause))?;
    if len == 0 && is_named_compressed(source) {
        return Err(Error::Corpus(CorpusError::DamagedCompression {
            path: source.path.clone(),
            position_bytes: 0,
            source: io::ErrorKind::UnexpectedEof.into(),
        }));
    }
    recognize::check(source, &head[..len], false)?;
    Ok((file, Compression::of(&head[..len])))
}

/// Whether the name says that there must be a header: nothing at all is then a lost file, not an
/// empty one.
fn is_named_compressed(source: &Source) -> bool {
    let extension = source.path.extension();
    extension.is_some_and(|extension| extension == "gz" || extension == "zst")
}

impl Stream {
    /// Opens `source` at the start of what is read of it.
    pub(super) fn open(source: &Source, options: &ReadOptions) -> Result<Self> {
        let (file, compression) = open(source)?;
        let is_checksummed = compression != Compression::None;
        let raw = RawFile::new(file, source, is_checksummed)
            .map_err(|cause| Error::io(&source.path, cause))?;
        let buffered = |raw| BufReader::with_capacity(RAW_BUFFER_BYTES, raw);
        let decoder = match compression {
            // Only plain files have parts, whatever their first bytes are by now.
            _ if source.range.is_some() => Decoder::Plain(raw),
            Compression::None => Decoder::Plain(raw),
            Compression::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(buffered(raw)))),
            Compression::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(buffered(raw))
                    .map_err(|cause| Error::io(&source.path, cause))?;
                decoder
                    .window_log_max(options.zstd_window_log_max)
                    .map_err(|cause| Error::io(&source.path, cause))?;
                Decoder::Zstd(Box::new(decoder))
            }
        };
        Ok(Self {
            source: source.clone(),
            zstd_window_log_max: options.zstd_window_log_max,
            decoder,
        })
    }

    /// Reads some bytes into `buffer`; 0 means that the source has ended whole and unchanged.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        loop {
            let result = match &mut self.decoder {
                Decoder::Plain(raw) => raw.read(buffer),
                Decoder::Gzip(decoder) => decoder.read(buffer),
                Decoder::Zstd(decoder) => decoder.read(buffer),
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

    /// Checks that the first bytes that the decompression gave can be those of JSON lines; those of a
    /// plain file were looked at when it was opened.
    pub(super) fn check_head(&self, head: &[u8]) -> Result<()> {
        match &self.decoder {
            Decoder::Plain(_) => Ok(()),
            Decoder::Gzip(_) | Decoder::Zstd(_) => recognize::check(&self.source, head, true),
        }
    }

    /// Raw bytes read from the disk so far.
    pub(super) fn raw_bytes(&self) -> u64 {
        self.raw().bytes_read
    }

    /// CRC32C of the raw bytes read so far; `None` if they are the same as the uncompressed ones.
    pub(super) fn digest(&self) -> Option<u32> {
        self.raw().crc
    }

    /// Goes on behind the first `num_bytes` uncompressed bytes, which are known; says whether there are as many.
    pub(super) fn skip(&mut self, num_bytes: u64) -> Result<bool> {
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

    fn raw(&self) -> &RawFile {
        match &self.decoder {
            Decoder::Plain(raw) => raw,
            Decoder::Gzip(decoder) => decoder.get_ref().get_ref(),
            Decoder::Zstd(decoder) => decoder.get_ref().get_ref(),
        }
    }

    fn changed(&self) -> Error {
        match self.raw().file.len() {
            Ok(found) => Error::Corpus(CorpusError::SourceChanged {
                path: self.source.path.clone(),
                expected_bytes: self.source.bytes,
                found_bytes: found,
            }),
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
            Decoder::Gzip(decoder) => decoder.get_ref().buffer().len(),
            Decoder::Zstd(decoder) => decoder.get_ref().buffer().len(),
        };
        // The library hands its error code on as text only.
        if cause.to_string().contains("too much memory") {
            return Error::Corpus(CorpusError::ZstdWindow {
                path,
                window_log_max: self.zstd_window_log_max,
            });
        }
        Error::Corpus(CorpusError::DamagedCompression {
            path,
            position_bytes: self.raw_bytes() - buffered as u64,
            source: cause,
        })
    }
}

/// A file read to the length it had at the start, no less and no more; or a part of it, as long as
/// the file keeps that length.
struct RawFile {
    file: CorpusFile,
    /// Length of what is to be read.
    expected_bytes: u64,
    /// Length of the whole file, of which only a part is read.
    whole_bytes: Option<u64>,
    bytes_read: u64,
    /// CRC32C of what was read, if it is asked for.
    crc: Option<u32>,
    /// Whether the file proved shorter or longer than expected.
    changed: bool,
    /// Whether the operating system refused a read: its error is not the data's.
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

    /// How much of `len` bytes may be read: a part is read to its end and not beyond.
    fn within_part(&mut self, len: usize) -> io::Result<usize> {
        let Some(whole_bytes) = self.whole_bytes else {
            return Ok(len);
        };
        let rest = self.expected_bytes - self.bytes_read;
        if rest == 0 {
            self.changed |= self.file.len()? != whole_bytes;
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
