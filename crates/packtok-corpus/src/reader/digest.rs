//! Checksums of sources that were not read completely.

use std::io::Read;

use crate::error::{Error, Result};
use crate::formats::open;
use crate::{CorpusFile, Format, ReadOptions, Source};

/// Bytes read at a time.
const READ_BYTES: usize = 1 << 20;

/// Reads all sources and returns the CRC32C of the raw bytes of each; for a source plug-in, the
/// CRC32C of its texts.
///
/// `tick` is called regularly with the bytes read so far; its error ends the reading.
///
/// # Errors
/// A source cannot be read or its length changed; or the error of `tick`.
pub fn digests(
    sources: &[Source],
    options: &ReadOptions,
    mut tick: impl FnMut(u64) -> Result<()>,
) -> Result<Vec<Option<u32>>> {
    let mut bytes_before = 0;
    sources
        .iter()
        .map(|source| {
            let crc = digest(source, options, |found_bytes| {
                tick(bytes_before + found_bytes)
            })?;
            bytes_before += source.bytes;
            Ok(Some(crc))
        })
        .collect()
}

fn digest(
    source: &Source,
    options: &ReadOptions,
    mut tick: impl FnMut(u64) -> Result<()>,
) -> Result<u32> {
    if source.format == Format::Plugin {
        let mut reader = open(source, options)?;
        reader.pass_to(u64::MAX, &mut tick)?;
        return Ok(reader.digest());
    }
    let mut file = CorpusFile::of(source)?;
    let mut buffer = vec![0; READ_BYTES];
    let (mut crc, mut found_bytes) = (0, 0);
    loop {
        let n = file
            .read(&mut buffer)
            .map_err(|error| Error::io(&source.path, error))?;
        if n == 0 {
            break;
        }
        crc = crc32c::crc32c_append(crc, &buffer[..n]);
        found_bytes += n as u64;
        tick(found_bytes)?;
    }
    if found_bytes != source.bytes {
        return Err(Error::SourceChanged {
            path: source.path.clone(),
            expected_bytes: source.bytes,
            found_bytes,
        });
    }
    Ok(crc)
}
