//! The general path for any pattern: jq on JSON that was checked before.

use std::fmt::{self, Write};
use std::sync::Arc;

use jaq_core::load::parse::{Def, Term};
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, compile};
use jaq_json::{Val, read};

use super::meter::{Meter, Metered, MeteredFilter, Run, Stopped};
use super::rewrite::Rewriter;
use super::{BadDocument, PatternError, json, natives, nesting};

/// Maximum length of a filter's error message, which may contain the whole document.
const MAX_REASON_CHARS: usize = 200;

/// Longest pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 32 << 10;

/// Stack for compiling a pattern, plus an amount per byte, because each byte may open a bracket.
const BASE_STACK_BYTES: usize = 2 << 20;
const STACK_BYTES_PER_BYTE: usize = 16 << 10;

/// Substrings of the names of all functions that return paths.
const PATH_FUNCTIONS: [&str; 2] = ["path", "pick"];

/// Name under which the pattern is compiled.
const MAIN: &str = "packtok_main";

/// A compiled jq filter.
pub(super) struct Filter {
    /// The pattern as shown in messages.
    pattern: Arc<str>,
    compiled: MeteredFilter,
}

impl Filter {
    /// Compiles `pattern` on a thread whose stack suffices for any allowed pattern: parsing
    /// recurses as deeply as the pattern nests.
    ///
    /// # Errors
    /// The pattern is invalid, too long or nested too deeply.
    pub(super) fn compile(pattern: &Arc<str>) -> Result<Self, PatternError> {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(PatternError::TooLong {
                len_bytes: pattern.len(),
                max_bytes: MAX_PATTERN_BYTES,
            });
        }
        let stack_bytes = BASE_STACK_BYTES + pattern.len() * STACK_BYTES_PER_BYTE;
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new()
                .name("packtok-jq".to_owned())
                .stack_size(stack_bytes)
                .spawn_scoped(scope, || Self::compile_here(pattern))
                .map_err(|cause| PatternError::NoThread {
                    stack_bytes,
                    reason: cause.to_string(),
                })?;
            match thread.join() {
                Ok(compiled) => compiled,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Compiles `pattern` twice: unchanged, for the error messages, then with the meter.
    fn compile_here(pattern: &Arc<str>) -> Result<Self, PatternError> {
        let main = match load::parse(pattern, |parser| parser.term()) {
            Some(main) => main,
            None => {
                // A pattern that does not parse as a term is invalid or a module.
                compile_main(definitions().collect(), pattern)?;
                return Err(PatternError::Module);
            }
        };
        nesting::check(&main)?;
        compile_main(definitions().collect(), pattern).map_err(|error| with_dot(error, pattern))?;
        let has_paths = PATH_FUNCTIONS.iter().any(|name| pattern.contains(name));
        let mut library = Rewriter::of_library(has_paths);
        let mut metered: Vec<Def<&str>> = definitions()
            .map(|definition| library.definition(definition))
            .collect();
        let main = Rewriter::of_pattern(pattern, has_paths).term(main);
        metered.push(Def {
            name: MAIN,
            args: Vec::new(),
            body: main,
        });
        Ok(Self {
            compiled: compile_main(metered, MAIN)?,
            pattern: shortened(pattern).into(),
        })
    }

    /// Compiles `pattern` without the meter.
    #[cfg(test)]
    pub(super) fn compile_unmetered(pattern: &str) -> Self {
        Self {
            compiled: compile_main(definitions().collect(), pattern).unwrap(),
            pattern: pattern.into(),
        }
    }

    /// The filter's first output for `value`, which was read from a line of `line_bytes`.
    pub(super) fn first_output(&self, value: Val, line_bytes: usize) -> Result<Val, BadDocument> {
        let result = Meter::run(line_bytes, |meter| {
            let run = Run {
                lut: &self.compiled.lut,
                meter,
            };
            let context = Ctx::<Metered>::new(run, Vars::new([]));
            let output = self.compiled.id.run((context, value)).next();
            output.map(|output| output.map_err(|exception| reason(exception.get_err().ok())))
        });
        let pattern = self.pattern.clone();
        match result {
            Ok(Some(Ok(value))) => Ok(value),
            Ok(Some(Err(reason))) => Err(BadDocument::FilterFails { pattern, reason }),
            Ok(None) => Err(BadDocument::NoOutput { pattern }),
            Err(Stopped::Excess(used)) => Err(BadDocument::Runaway { pattern, used }),
            Err(Stopped::Panic(message)) => {
                let reason = shortened(&format!("the jq library panicked: {message}"));
                Err(BadDocument::FilterFails { pattern, reason })
            }
        }
    }
}

/// The JSON value of a line.
pub(super) fn parse(line: &[u8]) -> Result<Val, BadDocument> {
    let text = json::check(line)?;
    json::check_surrogates(text)?;
    json::check_integers(text)?;
    read::parse_single(text.as_bytes()).map_err(|cause| BadDocument::MalformedJson {
        at_byte: 1,
        reason: cause.to_string(),
    })
}

/// The text of an output.
pub(super) fn text_of<'a>(output: &'a Val, pattern: &Arc<str>) -> Result<&'a str, BadDocument> {
    match output {
        Val::TStr(bytes) => {
            simdutf8::basic::from_utf8(bytes).map_err(|_| BadDocument::OutputNotUtf8 {
                pattern: pattern.clone(),
            })
        }
        other => Err(BadDocument::NotString {
            pattern: pattern.clone(),
            found: type_of(other),
        }),
    }
}

