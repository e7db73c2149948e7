//! The way that takes any pattern: jq, on JSON that has been checked before.

use std::fmt::{self, Write};
use std::sync::Arc;

use jaq_core::load::parse::{Def, Term};
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, compile};
use jaq_json::{Val, read};

use super::meter::{Meter, Metered, MeteredFilter, Run};
use super::{BadDocument, PatternError, json, natives, rewrite};

/// How much of a filter's error message is kept: it may show the whole document.
const MAX_REASON_CHARS: usize = 200;

/// Name under which the pattern is compiled.
const MAIN: &str = "packtok_main";

/// A compiled jq filter.
pub(super) struct Filter {
    pattern: Arc<str>,
    compiled: MeteredFilter,
}

impl Filter {
    /// Compiles `pattern` twice: as it stands for the sake of the error messages, then with the
    /// meter in it.
    pub(super) fn compile(pattern: &Arc<str>) -> Result<Self, PatternError> {
        compile_main(definitions().collect(), pattern)?;
        let main = load::parse(pattern, |parser| parser.term()).ok_or(PatternError::Module)?;
        let main = Def {
            name: MAIN,
            args: Vec::new(),
            body: main,
        };
        let mut metered: Vec<Def<&str>> = definitions().map(rewrite::definition).collect();
        metered.push(rewrite::definition(main));
        Ok(Self {
            compiled: compile_main(metered, MAIN)?,
            pattern: pattern.clone(),
        })
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
            Err(used) => Err(BadDocument::Runaway { pattern, used }),
        }
    }
}

/// The value in a line.
pub(super) fn parse(line: &[u8]) -> Result<Val, BadDocument> {
    let text = json::check(line)?;
    json::check_surrogates(text)?;
    json::check_integers(text)?;
    read::parse_single(text.as_bytes()).map_err(|cause| BadDocument::MalformedJson {
        at_byte: 1,
        reason: cause.to_string(),
    })
}

/// The text that an output is.
pub(super) fn text_of<'a>(output: &'a Val, pattern: &Arc<str>) -> Result<&'a str, BadDocument> {
    let found = match output {
        Val::TStr(bytes) => {
            return simdutf8::basic::from_utf8(bytes).map_err(|_| BadDocument::OutputNotUtf8 {
                pattern: pattern.clone(),
            });
        }
        Val::Null => "null",
        Val::Bool(_) => "a boolean",
        Val::Num(_) => "a number",
        Val::BStr(_) => "a byte string",
        Val::Arr(_) => "an array",
        Val::Obj(_) => "an object",
    };
    Err(BadDocument::NotString {
        pattern: pattern.clone(),
        found,
    })
}

/// The definitions of the jq library, without those of what is not available.
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
    match natives::is_unavailable(name) {
        true => PatternError::Unavailable { name: name_text },
        false => PatternError::Undefined {
            kind: undefined,
            name: name_text,
        },
    }
}

/// What an error says, cut to a length that fits into a message.
fn reason(error: Option<jaq_json::Error>) -> String {
    let mut shortened = Shortened::default();
    match error {
        // Writing ends with an error where the room does; what fitted in is kept.
        Some(error) => {
            let _ = write!(shortened, "{error}");
        }
        None => shortened.0.push_str("it stops the program"),
    }
    shortened.0
}

fn shortened(text: &str) -> String {
    let mut shortened = Shortened::default();
    let _ = shortened.write_str(text);
    shortened.0
}

/// The beginning of what is written to it.
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
