//! Shuffles the lines of JSONL files.
//!
//! A line ends with `\n`, as for Python's `readlines()`. A `\r` belongs to the line, and a blank
//! line counts as a line. If the last line of a file lacks its `\n`, one is added, so that the
//! next line is not joined to it.

use std::fs::{File, Metadata};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use packtok_jobs::Monitor;
use packtok_pbin::{Origin, TempFile};

use super::buckets::{Buckets, GROUP_LEN, InputSpan, Sink, fetch};
use super::meter::Meter;
use super::order::{checked_len, inverted};
use super::{ShuffleOptions, ShuffleReport, chunk};
use crate::error::{Error, Result};
use crate::existing::compare;

/// Bytes that are read or written at a time.
const BUFFER_BYTES: usize = 256 << 10;
/// Bytes between two places that a count of lines remembers.
const MARK_BYTES: u64 = 64 << 20;
/// Lines between two calls of the monitor.
const LINES_PER_CALL: usize = 1 << 16;
/// Memory of a line in addition to its bytes and its entry in the order.
const SPAN_BYTES: u64 = 8;
/// First bytes of compressed files. No JSON value starts with any of them.
const COMPRESSIONS: [(&[u8], &str); 4] = [
    (&[0x1f, 0x8b], "gzip"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz"),
    (b"BZh", "bzip2"),
];

/// Shuffles the lines of JSONL files, or a chunk of each, into one file.
///
/// An existing output that is to be kept is compared with the result byte by byte.
///
/// # Errors
/// An input cannot be read, is compressed or changes; the chunk does not exist or has no lines;
/// the output exists and must not be replaced, or differs from the result.
pub fn shuffle_lines(options: &ShuffleOptions, monitor: &mut Monitor<'_>) -> Result<ShuffleReport> {
    let keeps = options.prepare()?;
    if keeps && !options.is_seed_given {
        return Err(Error::Unprovable {
            path: options.output.clone(),
        });
    }
    let inputs: Vec<Input> = (options.inputs.iter())
        .map(|path| Input::open(path))
        .collect::<Result<_>>()?;
    let total_bytes: u64 = inputs.iter().map(Input::len).sum();
    let mut sink = LinesSink::new(TempFile::create(&options.output)?);
    let mut meter = Meter::new(monitor, 2 * total_bytes);
    let in_memory = if options.budget.fits_in_memory(total_bytes) {
        Lines::load(options, &inputs, total_bytes)?
    } else {
        None
    };
    let num_lines = match in_memory {
        Some(lines) => lines.shuffle(options, &mut sink, &mut meter)?,
        None => shuffle_on_disk(options, &inputs, &mut sink, &mut meter)?,
    };
    inputs.iter().try_for_each(Input::check_unchanged)?;
    let num_bytes = sink.num_bytes;
    let file = sink.finish()?;
    if keeps {
        compare(file.path(), &options.output)?;
    } else {
        file.publish(options.existing.replace())?;
    }
    Ok(ShuffleReport {
        output: options.output.clone(),
        num_inputs: inputs.len(),
        documents: num_lines,
        tokens: None,
        file_bytes: num_bytes,
        generator: options.shuffle.generator,
        seed: options.shuffle.seed.to_string(),
        tokenizer_path: None,
        skipped_existing: keeps,
    })
}

/// Receives lines: offset, length, and the bytes unless there are too many.
type EachLine<'a> = dyn FnMut(u64, u64, &[u8]) -> Result<()> + 'a;

/// A file of lines.
struct Input {
    path: PathBuf,
    file: File,
    metadata: Metadata,
}

impl Input {
    fn open(path: &Path) -> Result<Self> {
        // Opening a FIFO would block.
        let is_file = std::fs::metadata(path).map_err(Error::io(path))?.is_file();
        if !is_file {
            return Err(Error::NotAFile { path: path.into() });
        }
        let file = File::open(path).map_err(Error::io(path))?;
        let metadata = file.metadata().map_err(Error::io(path))?;
        let mut start = Vec::new();
        ((&file).take(8).read_to_end(&mut start)).map_err(Error::io(path))?;
        for (magic, compression) in COMPRESSIONS {
            if start.starts_with(magic) {
                let path = path.into();
                return Err(Error::Compressed { path, compression });
            }
        }
        Ok(Self {
            path: path.into(),
            file,
            metadata,
        })
    }

    fn len(&self) -> u64 {
        self.metadata.len()
    }

    fn changed(&self) -> Error {
        let path = self.path.clone();
        Error::InputChanged { path }
    }

    fn check_unchanged(&self) -> Result<()> {
        let now = self.file.metadata().map_err(Error::io(&self.path))?;
        let state = |of: &Metadata| (of.len(), of.mtime(), of.mtime_nsec());
        if state(&now) != state(&self.metadata) {
            return Err(self.changed());
        }
        Ok(())
    }

    /// A buffered reader from byte `offset` on.
    fn reader(&self, offset: u64) -> Result<BufReader<&File>> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))
            .map_err(Error::io(&self.path))?;
        Ok(BufReader::with_capacity(BUFFER_BYTES, file))
    }

    /// Counts lines.
    fn count(&self, meter: &mut Meter<'_, '_>) -> Result<LineCount> {
        let mut reader = self.reader(0)?;
        let mut count = LineCount {
            lines: 0,
            marks: Vec::new(),
        };
        let (mut offset, mut last) = (0, b'\n');
        loop {
            let bytes = reader.fill_buf().map_err(Error::io(&self.path))?;
            let Some(&end) = bytes.last() else { break };
            if offset >= MARK_BYTES * (count.marks.len() as u64 + 1) {
                count.marks.push((count.lines, offset));
                meter.add(0, 0)?;
            }
            count.lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
            last = end;
            let len = bytes.len();
            offset += len as u64;
            reader.consume(len);
        }
        count.lines += u64::from(last != b'\n');
        Ok(count)
    }

    /// Calls `each` with lines in order: offset, length, and the bytes if the line has at most
    /// `max_bytes`.
    fn for_each_line(
        &self,
        count: &LineCount,
        lines: Range<u64>,
        max_bytes: u64,
        each: &mut EachLine<'_>,
    ) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let (mut line, mut offset) = count.mark_before(lines.start);
        let mut reader = self.reader(offset)?;
        // The start of a line whose end was not read yet. Empty if the line is too long.
        let mut held = Vec::new();
        let mut held_bytes = 0;
        while line < lines.end {
            let bytes = reader.fill_buf().map_err(Error::io(&self.path))?;
            if bytes.is_empty() {
                if held_bytes == 0 || line + 1 != lines.end {
                    return Err(self.changed());
                }
                return each(offset - held_bytes, held_bytes, &held);
            }
            let mut start = 0;
            for end in memchr::memchr_iter(b'\n', bytes) {
                let piece = &bytes[start..=end];
                if line >= lines.start {
                    let len = held_bytes + piece.len() as u64;
                    let at = offset + start as u64 - held_bytes;
                    if held_bytes == 0 {
                        each(at, len, piece)?;
                    } else {
                        if len <= max_bytes {
                            held.extend_from_slice(piece);
                        }
                        each(at, len, &held)?;
                        held.clear();
                        held_bytes = 0;
                    }
                }
                start = end + 1;
                line += 1;
                if line == lines.end {
                    return Ok(());
                }
            }
            if line >= lines.start {
                let rest = &bytes[start..];
                held_bytes += rest.len() as u64;
                if held_bytes <= max_bytes {
                    held.extend_from_slice(rest);
                }
            }
            let len = bytes.len();
            offset += len as u64;
            reader.consume(len);
        }
        Ok(())
    }
}

