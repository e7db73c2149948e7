//! The short way for plain paths: the value is found while the line is checked, and its text is
//! borrowed from the line wherever it has no escapes. It reads the whole line, so that a fault
//! behind the value is seen as well.

use std::collections::VecDeque;
use std::fmt;

use memchr::memchr;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::json::{check_nesting, check_surrogates, unit};
use super::path::{PlainPath, Step};

/// Where the text of a document was found.
pub(super) enum Text<'a> {
    /// In the line itself.
    InLine(&'a str),
    /// In the room for unescaped text.
    Unescaped,
}

/// The text at `path`, or `None` if anything at all is unusual: that is for the general path.
pub(super) fn text<'a>(
    path: &PlainPath,
    line: &'a [u8],
    unescaped: &mut String,
) -> Option<Text<'a>> {
    let line = simdutf8::basic::from_utf8(line).ok()?;
    let mut value = line;
    // The first step reads the line as a whole, so it must happen even if there is none.
    match path.steps() {
        [] => value = raw(line)?,
        steps => {
            for step in steps {
                value = follow(step, value)?;
            }
        }
    }
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    check_nesting(line).ok()?;
    check_surrogates(line).ok()?;
    if memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Text::InLine(inner));
    }
    unescape(inner, unescaped)?;
    Some(Text::Unescaped)
}

/// The one JSON value in `json`, without the space around it.
fn raw(json: &str) -> Option<&str> {
    serde_json::from_str::<&RawValue>(json)
        .ok()
        .map(RawValue::get)
}

/// The JSON value that `step` leads to from the value `json`.
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

/// Visits an array or object to its end, and keeps the value that a step leads to.
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
        let mut found = None;
        while let Some(is_it) = map.next_key_seed(Is(key))? {
            if is_it {
                // The last of several equal keys counts, as it does in jq.
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
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
                let found = array.next_element()?;
                while array.next_element::<IgnoredAny>()?.is_some() {}
                Ok(found)
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

/// Tells whether a key is the wanted one.
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

/// Puts the text that the inside of a JSON string stands for into `out`.
fn unescape(inner: &str, out: &mut String) -> Option<()> {
    out.clear();
    let bytes = inner.as_bytes();
    let mut at = 0;
    while let Some(step) = memchr(b'\\', &bytes[at..]) {
        out.push_str(inner.get(at..at + step)?);
        at += step;
        let (c, len) = escape(bytes, at)?;
        out.push(c);
        at += len;
    }
    out.push_str(inner.get(at..)?);
    Some(())
}

/// The character that the escape at `at` stands for, and the length of the escape.
fn escape(bytes: &[u8], at: usize) -> Option<(char, usize)> {
    let c = match bytes.get(at + 1)? {
        b'n' => '\n',
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => {
            return match unit(bytes, at)? {
                high @ 0xd800..=0xdbff => {
                    let low = unit(bytes, at + 6)?.checked_sub(0xdc00)?;
                    let c = 0x1_0000 + ((high - 0xd800) << 10) + low;
                    Some((char::from_u32(c)?, 12))
                }
                unit => Some((char::from_u32(unit)?, 6)),
            };
        }
        _ => return None,
    };
    Some((c, 2))
}
