//! The fast path for plain paths. It locates the value while it checks the line, and borrows the
//! text from the line if it has no escapes. It checks the complete line, so faults after the value
//! are detected too.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

use memchr::memchr2;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::json::{check_nesting_around, check_surrogates};
use super::path::{PlainPath, Step};
use super::string::decode;

/// Location of a document's text.
pub(super) enum Text<'a> {
    /// A slice of the line itself.
    InLine(&'a str),
    /// Text with escapes, decoded into the buffer; the length there.
    Unescaped(usize),
}

/// The text at `path`, or `None` if the line needs the general path.
///
/// Unescaped text is not checked for UTF-8 yet. It is valid if and only if the line is, because
/// every escape stands for complete characters.
pub(super) fn text<'a>(path: &PlainPath, line: &'a [u8], room: &mut Vec<u8>) -> Option<Text<'a>> {
    let span = match path.steps() {
        [Step::Key(key)] => member(key, line, room),
        _ => None,
    };
    let (inside, unescaped) = match span {
        Some(span) => span,
        None => by_steps(path, utf8(line)?, room)?,
    };
    // The text cannot contain nesting and was already validated; only the bytes around it are
    // checked.
    let (before, after) = (&line[..inside.start], &line[inside.end..]);
    check_nesting_around(line, before, after).ok()?;
    check_surrogates(utf8(before)?).ok()?;
    check_surrogates(utf8(after)?).ok()?;
    Some(match unescaped {
        None => Text::InLine(utf8(&line[inside])?),
        Some(len) => Text::Unescaped(len),
    })
}

fn utf8(bytes: &[u8]) -> Option<&str> {
    simdutf8::basic::from_utf8(bytes).ok()
}

/// Span of the text inside its quotes in the line, and its length in the buffer if it has escapes.
type TextSpan = (Range<usize>, Option<usize>);

/// The text of `key` in the object `line`, if all its keys are plain.
fn member(key: &str, line: &[u8], room: &mut Vec<u8>) -> Option<TextSpan> {
    let mut at = expect(line, 0, b'{')?;
    let mut span = None;
    loop {
        let start = expect(line, at, b'"')?;
        let end = start + memchr2(b'"', b'\\', &line[start..])?;
        let name = &line[start..end];
        if line[end] == b'\\' || name.iter().any(|&byte| byte < b' ') {
            return None;
        }
        at = skip_space(line, expect(line, end + 1, b':')?);
        if name == key.as_bytes() {
            // The last of several equal keys wins, as in jq.
            let start = expect(line, at, b'"')?;
            let decoded = decode(line, start, room)?;
            span = Some((start..decoded.close, decoded.unescaped));
            at = decoded.close + 1;
        } else {
            let mut values =
                serde_json::Deserializer::from_slice(&line[at..]).into_iter::<IgnoredAny>();
            values.next()?.ok()?;
            at += values.byte_offset();
        }
        at = skip_space(line, at);
        match line.get(at)? {
            b',' => at += 1,
            b'}' => break,
            _ => return None,
        }
    }
    (skip_space(line, at + 1) == line.len()).then_some(span)?
}

/// Position after `byte`, which must be at `at` or after whitespace there.
fn expect(json: &[u8], at: usize, byte: u8) -> Option<usize> {
    let at = skip_space(json, at);
    (*json.get(at)? == byte).then_some(at + 1)
}

fn skip_space(json: &[u8], at: usize) -> usize {
    let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let rest = json.get(at..).unwrap_or_default();
    at + rest.iter().take_while(is_space).count()
}

/// The text at the end of a path of any length.
fn by_steps(path: &PlainPath, line: &str, room: &mut Vec<u8>) -> Option<TextSpan> {
    let mut value = line;
    // A path without steps must still parse the whole line, as the first step of other paths does.
    match path.steps() {
        [] => value = raw(line)?,
        steps => {
            for step in steps {
                value = follow(step, value)?;
            }
        }
    }
    value.strip_prefix('"')?;
    let start = value.as_ptr() as usize - line.as_ptr() as usize + 1;
    let decoded = decode(line.as_bytes(), start, room)?;
    Some((start..decoded.close, decoded.unescaped))
}

/// The single JSON value in `json`, without surrounding whitespace.
fn raw(json: &str) -> Option<&str> {
    serde_json::from_str::<&RawValue>(json)
        .ok()
        .map(RawValue::get)
}

/// The JSON value that `step` selects in the value `json`.
fn follow<'a>(step: &Step, json: &'a str) -> Option<&'a str> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let value = match step {
        Step::Key(_) => deserializer.deserialize_map(Follow(step)),
        Step::Index(_) | Step::FromEnd(_) => deserializer.deserialize_seq(Follow(step)),
    };
    let value = value.ok()??.get();
    deserializer.end().ok()?;
    Some(value)
}

/// Visits an array or object completely, and keeps the value that a step selects.
struct Follow<'s>(&'s Step);

impl<'de> Visitor<'de> for Follow<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an array or object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Step::Key(key) = self.0 else {
            return Ok(None);
        };
        let mut value = None;
        while let Some(is_it) = map.next_key_seed(Is(key))? {
            if is_it {
                // The last of several equal keys wins, as in jq.
                value = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        match *self.0 {
            Step::Key(_) => Ok(None),
            Step::Index(index) => {
                for _ in 0..index {
                    if array.next_element::<IgnoredAny>()?.is_none() {
                        return Ok(None);
                    }
                }
                let element = array.next_element()?;
                while array.next_element::<IgnoredAny>()?.is_some() {}
                Ok(element)
            }
            Step::FromEnd(n) => {
                let mut last = VecDeque::with_capacity(n);
                while let Some(value) = array.next_element::<&RawValue>()? {
                    if last.len() == n {
                        last.pop_front();
                    }
                    last.push_back(value);
                }
                Ok(last.pop_front().filter(|_| last.len() + 1 == n))
            }
        }
    }
}

/// Deserializes a key to a boolean: whether it equals this key.
struct Is<'k>(&'k str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}
