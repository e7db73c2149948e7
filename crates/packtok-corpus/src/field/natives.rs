//! The native functions available to patterns: those of the jq library, without functions that
//! access anything but the document, and with limits where the library has none.

use std::cmp::Ordering;

use jaq_core::box_iter::box_once;
use jaq_core::native::{Filter, bome, run, v};
use jaq_core::{Cv, Error, Exn, Native, RunPtr, ValXs};
use jaq_json::{Val, read};
use jaq_std::ValT;

use super::json;
use super::meter::{MAX_PATH, Meter, Metered, NODES_PER_STEP};

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

// Names of functions that only rewritten filters call; no pattern can spell them. Those without
// arguments return their input, also as a path.

/// Creates a sum.
pub(super) const ADD: &str = "add*";
/// Creates a product.
pub(super) const MULTIPLY: &str = "multiply*";
/// Checks a value that was created.
pub(super) const MADE: &str = "made*";
/// Checks a value created by an assignment of its argument.
pub(super) const ASSIGNED: &str = "assigned*";
/// Checks a value whose content all comes from its operands.
pub(super) const SIZED: &str = "sized*";
/// Counts everything in a value that is about to be read.
pub(super) const WEIGH: &str = "weigh*";
/// Counts the length of a value that is about to be read.
pub(super) const TOUCH: &str = "touch*";
/// Counts the length of an array or object that is about to be iterated.
pub(super) const ITERATE: &str = "iterate*";
/// Checks an index.
pub(super) const INDEX: &str = "index*";
/// Counts one step.
pub(super) const PASS: &str = "pass*";
/// Checks the length of a path.
pub(super) const PLACE: &str = "place*";
/// Checks its argument, the length of a chain of closures, and returns it plus one.
pub(super) const DEEPER: &str = "deeper*";
const EXPLODED: &str = "exploded*";
const SPLIT: &str = "split*";
const MATCHED: &str = "matched*";
const SEARCHED: &str = "searched*";
const CONTAINED: &str = "contained*";
const REPEATED: &str = "repeated*";

/// Which check a native function needs so that its time and memory are counted.
#[derive(Clone, Copy)]
pub(super) enum Check {
    /// [`TOUCH`] before and [`MADE`] after it.
    Touch,
    /// [`WEIGH`] before and [`MADE`] after it.
    Weigh,
    /// [`MADE`] after it.
    Made,
    /// The named function before it, with the same arguments, and [`MADE`] after it.
    Arguments(&'static str),
}

/// The check of a native function; `None` if its time does not depend on the input.
pub(super) fn check_of(name: &str, arity: usize) -> Option<Check> {
    Some(match (name, arity) {
        ("ascii_downcase" | "ascii_upcase" | "reverse" | "sort" | "implode", 0)
        | ("trim" | "ltrim" | "rtrim" | "length" | "keys_unsorted" | "key_values", 0)
        | ("escape_sh" | "escape_html" | "unescape_html" | "encode_uri" | "decode_uri", 0)
        | ("encode_base64" | "decode_base64", 0)
        | ("sort_by" | "group_by" | "min_by_or_empty" | "max_by_or_empty", 1) => Check::Touch,
        ("tojson" | "tobytes", 0) => Check::Weigh,
        ("fromjson", 0) | ("path" | "path_value", 1) => Check::Made,
        ("explode", 0) => Check::Arguments(EXPLODED),
        ("split_", 2) => Check::Arguments(SPLIT),
        ("matches" | "split_matches", 2) => Check::Arguments(MATCHED),
        ("indices", 1) => Check::Arguments(SEARCHED),
        ("contains", 1) => Check::Arguments(CONTAINED),
        ("jn" | "yn", 2) => Check::Arguments(REPEATED),
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

/// A native function that returns its input after checking it and its arguments. The arguments are
/// popped off the context, last first.
macro_rules! check {
    ($name:expr, $arity:expr, $look:expr) => {{
        let run: RunPtr<Metered> = |mut cv| {
            let meter = cv.0.data().meter;
            $look(meter, &cv.1, &mut || cv.0.pop_var());
            box_once(Ok(cv.1))
        };
        let native = Native::<Metered>::new(run)
            .with_paths(|mut cv| {
                let meter = cv.0.data().meter;
                $look(meter, &cv.1.0, &mut || cv.0.pop_var());
                box_once(Ok(cv.1))
            })
            .with_update(|mut cv, update| {
                let meter = cv.0.data().meter;
                $look(meter, &cv.1, &mut || cv.0.pop_var());
                update(cv.1)
            });
        ($name, v($arity), native)
    }};
}

/// Pops the last argument off a context.
type Pop<'p> = &'p mut dyn FnMut() -> Val;

/// The functions that only check their input.
fn checks() -> impl Iterator<Item = Filter<Native<Metered>>> {
    let place: Filter<Native<Metered>> = check!(PLACE, 0, |_: &Meter, _: &Val, _: Pop<'_>| ());
    let place = place.2.with_paths(|cv| {
        let path = &cv.1.1;
        let is_long = || path.get(MAX_PATH).is_some();
        cv.0.data().meter.place(is_long);
        box_once(Ok(cv.1))
    });
    [
        (PLACE, v(0), place),
        check!(PASS, 0, |_: &Meter, _: &Val, _: Pop<'_>| ()),
        check!(MADE, 0, |meter: &Meter, value: &Val, _: Pop<'_>| meter
            .made(value)),
        check!(SIZED, 0, |meter: &Meter, value: &Val, _: Pop<'_>| meter
            .sized(value)),
        check!(WEIGH, 0, |meter: &Meter, value: &Val, _: Pop<'_>| {
            meter.weigh(value);
        }),
        check!(TOUCH, 0, |meter: &Meter, value: &Val, _: Pop<'_>| meter
            .touch(value)),
        check!(ITERATE, 0, |meter: &Meter, value: &Val, _: Pop<'_>| {
            meter.iterate(value);
        }),
        check!(INDEX, 0, |meter: &Meter, value: &Val, _: Pop<'_>| {
            if let Val::Arr(needle) = value {
                meter.step(needle.len() as u64 * STEPS_PER_NEEDLE);
            }
        }),
        check!(EXPLODED, 0, |meter: &Meter, value: &Val, _: Pop<'_>| {
            meter.will_make(len_of(value) as u64 * size_of::<Val>() as u64);
        }),
        check!(SPLIT, 2, |meter: &Meter, value: &Val, pop: Pop<'_>| {
            let (_flags, regex) = (pop(), pop());
            meter.step(regex_steps(value, &regex));
        }),
        check!(MATCHED, 2, |meter: &Meter, value: &Val, pop: Pop<'_>| {
            let (_flags, regex) = (pop(), pop());
            meter.will_make(len_of(value) as u64 * MATCH_BYTES_PER_BYTE);
            meter.step(regex_steps(value, &regex));
        }),
        check!(SEARCHED, 1, |meter: &Meter, value: &Val, pop: Pop<'_>| {
            meter.step(search_steps(value, &pop()));
        }),
        check!(CONTAINED, 1, |meter: &Meter, value: &Val, pop: Pop<'_>| {
            let steps = meter.weigh(value).saturating_mul(meter.weigh(&pop()));
            meter.step(steps / NODES_PER_STEP as u64);
        }),
        check!(REPEATED, 2, |meter: &Meter, _: &Val, pop: Pop<'_>| {
            let (_x, times) = (pop(), pop());
            let times = times.as_isize().unwrap_or(0).unsigned_abs();
            meter.step(times as u64 / 16);
        }),
    ]
    .into_iter()
}

