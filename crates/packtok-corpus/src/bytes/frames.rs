//! Decompresses gzip and zstd, and records where each member or frame starts. Reading can resume
//! at such a start without decompressing the preceding content.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;
use zstd::stream::raw::{self, DParameter, InBuffer, Operation, OutBuffer};

/// The start of a frame of zstd or a member of gzip.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frame {
    /// Offset in the compressed file.
    pub raw: u64,
    /// Offset in the uncompressed content.
    pub content: u64,
}

/// Decompresses the frames of a file, one after the other.
pub(crate) struct Frames<R> {
    decoder: Decoder<R>,
    /// Offset in the uncompressed content of the next byte.
    content: u64,
    /// The starts of the last frames, in order; at least one, unless nothing was read.
    starts: VecDeque<Frame>,
}

enum Decoder<R> {
    Gzip(GzipMember<R>),
    Zstd(ZstdFrames<R>),
}

enum GzipMember<R> {
    Reading(Box<GzDecoder<Counted<R>>>),
    Ended(Counted<R>),
    /// A transient state while a member is replaced.
    None,
}

struct ZstdFrames<R> {
    input: Counted<R>,
    decoder: raw::Decoder<'static>,
    is_in_frame: bool,
}

/// Counts the bytes that were consumed.
pub(crate) struct Counted<R> {
    inner: R,
    raw: u64,
}

impl<R: BufRead> Counted<R> {
    pub(crate) fn new(inner: R, start: u64) -> Self {
        Self { inner, raw: start }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.raw += n as u64;
        Ok(n)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, num_bytes: usize) {
        self.raw += num_bytes as u64;
        self.inner.consume(num_bytes);
    }
}

impl<R: BufRead> Frames<R> {
    /// Decompresses gzip from the start of a member.
    pub(crate) fn gzip(input: R, start: Frame) -> Self {
        let input = Counted::new(input, start.raw);
        Self::new(Decoder::Gzip(GzipMember::Ended(input)), start)
    }

    /// Decompresses zstd from the start of a frame. A frame that needs a larger window is an error.
    pub(crate) fn zstd(input: R, window_log_max: u32, start: Frame) -> io::Result<Self> {
        let mut decoder = raw::Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(window_log_max))?;
        let frames = ZstdFrames {
            input: Counted::new(input, start.raw),
            decoder,
            is_in_frame: false,
        };
        Ok(Self::new(Decoder::Zstd(frames), start))
    }

    fn new(decoder: Decoder<R>, start: Frame) -> Self {
        Self {
            decoder,
            content: start.content,
            starts: VecDeque::new(),
        }
    }

    /// The last frame that starts at or before `content`. Removes the starts of earlier frames.
    pub(crate) fn frame_before(&mut self, content: u64) -> Option<Frame> {
        while self
            .starts
            .get(1)
            .is_some_and(|second| second.content <= content)
        {
            self.starts.pop_front();
        }
        self.starts.front().copied()
    }

    /// The compressed input.
    pub(crate) fn input(&self) -> &R {
        match &self.decoder {
            Decoder::Gzip(GzipMember::Reading(decoder)) => &decoder.get_ref().inner,
            Decoder::Gzip(GzipMember::Ended(input)) => &input.inner,
            Decoder::Gzip(GzipMember::None) => unreachable!("a member is being replaced"),
            Decoder::Zstd(frames) => &frames.input.inner,
        }
    }

    /// Notes that a frame starts at `raw`.
    fn start_frame(starts: &mut VecDeque<Frame>, raw: u64, content: u64) {
        // A frame without content has the same content offset as the next frame; one start is
        // enough.
        if starts.back().is_none_or(|last| last.content < content) {
            starts.push_back(Frame { raw, content });
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (starts, content) = (&mut self.starts, self.content);
        let start = |raw| Self::start_frame(starts, raw, content);
        let n = match &mut self.decoder {
            Decoder::Gzip(member) => member.read(buffer, start),
            Decoder::Zstd(frames) => frames.read(buffer, start),
        }?;
        self.content += n as u64;
        Ok(n)
    }
}

