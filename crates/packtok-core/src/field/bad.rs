//! What can be wrong with a document, and with a pattern.

use std::sync::Arc;

/// How many arrays and objects may be open at once.
///
/// Reading JSON recurses, and a line must never be able to exhaust the stack.
pub const MAX_NESTING: usize = 128;

/// Why a line has no text. Shown, it is the reason alone; [`BadDocument::remedy`] says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadDocument {
    /// The line has bytes that are not UTF-8.
    #[error("not UTF-8 at byte {at_byte} of the line")]
    NotUtf8 {
        /// 1-based position of the first bad byte.
        at_byte: usize,
    },
    /// The line is not one JSON value.
    #[error("malformed JSON at byte {at_byte} of the line: {reason}")]
    MalformedJson {
        /// 1-based position.
        at_byte: usize,
        /// What is wrong there.
        reason: String,
    },
    /// Arrays and objects are nested too deeply.
    #[error("JSON nested deeper than {MAX_NESTING} levels at byte {at_byte} of the line")]
    TooDeep {
        /// 1-based position of the bracket that goes too deep.
        at_byte: usize,
    },
    /// A string has one half of a surrogate pair.
    #[error("lone surrogate escape at byte {at_byte} of the line: not a valid character")]
    LoneSurrogate {
        /// 1-based position of its backslash.
        at_byte: usize,
    },
    /// An integer has too many digits.
    #[error("integer with more than {max_digits} digits at byte {at_byte} of the line")]
    LongInteger {
        /// 1-based position of its first digit.
        at_byte: usize,
        /// How many digits are allowed.
        max_digits: usize,
    },
    /// A plain path leads to nothing.
    #[error("field {pattern} is missing{found}")]
    Missing {
        /// The pattern.
        pattern: Arc<str>,
        /// What is there instead.
        found: Keys,
    },
    /// The first output is not a string.
    #[error("{pattern} is {found}, not a string")]
    NotString {
        /// The pattern.
        pattern: Arc<str>,
        /// What it is.
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
        /// What it says.
        reason: String,
    },
    /// The filter uses up what it may on one document.
    #[error("filter {pattern} exceeds a limit on this document: {used}")]
    Runaway {
        /// The pattern.
        pattern: Arc<str>,
        /// What there was too much of.
        used: Excess,
    },
    /// The line is longer than `max_document_bytes`.
    #[error("line of {len_bytes} bytes exceeds max_document_bytes {max_document_bytes}")]
    Oversize {
        /// Its length.
        len_bytes: u64,
        /// The limit.
        max_document_bytes: u64,
    },
}

/// The keys of an object, as far as a message needs them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys(pub Vec<String>);

impl Keys {
    /// How many keys a message names.
    pub(super) const MAX_SHOWN: usize = 8;
}

impl std::fmt::Display for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(shown) = self.0.get(..self.0.len().min(Self::MAX_SHOWN)) else {
            return Ok(());
        };
        match shown {
            [] => Ok(()),
            shown if shown.len() < self.0.len() => {
                write!(f, "; the object has {}, …", shown.join(", "))
            }
            shown => write!(f, "; the object has {}", shown.join(", ")),
        }
    }
}

/// What a filter used too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Excess {
    /// Steps of evaluation.
    #[error("too many steps")]
    Steps,
    /// Recursion that is not a tail call.
    #[error("recursion too deep")]
    Stack,
    /// A value too large or too deeply nested.
    #[error("value too large")]
    Value,
}

impl BadDocument {
    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NotUtf8 { .. } => {
                "convert the file to UTF-8, or skip such lines with --on-bad-document skip (on_bad_document: skip)"
            }
            Self::MalformedJson { .. }
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
            Self::Oversize { .. } => {
                "raise --max-document-bytes (max_document_bytes), or skip such lines with --on-bad-document skip (on_bad_document: skip)"
            }
        }
    }
}

/// Why a pattern cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It is no jq.
    #[error("expected {expected}, found {found:?}")]
    Syntax {
        /// What should stand there.
        expected: String,
        /// What does, up to the end.
        found: String,
    },
    /// It names something that does not exist.
    #[error("{kind} {name} is not defined")]
    Undefined {
        /// What it would be.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// It is a name of which a dot was probably forgotten.
    #[error("filter {name} is not defined; did you mean {meant}?")]
    MissingDot {
        /// The name.
        name: String,
        /// The path that it would be with a dot.
        meant: String,
    },
    /// It is too long.
    #[error(
        "length is {len_bytes} bytes, at most {max_bytes} are allowed; shorten it, or preprocess the corpus"
    )]
    TooLong {
        /// Its length.
        len_bytes: usize,
        /// The limit.
        max_bytes: usize,
    },
    /// It nests too deeply.
    #[error(
        "terms are nested deeper than {max} levels; shorten chains of operators and nested brackets"
    )]
    TooDeep {
        /// The limit.
        max: usize,
    },
    /// A path in it has too many parts.
    #[error("a path has more than {max} parts; write it as several paths joined by |")]
    LongPath {
        /// The limit.
        max: usize,
    },
    /// There is no thread to compile it on.
    #[error(
        "cannot start a thread with a {stack_bytes}-byte stack to compile it: {reason}; raise the memory limit (ulimit -v)"
    )]
    NoThread {
        /// How large its stack would be.
        stack_bytes: usize,
        /// Why.
        reason: String,
    },
    /// It names something that packtok leaves out of jq.
    #[error(
        "{name} is not available in packtok because the output must depend only on the documents"
    )]
    Unavailable {
        /// Its name.
        name: String,
    },
    /// It has a module directive or an import.
    #[error(
        "modules and imports are not available in packtok; put the definitions into the pattern"
    )]
    Module,
}
