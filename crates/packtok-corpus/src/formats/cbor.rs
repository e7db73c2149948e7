//! Reads a sequence of CBOR items (RFC 8949, RFC 8742), one document each. Each item is converted
//! to the JSON line with the same content, so all later stages process JSON lines.

use minicbor::Decoder;
use minicbor::data::Type;
use minicbor::decode;

use crate::bytes::counted::{BytesReader, CountedBytes};
use crate::error::{Error, Result};
use crate::field::NoText;
use crate::reader::chunk::{Content, Span, SpanContent};
use crate::{ReadOptions, Source};

/// Nesting up to which an item is converted, as for JSON.
const MAX_DEPTH: usize = 127;

/// Reads the items of one source.
pub(crate) struct Cbor {
    source: Source,
    bytes: CountedBytes,
    options: ReadOptions,
    /// Bytes that were read; the bytes before `used` belong to items that were returned.
    input: Vec<u8>,
    used: usize,
    is_input_over: bool,
}

/// The reason why an item cannot become a JSON value.
enum Fault {
    /// The item is not CBOR, or contains a text that is not UTF-8.
    Malformed,
    /// The item contains a value that JSON cannot represent.
    NotJson(&'static str),
}

impl From<decode::Error> for Fault {
    fn from(_: decode::Error) -> Self {
        Self::Malformed
    }
}

impl Cbor {
    pub(crate) fn open(source: &Source, options: &ReadOptions) -> Result<Self> {
        Ok(Self {
            bytes: CountedBytes::open(source, options)?,
            source: source.clone(),
            options: options.clone(),
            input: Vec::new(),
            used: 0,
            is_input_over: false,
        })
    }

    /// Reads the next item completely into the input and returns its length; `None` at the end of
    /// the source.
    fn next_item(&mut self) -> Result<Option<usize>> {
        loop {
            let rest = &self.input[self.used..];
            if !rest.is_empty() {
                let mut decoder = Decoder::new(rest);
                match decoder.skip() {
                    Ok(()) => return Ok(Some(decoder.position())),
                    Err(error) if error.is_end_of_input() && !self.is_input_over => {}
                    Err(_) => {
                        return Err(Error::DamagedCbor {
                            path: self.source.path.clone(),
                            offset_bytes: self.bytes.offset_bytes(),
                        });
                    }
                }
                if rest.len() as u64 > self.options.max_document_bytes {
                    return Err(Error::LongCborItem {
                        path: self.source.path.clone(),
                        offset_bytes: self.bytes.offset_bytes(),
                    });
                }
            }
            if self.is_input_over {
                return Ok(None);
            }
            self.read_more()?;
        }
    }