impl<R: BufRead> GzipMember<R> {
    fn read(&mut self, buffer: &mut [u8], mut start: impl FnMut(u64)) -> io::Result<usize> {
        loop {
            *self = match std::mem::replace(self, Self::None) {
                Self::Reading(mut decoder) => {
                    let read = decoder.read(buffer);
                    let has_ended = matches!(read, Ok(0)) && !buffer.is_empty();
                    if !has_ended {
                        *self = Self::Reading(decoder);
                        return read;
                    }
                    Self::Ended(decoder.into_inner())
                }
                Self::Ended(mut input) => {
                    let rest = input.fill_buf().map(<[u8]>::is_empty);
                    if !matches!(rest, Ok(false)) {
                        *self = Self::Ended(input);
                        return rest.map(|_| 0);
                    }
                    start(input.raw);
                    Self::Reading(Box::new(GzDecoder::new(input)))
                }
                Self::None => unreachable!("a member is being replaced"),
            };
        }
    }
}

impl<R: BufRead> ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8], mut start: impl FnMut(u64)) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let mut output = OutBuffer::around(buffer);
        loop {
            let raw = self.input.raw;
            let compressed = self.input.fill_buf()?;
            let is_over = compressed.is_empty();
            if is_over && !self.is_in_frame {
                return Ok(0);
            }
            let mut input = InBuffer::around(compressed);
            if !self.is_in_frame {
                start(raw);
                self.decoder.reinit()?;
                self.is_in_frame = true;
            }
            let hint = self.decoder.run(&mut input, &mut output)?;
            let num_used = input.pos();
            self.input.consume(num_used);
            self.is_in_frame = hint > 0;
            match output.pos() {
                0 if is_over && self.is_in_frame => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "incomplete frame",
                    ));
                }
                0 => {}
                n => return Ok(n),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(content: &[u8]) -> Vec<u8> {
        zstd::encode_all(content, 1).unwrap()
    }

    fn frames(is_gzip: bool, raw: &[u8], start: Frame) -> Frames<&[u8]> {
        let raw = &raw[start.raw as usize..];
        if is_gzip {
            Frames::gzip(raw, start)
        } else {
            Frames::zstd(raw, 27, start).unwrap()
        }
    }

    #[test]
    fn reading_resumes_at_any_frame() {
        let parts: [&[u8]; 5] = [b"first", b"", &[7; 100_000], b"x", b"last"];
        for is_gzip in [false, true] {
            let mut raw = Vec::new();
            for part in parts {
                raw.extend(if is_gzip { gzip(part) } else { zstd(part) });
            }
            let content = parts.concat();
            let mut whole = frames(is_gzip, &raw, Frame::default());
            let mut read = Vec::new();
            let mut buffer = [0; 3];
            let mut starts = Vec::new();
            loop {
                let n = whole.read(&mut buffer).unwrap();
                read.extend_from_slice(&buffer[..n]);
                let frame = whole.frame_before(read.len() as u64).unwrap();
                assert!(frame.content <= read.len() as u64);
                if starts.last() != Some(&frame) {
                    starts.push(frame);
                }
                if n == 0 {
                    break;
                }
            }
            assert_eq!(read, content);
            assert_eq!(starts.len(), 4, "{starts:?}");
            for frame in starts {
                let mut rest = Vec::new();
                frames(is_gzip, &raw, frame).read_to_end(&mut rest).unwrap();
                assert_eq!(rest, content[frame.content as usize..]);
            }
        }
    }

    #[test]
    fn truncated_frames_are_errors() {
        for is_gzip in [false, true] {
            let raw = if is_gzip { gzip } else { zstd }(&[1; 5000]);
            let two = [raw.clone(), raw.clone()].concat();
            for len in [raw.len() - 1, raw.len() + 3, two.len() - 1] {
                let read =
                    frames(is_gzip, &two[..len], Frame::default()).read_to_end(&mut Vec::new());
                assert!(read.is_err(), "{is_gzip} {len}");
            }
        }
    }
}