/// The number of lines of a file.
struct LineCount {
    lines: u64,
    /// Pairs of an offset and the number of lines that end before it, every [`MARK_BYTES`].
    marks: Vec<(u64, u64)>,
}

impl LineCount {
    /// A number of lines that end before an offset, which is at or before the start of `line`.
    fn mark_before(&self, line: u64) -> (u64, u64) {
        // Where as many lines end as there are before `line`, the line may already have started.
        let num = self.marks.partition_point(|&(lines, _)| lines < line);
        num.checked_sub(1).map_or((0, 0), |last| self.marks[last])
    }
}

/// The lines of the result, in memory.
struct Lines {
    bytes: Vec<u8>,
    /// Start and end of each line.
    spans: Vec<(u32, u32)>,
}

impl Lines {
    /// Reads all files; `None` if their lines do not fit in memory.
    fn load(options: &ShuffleOptions, inputs: &[Input], total_bytes: u64) -> Result<Option<Self>> {
        let mut bytes = Vec::with_capacity(total_bytes as usize + inputs.len());
        let mut spans = Vec::new();
        let mut lens = Vec::new();
        for input in inputs {
            let start = bytes.len();
            let mut reader = input.reader(0)?.into_inner().take(input.len());
            reader
                .read_to_end(&mut bytes)
                .map_err(Error::io(&input.path))?;
            if bytes.len() > start && !bytes.ends_with(b"\n") {
                bytes.push(b'\n');
            }
            let lines = memchr::memchr_iter(b'\n', &bytes[start..]).count() as u64;
            let wanted = wanted(options, lines);
            lens.push(lines);
            let num = spans.len() as u64 + wanted.end - wanted.start;
            if !options
                .budget
                .fits_in_memory(total_bytes + num * SPAN_BYTES)
            {
                return Ok(None);
            }
            let num_wanted = (wanted.end - wanted.start) as usize;
            spans.reserve_exact(num_wanted);
            let mut at = start as u32;
            let all = memchr::memchr_iter(b'\n', &bytes[start..]).map(|end| {
                let stop = (start + end + 1) as u32;
                (std::mem::replace(&mut at, stop), stop)
            });
            spans.extend(all.skip(wanted.start as usize).take(num_wanted));
        }
        check_chunk(options, spans.len() as u64, &lens)?;
        Ok(Some(Self { bytes, spans }))
    }

