//! Patterns that are plain paths.

use jaq_json::Val;

/// The steps from the root of a document to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlainPath(Vec<Step>);

/// One step of a [`PlainPath`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// The value of an object's key.
    Key(String),
    /// An element of an array, from 0.
    Index(usize),
    /// An element of an array, counted from its end, from 1.
    FromEnd(usize),
}

/// The largest number from the end in a plain path. The fast path buffers this many elements;
/// larger numbers use jq.
const MAX_FROM_END: usize = 64;

impl PlainPath {
    /// Parses `pattern` as a plain path. `None` for all other patterns; jq also handles keys with
    /// escapes.
    pub(super) fn parse(pattern: &str) -> Option<Self> {
        if pattern.contains('\\') {
            None
        } else {
            Self::parse_with_escapes(pattern)
        }
    }

    /// Parses `pattern` as a path whose quoted keys may have escapes.
    pub(super) fn parse_with_escapes(pattern: &str) -> Option<Self> {
        let mut rest = pattern.trim_matches([' ', '\t']);
        let mut steps = Vec::new();
        if rest == "." {
            return Some(Self(steps));
        }
        while !rest.is_empty() {
            let step;
            (step, rest) = match rest.strip_prefix('.') {
                Some(after_dot) if after_dot.starts_with(identifier_start) => name(after_dot),
                Some(after_dot) if after_dot.starts_with('"') => quoted(after_dot)?,
                Some(after_dot) if steps.is_empty() => bracketed(after_dot)?,
                None if !steps.is_empty() => bracketed(rest)?,
                _ => return None,
            };
            steps.push(step);
        }
        (!steps.is_empty()).then_some(Self(steps))
    }

    /// The names, if the path consists of keys only and is not empty.
    pub(super) fn names(self) -> Option<Vec<String>> {
        let name = |step| match step {
            Step::Key(key) => Some(key),
            Step::Index(_) | Step::FromEnd(_) => None,
        };
        let names: Option<Vec<String>> = self.0.into_iter().map(name).collect();
        names.filter(|names| !names.is_empty())
    }

    /// The steps, starting at the root.
    pub(super) fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Whether `document` does not contain the path. A null at the path counts as present.
    pub(super) fn is_missing_in(&self, document: &Val) -> bool {
        let mut here = document.clone();
        for step in &self.0 {
            let value_at_step = match (&here, step) {
                (Val::Obj(object), Step::Key(key)) => object
                    .get(&Val::utf8_str(key.clone().into_bytes()))
                    .cloned(),
                (Val::Arr(array), Step::Index(i)) => array.get(*i).cloned(),
                (Val::Arr(array), Step::FromEnd(n)) => {
                    array.len().checked_sub(*n).map(|i| array[i].clone())
                }
                // Null contains nothing; for other values the filter reports the error.
                (value, _) => return matches!(value, Val::Null),
            };
            match value_at_step {
                Some(value) => here = value,
                None => return true,
            }
        }
        false
    }
}

fn identifier_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// A bare name and the rest of the text.
fn name(text: &str) -> (Step, &str) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    (Step::Key(text[..end].to_owned()), &text[end..])
}

/// A quoted key and the rest of the text.
fn quoted(text: &str) -> Option<(Step, &str)> {
    let inner = text.strip_prefix('"')?;
    let mut is_escaped = false;
    let len = inner.find(|c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    })?;
    let (quoted, rest) = text.split_at(1 + len + 1);
    if !quoted.contains('\\') {
        return Some((Step::Key(inner[..len].to_owned()), rest));
    }
    // The escapes of jq are the escapes of JSON plus interpolation. A key with interpolation is
    // not constant.
    let key = serde_json::from_str(quoted).ok()?;
    Some((Step::Key(key), rest))
}

/// A key or number in brackets and the rest of the text.
fn bracketed(text: &str) -> Option<(Step, &str)> {
    let inner = text.strip_prefix('[')?;
    if inner.starts_with('"') {
        let (step, rest) = quoted(inner)?;
        return Some((step, rest.strip_prefix(']')?));
    }
    let (number, rest) = inner.split_once(']')?;
    let (is_negative, digits) = match number.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, number),
    };
    let is_canonical = digits == "0" || !digits.starts_with('0');
    if !is_canonical || digits.len() > 9 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let n = digits.parse().ok()?;
    match (is_negative, n) {
        (false, i) => Some((Step::Index(i), rest)),
        (true, 1..=MAX_FROM_END) => Some((Step::FromEnd(n), rest)),
        (true, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_paths_are_recognized() {
        let key = |key: &str| Step::Key(key.to_owned());
        for (pattern, steps) in [
            (".", vec![]),
            (".text", vec![key("text")]),
            (" .a.b[0] ", vec![key("a"), key("b"), Step::Index(0)]),
            (".\"key with space\"", vec![key("key with space")]),
            (".[\"k\"].x", vec![key("k"), key("x")]),
            (".a[\"k\"]", vec![key("a"), key("k")]),
            (".[10][-2]", vec![Step::Index(10), Step::FromEnd(2)]),
        ] {
            assert_eq!(
                PlainPath::parse(pattern),
                Some(PlainPath(steps)),
                "{pattern}"
            );
        }
    }

    #[test]
    fn names_may_have_escapes() {
        let names = |pattern| PlainPath::parse_with_escapes(pattern)?.names();
        for (pattern, expected) in [
            (r#".["q\"uote"]"#, Some(vec!["q\"uote"])),
            (r#"."a\\".b"#, Some(vec!["a\\", "b"])),
            (r#"."\u0061\n""#, Some(vec!["a\n"])),
            (r#"."\(1)""#, None),
            (r#"."a\""#, None),
        ] {
            let expected = expected.map(|names| names.into_iter().map(str::to_owned).collect());
            assert_eq!(names(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn anything_more_is_not_a_plain_path() {
        for pattern in [
            "",
            "..",
            ".a?",
            ".a[]",
            ".a[1:]",
            ".a | .b",
            ".a[-0]",
            ".a[01]",
            ".a[1.0]",
            ".a.",
            ".\"\\u0061\"",
            ".a[-65]",
            ".[9999999999]",
            "text",
            ".a b",
            ".a::b",
            ".a.[0]",
        ] {
            assert_eq!(PlainPath::parse(pattern), None, "{pattern}");
        }
    }
}
