//! The part of a file that belongs to a shard.
//!
//! Uncompressed JSON lines are divided between lines, Parquet and Arrow files between groups of
//! rows. Other files cannot be read from the middle: a compressed file has no entry point, and
//! whether a byte of a CSV file or of a text is inside a record depends on everything before it.
//! Such a file belongs to the shard that owns its first byte. A file is opened only if a boundary
//! is inside it.

use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use memchr::memchr;

use crate::error::{Error, Result};
use crate::{Compression, CorpusFile, Format, Source};

/// Maximum number of bytes per read in the search for a line end.
const READ_BYTES: usize = 1 << 20;
/// Size of the first read; most lines end within this length.
const FIRST_READ_BYTES: usize = 1 << 13;

/// `source` with the range of complete lines or groups of rows that start in its bytes `share`.
/// `None` if no line or group starts there.
///
/// A file that is not divided has no range. `tick` is called regularly during the search for a
/// line end; its error ends the search.
///
/// # Errors
/// The file cannot be read or is shorter than expected; or the error of `tick`.
pub fn cut(
    source: Source,
    share: Range<u64>,
    tick: &mut dyn FnMut() -> Result<()>,
) -> Result<Option<Source>> {
    if share == (0..source.bytes) {
        return Ok(Some(source));
    }
    let (start, stop) = match source.format {
        Format::Jsonl if crate::compression(&source)? == Compression::None => (
            line_start(&source, share.start, tick)?,
            line_start(&source, share.end, tick)?,
        ),
        #[cfg(feature = "tables")]
        Format::Parquet | Format::Arrow => crate::group_starts(&source, share.start, share.end)?,
        _ => return Ok((share.start == 0).then_some(source)),
    };
    if start == stop {
        return Ok(None);
    }
    let range = start..stop;
    Ok(Some(Source {
        range: (range != (0..source.bytes)).then_some(range),
        ..source
    }))
}