    fn shuffle(
        &self,
        options: &ShuffleOptions,
        sink: &mut LinesSink,
        meter: &mut Meter<'_, '_>,
    ) -> Result<u64> {
        let len = checked_len(self.spans.len() as u64)?;
        let order = options.shuffle.order(len, &mut || meter.add(0, 0))?;
        for lines in order.chunks(LINES_PER_CALL) {
            let before = sink.num_bytes;
            for group in lines.chunks(GROUP_LEN) {
                let mut contents: [&[u8]; GROUP_LEN] = [&[]; GROUP_LEN];
                for (content, &line) in contents.iter_mut().zip(group) {
                    let (start, stop) = self.spans[line as usize];
                    *content = &self.bytes[start as usize..stop as usize];
                }
                fetch(contents);
                for content in &contents[..group.len()] {
                    sink.piece(content)?;
                    sink.end(None)?;
                }
            }
            meter.add(2 * (sink.num_bytes - before), lines.len() as u64)?;
        }
        Ok(len.into())
    }
}

/// The lines of a file with `lines` lines that are used.
fn wanted(options: &ShuffleOptions, lines: u64) -> Range<u64> {
    match options.chunk {
        Some(chunk) => chunk::documents(chunk, lines),
        None => 0..lines,
    }
}

fn check_chunk(options: &ShuffleOptions, num_lines: u64, lens: &[u64]) -> Result<()> {
    match options.chunk {
        Some(chunk) if num_lines == 0 => Err(chunk::empty(chunk, lens)),
        _ => Ok(()),
    }
}

