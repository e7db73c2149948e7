//! Faults of documents and of patterns.

use std::sync::Arc;

use packtok_jobs::limits::ThreadLimits;

/// Maximum nesting of arrays and objects.
///
/// Parsing JSON recurses, and no line may exhaust the stack.
pub const MAX_NESTING: usize = 128;

/// The reason why a row of a table or an item has no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoText {
    /// The value or a structure that contains it is null.
    Null,
    /// The column has the named type, which is not a text.
    NotText(&'static str),
    /// A source plug-in yields a value of the named type, which is not a text.
    OtherType(&'static str),
    /// An item contains the named value, which JSON cannot represent.
    NotJson(&'static str),
    /// The file ends inside a quoted field.
    OpenQuote,
    /// The row does not have as many fields as the header.
    FieldCount {
        /// Fields of the row.
        found: usize,
        /// Fields of the header.
        expected: usize,
    },
}

/// The reason why a line has no text. `Display` writes only the reason; [`BadDocument::remedy`]
/// returns the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadDocument {
    /// The line has bytes that are not UTF-8.
    #[error("not UTF-8 at byte {at_byte} of the line")]
    NotUtf8 {
        /// 1-based position of the first invalid byte.
        at_byte: usize,
    },
    /// The line is not one JSON value.
    #[error("malformed JSON at byte {at_byte} of the line: {reason}")]
    MalformedJson {
        /// 1-based position of the fault.
        at_byte: usize,
        /// The fault.
        reason: String,
    },
    /// Arrays and objects are nested too deeply.
    #[error("JSON nested deeper than {MAX_NESTING} levels at byte {at_byte} of the line")]
    TooDeep {
        /// 1-based position of the bracket that exceeds the limit.
        at_byte: usize,
    },
    /// A string contains a lone surrogate escape.
    #[error("lone surrogate escape at byte {at_byte} of the line: not a valid character")]
    LoneSurrogate {
        /// 1-based position of its backslash.
        at_byte: usize,
    },
    /// A byte order mark is not at the start of the file.
    #[error(
        "byte order mark (U+FEFF) at byte {at_byte} of the line, expected only at the start of a file"
    )]
    ByteOrderMark {
        /// 1-based position of its first byte.
        at_byte: usize,
    },
    /// An integer has too many digits.
    #[error("integer with more than {max_digits} digits at byte {at_byte} of the line")]
    LongInteger {
        /// 1-based position of its first digit.
        at_byte: usize,
        /// Maximum number of digits.
        max_digits: usize,
    },
    /// A plain path does not exist in the document.
    #[error("field {pattern} is missing{found}")]
    Missing {
        /// The pattern.
        pattern: Arc<str>,
        /// The keys that exist instead.
        found: Keys,
    },
    /// The first output is not a string.
    #[error("{pattern} is {found}, not a string")]
    NotString {
        /// The pattern.
        pattern: Arc<str>,
        /// Type of the first output.
        found: &'static str,
    },
    /// The line is JSON, but not an object.
    #[error("the line is {found}, not an object")]
    NotObject {
        /// Type of the JSON value.
        found: &'static str,
    },
    /// The first output is a string of bytes that are not UTF-8.
    #[error("{pattern} is a string that is not UTF-8")]
    OutputNotUtf8 {
        /// The pattern.
        pattern: Arc<str>,
    },
    /// The filter has no output.
    #[error("filter {pattern} has no output")]
    NoOutput {
        /// The pattern.
        pattern: Arc<str>,
    },
    /// The filter fails.
    #[error("filter {pattern} fails: {reason}")]
    FilterFails {
        /// The pattern.
        pattern: Arc<str>,
        /// The message of the error.
        reason: String,
    },
    /// The filter exceeds a limit on one document.
    #[error("filter {pattern} exceeds a limit on this document: {used}")]
    Runaway {
        /// The pattern.
        pattern: Arc<str>,
        /// The limit.
        used: Excess,
    },
    /// A text that is not JSON has bytes that are not UTF-8.
    #[error("the text is not UTF-8 at byte {at_byte}")]
    TextNotUtf8 {
        /// 1-based position of the first invalid byte.
        at_byte: usize,
    },
    /// A row of a table has no text.
    #[error("{}", no_text(.0))]
    NoText(NoText),
    /// The line is longer than `max_document_bytes`.
    #[error("line of {len_bytes} bytes exceeds max_document_bytes {max_document_bytes}")]
    Oversize {
        /// Length of the line in bytes.
        len_bytes: u64,
        /// The limit.
        max_document_bytes: u64,
    },
}

/// The keys of an object, for a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys(pub Vec<String>);

impl Keys {
    /// Maximum number of keys in a message.
    pub(super) const MAX_SHOWN: usize = 8;
}

impl std::fmt::Display for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(keys) = self.0.get(..self.0.len().min(Self::MAX_SHOWN)) else {
            return Ok(());
        };
        match keys {
            [] => Ok(()),
            keys if keys.len() < self.0.len() => {
                write!(f, "; the object has {}, …", keys.join(", "))
            }
            keys => write!(f, "; the object has {}", keys.join(", ")),
        }
    }
}

