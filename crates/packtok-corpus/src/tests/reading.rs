//! Lines, their offsets, compression, and files that change.

use std::io::Write;

use proptest::prelude::*;

use super::*;

fn small_chunks() -> ReadOptions {
    ReadOptions {
        chunk_bytes: 16,
        max_document_bytes: 1 << 30,
        zstd_window_log_max: 27,
        columns: Columns::of_pattern(".text"),
        text_separator: None,
        plugin: None,
        deadline: None,
    }
}

/// Offset, bytes, length and whether it is oversize.
type Seen = (u64, Vec<u8>, u64, bool);

/// Each line with the index of its source, and the digests of the sources.
type AllSeen = (Vec<(usize, Seen)>, Vec<Option<u32>>);

fn read_all(mut reader: Reader) -> Result<AllSeen> {
    let mut lines = Vec::new();
    let mut buffer = Vec::new();
    while let Some(chunk) = reader.next_chunk(buffer)? {
        let seen = |record: Record| {
            let (bytes, is_oversize) = record.line();
            (record.offset, bytes, record.len_bytes, is_oversize)
        };
        lines.extend(chunk.records().map(|record| (chunk.source(), seen(record))));
        buffer = chunk.into_buffer();
    }
    Ok((lines, reader.digests().to_vec()))
}

fn read(source: Source, options: ReadOptions) -> Result<Vec<Seen>> {
    let (lines, digests) = read_all(Reader::new(vec![source.clone()], options))?;
    assert_eq!(
        digests,
        [Some(crc32c::crc32c(&fs::read(&source.path).unwrap()))]
    );
    Ok(lines.into_iter().map(|(_, line)| line).collect())
}