/// Shuffles through buckets and returns the number of lines. Each file is read twice, because the
/// order depends on the number of lines.
fn shuffle_on_disk(
    options: &ShuffleOptions,
    inputs: &[Input],
    sink: &mut LinesSink,
    meter: &mut Meter<'_, '_>,
) -> Result<u64> {
    let counts: Vec<LineCount> = (inputs.iter())
        .map(|input| input.count(meter))
        .collect::<Result<_>>()?;
    let lens: Vec<u64> = counts.iter().map(|count| count.lines).collect();
    let ranges: Vec<Range<u64>> = lens.iter().map(|&lines| wanted(options, lines)).collect();
    let num_lines: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    check_chunk(options, num_lines, &lens)?;
    let len = checked_len(num_lines)?;
    let positions = inverted(options.shuffle.order(len, &mut || meter.add(0, 0))?);
    let total_bytes = inputs.iter().map(Input::len).sum();
    let mut buckets = Buckets::create(&options.output, (len, total_bytes), false, &options.budget)?;
    let mut line = 0;
    for ((file, input), (count, range)) in (0..).zip(inputs).zip(counts.iter().zip(ranges)) {
        let mut reported = 0;
        let inline_bytes = options.budget.inline_bytes;
        input.for_each_line(count, range, inline_bytes, &mut |offset, bytes, content| {
            let span = InputSpan {
                file,
                offset,
                bytes,
            };
            buckets.push(positions[line], content, span, None)?;
            line += 1;
            if line % LINES_PER_CALL == 0 {
                meter.add(offset - reported, 0)?;
                reported = offset;
            }
            Ok(())
        })?;
        meter.add(input.len() - reported, 0)?;
    }
    drop(positions);
    let mut written = 0;
    let mut refer =
        |span: InputSpan, sink: &mut LinesSink| inputs[span.file as usize].copy(span, sink);
    buckets.write_with(sink, &mut refer, &mut |sink, num_lines| {
        let bytes = std::mem::replace(&mut written, sink.num_bytes)..sink.num_bytes;
        sink.file.start_writeback(bytes.clone());
        meter.add(bytes.end - bytes.start, num_lines)
    })?;
    Ok(num_lines)
}

impl Input {
    /// Passes on a line that was not copied to a bucket.
    fn copy(&self, span: InputSpan, sink: &mut LinesSink) -> Result<()> {
        let mut buffer = vec![0; BUFFER_BYTES];
        let (mut offset, stop) = (span.offset, span.offset + span.bytes);
        while offset < stop {
            let len = (stop - offset).min(BUFFER_BYTES as u64) as usize;
            let piece = &mut buffer[..len];
            self.file
                .read_exact_at(piece, offset)
                .map_err(Error::io(&self.path))?;
            sink.piece(piece)?;
            offset += len as u64;
        }
        Ok(())
    }
}

/// Writes lines to a file.
struct LinesSink {
    file: TempFile,
    batch: Vec<u8>,
    num_bytes: u64,
    /// Whether the current line has its newline.
    is_ended: bool,
}

impl LinesSink {
    fn new(file: TempFile) -> Self {
        Self {
            file,
            batch: Vec::with_capacity(2 * BUFFER_BYTES),
            num_bytes: 0,
            is_ended: true,
        }
    }

    fn flush(&mut self) -> Result<()> {
        (self.file.write_all(&self.batch)).map_err(|error| Error::io(self.file.dst())(error))?;
        self.batch.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<TempFile> {
        self.flush()?;
        Ok(self.file)
    }
}

impl Sink for LinesSink {
    #[inline]
    fn piece(&mut self, bytes: &[u8]) -> Result<()> {
        self.batch.extend_from_slice(bytes);
        self.num_bytes += bytes.len() as u64;
        self.is_ended = bytes.last() == Some(&b'\n');
        if self.batch.len() < BUFFER_BYTES {
            return Ok(());
        }
        self.flush()
    }

    #[inline]
    fn end(&mut self, _origin: Option<Origin>) -> Result<()> {
        if self.is_ended {
            return Ok(());
        }
        self.piece(b"\n")
    }
}
