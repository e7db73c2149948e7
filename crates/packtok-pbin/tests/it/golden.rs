//! Golden files and the specification: read and written exactly.

use std::fs;

use packtok_pbin::{
    Counts, Dialect, Metadata, Origin, Reader, Replace, TokenWidth, Writer, parse_pairs,
    read_raw_index, write_pairs,
};

use crate::fixture::{
    DOCUMENTS, EXAMPLE_DOCUMENTS, decode, documents_of, encode, example, example_metadata,
    example_sources, golden, proceed, root, shared,
};

/// The bytes of the hex dump in the specification.
fn specified_example() -> Vec<u8> {
    let text = fs::read_to_string(root().join("docs/reference/pbin_format.md")).unwrap();
    let dump = text
        .split("```hexdump\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let mut bytes = Vec::new();
    for line in dump.lines() {
        let (offset, rest) = line.split_once(": ").unwrap();
        assert_eq!(usize::from_str_radix(offset, 16).unwrap(), bytes.len());
        let hex: String = rest.split("  ").next().unwrap().split(' ').collect();
        bytes.extend(
            (0..hex.len())
                .step_by(2)
                .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()),
        );
    }
    bytes
}

#[test]
fn the_writer_produces_the_worked_example_of_the_specification() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("example.pbin");
    let mut writer = Writer::create(&path, TokenWidth::U16, false).unwrap();
    let (data, lengths) = encode(&EXAMPLE_DOCUMENTS, TokenWidth::U16);
    writer.append(&data, &lengths).unwrap();
    let finished = writer
        .finish(&example_metadata(), &example_sources())
        .unwrap();
    let summary = finished.publish(Replace::Never).unwrap();
    assert_eq!(
        (summary.documents, summary.tokens, summary.file_bytes),
        (3, 7, 816)
    );
    assert_eq!(summary.data_crc32c, crc32c::crc32c(&data));
    let written = fs::read(&path).unwrap();
    assert_eq!(written, specified_example());
    assert_eq!(written, example());
}

#[test]
fn the_worked_example_reads_back_completely() {
    let reader = Reader::open(&golden("example.pbin")).unwrap();
    assert_eq!(reader.dialect(), Dialect::Packtok);
    assert_eq!(documents_of(&reader), EXAMPLE_DOCUMENTS);
    assert_eq!(reader.metadata().unwrap(), Some(&example_metadata()));
    assert_eq!(reader.sources().unwrap(), example_sources());
    assert_eq!(
        reader.data_crc32c().unwrap(),
        Some(crc32c::crc32c(reader.data()))
    );
    assert_eq!(
        (
            reader.num_tokens(),
            reader.data_bytes(),
            reader.file_bytes()
        ),
        (7, 14, 816)
    );
    assert_eq!(
        decode(reader.tokens(3..6).unwrap(), reader.width()),
        [50256, 50256, 3666]
    );
    reader.verify(&mut proceed).unwrap();
}

#[test]
fn origins_equal_those_of_the_reference_writer() {
    let path = golden("origins.pbin");
    let reader = Reader::open(&path).unwrap();
    let expected = [(0, 0), (0, 25), (1, 4_000_000_000)];
    let expected = expected.map(|(source, offset)| Origin { source, offset });
    for (i, &origin) in (0..).zip(&expected) {
        assert_eq!(reader.origin(i).unwrap(), Some(origin));
    }
    assert!(reader.origin(3).is_err());
    reader.verify(&mut proceed).unwrap();
    assert_eq!(reader.documents_of_source(0).unwrap(), Some(0..2));
    assert_eq!(reader.documents_of_source(1).unwrap(), Some(2..3));
    assert_eq!(reader.documents_of_source(9).unwrap(), Some(3..3));

    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("origins.pbin");
    let mut writer = Writer::create(&written, TokenWidth::U16, true).unwrap();
    let (data, lengths) = encode(&EXAMPLE_DOCUMENTS, TokenWidth::U16);
    writer.append(&data, &lengths).unwrap();
    writer.push_origins(expected).unwrap();
    let finished = writer.finish(&example_metadata(), &example_sources());
    finished.unwrap().publish(Replace::Never).unwrap();
    assert_eq!(fs::read(written).unwrap(), fs::read(path).unwrap());
}

#[test]
fn a_file_with_too_few_origins_is_not_finished() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(&folder.path().join("x.pbin"), TokenWidth::U16, true).unwrap();
    let (data, lengths) = encode(&EXAMPLE_DOCUMENTS, TokenWidth::U16);
    writer.append(&data, &lengths).unwrap();
    writer.push_origins([Origin::default()]).unwrap();
    let error = writer
        .finish(&example_metadata(), &example_sources())
        .unwrap_err();
    assert!(error.to_string().contains("number of origins"), "{error}");
}