    /// Appends more bytes of the file to the input, or records that the file has ended.
    fn read_more(&mut self) -> Result<()> {
        self.input.drain(..self.used);
        self.used = 0;
        let len = self.input.len();
        // Doubles the buffer, so that a long item is searched for its end only a few times.
        let room = self.options.chunk_bytes.max(len);
        self.input.resize(len + room, 0);
        let n = self.bytes.read(&mut self.input[len..])?;
        self.input.truncate(len + n);
        self.is_input_over = n == 0;
        if self.bytes.offset_bytes() == 0 && len == 0 {
            self.bytes.check_head(&self.input)?;
        }
        Ok(())
    }
}

impl BytesReader for Cbor {
    fn next_records(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Content>> {
        buffer.clear();
        let mut spans = Vec::new();
        while buffer.len() < self.options.chunk_bytes {
            let len = match self.next_item() {
                Ok(Some(len)) => len,
                Ok(None) => break,
                // The items before are returned first; the next call finds the fault again.
                Err(Error::DamagedCbor { .. } | Error::LongCborItem { .. })
                    if !spans.is_empty() =>
                {
                    break;
                }
                Err(error) => return Err(error),
            };
            let item = &self.input[self.used..self.used + len];
            let start = buffer.len();
            let content = match write_json(&mut Decoder::new(item), buffer, 0) {
                Ok(()) => SpanContent::Line(start),
                Err(fault) => {
                    buffer.truncate(start);
                    SpanContent::NoText(NoText::NotJson(match fault {
                        Fault::Malformed => "a text that is not UTF-8",
                        Fault::NotJson(what) => what,
                    }))
                }
            };
            spans.push(Span {
                offset: self.bytes.offset_bytes(),
                len_bytes: (buffer.len() - start) as u64,
                content,
            });
            self.bytes.advance(item);
            self.used += len;
            // Items without text count, too, so that a chunk ends.
            if spans.len() >= MAX_ITEMS {
                break;
            }
        }
        Ok((!spans.is_empty()).then_some(Content::Spans(spans)))
    }

    fn is_at_end(&self) -> bool {
        self.is_input_over && self.used == self.input.len()
    }

    fn bytes(&self) -> &CountedBytes {
        &self.bytes
    }

    fn bytes_mut(&mut self) -> &mut CountedBytes {
        &mut self.bytes
    }
}

/// Maximum number of items per chunk, for items without much text.
const MAX_ITEMS: usize = 1 << 14;

/// Appends the next value as JSON. Tags are dropped; `undefined`, infinities and NaN become null.
fn write_json(
    decoder: &mut Decoder<'_>,
    out: &mut Vec<u8>,
    depth: usize,
) -> std::result::Result<(), Fault> {
    if depth > MAX_DEPTH {
        return Err(Fault::NotJson("nested too deeply"));
    }
    match decoder.datatype()? {
        Type::Bool => write(out, &decoder.bool()?),
        Type::Null => {
            decoder.null()?;
            write(out, &());
        }
        Type::Undefined => {
            decoder.undefined()?;
            write(out, &());
        }
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => write(out, &decoder.u64()?),
        Type::I8 | Type::I16 | Type::I32 | Type::I64 | Type::Int => {
            write(out, &i128::from(decoder.int()?));
        }
        Type::F16 => write(out, &decoder.f16()?),
        Type::F32 => write(out, &decoder.f32()?),
        Type::F64 => write(out, &decoder.f64()?),
        Type::String | Type::StringIndef => write(out, &text(decoder)?),
        Type::Array | Type::ArrayIndef => {
            let len = decoder.array()?;
            write_all(decoder, len, (b'[', b']'), out, |decoder, out| {
                write_json(decoder, out, depth + 1)
            })?;
        }
        Type::Map | Type::MapIndef => {
            let len = decoder.map()?;
            write_all(decoder, len, (b'{', b'}'), out, |decoder, out| {
                match decoder.datatype()? {
                    Type::String | Type::StringIndef => write(out, &text(decoder)?),
                    _ => return Err(Fault::NotJson("a map whose keys are not texts")),
                }
                out.push(b':');
                write_json(decoder, out, depth + 1)
            })?;
        }
        Type::Tag => {
            decoder.tag()?;
            write_json(decoder, out, depth + 1)?;
        }
        Type::Bytes | Type::BytesIndef => return Err(Fault::NotJson("bytes")),
        _ => return Err(Fault::NotJson("a simple value without a meaning")),
    }
    Ok(())
}

/// Appends the elements of an array or map; `len` is `None` if a break ends it.
fn write_all(
    decoder: &mut Decoder<'_>,
    len: Option<u64>,
    brackets: (u8, u8),
    out: &mut Vec<u8>,
    mut write_one: impl FnMut(&mut Decoder<'_>, &mut Vec<u8>) -> std::result::Result<(), Fault>,
) -> std::result::Result<(), Fault> {
    out.push(brackets.0);
    let mut count = 0;
    loop {
        let is_over = match len {
            Some(len) => count == len,
            None => decoder.datatype()? == Type::Break,
        };
        if is_over {
            break;
        }
        if count > 0 {
            out.push(b',');
        }
        write_one(decoder, out)?;
        count += 1;
    }
    if len.is_none() {
        // The break.
        decoder.set_position(decoder.position() + 1);
    }
    out.push(brackets.1);
    Ok(())
}

/// A text, which may be in several parts.
fn text(decoder: &mut Decoder<'_>) -> std::result::Result<String, Fault> {
    let mut text = String::new();
    for part in decoder.str_iter()? {
        text.push_str(part?);
    }
    Ok(text)
}

/// Appends a value that JSON has.
fn write(out: &mut Vec<u8>, value: &impl serde::Serialize) {
    // Writing to memory cannot fail, and neither can the serialization of these types.
    let _ = serde_json::to_writer(out, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(item: &[u8]) -> std::result::Result<String, &'static str> {
        let mut out = Vec::new();
        match write_json(&mut Decoder::new(item), &mut out, 0) {
            Ok(()) => Ok(String::from_utf8(out).unwrap()),
            Err(Fault::Malformed) => Err("malformed"),
            Err(Fault::NotJson(what)) => Err(what),
        }
    }

    /// Examples of RFC 8949, appendix A.
    #[test]
    fn items_become_json() {
        for (item, expected) in [
            (&[0x18, 0x64][..], "100"),
            (
                &[0x1b, 255, 255, 255, 255, 255, 255, 255, 255],
                "18446744073709551615",
            ),
            (
                &[0x3b, 255, 255, 255, 255, 255, 255, 255, 255],
                "-18446744073709551616",
            ),
            (&[0x38, 0x63], "-100"),
            (&[0xf9, 0x3e, 0x00], "1.5"),
            (&[0xf9, 0x7c, 0x00], "null"),
            (&[0xf4], "false"),
            (&[0xf6], "null"),
            (&[0xf7], "null"),
            (&[0x62, 0x22, 0x5c], r#""\"\\""#),
            (
                &[
                    0x7f, 0x65, b's', b't', b'r', b'e', b'a', 0x64, b'm', b'i', b'n', b'g', 0xff,
                ],
                r#""streaming""#,
            ),
            (
                &[0x9f, 0x01, 0x82, 0x02, 0x03, 0x9f, 0x04, 0x05, 0xff, 0xff],
                "[1,[2,3],[4,5]]",
            ),
            (
                &[
                    0xbf, 0x61, b'a', 0x01, 0x61, b'b', 0x9f, 0x02, 0x03, 0xff, 0xff,
                ],
                r#"{"a":1,"b":[2,3]}"#,
            ),
            (&[0xc1, 0x1a, 0x51, 0x4b, 0x67, 0xb0], "1363896240"),
            (&[0xa0], "{}"),
        ] {
            assert_eq!(json(item).as_deref(), Ok(expected), "{item:x?}");
        }
    }

    #[test]
    fn what_json_lacks_is_named() {
        assert_eq!(json(&[0x42, 1, 2]), Err("bytes"));
        assert_eq!(json(&[0xa1, 1, 2]), Err("a map whose keys are not texts"));
        assert_eq!(json(&[0x61, 0xff]), Err("malformed"));
        assert_eq!(json(&[0x81; 200]), Err("nested too deeply"));
    }
}
