//! JSON as Python's `json.dumps` writes it, for files that must equal the output of Python
//! programs byte for byte.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// `value` with `, ` and `: ` as separators, and with all characters except printable ASCII
/// escaped.
///
/// Keys are in the order of the fields.
///
/// # Panics
/// If a map in `value` has keys that are not strings.
pub fn dumps<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    value
        .serialize(&mut Serializer::with_formatter(&mut bytes, AsPython))
        .expect("the values have string keys, and memory takes any write");
    bytes
}

/// The form of [`dumps`], for a serializer that writes to a file.
#[derive(Debug)]
pub struct AsPython;

impl Formatter for AsPython {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        separate(out, first)
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        separate(out, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        text: &str,
    ) -> io::Result<()> {
        let mut start = 0;
        for (at, character) in text
            .char_indices()
            .filter(|&(_, character)| character > '~')
        {
            out.write_all(&text.as_bytes()[start..at])?;
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            start = at + character.len_utf8();
        }
        out.write_all(&text.as_bytes()[start..])
    }
}

fn separate<W: ?Sized + io::Write>(out: &mut W, first: bool) -> io::Result<()> {
    out.write_all(if first { b"" } else { b", " })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_as_python_does() {
        // json.dumps(["é\U0001d11e\x7f\n\"~", {"a": [1, None]}])
        let value = serde_json::json!(["é\u{1d11e}\u{7f}\n\"~", {"a": [1, null]}]);
        let expected = r#"["\u00e9\ud834\udd1e\u007f\n\"~", {"a": [1, null]}]"#;
        assert_eq!(String::from_utf8(dumps(&value)).unwrap(), expected);
    }
}