/// The type of a value, for messages.
pub(super) fn type_of(value: &Val) -> &'static str {
    match value {
        Val::TStr(_) => "a string",
        Val::Null => "null",
        Val::Bool(_) => "a boolean",
        Val::Num(_) => "a number",
        Val::BStr(_) => "a byte string",
        Val::Arr(_) => "an array",
        Val::Obj(_) => "an object",
    }
}

/// The definitions of the jq library, except for unavailable ones.
fn definitions() -> impl Iterator<Item = Def<&'static str, Term<&'static str>>> {
    let library = jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs());
    library.filter(|definition| !natives::is_unavailable(definition.name))
}

fn compile_main(definitions: Vec<Def<&str>>, main: &str) -> Result<MeteredFilter, PatternError> {
    let arena = Arena::default();
    let file = File {
        code: main,
        path: (),
    };
    let modules = Loader::new(definitions)
        .load(&arena, file)
        .map_err(|errors| load_error(main, errors))?;
    Compiler::default()
        .with_funs(natives::all())
        .compile(modules)
        .map_err(|errors| compile_error(&errors))
}

fn load_error(main: &str, errors: load::Errors<&str, ()>) -> PatternError {
    let syntax = |expected: &str, found: &str| PatternError::Syntax {
        expected: expected.to_owned(),
        found: shortened(found),
    };
    match errors.into_iter().next() {
        Some((_, load::Error::Lex(errors))) => match errors.first() {
            Some((expected, found)) => syntax(expected.as_str(), found),
            None => syntax("a filter", main),
        },
        Some((_, load::Error::Parse(errors))) => match errors.first() {
            Some((expected, found)) => syntax(expected.as_str(), found),
            None => syntax("a filter", main),
        },
        Some((_, load::Error::Io(_))) => PatternError::Module,
        None => syntax("a filter", main),
    }
}

fn compile_error(errors: &compile::Errors<&str, ()>) -> PatternError {
    let first = errors.iter().flat_map(|(_, errors)| errors).next();
    let (name, undefined) = match first {
        Some((name, undefined)) => (*name, undefined.as_str()),
        None => ("", "filter"),
    };
    let name_text = name.to_owned();
    if natives::is_unavailable(name) {
        PatternError::Unavailable { name: name_text }
    } else {
        PatternError::Undefined {
            kind: undefined,
            name: name_text,
        }
    }
}

/// The error of a pattern. If the pattern is a bare name, the error suggests the path with a dot.
fn with_dot(error: PatternError, pattern: &str) -> PatternError {
    let (PatternError::Undefined { name, .. } | PatternError::Unavailable { name }) = &error else {
        return error;
    };
    let pattern = pattern.trim_matches([' ', '\t', '\n']);
    let is_part = |part: &str| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        !part.is_empty() && part.chars().all(is_name)
    };
    if !pattern.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        || !pattern.split('.').all(is_part)
    {
        return error;
    }
    let key = |part: &str| {
        if part.contains('-') || part.starts_with(|c: char| c.is_ascii_digit()) {
            format!(".{part:?}")
        } else {
            format!(".{part}")
        }
    };
    PatternError::MissingDot {
        name: name.clone(),
        meant: pattern.split('.').map(key).collect(),
    }
}

/// The message of an error, shortened.
fn reason(error: Option<jaq_json::Error>) -> String {
    let mut shortened = Shortened::default();
    match error {
        // The write fails when the buffer is full; the part that fits is kept.
        Some(error) => {
            let _ = write!(shortened, "{error}");
        }
        None => shortened.0.push_str("it stops the program"),
    }
    shortened.0
}

/// A text, shortened for a message.
pub(super) fn shortened(text: &str) -> String {
    let mut shortened = Shortened::default();
    let _ = shortened.write_str(text);
    shortened.0
}

/// A writer that keeps only the start of the written text.
#[derive(Default)]
struct Shortened(String);

impl Write for Shortened {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if self.0.chars().count() >= MAX_REASON_CHARS {
                self.0.push('…');
                return Err(fmt::Error);
            }
            self.0.push(c);
        }
        Ok(())
    }
}
