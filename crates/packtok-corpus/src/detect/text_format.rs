//! Recognizes text formats other than JSON lines (arrays, tables, plain text) after the first line
//! was invalid.

use crate::bytes::decompressed::Decompressed;
use crate::detect::other_format::OtherFormat;
use crate::error::Result;
use crate::field::{BadDocument, check_json};
use crate::{BOM, ReadOptions, Source};

/// Bytes of a file read to recognize its text format.
pub(crate) const HEAD_BYTES: usize = 64 << 10;

/// Number of lines compared to recognize a table.
const TABLE_LINES: usize = 5;

/// The text format of a file that is not JSON lines. `bad` is the fault of the line at
/// `offset_bytes`. `None` if that line is not the first one, or if the file may be JSON lines.
pub fn text_format(source: &Source, offset_bytes: u64, bad: &BadDocument) -> Option<OtherFormat> {
    // Only a few blank lines can precede the first line.
    if offset_bytes >= HEAD_BYTES as u64 {
        return None;
    }
    // If the file cannot be read now, the caller reports the fault of the line instead.
    let head = read_head(source).ok()?;
    format_of_head(&head, offset_bytes as usize, bad, source)
}

/// The start of the text of a file.
pub(crate) fn read_head(source: &Source) -> Result<Vec<u8>> {
    let whole = Source {
        range: None,
        ..source.clone()
    };
    let options = ReadOptions {
        chunk_bytes: HEAD_BYTES,
        zstd_window_log_max: 31,
        ..ReadOptions::for_json_lines(HEAD_BYTES as u64)
    };
    let mut stream = Decompressed::open(&whole, &options)?;
    let mut head = vec![0; HEAD_BYTES];
    let mut len = 0;
    while len < head.len() {
        match stream.read(&mut head[len..])? {
            0 => break,
            n => len += n,
        }
    }
    head.truncate(len);
    Ok(head)
}

/// The text format, given the fault of the line at `offset_bytes`. `None` if that line is not the
/// first one, or if the text may be JSON lines.
fn format_of_head(
    head: &[u8],
    offset_bytes: usize,
    bad: &BadDocument,
    source: &Source,
) -> Option<OtherFormat> {
    let is_blank = |line: &&[u8]| line.trim_ascii().is_empty();
    let before = head.get(..offset_bytes)?;
    let before = before.strip_prefix(BOM).unwrap_or(before);
    if !before.trim_ascii().is_empty() {
        return None;
    }
    let is_cut = head.len() == HEAD_BYTES;
    let mut lines: Vec<&[u8]> = head[offset_bytes..]
        .split(|&byte| byte == b'\n')
        .filter(|line| !is_blank(line))
        .collect();
    if is_cut && lines.len() > 1 {
        lines.pop();
    }
    let (first, rest) = lines.split_first()?;
    let first = first.trim_ascii();
    let is_malformed = matches!(
        bad,
        BadDocument::MalformedJson { .. } | BadDocument::ByteOrderMark { .. }
    );
    let is_json = |line: &&[u8]| check_json(line).is_ok();
    match first.first()? {
        b'[' => {
            let is_bracket = first == b"[";
            let holds_objects = first[1..].trim_ascii_start().first() == Some(&b'{');
            let goes_on = !rest.first().is_some_and(is_json);
            (is_bracket || holds_objects && goes_on).then_some(OtherFormat::JsonArray)
        }
        _ if !is_malformed => None,
        b'{' => {
            let is_key = |line: &&&[u8]| line.trim_ascii().first() == Some(&b'"');
            let goes_on = rest
                .first()
                .filter(is_key)
                .is_some_and(|line| !is_json(line));
            (first == b"{" || goes_on).then_some(OtherFormat::PrettyJson)
        }
        _ if rest.iter().any(is_json) => None,
        _ => table(first, rest, source).or_else(|| plain_text(head, first, is_cut)),
    }
}

/// The table format if all lines have the same number of separators.
fn table(first: &[u8], rest: &[&[u8]], source: &Source) -> Option<OtherFormat> {
    let extension = source.path.extension().and_then(|name| name.to_str());
    let has = |separator, name| {
        let expected = separators(first, separator);
        let rest = &rest[..rest.len().min(TABLE_LINES)];
        let is_even = rest
            .iter()
            .all(|line| separators(line, separator) == expected);
        expected > 0 && (extension == Some(name) || is_even && !rest.is_empty())
    };
    match () {
        () if has(b'\t', "tsv") => Some(OtherFormat::Tsv),
        () if has(b',', "csv") || has(b';', "csv") => Some(OtherFormat::Csv),
        () => None,
    }
}

