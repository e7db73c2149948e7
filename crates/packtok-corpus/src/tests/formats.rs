//! Plain texts and tables of comma-separated values: records, offsets, and resuming at any chunk.

use proptest::prelude::*;

use super::*;
use crate::field::NoText;

/// The content of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Text(Vec<u8>),
    NoText(NoText),
    Oversize,
}

/// Offset, length and content of a record.
type Located = (u64, u64, Seen);

fn located(record: &Record<'_>) -> Located {
    let seen = match record.body {
        Body::Text(text) => Seen::Text(text.to_vec()),
        Body::NoText(reason) => Seen::NoText(reason),
        Body::Oversize => Seen::Oversize,
        Body::JsonLine(line) => panic!("a line of JSON: {line:?}"),
    };
    (record.offset, record.len_bytes, seen)
}

/// The records of `source`. Reads them once in full and once resumed after every chunk; both must
/// agree.
fn records(source: &Source, options: &ReadOptions) -> Result<Vec<Located>> {
    let mut reader = Reader::new(vec![source.clone()], options.clone());
    let (mut all, mut places) = (Vec::new(), Vec::new());
    while let Some(chunk) = reader.next_chunk(Vec::new())? {
        all.extend(chunk.records().map(|record| located(&record)));
        places.extend(chunk.end().map(|place| (place, all.len())));
    }
    let digest = crc32c::crc32c(&fs::read(&source.path).unwrap());
    assert_eq!(reader.digests(), [Some(digest)]);
    for (place, num_before) in places.into_iter().filter(|(place, _)| place.source == 0) {
        let resumed = Reader::at(vec![source.clone()], options.clone(), place, &[])?;
        let mut passed = Reader::new(vec![source.clone()], options.clone());
        assert!(passed.pass(place, &[], &mut |_| Ok(()))?);
        for mut reader in [resumed, passed] {
            let mut rest = Vec::new();
            while let Some(chunk) = reader.next_chunk(Vec::new())? {
                rest.extend(chunk.records().map(|record| located(&record)));
            }
            assert_eq!(rest, all[num_before..]);
            assert_eq!(reader.digests(), [Some(digest)]);
        }
    }
    Ok(all)
}

fn options(chunk_bytes: usize, max_document_bytes: u64, separator: Option<&[u8]>) -> ReadOptions {
    ReadOptions {
        chunk_bytes,
        max_document_bytes,
        text_separator: separator.map(Into::into),
        ..ReadOptions::for_json_lines(max_document_bytes)
    }
}

