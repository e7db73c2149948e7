//! The native functions available to patterns: those of the jq library, except functions that
//! access anything but the document. Functions without limits in the library have limits here.

use std::cmp::Ordering;

use jaq_core::box_iter::box_once;
use jaq_core::native::{Filter, bome, run, v};
use jaq_core::{Cv, Error, Exn, Native, RunPtr, ValXs};
use jaq_json::{Val, read};
use jaq_std::ValT;

use super::json;
use super::meter::{MAX_PATH, Meter, Metered};

/// Functions that access something other than the document.
const UNAVAILABLE: [&str; 18] = [
    "env",
    "now",
    "input",
    "inputs",
    "debug",
    "debug_empty",
    "stderr",
    "stderr_empty",
    "halt",
    "halt_error",
    "localtime",
    "strflocaltime",
    "input_filename",
    "input_line_number",
    "get_search_list",
    "$ENV",
    "$__loc__",
    "$__prog_args",
];

/// Functions that this module replaces.
const REPLACED: [&str; 2] = ["range", "fromjson"];

// Functions that only rewritten filters call. Patterns cannot spell their names. The functions
// without arguments return their input, also as a path.

/// Creates a sum.
pub(super) const ADD: &str = "add*";
/// Creates a product.
pub(super) const MULTIPLY: &str = "multiply*";
/// Checks a value that was created.
pub(super) const MADE: &str = "made*";
/// Checks a value created by an assignment of its argument.
pub(super) const ASSIGNED: &str = "assigned*";
/// Checks the size of a value whose content all comes from its operands.
pub(super) const SIZED: &str = "sized*";
/// Checks an array that was copied from a part of another one.
pub(super) const COPIED: &str = "copied*";
/// Checks the text of a value that is about to be created.
pub(super) const SHOWN: &str = "shown*";
/// Counts one step of evaluation.
pub(super) const PASS: &str = "pass*";
/// Checks the length of a path.
pub(super) const PLACE: &str = "place*";
/// Checks its argument, the length of a chain of closures, and returns it plus one.
pub(super) const DEEPER: &str = "deeper*";
const EXPLODED: &str = "exploded*";
const MATCHED: &str = "matched*";
const REPEATED: &str = "repeated*";

