//! Where a shard's part of a file begins and ends: a file is cut between lines.
//!
//! Plain files only. A compressed file cannot be read from its middle on, so it is whole and belongs to
//! the shard that has its first byte; a file is opened to see that only where a boundary falls inside it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use memchr::memchr;

use crate::corpus::{self, Compression, Source};
use crate::error::{Error, Result};

/// Most bytes read at a time in search of the end of a line.
const READ_BYTES: usize = 1 << 20;
/// What is read first: most lines end within it.
const FIRST_READ_BYTES: usize = 1 << 13;

/// `source` with the range of whole lines that start in its bytes `share`; `None` if none do.
///
/// A file that is not cut keeps no range. `tick` is called now and then while the end of a line is
/// searched; its error ends the search.
///
/// # Errors
/// The file cannot be read, or is shorter than it was; or what `tick` returned.
pub(crate) fn cut(
    source: Source,
    share: Range<u64>,
    tick: &mut dyn FnMut() -> Result<()>,
) -> Result<Option<Source>> {
    if share == (0..source.bytes) {
        return Ok(Some(source));
    }
    if corpus::compression(&source)? != Compression::None {
        return Ok((share.start == 0).then_some(source));
    }
    let start = line_start(&source, share.start, tick)?;
    let stop = line_start(&source, share.end, tick)?;
    if start == stop {
        return Ok(None);
    }
    let range = start..stop;
    Ok(Some(Source {
        range: (range != (0..source.bytes)).then_some(range),
        ..source
    }))
}

/// Where the first line starts that starts at `offset_bytes` or behind it; the file's end if none does.
fn line_start(
    source: &Source,
    offset_bytes: u64,
    tick: &mut dyn FnMut() -> Result<()>,
) -> Result<u64> {
    if offset_bytes == 0 || offset_bytes == source.bytes {
        return Ok(offset_bytes);
    }
    let io = |cause| Error::io(&source.path, cause);
    let mut file = File::open(&source.path).map_err(io)?;
    // A line starts behind a `\n`, and the one that counts may be right before the offset.
    let mut place = offset_bytes - 1;
    file.seek(SeekFrom::Start(place)).map_err(io)?;
    let mut buffer = vec![0; FIRST_READ_BYTES];
    while place < source.bytes {
        tick()?;
        let n = match file.read(&mut buffer) {
            Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => continue,
            n => n.map_err(io)?,
        };
        if n == 0 {
            return Err(Error::SourceChanged {
                path: source.path.clone(),
                expected_bytes: source.bytes,
                found_bytes: file.metadata().map_err(io)?.len(),
            });
        }
        if let Some(end) = memchr(b'\n', &buffer[..n]) {
            return Ok((place + end as u64 + 1).min(source.bytes));
        }
        place += n as u64;
        buffer.resize(READ_BYTES, 0);
    }
    Ok(source.bytes)
}