/// Start of the first line that starts at or after `offset_bytes`; the end of the file if there is
/// no such line.
fn line_start(
    source: &Source,
    offset_bytes: u64,
    tick: &mut dyn FnMut() -> Result<()>,
) -> Result<u64> {
    if offset_bytes == 0 || offset_bytes == source.bytes {
        return Ok(offset_bytes);
    }
    let io = |cause| Error::io(&source.path, cause);
    let mut file = CorpusFile::of(source)?;
    // A `\n` just before the offset also counts: a line then starts at the offset.
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
                found_bytes: file.len_bytes().map_err(io)?,
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

#[cfg(test)]
mod tests {
    use std::fs;

    use packtok_jobs::Shard;
    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;
    use crate::{Columns, ReadOptions, Reader, Selection, expand};

    fn options() -> ReadOptions {
        ReadOptions {
            chunk_bytes: 7,
            max_document_bytes: 12,
            zstd_window_log_max: 27,
            columns: Columns::of_pattern(".text"),
            text_separator: None,
            plugin: None,
            deadline: None,
        }
    }

    /// A line: its offset in the file, and its bytes including `\n`.
    type Naive = (u64, Vec<u8>);

    /// The lines of a file, by a plain search for `\n`.
    fn lines_of(bytes: &[u8]) -> Vec<Naive> {
        let mut start = 0;
        let line = |line: &[u8]| {
            start += line.len() as u64;
            (start - line.len() as u64, line.to_vec())
        };
        bytes
            .split_inclusive(|&byte| byte == b'\n')
            .map(line)
            .collect()
    }

    fn write(folder: &TempDir, files: &[Vec<u8>]) -> Vec<Source> {
        let path = |(i, bytes): (usize, &Vec<u8>)| {
            let path = folder.path().join(format!("{i}.jsonl"));
            fs::write(&path, bytes).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let paths: Vec<String> = files.iter().enumerate().map(path).collect();
        expand(&paths, &Selection::default()).unwrap().sources
    }

    /// The ranges that each shard reads of each source.
    fn cut_all(sources: &[Source], count: u64) -> Vec<Vec<(usize, Source)>> {
        let total = sources.iter().map(|source| source.bytes).sum();
        let of_shard = |index| {
            let shard = Shard::new(index, count).unwrap();
            let mut before = 0;
            let mut cuts = Vec::new();
            for (i, source) in sources.iter().enumerate() {
                if let Some(share) = shard.share(total, before, source.bytes)
                    && let Some(source) = cut(source.clone(), share, &mut || Ok(())).unwrap()
                {
                    cuts.push((i, source));
                }
                before += source.bytes;
            }
            cuts
        };
        (0..count).map(of_shard).collect()
    }

    fn content() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => Just(&b"\n"[..]),
            2 => Just(&b"\r\n"[..]),
            4 => Just(&b"ab"[..]),
            2 => Just(&b" "[..]),
            1 => Just(&b"longer than twelve bytes, and than most shards"[..]),
            1 => Just(&b"\xef\xbb\xbf"[..]),
        ];
        prop::collection::vec(piece, 0..25).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn each_line_is_in_the_shard_that_owns_its_first_byte(
            files in prop::collection::vec(content(), 1..6),
            count in 1u64..70,
        ) {
            let folder = TempDir::new().unwrap();
            let sources = write(&folder, &files);
            let total = files.iter().map(|bytes| bytes.len() as u64).sum();
            for (index, cuts) in (0..).zip(cut_all(&sources, count)) {
                let span = Shard::new(index, count).unwrap().span(total);
                let mut before = 0;
                let mut expected = Vec::new();
                for (i, bytes) in files.iter().enumerate() {
                    let lines = lines_of(bytes).into_iter();
                    expected.extend(
                        lines
                            .filter(|(start, _)| span.contains(&(before + start)))
                            .map(|(start, line)| (i, start, line)),
                    );
                    before += bytes.len() as u64;
                }
                let lines_of_cuts: Vec<_> = cuts
                    .iter()
                    .flat_map(|(i, source)| {
                        let Range { start, end } = source.span();
                        let bytes = &files[*i][start as usize..end as usize];
                        lines_of(bytes).into_iter().map(move |(at, line)| (*i, start + at, line))
                    })
                    .collect();
                prop_assert_eq!(lines_of_cuts, expected);
            }
        }

        #[test]
        fn shards_read_what_one_run_reads(
            files in prop::collection::vec(content(), 1..6),
            count in 1u64..70,
        ) {
            let folder = TempDir::new().unwrap();
            let sources = write(&folder, &files);
            let (expected, digests) = read(&sources, 0);
            let mut lines_of_shards = Vec::new();
            let mut crcs = vec![0; files.len()];
            let mut stops = vec![0; files.len()];
            for cuts in cut_all(&sources, count) {
                let first = cuts.first().map_or(0, |(i, _)| *i);
                // The sources of a shard are consecutive, so the number of the first source
                // identifies all of them.
                prop_assert!(cuts.iter().map(|(i, _)| *i).eq(first..first + cuts.len()));
                let sources: Vec<_> = cuts.into_iter().map(|(_, source)| source).collect();
                let (lines, digests) = read(&sources, first);
                lines_of_shards.extend(lines);
                for (i, (source, digest)) in sources.iter().zip(digests).enumerate() {
                    let span = source.span();
                    prop_assert_eq!(span.start, stops[first + i]);
                    let bytes = (span.end - span.start) as usize;
                    crcs[first + i] = crc32c::crc32c_combine(crcs[first + i], digest.unwrap(), bytes);
                    stops[first + i] = span.end;
                }
            }
            prop_assert_eq!(lines_of_shards, expected);
            let lengths: Vec<_> = files.iter().map(|bytes| bytes.len() as u64).collect();
            prop_assert_eq!(stops, lengths);
            prop_assert!(digests.into_iter().eq(crcs.into_iter().map(Some)));
        }
    }

    /// Source number, offset, bytes and length of a line, and whether it is oversize.
    type Seen = (usize, u64, Vec<u8>, u64, bool);

    fn read(sources: &[Source], first: usize) -> (Vec<Seen>, Vec<Option<u32>>) {
        let mut reader = Reader::new(sources.to_vec(), options());
        let mut seen = Vec::new();
        let mut buffer = Vec::new();
        while let Some(chunk) = reader.next_chunk(buffer).unwrap() {
            seen.extend(chunk.records().map(|record| {
                let number = first + chunk.source();
                let (bytes, is_oversize) = record.line();
                (number, record.offset, bytes, record.len_bytes, is_oversize)
            }));
            buffer = chunk.into_buffer();
        }
        (seen, reader.digests().to_vec())
    }

    fn source(folder: &TempDir, bytes: &[u8]) -> Source {
        write(folder, &[bytes.to_vec()]).remove(0)
    }

    #[test]
    fn a_compressed_file_belongs_to_the_shard_that_owns_its_first_byte() {
        let folder = TempDir::new().unwrap();
        let source = source(&folder, &zstd::encode_all(&b"a\nb\nc\n"[..], 1).unwrap());
        let cut = |share| cut(source.clone(), share, &mut || Ok(())).unwrap();
        assert_eq!(cut(0..5), Some(source.clone()));
        assert_eq!(cut(5..source.bytes), None);
    }

    #[test]
    fn a_file_that_grew_or_shrank_after_a_part_is_an_error() {
        let folder = TempDir::new().unwrap();
        let source = source(&folder, b"one\ntwo\nthree\nfour\n");
        let part = cut(source.clone(), 1..9, &mut || Ok(())).unwrap().unwrap();
        assert_eq!(part.range, Some(4..14));
        for bytes in [
            &b"one\ntwo\nthree\nfour\nfive\n"[..],
            b"one\ntwo\nthree\n",
            b"one\ntwo",
        ] {
            fs::write(&source.path, bytes).unwrap();
            let mut reader = Reader::new(vec![part.clone()], options());
            let error = std::iter::repeat_with(|| reader.next_chunk(Vec::new()))
                .find_map(Result::err)
                .unwrap();
            assert_eq!(
                error.to_string(),
                format!(
                    "{}: file changed while it was read: found {} bytes, expected 19; run again when no process writes to it",
                    source.path.display(),
                    bytes.len()
                )
            );
        }
        let error = cut(source.clone(), 9..10, &mut || Ok(())).unwrap_err();
        assert!(matches!(error, Error::SourceChanged { .. }), "{error}");
    }

    #[test]
    fn the_search_for_the_end_of_a_long_line_can_be_stopped() {
        let folder = TempDir::new().unwrap();
        let source = source(&folder, &vec![b'x'; 3 << 20]);
        let mut num_ticks = 0;
        let error = cut(source, 1..2, &mut || {
            num_ticks += 1;
            match num_ticks {
                3 => Err(packtok_jobs::Error::Cancelled.into()),
                _ => Ok(()),
            }
        });
        assert!(matches!(
            error,
            Err(Error::Jobs(packtok_jobs::Error::Cancelled))
        ));
    }
}