/// Steps per element of an array that an index searches for in another array.
const STEPS_PER_NEEDLE: u64 = 1000;

/// Bytes of matches assumed per byte of a text before it is searched: each match becomes an object.
/// The texts of a line always pass, because the size limit grows by as much per byte of the line.
const MATCH_BYTES_PER_BYTE: u64 = 16;

/// The length of a string in bytes, or the number of elements of an array.
fn len_of(value: &Val) -> usize {
    match value {
        Val::TStr(bytes) | Val::BStr(bytes) => bytes.len(),
        Val::Arr(values) => values.len(),
        _ => 0,
    }
}

/// Steps for compiling a regular expression and searching `text` with it. The library compiles it
/// at each call; repetitions and character classes make it large.
fn regex_steps(text: &Val, regex: &Val) -> u64 {
    let (Val::TStr(text), Val::TStr(regex)) = (text, regex) else {
        return 0;
    };
    let mut size = regex.len() as u64;
    let mut parts = regex.split(|&byte| byte == b'{');
    let mut before = parts.next().unwrap_or_default();
    for part in parts {
        let digits = part.split(|byte| !byte.is_ascii_digit()).take(2);
        let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<u64>().ok();
        let times = digits.filter_map(number).max().unwrap_or(1).clamp(1, 1000);
        size = match before.last() {
            Some(b')' | b'}') => size.saturating_mul(times),
            _ => size.saturating_add(times),
        };
        before = part;
    }
    let per_unit = if regex.contains(&b'\\') { 12 } else { 1 };
    64 + size
        .saturating_mul(per_unit)
        .saturating_add(text.len() as u64 / 2)
}

/// Steps for searching for `needle` at each position of `value`.
fn search_steps(value: &Val, needle: &Val) -> u64 {
    let (value_len, needle_len) = (len_of(value) as u64, len_of(needle) as u64);
    match value {
        Val::Arr(_) => value_len.saturating_mul(needle_len + 1) / 4,
        _ => value_len.saturating_mul(needle_len / 1024 + 1) / 16,
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
    cv.0.data().meter.step(len_of(&cv.1) as u64 / 16);
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
        // The result is nested no deeper and no larger than what it replaces, or both are limited
        // by the operand.
        Val::Arr(_) | Val::Obj(_) => meter.made(&cv.1),
        _ => meter.iterate(&cv.1),
    }
    bome(Ok(cv.1))
}