/// The number of separators in a line outside quotes.
fn separators(line: &[u8], separator: u8) -> usize {
    let mut is_quoted = false;
    let is_separator = |byte: &&u8| {
        is_quoted ^= **byte == b'"';
        **byte == separator && !is_quoted
    };
    line.iter().filter(is_separator).count()
}

/// Whether a text is prose. A single line that ends like JSON is not: it may be the rest of a
/// truncated JSON line.
fn plain_text(head: &[u8], first: &[u8], is_cut: bool) -> Option<OtherFormat> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(cause) if is_cut && cause.error_len().is_none() => {
            std::str::from_utf8(&head[..cause.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_control = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{c}');
    let ends_as_json = matches!(first.last(), Some(b'}' | b']'));
    (!ends_as_json && !text.contains(is_control)).then_some(OtherFormat::PlainText)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::detect::recognize::binary;
    use crate::error::Error;

    fn source(name: &str) -> Source {
        Source {
            path: name.into(),
            label: name.to_owned(),
            bytes: 0,
            format: Format::Jsonl,
            input: 0,
            range: None,
            files: None,
        }
    }

    /// The format of a text whose first line is not JSON.
    fn of(name: &str, text: &[u8]) -> Option<OtherFormat> {
        let start = text.len() - text.trim_ascii_start().len();
        let first = text[start..].split(|&byte| byte == b'\n').next().unwrap();
        let bad = check_json(first).err().unwrap_or(BadDocument::Missing {
            pattern: ".text".into(),
            found: crate::field::Keys::default(),
        });
        format_of_head(text, start, &bad, &source(name))
    }

    #[test]
    fn binary_formats_are_recognized_by_their_first_bytes() {
        let tar = [&b"a.jsonl"[..], &[0; 250], b"ustar"].concat();
        for (head, expected) in [
            (&b"PAR1\x15\x04"[..], OtherFormat::Parquet),
            (b"ARROW1\0\0", OtherFormat::Arrow),
            (b"FEA1\0\0\0\0", OtherFormat::Arrow),
            (b"Obj\x01\x04", OtherFormat::Avro),
            (b"ORC\x08", OtherFormat::Orc),
            (b"\x93NUMPY\x01", OtherFormat::Numpy),
            (b"\x89HDF\r\n\x1a\n", OtherFormat::Hdf5),
            (b"SQLite format 3\0", OtherFormat::Sqlite),
            (b"%PDF-1.7", OtherFormat::Pdf),
            (b"PK\x03\x04", OtherFormat::Zip),
            (b"PK\x05\x06", OtherFormat::Zip),
            (b"7z\xbc\xaf\x27\x1c", OtherFormat::SevenZip),
            (&tar, OtherFormat::Tar),
            (b"\xfd7zXZ\0\0", OtherFormat::Xz),
            (b"BZh91AY&SY", OtherFormat::Bzip2),
            (b"BZh9\x17\x72\x45\x38\x50\x90", OtherFormat::Bzip2),
            (b"\x04\x22\x4d\x18", OtherFormat::Lz4),
            (b"\xff\x06\0\0sNaPpY", OtherFormat::Snappy),
            (b"MMIDIDX\0\0\x01", OtherFormat::TokenIndex),
            (b"\x10\0\0\0\0\0\0\0\x02\0\0\0ab", OtherFormat::Pbin),
            (b"{\0}\0\0\0\0\0\x04\0\0\0", OtherFormat::Pbin),
            (b"\xff\xfe{\0\"\0", OtherFormat::Utf16Le),
            (b"\xfe\xff\0{\0\"", OtherFormat::Utf16Be),
            (b"{\0\"\0t\0", OtherFormat::Utf16Le),
            (b"\0{\0\"\0t", OtherFormat::Utf16Be),
            (b"\xff\xfe\0\0{\0\0\0", OtherFormat::Utf32),
        ] {
            for is_within in [false, true] {
                assert_eq!(binary(head, is_within), Some(expected), "{head:?}");
            }
        }
        for (head, expected) in [
            (&b"\x1f\x8b\x08\0"[..], OtherFormat::TwiceGzip),
            (b"\x28\xb5\x2f\xfd", OtherFormat::TwiceZstd),
        ] {
            assert_eq!(binary(head, false), None);
            assert_eq!(binary(head, true), Some(expected));
        }
    }

    #[test]
    fn json_lines_are_not_a_binary_format() {
        for head in [
            &b""[..],
            b"{",
            b"\n\n",
            b"{\"a\":1}",
            b"\xef\xbb\xbf{}",
            b"[1]",
            b"\"PAR1\"",
            b"PAR",
            b"ORCHID",
            b"BZh9 is text",
            b"\0\0\0\0",
        ] {
            assert_eq!(binary(head, true), None, "{head:?}");
        }
    }

    #[test]
    fn text_formats_are_recognized() {
        for (name, text, expected) in [
            ("x", "[\n{\"a\":1},\n{\"a\":2}\n]\n", OtherFormat::JsonArray),
            ("x", "[\n{\"a\":1}\n]\n", OtherFormat::JsonArray),
            ("x", "[{\"a\":1},\n{\"a\":2}]\n", OtherFormat::JsonArray),
            ("x", "[{\"a\":1},{\"a\":2}]", OtherFormat::JsonArray),
            (
                "x",
                " \n [ {\"a\":1},\n{\"a\":2}]\n",
                OtherFormat::JsonArray,
            ),
            ("x", "{\n  \"a\": 1\n}\n", OtherFormat::PrettyJson),
            ("x", "{\"a\": 1,\n \"b\": 2}\n", OtherFormat::PrettyJson),
            ("x", "id,text\n1,a\n2,\"b,c\"\n", OtherFormat::Csv),
            ("x", "\"id\",\"text\"\n1,a\n", OtherFormat::Csv),
            ("x", "\n\nid;text\n1;a\n", OtherFormat::Csv),
            ("x.csv", "id,text\n", OtherFormat::Csv),
            ("x", "id\ttext\n1\ta, b\n", OtherFormat::Tsv),
            ("x.tsv", "id\ttext\n", OtherFormat::Tsv),
            (
                "x",
                "Once upon a time\nthere was, I think, a fox.\n",
                OtherFormat::PlainText,
            ),
            ("x", "hello", OtherFormat::PlainText),
        ] {
            assert_eq!(of(name, text.as_bytes()), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn json_lines_whose_first_line_is_bad_stay_json_lines() {
        let good = "{\"text\":\"a, b\"}\n";
        for first in [
            "{\"text\":\"ab",
            "b\"}",
            "garbage",
            "a,b",
            "a\tb",
            "# comment",
            "[{\"text\":1}",
            "{\"text\":NaN}",
            "{\"text\":1} x",
        ] {
            let text = format!("{first}\n{good}{good}");
            assert_eq!(of("x.jsonl", text.as_bytes()), None, "{text:?}");
        }
        for text in [
            "{\"text\":\"ab",
            "b\"}",
            "{\"text\":\"a\nb\"}",
            "[\"a\"]\n[\"b\"]",
            "{}",
        ] {
            assert_eq!(of("x.jsonl", text.as_bytes()), None, "{text:?}");
        }
        // Only the first line determines the format.
        let bad = check_json(b"a,b").unwrap_err();
        let text = format!("{good}a,b\nc,d\n");
        assert_eq!(
            format_of_head(text.as_bytes(), good.len(), &bad, &source("x")),
            None
        );
    }

    #[test]
    fn messages_name_the_format_and_the_remedy() {
        let error = |format| Error::OtherFormat {
            path: "x".into(),
            found: format,
            expected: Format::Jsonl,
        };
        for (format, expected) in [
            (
                OtherFormat::Xz,
                "x: is compressed with xz, not JSON lines; decompress it: xz -d FILE, or convert it to zstd: xz -dc FILE | zstd > FILE.jsonl.zst",
            ),
            (
                OtherFormat::TwiceGzip,
                "x: is a gzip file within a compressed file, not JSON lines; remove the outer compression: gzip -dc FILE (or zstd -dc FILE) into a new file",
            ),
            (
                OtherFormat::JsonArray,
                "x: is a JSON array, not JSON lines; write each element on its own line: jq -c '.[]' FILE > FILE.jsonl",
            ),
            (
                OtherFormat::Parquet,
                "x: is a Parquet file, not JSON lines; rename it to *.parquet, or set --format parquet (format: parquet)",
            ),
        ] {
            assert_eq!(error(format).to_string(), expected);
        }
    }
}
