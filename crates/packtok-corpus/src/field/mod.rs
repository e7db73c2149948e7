//! Extracts the text of a document from its line with a jq pattern.
//!
//! A [`Field`] is a compiled pattern; an [`Extractor`] applies it to line after line. Plain paths
//! such as `.text` or `.meta.parts[0]` use a fast path (`fast`). A line for which the fast path
//! finds no text falls back to the general path: a strict check of the JSON (`json`), then the jq
//! filter itself (`general`) with limits on its resources (`meter`). So the fast path only saves
//! time; it never changes the result.

mod bad;
mod fast;
mod general;
mod json;
mod meter;
mod natives;
mod nesting;
mod path;
mod rewrite;
mod string;

use std::sync::Arc;

use jaq_json::Val;

pub use bad::{BadDocument, Excess, Keys, MAX_NESTING, NoText, PatternError};
pub use json::check as check_json;

use general::Filter;
use path::PlainPath;

use crate::error::{Error, Result};

/// A compiled jq pattern; a clone shares the compiled form.
#[derive(Clone)]
pub struct Field(Arc<Compiled>);

struct Compiled {
    pattern: Arc<str>,
    /// The pattern as shown in messages.
    shown: Arc<str>,
    path: Option<PlainPath>,
    filter: Filter,
}

impl Field {
    /// Compiles a jq pattern.
    ///
    /// # Errors
    /// The pattern is not valid jq, or depends on something other than the document: the
    /// environment, the clock, other inputs, modules.
    pub fn compile(pattern: &str) -> Result<Self> {
        let shared: Arc<str> = pattern.into();
        let filter = Filter::compile(&shared).map_err(|reason| Error::BadPattern {
            pattern: general::shortened(pattern),
            reason,
        })?;
        Ok(Self(Arc::new(Compiled {
            path: PlainPath::parse(pattern),
            shown: general::shortened(pattern).into(),
            pattern: shared,
            filter,
        })))
    }

    /// The field that is the value of `key`.
    ///
    /// # Errors
    /// The key is longer than a pattern may be.
    pub fn of_key(key: &str) -> Result<Self> {
        Self::compile(&pattern_of_key(key))
    }

    /// The original pattern.
    pub fn pattern(&self) -> &str {
        &self.0.pattern
    }

    /// Whether the pattern is a plain path, which uses the fast path.
    pub fn is_plain_path(&self) -> bool {
        self.0.path.is_some()
    }

    /// A new extractor; each thread needs its own.
    pub fn extractor(&self) -> Extractor {
        Extractor {
            field: self.clone(),
            unescaped: Vec::new(),
            output: Val::Null,
        }
    }
}

/// The filters of the inputs: a single filter for all inputs, or one per input. A clone shares
/// them.
#[derive(Clone)]
pub struct Fields(Arc<[Field]>);

impl Fields {
    /// Compiles `patterns`, of which there must be at least one.
    ///
    /// # Errors
    /// As [`Field::compile`].
    pub fn compile<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let fields: Result<Arc<[Field]>> = patterns.into_iter().map(Field::compile).collect();
        Ok(Self(fields?))
    }

    /// New extractors; each thread needs its own.
    pub fn extractors(&self) -> Extractors {
        Extractors(self.0.iter().map(Field::extractor).collect())
    }
}

impl From<Field> for Fields {
    fn from(field: Field) -> Self {
        Self([field].into())
    }
}

/// The extractors of all inputs.
pub struct Extractors(Vec<Extractor>);

impl Extractors {
    /// The extractor for the records of an input.
    pub fn of_input(&mut self, input: usize) -> &mut Extractor {
        let i = if input < self.0.len() { input } else { 0 };
        &mut self.0[i]
    }
}

/// The names in `pattern` if it is a plain path of names, such as `a` and `b` in `.a.b`.
pub fn names_of_path(pattern: &str) -> Option<Vec<String>> {
    PlainPath::parse_with_escapes(pattern)?.names()
}

/// Checks that `line` is a JSON object, whichever field is extracted later.
///
/// # Errors
/// The line is not JSON, or not an object.
pub fn check_object(line: &[u8]) -> std::result::Result<(), BadDocument> {
    match general::parse(line)? {
        Val::Obj(_) => Ok(()),
        other => Err(BadDocument::NotObject {
            found: general::type_of(&other),
        }),
    }
}

/// The pattern for the value of `key`.
pub fn pattern_of_key(key: &str) -> String {
    format!(".{}", serde_json::Value::from(key))
}

/// Applies a [`Field`] to lines, reusing its memory.
pub struct Extractor {
    field: Field,
    unescaped: Vec<u8>,
    output: Val,
}

/// Capacity of the buffer for unescaped text that is kept between documents.
const KEPT_BYTES: usize = 16 << 20;

impl Extractor {
    /// The text of the document in `line`.
    ///
    /// # Errors
    /// The line is not JSON, or the pattern's first output for it is not a string.
    pub fn text<'a>(&'a mut self, line: &'a [u8]) -> std::result::Result<&'a str, BadDocument> {
        self.release();
        if let Some(path) = &self.field.0.path {
            match fast::text(path, line, &mut self.unescaped) {
                Some(fast::Text::InLine(text)) => return Ok(text),
                Some(fast::Text::Unescaped(len)) => {
                    if let Ok(text) = simdutf8::basic::from_utf8(&self.unescaped[..len]) {
                        return Ok(text);
                    }
                }
                None => {}
            }
        }
        general_text(&self.field, &mut self.output, line)
    }

    /// Frees the buffer if a huge document enlarged it.
    pub fn release(&mut self) {
        if self.unescaped.capacity() > KEPT_BYTES {
            self.unescaped = Vec::new();
        }
        self.output = Val::Null;
    }
}

/// The text of the document in `line`, without the fast path. It borrows from `output`.
fn general_text<'a>(
    field: &Field,
    output: &'a mut Val,
    line: &[u8],
) -> std::result::Result<&'a str, BadDocument> {
    let Compiled {
        shown: pattern,
        path,
        filter,
        ..
    } = &*field.0;
    let value = general::parse(line)?;
    if let Some(path) = path
        && path.is_missing_in(&value)
    {
        return Err(BadDocument::Missing {
            pattern: pattern.clone(),
            found: keys_of(&value),
        });
    }
    *output = filter.first_output(value, line.len())?;
    general::text_of(output, pattern)
}

/// The keys of a document that is an object. At most one more than a message shows, to detect
/// truncation.
fn keys_of(document: &Val) -> Keys {
    let Val::Obj(object) = document else {
        return Keys::default();
    };
    let keys = object.keys().take(Keys::MAX_SHOWN + 1);
    Keys(keys.map(|key| format!(".{}", shortened(key))).collect())
}

/// A key for a message, quoted unless it is a plain name.
fn shortened(key: &Val) -> String {
    let text: String = match key {
        Val::TStr(bytes) => String::from_utf8_lossy(bytes).chars().take(40).collect(),
        _ => String::new(),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if text.chars().all(is_name) && !text.starts_with(|c: char| c.is_ascii_digit()) {
        text
    } else {
        format!("{text:?}")
    }
}

#[cfg(test)]
mod tests;
