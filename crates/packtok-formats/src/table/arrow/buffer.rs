//! One buffer of a record batch, decompressed while it is read.

use std::io::{self, BufRead, BufReader, Read, Take};

use arrow_ipc::CompressionType;
use lz4_flex::frame::FrameDecoder;

use super::super::fault::Fault;
use super::super::window::{Window, WindowReader};

/// Bytes of a buffer that are read at a time.
const READ_BYTES: usize = 64 << 10;

/// The position of a buffer in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) bytes: u64,
}

/// Reads the decompressed bytes of a buffer.
pub(super) struct BufferReader {
    kind: Kind,
    window: Window,
}

type Raw = BufReader<Take<WindowReader>>;

enum Kind {
    Plain(Raw),
    Lz4(Box<FrameDecoder<Raw>>),
    Zstd(Box<zstd::Decoder<'static, Raw>>),
}

impl BufferReader {
    /// A reader of the buffer at `place`, which is compressed with `codec`.
    pub(super) fn open(
        window: &Window,
        place: Span,
        codec: Option<CompressionType>,
    ) -> Result<Self, Fault> {
        let raw = |start: u64, bytes: u64| {
            BufReader::with_capacity(READ_BYTES, window.reader(start).take(bytes))
        };
        let with_kind = |kind| Self {
            kind,
            window: window.clone(),
        };
        let Some(codec) = codec.filter(|_| place.bytes > 0) else {
            return Ok(with_kind(Kind::Plain(raw(place.start, place.bytes))));
        };
        // A compressed buffer starts with its decompressed length. The length -1 marks a buffer
        // that the writer left uncompressed.
        const LENGTH_BYTES: u64 = 8;
        let Some(bytes) = place.bytes.checked_sub(LENGTH_BYTES) else {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        };
        let length = window.bytes(place.start, LENGTH_BYTES as usize)?;
        let raw = raw(place.start + LENGTH_BYTES, bytes);
        Ok(with_kind(match codec {
            _ if length.iter().all(|byte| *byte == 0xff) => Kind::Plain(raw),
            CompressionType::LZ4_FRAME => Kind::Lz4(Box::new(FrameDecoder::new(raw))),
            CompressionType::ZSTD => Kind::Zstd(Box::new(zstd::Decoder::with_buffer(raw)?)),
            _ => {
                return Err(Fault::Unsupported(
                    "its compression is unknown; write it with LZ4 or zstd".to_owned(),
                ));
            }
        }))
    }

    /// Fills `buffer` completely.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> Result<(), Fault> {
        let read = match &mut self.kind {
            Kind::Plain(raw) => raw.read_exact(buffer),
            Kind::Lz4(decoder) => decoder.read_exact(buffer),
            Kind::Zstd(decoder) => decoder.read_exact(buffer),
        };
        read.map_err(|cause| self.fault(cause))
    }

    /// Reads and drops `num_bytes` bytes.
    pub(super) fn skip(&mut self, mut num_bytes: u64) -> Result<(), Fault> {
        if let Kind::Plain(raw) = &mut self.kind
            && let Some(unread) = num_bytes.checked_sub(raw.buffer().len() as u64)
        {
            raw.consume(raw.buffer().len());
            let file = raw.get_mut();
            let Some(left) = file.limit().checked_sub(unread) else {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            };
            file.set_limit(left);
            file.get_mut().advance(unread);
            return Ok(());
        }
        let mut scratch = [0; 4096];
        while num_bytes > 0 {
            self.window.check_time()?;
            let len = num_bytes.min(scratch.len() as u64) as usize;
            self.fill(&mut scratch[..len])?;
            num_bytes -= len as u64;
        }
        Ok(())
    }

    /// All bytes up to the end, which must be at most `max_bytes`.
    pub(super) fn rest(&mut self, max_bytes: u64) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::new();
        let read = match &mut self.kind {
            Kind::Plain(raw) => raw.take(max_bytes + 1).read_to_end(&mut bytes),
            Kind::Lz4(decoder) => decoder.take(max_bytes + 1).read_to_end(&mut bytes),
            Kind::Zstd(decoder) => decoder.take(max_bytes + 1).read_to_end(&mut bytes),
        };
        read.map_err(|cause| self.fault(cause))?;
        if bytes.len() as u64 > max_bytes {
            Err(Fault::Damaged(format!(
                "a buffer has more than {max_bytes} bytes"
            )))
        } else {
            Ok(bytes)
        }
    }

    /// The fault of a failed read. Errors of the decompressors have no number of the system.
    fn fault(&self, cause: io::Error) -> Fault {
        match cause.raw_os_error() {
            Some(_) => Fault::Io(cause),
            // The deadline of the caller.
            None if cause.kind() == io::ErrorKind::TimedOut => Fault::Io(cause),
            None if cause.kind() == io::ErrorKind::UnexpectedEof => cause.into(),
            None if matches!(self.kind, Kind::Plain(_)) => Fault::Io(cause),
            None => Fault::Damaged(format!("a compressed buffer is damaged: {cause}")),
        }
    }
}