#[test]
fn a_loss_mask_is_read_and_written() {
    let path = golden("loss_mask.pbin");
    let reader = Reader::open(&path).unwrap();
    let expected = [true, false, true, true, false, false, true];
    let mask = reader.loss_mask().unwrap();
    assert!(mask.tokens(0..7).eq(expected));
    assert!(mask.tokens(2..4).eq([true, true]));
    reader.verify(&mut proceed).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("loss_mask.pbin");
    let create = || {
        let writer = Writer::create(&written, TokenWidth::U16, false).unwrap();
        let mut writer = writer.with_loss_mask().unwrap();
        let (data, lengths) = encode(&EXAMPLE_DOCUMENTS, TokenWidth::U16);
        writer.append(&data, &lengths).unwrap();
        writer
    };
    let mut writer = create();
    writer.push_loss_mask(expected).unwrap();
    let finished = writer.finish(&example_metadata(), &example_sources());
    finished.unwrap().publish(Replace::Never).unwrap();
    assert_eq!(fs::read(&written).unwrap(), fs::read(&path).unwrap());

    let mut writer = create();
    writer.push_loss_mask([true; 6]).unwrap();
    let error = writer.finish(&example_metadata(), &example_sources());
    let message = error.unwrap_err().to_string();
    assert!(
        message.contains("number of tokens in the loss mask"),
        "{message}"
    );
}

#[test]
fn a_bit_of_a_loss_mask_that_belongs_to_no_token_is_a_fault() {
    let mut bytes = fs::read(golden("loss_mask.pbin")).unwrap();
    let table = bytes.len() - 48 - 5 * 32;
    let entry = table + 4 * 32;
    let at = u64::from_le_bytes(bytes[entry + 8..entry + 16].try_into().unwrap()) as usize;
    bytes[at] |= 0x80;
    let crc = crc32c::crc32c(&bytes[at..at + 1]);
    bytes[entry + 24..entry + 28].copy_from_slice(&crc.to_le_bytes());
    let tail = bytes.len() - 48;
    let crc = crc32c::crc32c(&bytes[table..tail]);
    bytes[tail + 32..tail + 36].copy_from_slice(&crc.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[tail..tail + 36]);
    bytes[tail + 36..tail + 40].copy_from_slice(&crc.to_le_bytes());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pbin");
    fs::write(&path, bytes).unwrap();
    let error = Reader::open(&path)
        .unwrap()
        .verify(&mut proceed)
        .unwrap_err();
    assert!(error.to_string().contains("padding is not zero"), "{error}");
}

#[test]
fn optional_sections_may_be_missing_or_unknown() {
    for (name, has_metadata) in [
        ("offsets_only.pbin", false),
        ("unknown_optional.pbin", true),
    ] {
        let reader = Reader::open(&golden(name)).unwrap();
        assert_eq!(documents_of(&reader), EXAMPLE_DOCUMENTS, "{name}");
        assert_eq!(reader.metadata().unwrap().is_some(), has_metadata, "{name}");
        assert_eq!(
            reader.data_crc32c().unwrap().is_some(),
            has_metadata,
            "{name}"
        );
        assert_eq!(
            reader.sources().unwrap().is_empty(),
            !has_metadata,
            "{name}"
        );
        reader.verify(&mut proceed).unwrap();
    }
}

#[test]
fn unknown_required_sections_are_rejected() {
    let path = golden("unknown_required.pbin");
    let error = Reader::open(&path).unwrap_err().to_string();
    let fault =
        "trailer at byte 784: section of type 99 is required but unknown; use a newer packtok";
    assert_eq!(error, format!("{}: {fault}", path.display()));
}

#[test]
fn files_without_a_trailer_are_read_in_every_dialect() {
    for (name, width, dialect) in [
        ("plain_u8.pbin", TokenWidth::U8, Dialect::Modalities),
        ("plain_u16.pbin", TokenWidth::U16, Dialect::Modalities),
        ("plain_u32.pbin", TokenWidth::U32, Dialect::Modalities),
        (
            "plain_legacy.pbin",
            TokenWidth::U16,
            Dialect::ModalitiesLegacy,
        ),
        (
            "plain_fixed_stride.pbin",
            TokenWidth::U16,
            Dialect::Modalities,
        ),
        ("plain_protocol2.pbin", TokenWidth::U16, Dialect::Modalities),
        ("plain_protocol3.pbin", TokenWidth::U16, Dialect::Modalities),
        ("plain_protocol5.pbin", TokenWidth::U16, Dialect::Modalities),
    ] {
        let reader = Reader::open(&golden(name)).unwrap();
        assert_eq!(
            (reader.width(), reader.dialect()),
            (width, dialect),
            "{name}"
        );
        assert_eq!(documents_of(&reader), DOCUMENTS, "{name}");
        assert_eq!(reader.metadata().unwrap(), None);
        reader.verify(&mut proceed).unwrap();
    }
    assert!(
        Reader::open(&golden("plain_empty.pbin"))
            .unwrap()
            .is_empty()
    );
}

fn pairs(num_pairs: u64) -> Vec<(u64, u64)> {
    let mut start = 0;
    let mut pair = |i: u64| {
        let bytes = i * 7919 % 1000 * 2;
        start += bytes;
        (start - bytes, bytes)
    };
    (0..num_pairs).map(&mut pair).collect()
}

