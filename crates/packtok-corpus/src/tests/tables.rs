//! Parquet and Arrow files: the golden files of every layout, resuming, dividing, and damage.

use proptest::prelude::*;

use super::*;
use crate::field::NoText;

/// The golden tables, which all have the same rows.
const TABLES: [&str; 11] = [
    "delta.parquet",
    "dictionary.parquet",
    "plain.parquet",
    "small_pages.parquet",
    "zstd_v2.parquet",
    "file.arrow",
    "large_zstd.arrow",
    "lz4.arrow",
    "stream.arrow",
    "views.arrow",
    "views_zstd.arrow",
];

const GROUP_ROWS: u64 = 10;

/// The rows of `tests/golden/make_tables.py`.
fn expected(is_nested: bool) -> Vec<Option<String>> {
    let texts = [
        Some("a"),
        Some(""),
        Some("h\u{e9}llo w\u{f6}rld"),
        None,
        Some("line\nbreak, \"quoted\""),
        Some("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
        Some("\u{65e5}\u{672c}\u{8a9e}\u{306e}\u{30c6}\u{30ad}\u{30b9}\u{30c8}"),
        None,
        Some("end"),
    ];
    let rows = texts.into_iter().cycle().take(3 * texts.len());
    rows.zip(0..)
        .map(|(text, row)| {
            if is_nested && row % 5 == 4 {
                None
            } else {
                text.map(str::to_owned)
            }
        })
        .collect()
}

fn golden(name: &str) -> Source {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    source(&folder.join(name))
}

fn options(chunk_bytes: usize, column: &str) -> ReadOptions {
    ReadOptions {
        chunk_bytes,
        columns: Columns::of_pattern(column),
        ..ReadOptions::for_json_lines(1 << 30)
    }
}

/// A row, and its text unless it is null.
type Row = (u64, Option<String>);

fn row(record: &Record<'_>) -> Row {
    let text = match record.body {
        Body::Text(text) => Some(String::from_utf8(text.to_vec()).unwrap()),
        Body::NoText(NoText::Null) => None,
        body => panic!("{body:?}"),
    };
    assert_eq!(
        record.len_bytes,
        text.as_ref().map_or(0, String::len) as u64
    );
    (record.offset, text)
}

fn rows(mut reader: Reader) -> Result<(Vec<Row>, Vec<Option<u32>>)> {
    let mut rows = Vec::new();
    while let Some(chunk) = reader.next_chunk(Vec::new())? {
        rows.extend(chunk.records().map(|record| row(&record)));
    }
    Ok((rows, reader.digests().to_vec()))
}

#[test]
fn every_layout_has_the_same_texts() {
    for name in TABLES {
        for (column, is_nested) in [(".text", false), (".meta.text", true)] {
            for chunk_bytes in [1, 30, 1 << 18] {
                let source = golden(name);
                let digest = crc32c::crc32c(&fs::read(&source.path).unwrap());
                let reader = Reader::new(vec![source], options(chunk_bytes, column));
                let expected = (0..).zip(expected(is_nested)).collect();
                assert_eq!(
                    rows(reader).unwrap(),
                    (expected, vec![Some(digest)]),
                    "{name} {column}"
                );
            }
        }
    }
}

#[test]
fn reading_resumes_between_groups() {
    for name in TABLES {
        let (source, options) = (golden(name), options(30, ".text"));
        let mut reader = Reader::new(vec![source.clone()], options.clone());
        let (mut all, mut places) = (Vec::new(), Vec::new());
        while let Some(chunk) = reader.next_chunk(Vec::new()).unwrap() {
            all.extend(chunk.records().map(|record| row(&record)));
            places.extend(chunk.end().filter(|place| place.source == 0));
        }
        let ends: Vec<_> = places.iter().map(|place| place.offset).collect();
        assert_eq!(ends, [GROUP_ROWS, 2 * GROUP_ROWS], "{name}");
        for place in places {
            let at = Reader::at(vec![source.clone()], options.clone(), place, &[]).unwrap();
            let mut passed = Reader::new(vec![source.clone()], options.clone());
            assert!(passed.pass(place, &[], &mut |_| Ok(())).unwrap());
            for resumed in [at, passed] {
                let (rest, digests) = rows(resumed).unwrap();
                assert_eq!(rest, all[place.offset as usize..]);
                assert_eq!(digests, reader.digests());
            }
            let other = ResumePoint {
                crc32c: !place.crc32c,
                ..place
            };
            let mut reader = Reader::new(vec![source.clone()], options.clone());
            assert!(!reader.pass(other, &[], &mut |_| Ok(())).unwrap());
        }
    }
}

#[test]
fn ranges_of_groups_are_the_whole_file() {
    for name in TABLES {
        let source = golden(name);
        let (expected, digests) =
            rows(Reader::new(vec![source.clone()], options(30, ".text"))).unwrap();
        for step in [5, 100, 700, source.bytes] {
            let (mut all_rows, mut crc) = (Vec::new(), 0);
            let mut first = 0;
            while first < source.bytes {
                let second = (first + step).min(source.bytes);
                let (start, stop) = group_starts(&source, first, second).unwrap();
                if start < stop {
                    let part = Source {
                        range: Some(start..stop),
                        ..source.clone()
                    };
                    let (rows, digests) =
                        rows(Reader::new(vec![part], options(30, ".text"))).unwrap();
                    all_rows.extend(rows);
                    crc = crc32c::crc32c_combine(crc, digests[0].unwrap(), (stop - start) as usize);
                }
                first = second;
            }
            assert_eq!(
                (all_rows, vec![Some(crc)]),
                (expected.clone(), digests.clone()),
                "{name} {step}"
            );
        }
    }
}

#[test]
fn a_column_that_is_missing_or_no_text_is_named() {
    for name in ["plain.parquet", "file.arrow"] {
        let source = golden(name);
        let missing = |column| {
            let mut reader = Reader::new(vec![source.clone()], options(30, column));
            reader.next_chunk(Vec::new()).unwrap_err().to_string()
        };
        let error = missing(".content");
        let columns = match source.format {
            Format::Parquet => {
                r#""id", "tags.list.element", "kind", "text", "meta.n", "meta.text""#
            }
            _ => r#""id", "tags", "kind", "text", "meta.n", "meta.text""#,
        };
        let path = source.path.display();
        assert_eq!(
            error,
            format!(
                "{path}: no column \"content\"; the table has {columns}; set --field (jq_pattern) to one of them, such as .id"
            )
        );
        assert!(
            missing(".text | ascii").ends_with("but --field (jq_pattern) is \".text | ascii\"")
        );
        for (column, type_name) in [
            (".id", "an integer"),
            (".meta.n", "an integer"),
            (".tags", "a list"),
        ] {
            let mut reader = Reader::new(vec![source.clone()], options(30, column));
            let chunk = reader.next_chunk(Vec::new()).unwrap().unwrap();
            let body = chunk.records().next().unwrap().body;
            assert!(
                matches!(body, Body::NoText(NoText::NotText(_))),
                "{column}: {body:?}"
            );
            if column != ".tags" {
                assert_eq!(body, Body::NoText(NoText::NotText(type_name)));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damage_is_an_error_or_does_not_matter(
        table in 0..TABLES.len(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255u8), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
        column in prop::sample::select(vec![".text", ".meta.text", ".id"]),
    ) {
        let golden = golden(TABLES[table]);
        let mut bytes = fs::read(&golden.path).unwrap();
        for (at, flip) in &flips {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let folder = TempDir::new().unwrap();
        let source = file(&folder, TABLES[table], &bytes);
        let mut reader = Reader::new(vec![source], options(30, column));
        let mut num_rows = 0;
        while let Ok(Some(chunk)) = reader.next_chunk(Vec::new()) {
            num_rows += chunk.records().count();
            prop_assert!(num_rows < 1 << 20, "it ends");
        }
        if flips.is_empty() && cut.is_none() {
            prop_assert_eq!(num_rows, expected(false).len());
        }
    }
}