fn texts(source: Source) -> Result<Vec<String>> {
    let lines = read(source, small_chunks())?;
    Ok(lines
        .into_iter()
        .map(|line| String::from_utf8(line.1).unwrap())
        .collect())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// The lines of `bytes`, computed without the reader's code.
fn expected(bytes: &[u8], max: u64) -> Vec<Seen> {
    let mut offset = if bytes.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    let mut lines = Vec::new();
    let mut parts: Vec<_> = bytes[offset as usize..]
        .split(|&byte| byte == b'\n')
        .collect();
    if parts.last().is_some_and(|part| part.is_empty()) {
        parts.pop();
    }
    for part in parts {
        let kept = part.strip_suffix(b"\r").unwrap_or(part);
        let is_oversize = part.len() as u64 > max;
        let kept = if is_oversize {
            Vec::new()
        } else {
            kept.to_vec()
        };
        lines.push((offset, kept, part.len() as u64, is_oversize));
        offset += part.len() as u64 + 1;
    }
    lines
}

#[test]
fn lines_have_their_offset_and_length() {
    let folder = TempDir::new().unwrap();
    let source = file(&folder, "a.jsonl", b"one\r\n\n  \ntwo\r\r\nlast");
    assert_eq!(
        read(source, small_chunks()).unwrap(),
        [
            (0, b"one".to_vec(), 4, false),
            (5, b"".to_vec(), 0, false),
            (6, b"  ".to_vec(), 2, false),
            (9, b"two\r".to_vec(), 5, false),
            (15, b"last".to_vec(), 4, false),
        ]
    );
}

#[test]
fn a_byte_order_mark_is_skipped_at_the_start_only() {
    let folder = TempDir::new().unwrap();
    let mark = "\u{feff}";
    let source = file(&folder, "a.jsonl", format!("{mark}a\n{mark}b\n").as_bytes());
    let lines = read(source, small_chunks()).unwrap();
    assert_eq!(lines[0], (3, b"a".to_vec(), 1, false));
    assert_eq!(lines[1], (5, format!("{mark}b").into_bytes(), 4, false));
    for bytes in [&b""[..], b"\xef\xbb\xbf"] {
        assert_eq!(texts(file(&folder, "b.jsonl", bytes)).unwrap(), [""; 0]);
    }
    assert_eq!(texts(file(&folder, "c.jsonl", b"\n")).unwrap(), [""]);
}

#[test]
fn sources_are_read_in_order_and_do_not_share_lines() {
    let folder = TempDir::new().unwrap();
    let sources = vec![
        file(&folder, "b", b"1\n2"),
        file(&folder, "empty", b""),
        file(&folder, "a", &gzip(b"3\n4\n")),
        file(&folder, "c", &zstd(b"5")),
    ];
    let (lines, digests) = read_all(Reader::new(sources.clone(), small_chunks())).unwrap();
    let lines: Vec<_> = lines
        .iter()
        .map(|(source, line)| (*source, line.1[0]))
        .collect();
    assert_eq!(
        lines,
        [(0, b'1'), (0, b'2'), (2, b'3'), (2, b'4'), (3, b'5')]
    );
    for (source, digest) in sources.iter().zip(digests) {
        assert_eq!(
            digest,
            Some(crc32c::crc32c(&fs::read(&source.path).unwrap()))
        );
    }
}

#[test]
fn all_members_and_frames_are_read() {
    let folder = TempDir::new().unwrap();
    let members = [gzip(b"a\nb"), gzip(b""), gzip(b"c\n")].concat();
    assert_eq!(
        texts(file(&folder, "a.jsonl.gz", &members)).unwrap(),
        ["a", "bc"]
    );
    let skippable = [&b"\x50\x2a\x4d\x18\x02\x00\x00\x00xx"[..]].concat();
    let frames = [
        skippable.clone(),
        zstd(b"a\nb"),
        zstd(b""),
        skippable,
        zstd(b"c\n"),
    ]
    .concat();
    assert_eq!(
        texts(file(&folder, "a.jsonl.zst", &frames)).unwrap(),
        ["a", "bc"]
    );
}

#[test]
fn compression_is_detected_by_content() {
    let folder = TempDir::new().unwrap();
    assert_eq!(
        texts(file(&folder, "a.jsonl", &gzip(b"a\n"))).unwrap(),
        ["a"]
    );
    assert_eq!(
        texts(file(&folder, "b.jsonl.gz", b"plain\n")).unwrap(),
        ["plain"]
    );
}

#[test]
fn damaged_compression_is_an_error() {
    let folder = TempDir::new().unwrap();
    let text: Vec<u8> = (0..20_000u32)
        .flat_map(|i| format!("{}\n", i * 7919 % 10_007).into_bytes())
        .collect();
    for (name, whole) in [("a.gz", gzip(&text)), ("a.zst", zstd(&text))] {
        let mut damaged = vec![whole[..whole.len() / 2].to_vec(), Vec::new()];
        damaged.extend((1..=12).map(|cut| whole[..whole.len() - cut].to_vec()));
        for garbage in [
            &b"\0"[..],
            b"x",
            b"\0\0",
            b"xy",
            b"xyz",
            b"\0\0\0\0",
            b"garbage",
            &[0; 4096],
            &[0x1f],
            &[0x1f, 0x8b],
            &[0x28, 0xb5],
            &[0x28, 0xb5, 0x2f],
            &[0x28, 0xb5, 0x2f, 0xfd],
        ] {
            damaged.push([&whole, garbage].concat());
        }
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 0x55;
        damaged.push(flipped);
        for (i, bytes) in damaged.iter().enumerate() {
            if name == "a.zst" && i == damaged.len() - 1 {
                // Frames without a checksum need not detect a flipped bit.
                continue;
            }
            let error = texts(file(&folder, name, bytes)).err();
            assert!(
                matches!(error, Some(Error::DamagedCompression { .. })),
                "{name} {i}: {error:?}"
            );
        }
    }
    let error = texts(file(&folder, "a.jsonl.gz", b"")).unwrap_err();
    assert_eq!(
        message(&error, &folder),
        "a.jsonl.gz: compressed data is corrupt, truncated or followed by other data near byte 0 of the file; download the file again or repair it"
    );
}

#[test]
fn a_large_zstd_window_needs_the_option() {
    let folder = TempDir::new().unwrap();
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(28).unwrap();
    encoder.include_contentsize(false).unwrap();
    encoder.write_all(b"a\n").unwrap();
    let source = file(&folder, "a.zst", &encoder.finish().unwrap());
    let error = read(source.clone(), small_chunks()).unwrap_err();
    assert_eq!(
        message(&error, &folder),
        "a.zst: a zstd frame needs a window larger than 2^27 bytes; raise --zstd-window-log (zstd_window_log), to at most 31"
    );
    let options = ReadOptions {
        zstd_window_log_max: 28,
        ..small_chunks()
    };
    assert_eq!(read(source, options).unwrap().len(), 1);
}

#[test]
fn a_source_that_changes_is_an_error() {
    let folder = TempDir::new().unwrap();
    for (name, bytes) in [("a.jsonl", b"a\nb\n".to_vec()), ("a.gz", gzip(b"a\nb\n"))] {
        let mut source = file(&folder, name, &bytes);
        for expected_bytes in [source.bytes - 1, source.bytes + 1] {
            let found_bytes = bytes.len();
            source.bytes = expected_bytes;
            let error = texts(source.clone()).unwrap_err();
            assert_eq!(
                message(&error, &folder),
                format!(
                    "{name}: file changed while it was read: found {found_bytes} bytes, expected {expected_bytes}; run again when no process writes to it"
                )
            );
            source.bytes = found_bytes as u64;
        }
        fs::remove_file(&source.path).unwrap();
        let error = texts(source).unwrap_err();
        assert_eq!(message(&error, &folder), name);
        assert!(std::error::Error::source(&error).is_some());
    }
}

#[test]
fn line_numbers_are_counted() {
    let folder = TempDir::new().unwrap();
    let text = b"one\n\nthree is longer than a chunk\nfour";
    let source = file(&folder, "a", text);
    let mut counter = LineCounter::new(&source);
    for (offset, line) in [
        (0, 1),
        (3, 1),
        (4, 2),
        (5, 3),
        (34, 4),
        (99, 4),
        (5, 3),
        (3, 1),
    ] {
        assert_eq!(counter.line_at(offset).unwrap(), line, "{offset}");
    }
}

#[test]
fn an_index_selects_lines_and_their_order() {
    let folder = TempDir::new().unwrap();
    let text = b"\xef\xbb\xbfone\ntwo\r\nthree is longer\nfour";
    let source = file(&folder, "a.jsonl", text);
    let options = ReadOptions {
        max_document_bytes: 10,
        ..small_chunks()
    };
    let entries = vec![(28, 4), (0, 6), (7, 4), (12, 15), (7, 4), (32, 0)];
    let reader = Reader::indexed(source.clone(), entries, options).unwrap();
    let (lines, digests) = read_all(reader).unwrap();
    assert_eq!(digests, [None]);
    let lines: Vec<_> = lines.into_iter().map(|(_, line)| line).collect();
    assert_eq!(
        lines,
        [
            (28, b"four".to_vec(), 4, false),
            (3, b"one".to_vec(), 3, false),
            (7, b"two".to_vec(), 4, false),
            (12, b"".to_vec(), 15, true),
            (7, b"two".to_vec(), 4, false),
            (32, b"".to_vec(), 0, false),
        ]
    );
    let error = Reader::indexed(source, vec![(0, 1), (30, 3)], small_chunks())
        .err()
        .unwrap();
    assert_eq!(
        message(&error, &folder),
        "a.jsonl: index entry 1 covers 3 bytes from byte 30, but the file has 32 bytes; rebuild the index from this file"
    );
    let error = Reader::indexed(file(&folder, "a.gz", &gzip(text)), vec![], small_chunks())
        .err()
        .unwrap();
    assert_eq!(
        message(&error, &folder),
        "a.gz: file is compressed, but a raw index needs an uncompressed file; decompress it, or pack it without an index"
    );
}

#[test]
fn a_long_line_needs_less_than_twice_its_length() {
    let folder = TempDir::new().unwrap();
    let long = 3 << 20;
    let mut text = vec![b'x'; long];
    text.extend_from_slice(b"\nshort\n");
    let source = file(&folder, "a", &text);
    let options = ReadOptions {
        chunk_bytes: 1 << 16,
        ..small_chunks()
    };
    let mut reader = Reader::new(vec![source], options);
    let chunk = reader.next_chunk(Vec::new()).unwrap().unwrap();
    let buffer = chunk.into_buffer();
    assert!(buffer.capacity() < 2 * long, "{}", buffer.capacity());
    let chunk = reader.next_chunk(buffer).unwrap();
    assert!(chunk.is_none_or(|chunk| chunk.into_buffer().capacity() <= 1 << 16));
}

proptest! {
    #[test]
    fn lines_do_not_depend_on_how_they_are_read(
        bytes in prop::collection::vec(prop::sample::select(b"\n\r \xef\xbb\xbfab".to_vec()), 0..200),
        has_mark in any::<bool>(),
        chunk_bytes in 16..64usize,
        max_document_bytes in 0..40u64,
        compression in 0..3,
    ) {
        let folder = TempDir::new().unwrap();
        let mut text = if has_mark { b"\xef\xbb\xbf".to_vec() } else { Vec::new() };
        text.extend(bytes);
        let raw = match compression {
            0 => text.clone(),
            1 => gzip(&text),
            _ => zstd(&text),
        };
        let options = ReadOptions { chunk_bytes, max_document_bytes, ..small_chunks() };
        let source = file(&folder, "a", &raw);
        let lines = read(source.clone(), options.clone()).unwrap();
        prop_assert_eq!(&lines, &expected(&text, max_document_bytes));
        if compression == 0 && !text.starts_with(b"\x1f") {
            let entries = lines.iter().map(|line| (line.0, line.2)).collect();
            let (again, _) = read_all(Reader::indexed(source, entries, options).unwrap()).unwrap();
            let again: Vec<_> = again.into_iter().map(|(_, line)| line).collect();
            prop_assert_eq!(again, lines);
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), magic in 0..3usize) {
        let folder = TempDir::new().unwrap();
        let magic: &[u8] = [&b""[..], b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"][magic];
        let _ = texts_lossy(file(&folder, "a", &[magic, &bytes].concat()));
    }
}

fn texts_lossy(source: Source) -> Result<usize> {
    read(source, small_chunks()).map(|lines| lines.len())
}