#[test]
fn pickles_equal_cpythons() {
    for num_pairs in [0, 1, 2, 999, 1000, 1001, 2001] {
        let path = golden(&format!("pairs_{num_pairs}.pickle"));
        let pairs = pairs(num_pairs);
        let written = write_pairs(Vec::new(), pairs.iter().copied()).unwrap();
        assert!(written == fs::read(&path).unwrap(), "{num_pairs} pairs");
        assert_eq!(read_raw_index(&path).unwrap(), pairs);
    }
}

#[test]
fn pickled_integers_equal_cpythons() {
    let edges = [
        0,
        255,
        256,
        65535,
        65536,
        (1 << 31) - 1,
        1 << 31,
        1 << 32,
        (1 << 39) - 1,
        1 << 39,
        1 << 40,
    ];
    let edges = edges
        .into_iter()
        .chain([i64::MAX as u64, 1 << 63, u64::MAX]);
    let pairs: Vec<(u64, u64)> = edges.map(|edge| (edge, edge)).collect();
    let written = write_pairs(Vec::new(), pairs.iter().copied()).unwrap();
    assert_eq!(written, fs::read(golden("pairs_edges.pickle")).unwrap());
    let mut parsed = Vec::new();
    let stop = parse_pairs(
        &written,
        |at, fault| (at, fault),
        |a, b| {
            parsed.push((a, b));
            Ok(())
        },
    );
    assert_eq!((stop, parsed), (Ok(written.len() as u64), pairs));
}

#[test]
fn tuples_that_a_pickle_refers_to_are_read_again() {
    let mut expected = pairs(1200);
    expected.extend(pairs(1200).into_iter().step_by(3));
    for protocol in [2, 4] {
        let path = golden(&format!("shared_protocol{protocol}.pickle"));
        assert_eq!(read_raw_index(&path).unwrap(), expected);
    }
}

#[test]
fn references_to_anything_but_an_earlier_tuple_are_refused() {
    // [(1, 2)], then BINGET 0 (the list), BINGET 9 (nothing), and BINGET inside a tuple.
    let start = b"\x80\x02]q\x00K\x01K\x02\x86q\x01a";
    for (end, position) in [
        (&b"h\x00a."[..], 13),
        (b"h\x09a.", 13),
        (b"K\x01h\x01\x86a.", 15),
        (b"j\x09\x00\x00\x00a.", 13),
    ] {
        let bytes = [start, end].concat();
        let parsed = parse_pairs(&bytes, |at, fault| (at, fault.to_string()), |_, _| Ok(()));
        let (at, message) = parsed.unwrap_err();
        assert_eq!(at, position, "{message}");
        assert!(message.contains("BINGET"), "{message}");
    }
    let shared = [&start[..], b"h\x01aj\x01\x00\x00\x00a."].concat();
    let mut parsed = Vec::new();
    let stop = parse_pairs(
        &shared,
        |at, fault| (at, fault),
        |a, b| {
            parsed.push((a, b));
            Ok(())
        },
    );
    assert_eq!((stop, parsed), (Ok(shared.len() as u64), vec![(1, 2); 3]));
}

#[test]
fn pickles_of_several_frames_equal_cpythons() {
    let written = write_pairs(Vec::new(), pairs(100_000).into_iter()).unwrap();
    let measured = format!("{} {:08x}\n", written.len(), crc32c::crc32c(&written));
    assert_eq!(
        measured,
        fs::read_to_string(golden("pairs_100000.txt")).unwrap()
    );
}

#[test]
fn files_of_modalities_are_reproduced_byte_for_byte() {
    for name in [
        "redpajama/train.pbin",
        "redpajama/train.even.pbin",
        "modalities/lorem_long.pbin",
    ] {
        let Some(path) = shared(name) else { return };
        let reader = Reader::open(&path).unwrap();
        let lengths: Vec<u64> = (0..reader.len())
            .map(|i| reader.document_span(i).unwrap())
            .map(|span| span.end - span.start)
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy.pbin");
        let mut writer = Writer::create(&copy, reader.width(), false).unwrap();
        writer.append(reader.data(), &lengths).unwrap();
        let (documents, tokens) = (reader.len(), reader.num_tokens());
        let counts = Counts {
            documents,
            tokens,
            ..Counts::default()
        };
        let metadata = Metadata {
            counts,
            ..Metadata::default()
        };
        writer
            .finish(&metadata, &[])
            .unwrap()
            .publish(Replace::Never)
            .unwrap();
        let (original, copied) = (fs::read(&path).unwrap(), fs::read(&copy).unwrap());
        assert!(copied.starts_with(&original), "{name}");
        assert_eq!(Reader::open(&copy).unwrap().len(), documents);
    }
}

#[test]
fn raw_indexes_of_modalities_are_read() {
    for name in ["redpajama/train.idx", "modalities/lorem_long.idx"] {
        let Some(path) = shared(name) else { return };
        let pairs = read_raw_index(&path).unwrap();
        let written = write_pairs(Vec::new(), pairs.iter().copied()).unwrap();
        assert_eq!(written, fs::read(&path).unwrap(), "{name}");
    }
}

#[test]
fn readers_are_shared_between_threads() {
    fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<Reader>();
}