/// The documents of a plain text, by a search from its start.
fn documents(text: &[u8], max_document_bytes: u64, separator: Option<&[u8]>) -> Vec<Located> {
    let mut start = if text.starts_with(BOM) { BOM.len() } else { 0 };
    let mut documents = Vec::new();
    let mut push = |start: usize, stop: usize| {
        let seen = if (stop - start) as u64 > max_document_bytes {
            Seen::Oversize
        } else {
            Seen::Text(text[start..stop].to_vec())
        };
        documents.push((start as u64, (stop - start) as u64, seen));
    };
    if let Some(separator) = separator {
        let mut at = start;
        while at + separator.len() <= text.len() {
            if text[at..].starts_with(separator) {
                push(start, at);
                at += separator.len();
                start = at;
            } else {
                at += 1;
            }
        }
    }
    if start < text.len() || separator.is_none() {
        push(start, text.len());
    }
    documents
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_text_is_divided_at_its_separators(
        pieces in prop::collection::vec(prop::sample::select(vec!["\n", "\n\n", "a", "bc", "==", "="]), 0..40),
        has_mark in any::<bool>(),
        separator in prop::sample::select(vec![None, Some("\n"), Some("\n\n"), Some("="), Some("==="), Some("a\n")]),
        chunk_bytes in 1..40usize,
        max_document_bytes in 0..20u64,
    ) {
        let folder = TempDir::new().unwrap();
        let mark = if has_mark { BOM } else { b"" };
        let text = [mark, pieces.concat().as_bytes()].concat();
        let source = file(&folder, "a.txt", &text);
        prop_assert_eq!(source.format, Format::Text);
        let separator = separator.map(str::as_bytes);
        let records_read = records(&source, &options(chunk_bytes, max_document_bytes, separator)).unwrap();
        prop_assert_eq!(records_read, documents(&text, max_document_bytes, separator));
    }

    #[test]
    fn a_table_has_the_texts_that_were_written(
        rows in prop::collection::vec(
            prop::collection::vec("([a-c,\t\"\r\n;é]|\"\"){0,9}", 2..4usize),
            0..20,
        ),
        ending in prop::sample::select(vec!["\n", "\r\n"]),
        ends_with_line_end in any::<bool>(),
        is_tsv in any::<bool>(),
        has_mark in any::<bool>(),
        chunk_bytes in 2..60usize,
        max_document_bytes in 4..40u64,
    ) {
        let folder = TempDir::new().unwrap();
        let (delimiter, name) = if is_tsv { ("\t", "a.tsv") } else { (",", "a.csv") };
        let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
        let mut table = String::from(if has_mark { "\u{feff}" } else { "" });
        table.push_str(&["id", "text"].join(delimiter));
        let mut expected = Vec::new();
        for row in &rows {
            table.push_str(ending);
            let line = row.iter().map(quoted).collect::<Vec<_>>().join(delimiter);
            let num_field_bytes: usize = row.iter().map(String::len).sum();
            let text = row[1].as_bytes();
            let (len, seen) = match row.len() {
                // For a row, the limit applies to the fields, because the reader keeps only the
                // fields.
                _ if num_field_bytes as u64 > max_document_bytes => (line.len(), Seen::Oversize),
                2 => (text.len(), Seen::Text(text.to_vec())),
                found => (line.len(), Seen::NoText(NoText::FieldCount { found, expected: 2 })),
            };
            expected.push((table.len() as u64, len as u64, seen));
            table.push_str(&line);
        }
        if ends_with_line_end {
            table.push_str(ending);
        }
        let source = file(&folder, name, table.as_bytes());
        let rows = records(&source, &ReadOptions {
            columns: Columns::of_pattern(".text"),
            ..options(chunk_bytes, max_document_bytes, None)
        });
        // The length of a row without text includes the line end if the reader consumed it with
        // the row.
        let rows = rows.unwrap().into_iter().map(|(offset, len, seen)| match seen {
            Seen::Text(_) => (offset, len, seen),
            _ => (offset, 0, seen),
        });
        let expected = expected.into_iter().map(|(offset, len, seen)| match seen {
            Seen::Text(_) => (offset, len, seen),
            _ => (offset, 0, seen),
        });
        prop_assert_eq!(rows.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
}

#[test]
fn a_file_that_ends_inside_a_quoted_field_has_a_bad_last_row() {
    let folder = TempDir::new().unwrap();
    let source = file(&folder, "a.csv", b"text\na\n\"b\nc\n");
    let options = ReadOptions {
        columns: Columns::of_pattern(".text"),
        ..options(16, 100, None)
    };
    let rows = records(&source, &options).unwrap();
    let seen: Vec<_> = rows
        .into_iter()
        .map(|(offset, _, seen)| (offset, seen))
        .collect();
    assert_eq!(
        seen,
        [
            (5, Seen::Text(b"a".to_vec())),
            (7, Seen::NoText(NoText::OpenQuote))
        ]
    );
}

#[test]
fn escapes_of_a_separator_are_resolved() {
    for (escaped, expected) in [
        (r"\n\n", &b"\n\n"[..]),
        (r"a\tb\r", b"a\tb\r"),
        (r"\\n", b"\\n"),
        (r"\d\", b"\\d\\"),
        ("\n", b"\n"),
        ("<|endoftext|>", b"<|endoftext|>"),
    ] {
        assert_eq!(unescaped(escaped), expected, "{escaped}");
    }
}
