//! The native functions that patterns may use: those of the jq library, without what reads
//! anything besides the document, and with bounds where the library has none.

use std::cmp::Ordering;

use jaq_core::native::{Filter, bome, run, v};
use jaq_core::{Cv, Error, Exn, Native, RunPtr, ValXs};
use jaq_json::{Val, read};
use jaq_std::ValT;

use super::json;
use super::meter::Metered;

/// Names of functions that read or tell something besides the document.
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

/// Functions that this module has its own version of.
const REPLACED: [&str; 2] = ["range", "fromjson"];

/// Name of the function that makes a product; no pattern can spell it.
pub(super) const MULTIPLY: &str = "*bounded";

/// Name of the function that returns its input if it is not too large; no pattern can spell it.
pub(super) const MADE: &str = "made*";

/// Whether `name` is a function or variable of jq that is left out here.
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
    let own: [Filter<RunPtr<Metered>>; 4] = [
        ("range", v(3), range),
        ("fromjson", v(0), fromjson),
        (MULTIPLY, v(2), multiply),
        (MADE, v(0), made),
    ];
    library.chain(own.map(run::<Metered>))
}

/// `range($from; $upto; $by)`, a step for each number.
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

/// `fromjson` of what a line may hold, and nothing else: the library's own accepts more, and
/// recurses as deep as a document tells it to.
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

fn made<'a>(cv: Cv<'a, Metered>) -> ValXs<'a, Val> {
    cv.0.data().meter.made(&cv.1);
    bome(Ok(cv.1))
}