/// The check that a native function needs. The checks limit memory, not time.
#[derive(Clone, Copy)]
pub(super) enum Check {
    /// [`MADE`] checks the result.
    Made,
    /// The named function checks the input and [`MADE`] checks the result, because the function
    /// may create far more than it reads.
    Before(&'static str),
    /// The named function checks the first argument: a number of rounds that may come from the
    /// document.
    FirstArgument(&'static str),
}

/// The check of a native function; `None` if it creates no large value.
pub(super) fn check_of(name: &str, arity: usize) -> Option<Check> {
    Some(match (name, arity) {
        ("ascii_downcase" | "ascii_upcase" | "reverse" | "sort" | "implode", 0)
        | ("keys_unsorted" | "key_values" | "fromjson", 0)
        | ("escape_sh" | "escape_html" | "unescape_html" | "encode_uri" | "decode_uri", 0)
        | ("encode_base64" | "decode_base64", 0)
        | ("sort_by" | "group_by" | "path" | "path_value", 1)
        | ("split_", 2) => Check::Made,
        ("tojson" | "tobytes", 0) => Check::Before(SHOWN),
        ("explode", 0) => Check::Before(EXPLODED),
        ("matches" | "split_matches", 2) => Check::Before(MATCHED),
        ("jn" | "yn", 2) => Check::FirstArgument(REPEATED),
        _ => return None,
    })
}

/// Whether `name` is a function or variable of jq that is unavailable here.
pub(super) fn is_unavailable(name: &str) -> bool {
    UNAVAILABLE.contains(&name)
}

/// All native functions.
pub(super) fn all() -> impl Iterator<Item = Filter<Native<Metered>>> {
    let is_kept = |filter: &Filter<_>| !is_unavailable(filter.0) && !REPLACED.contains(&filter.0);
    let library = jaq_core::funs()
        .chain(jaq_std::base_funs())
        .chain(jaq_std::extra_funs())
        .chain(jaq_json::funs())
        .filter(is_kept);
    let own: [Filter<RunPtr<Metered>>; 6] = [
        ("range", v(3), range),
        ("fromjson", v(0), fromjson),
        (ADD, v(2), add),
        (MULTIPLY, v(2), multiply),
        (DEEPER, v(1), deeper),
        (ASSIGNED, v(1), assigned),
    ];
    library.chain(own.map(run::<Metered>)).chain(checks())
}

/// A native function that returns its input after checking it.
macro_rules! check {
    ($name:expr, $look:expr) => {{
        const LOOK: fn(&Meter, &Val) = $look;
        let run: RunPtr<Metered> = |cv| {
            LOOK(cv.0.data().meter, &cv.1);
            box_once(Ok(cv.1))
        };
        let native = Native::<Metered>::new(run)
            .with_paths(|cv| {
                LOOK(cv.0.data().meter, &cv.1.0);
                box_once(Ok(cv.1))
            })
            .with_update(|cv, update| {
                LOOK(cv.0.data().meter, &cv.1);
                update(cv.1)
            });
        ($name, v(0), native)
    }};
}

/// The functions that only check their input.
fn checks() -> impl Iterator<Item = Filter<Native<Metered>>> {
    let place: Filter<Native<Metered>> = check!(PLACE, |_, _| ());
    let place = place.2.with_paths(|cv| {
        let path = &cv.1.1;
        let is_long = || path.get(MAX_PATH).is_some();
        cv.0.data().meter.place(is_long);
        box_once(Ok(cv.1))
    });
    [
        (PLACE, v(0), place),
        check!(PASS, |_, _| ()),
        check!(MADE, Meter::made),
        check!(SIZED, Meter::sized),
        check!(COPIED, Meter::copied),
        check!(SHOWN, Meter::will_show),
        check!(EXPLODED, |meter, value| {
            meter.will_make(len_of(value) as u64 * size_of::<Val>() as u64);
        }),
        check!(MATCHED, |meter, value| {
            meter.will_make(len_of(value) as u64 * MATCH_BYTES_PER_BYTE);
        }),
        check!(REPEATED, |meter, value| {
            let rounds = value.as_isize().unwrap_or(0).unsigned_abs() as u64;
            meter.step(rounds / ROUNDS_PER_STEP);
        }),
    ]
    .into_iter()
}

/// Bytes of matches assumed per byte of a text before it is searched: each match becomes an object.
/// The texts of a line always pass, because the size limit grows by as much per byte of the line.
const MATCH_BYTES_PER_BYTE: u64 = 16;

/// Rounds of a Bessel function per step.
const ROUNDS_PER_STEP: u64 = 16;

/// The length of a string in bytes, or the number of elements of an array.
fn len_of(value: &Val) -> usize {
    match value {
        Val::TStr(bytes) | Val::BStr(bytes) => bytes.len(),
        Val::Arr(values) => values.len(),
        _ => 0,
    }
}

/// `range($from; $upto; $by)`, with one step per number.
fn range<'a>(mut cv: Cv<'a, Metered>) -> ValXs<'a, Val> {
    let by = cv.0.pop_var();
    let upto = cv.0.pop_var();
    let mut next = Some(Ok(cv.0.pop_var()));
    let meter = cv.0.data().meter;
    let direction = by.cmp(&Val::from(0usize));
    Box::new(std::iter::from_fn(move || {
        meter.step(1);
        let here = match next.take()? {
            Ok(here) => here,
            Err(cause) => return Some(Err(Exn::from(cause))),
        };
        let is_inside = match direction {
            Ordering::Greater => here < upto,
            Ordering::Less => here > upto,
            Ordering::Equal => here != upto,
        };
        is_inside.then(|| {
            next = Some(here.clone() + by.clone());
            Ok(here)
        })
    }))
}

/// `fromjson` with the same strict checks as for lines. The library's version accepts more and
/// recurses without a limit.
fn fromjson<'a>(cv: Cv<'a, Metered>) -> ValXs<'a, Val> {
    let parse = |value: &Val| {
        let text = value.try_as_utf8_bytes()?;
        let text = json::check(text).map_err(Error::str)?;
        json::check_surrogates(text).map_err(Error::str)?;
        json::check_integers(text).map_err(Error::str)?;
        read::parse_single(text.as_bytes()).map_err(Error::str)
    };
    bome(parse(&cv.1))
}

fn add<'a>((mut context, input): Cv<'a, Metered>) -> ValXs<'a, Val> {
    // The left value is often the input; with a single reference it grows in place.
    drop(input);
    let right = context.pop_var();
    let left = context.pop_var();
    let meter = context.data().meter;
    meter.will_add(&left, &right);
    let sum = left + right;
    if let Ok(sum @ Val::Num(_)) = &sum {
        meter.sized(sum);
    }
    bome(sum)
}

fn multiply<'a>(mut cv: Cv<'a, Metered>) -> ValXs<'a, Val> {
    let right = cv.0.pop_var();
    let left = cv.0.pop_var();
    let meter = cv.0.data().meter;
    meter.will_multiply(&left, &right);
    let product = left * right;
    if let Ok(product) = &product {
        meter.made(product);
    }
    bome(product)
}

fn deeper<'a>(mut cv: Cv<'a, Metered>) -> ValXs<'a, Val> {
    let depth = cv.0.pop_var().as_isize().unwrap_or(0);
    cv.0.data().meter.closures(depth.unsigned_abs());
    bome(Ok(Val::from(depth + 1)))
}

fn assigned<'a>(mut cv: Cv<'a, Metered>) -> ValXs<'a, Val> {
    let meter = cv.0.data().meter;
    match cv.0.pop_var() {
        // The result is no deeper and no larger than the parts that it replaces, or the operand
        // limits both.
        Val::Arr(_) | Val::Obj(_) => meter.made(&cv.1),
        _ => meter.copied(&cv.1),
    }
    bome(Ok(cv.1))
}