/// The limit that a filter exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Excess {
    /// Number of evaluation steps.
    #[error("too many steps")]
    Steps,
    /// Depth of recursion, other than tail calls.
    #[error("recursion too deep")]
    Stack,
    /// Size or nesting of a value.
    #[error("value too large")]
    Value,
}

/// The reason why a row has no text, in words.
fn no_text(reason: &NoText) -> String {
    match reason {
        NoText::Null => "the text is null".to_owned(),
        NoText::NotText(found) => format!("the column is {found}, not a text"),
        NoText::OtherType(found) => format!("the document is {found}, not a text"),
        NoText::NotJson(found) => format!("the item has {found}, which JSON lacks"),
        NoText::OpenQuote => "the file ends inside a quoted field".to_owned(),
        NoText::FieldCount { found, expected } => {
            format!("the row has {found} fields, the header {expected}")
        }
    }
}

impl BadDocument {
    /// The fault of a text that is not UTF-8.
    pub fn text_not_utf8(text: &[u8]) -> Self {
        let valid = std::str::from_utf8(text).map_or_else(|error| error.valid_up_to(), str::len);
        Self::TextNotUtf8 { at_byte: valid + 1 }
    }

    /// The remedy, for the end of a message.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NotUtf8 { .. } => {
                "convert the file to UTF-8, or skip such lines with --on-bad-document skip (on_bad_document: skip)"
            }
            Self::ByteOrderMark { .. } => {
                "remove it (files that were joined have one where each of them starts), or skip such lines with --on-bad-document skip (on_bad_document: skip)"
            }
            Self::MalformedJson { .. }
            | Self::NotObject { .. }
            | Self::TooDeep { .. }
            | Self::LongInteger { .. }
            | Self::LoneSurrogate { .. } => {
                "repair the line, or skip such lines with --on-bad-document skip (on_bad_document: skip)"
            }
            Self::Missing { .. }
            | Self::NotString { .. }
            | Self::OutputNotUtf8 { .. }
            | Self::NoOutput { .. }
            | Self::FilterFails { .. } => {
                "change --field (jq_pattern), or skip such documents with --on-bad-document skip (on_bad_document: skip)"
            }
            Self::Runaway { .. } => {
                "simplify --field (jq_pattern), or skip such documents with --on-bad-document skip (on_bad_document: skip)"
            }
            Self::TextNotUtf8 { .. } => {
                "convert the text to UTF-8, or skip such documents with --on-bad-document skip (on_bad_document: skip)"
            }
            Self::NoText(NoText::NotText(_)) => "change --field (jq_pattern) to a column of texts",
            Self::NoText(NoText::OtherType(_)) => {
                "make the source yield texts, or skip such documents with --on-bad-document skip (on_bad_document: skip)"
            }
            Self::NoText(_) => {
                "repair the row, or skip such documents with --on-bad-document skip (on_bad_document: skip)"
            }
            Self::Oversize { .. } => {
                "raise --max-document-bytes (max_document_bytes), or skip such lines with --on-bad-document skip (on_bad_document: skip)"
            }
        }
    }
}

/// The reason why a pattern does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The pattern is not valid jq.
    #[error("expected {expected}, found {found:?}")]
    Syntax {
        /// The expected syntax.
        expected: String,
        /// The rest of the pattern from the fault on.
        found: String,
    },
    /// The pattern uses an undefined name.
    #[error("{kind} {name} is not defined")]
    Undefined {
        /// The kind of the name.
        kind: &'static str,
        /// The name as written in the pattern.
        name: String,
    },
    /// The pattern is a bare name that probably lacks a dot.
    #[error("filter {name} is not defined; did you mean {meant}?")]
    MissingDot {
        /// The name.
        name: String,
        /// The path with the dot added.
        meant: String,
    },
    /// The pattern is too long.
    #[error(
        "length is {len_bytes} bytes, at most {max_bytes} are allowed; shorten it, or preprocess the corpus"
    )]
    TooLong {
        /// Length of the pattern in bytes.
        len_bytes: usize,
        /// The limit.
        max_bytes: usize,
    },
    /// The terms of the pattern are nested too deeply.
    #[error(
        "terms are nested deeper than {max} levels; shorten chains of operators and nested brackets"
    )]
    TooDeep {
        /// The limit.
        max: usize,
    },
    /// A path in the pattern has too many parts.
    #[error("a path has more than {max} parts; write it as several paths joined by |")]
    LongPath {
        /// The limit.
        max: usize,
    },
    /// The thread that compiles the pattern could not be started.
    #[error(
        "cannot start a thread with a {stack_bytes}-byte stack to compile it: {reason}; {ThreadLimits}"
    )]
    NoThread {
        /// Size of its stack.
        stack_bytes: usize,
        /// The cause.
        reason: String,
    },
    /// The pattern uses a jq feature that packtok does not provide.
    #[error(
        "{name} is not available in packtok because the output must depend only on the documents"
    )]
    Unavailable {
        /// Name of the feature.
        name: String,
    },
    /// The pattern contains a module directive or an import.
    #[error(
        "modules and imports are not available in packtok; put the definitions into the pattern"
    )]
    Module,
}
