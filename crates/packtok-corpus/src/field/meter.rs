//! Limits the resources that a filter uses on one document: steps, stack and the size of values.
//!
//! The jq library has no limits, but it fetches its table of terms from the caller for every term
//! that it evaluates, so [`Meter::step`] is called once per step. No error can be returned from
//! there. Instead, the evaluation is unwound, without invoking the panic hook, and the unwind is
//! caught where the evaluation started. The limits count steps and bytes, not time, so the result
//! is the same on every machine. Only the stack is measured in bytes of this build.

use std::cell::Cell;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use jaq_core::data::{DataT, HasLut};
use jaq_core::{Filter, Lut};
use jaq_json::{Num, Val};

use super::bad::Excess;

/// Ten million steps take seconds in an unoptimized build, and the tests reach the limit many
/// times.
const BASE_STEPS: u64 = if cfg!(test) { 200_000 } else { 10_000_000 };
const STEPS_PER_BYTE: u64 = 64;

/// Half the smallest stack of a thread, the default of Rust.
const MAX_STACK_BYTES: usize = 1 << 20;

const BASE_VALUE_BYTES: usize = if cfg!(test) { 4 << 20 } else { 64 << 20 };
const VALUE_BYTES_PER_BYTE: usize = 16;

/// Bytes of created values per step. Together with the step limit, this bounds the memory of many
/// coexisting large values.
const MADE_BYTES_PER_STEP: usize = 128;

/// Bytes of copied arrays and objects per step.
const COPIED_BYTES_PER_STEP: usize = 1024;

/// Nodes of visited values per step.
const NODES_PER_STEP: usize = 16;

/// Maximum nesting of a value. Dropping and comparing values recurse as deeply.
const MAX_VALUE_NESTING: usize = 512;

/// Maximum number of components of a path. Dropping a path recurses as deeply.
pub(super) const MAX_PATH: usize = 1024;

/// Number of path steps between two checks of the length, which are slow.
const UNCHECKED_PATH_STEPS: u32 = 16;

/// Maximum length of a chain of closures that capture each other: dropping it recurses.
const MAX_CLOSURES: usize = 1000;

/// Number of nodes that may be visited per created value before visits count as steps.
const WALKED_PER_MADE: usize = 64;

/// Maximum length of a big number in bits. Arithmetic on longer numbers is too slow.
const MAX_NUMBER_BITS: u64 = 1 << 20;

/// The jq library's data type with [`Val`] as value and access to a meter.
pub(super) struct Metered;

impl DataT for Metered {
    type V<'a> = Val;
    type Data<'a> = Run<'a>;
}

/// The context of one run of a filter.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) lut: &'a Lut<Metered>,
    pub(super) meter: &'a Meter,
}

impl<'a> HasLut<'a, Metered> for Run<'a> {
    fn lut(&self) -> &'a Lut<Metered> {
        self.meter.step(1);
        self.lut
    }
}

/// The compiled form of a filter.
pub(super) type MeteredFilter = Filter<Metered>;

/// Counts the resources of one run of a filter.
pub(super) struct Meter {
    steps_left: Cell<u64>,
    stack_start: usize,
    max_value_bytes: usize,
    /// Number of nodes that may still be visited without counting steps.
    walk_credit: Cell<usize>,
    places_unseen: Cell<u32>,
}

/// The payload that unwinds the evaluation.
struct Stop(Excess);

/// Why an evaluation was stopped.
pub(super) enum Stopped {
    /// The evaluation exceeded a limit.
    Excess(Excess),
    /// The jq library panicked, with this message.
    Panic(String),
}

impl Meter {
    /// Calls `evaluate` with a meter for a line of `line_bytes`.
    ///
    /// # Errors
    /// The evaluation exceeded a limit or panicked. The library panics for some values, and a
    /// filter must not end the process.
    pub(super) fn run<T>(
        line_bytes: usize,
        evaluate: impl FnOnce(&Meter) -> T,
    ) -> Result<T, Stopped> {
        let max_value_bytes =
            BASE_VALUE_BYTES.saturating_add(line_bytes.saturating_mul(VALUE_BYTES_PER_BYTE));
        let meter = Self {
            steps_left: Cell::new(BASE_STEPS + STEPS_PER_BYTE * line_bytes as u64),
            stack_start: stack_position(),
            max_value_bytes,
            // Sufficient for a value that doubles repeatedly up to its limit.
            walk_credit: Cell::new(4 * max_value_bytes / size_of::<Val>()),
            places_unseen: Cell::new(UNCHECKED_PATH_STEPS),
        };
        // Unwind safe: only the meter is used again, and it ends here.
        catch_unwind(AssertUnwindSafe(|| evaluate(&meter))).map_err(|payload| {
            let payload = match payload.downcast::<Stop>() {
                Ok(stop) => return Stopped::Excess(stop.0),
                Err(payload) => payload,
            };
            let message = match payload.downcast::<String>() {
                Ok(message) => *message,
                Err(payload) => match payload.downcast::<&'static str>() {
                    Ok(message) => (*message).to_owned(),
                    Err(_) => String::new(),
                },
            };
            Stopped::Panic(message)
        })
    }

    /// Counts `num_steps` steps, and checks the stack.
    pub(super) fn step(&self, num_steps: u64) {
        match self.steps_left.get().checked_sub(num_steps) {
            Some(left) => self.steps_left.set(left),
            None => stop(Excess::Steps),
        }
        if self.stack_start.abs_diff(stack_position()) > MAX_STACK_BYTES {
            stop(Excess::Stack);
        }
    }

    /// Checks a value that was just created.
    pub(super) fn made(&self, value: &Val) {
        self.sized(value);
        if matches!(value, Val::Arr(_) | Val::Obj(_)) {
            self.walk_credit
                .set(self.walk_credit.get().saturating_add(WALKED_PER_MADE));
            let num_values = self.walk(value, &mut |_| ());
            let credit = self.walk_credit.get();
            self.walk_credit.set(credit.saturating_sub(num_values));
            self.step((num_values.saturating_sub(credit) / NODES_PER_STEP) as u64);
        }
    }

    /// Checks the size, but not the content, of a value that was just created.
    pub(super) fn sized(&self, value: &Val) {
        let value_bytes = match value {
            Val::Num(Num::BigInt(n)) if n.bits() > MAX_NUMBER_BITS => stop(Excess::Value),
            Val::Num(Num::BigInt(n)) => n.bits() as usize / 8,
            value => shallow_bytes(value),
        };
        self.will_make(value_bytes as u64);
        self.step((value_bytes / MADE_BYTES_PER_STEP) as u64);
    }

    /// Checks the size of a value before it is created.
    pub(super) fn will_make(&self, value_bytes: u64) {
        if value_bytes > self.max_value_bytes as u64 {
            stop(Excess::Value);
        }
    }

    /// Checks the sum of two values before it is created.
    pub(super) fn will_add(&self, left: &Val, right: &Val) {
        let is_in_place = match (left, right) {
            (Val::TStr(left), Val::TStr(_)) | (Val::BStr(left), Val::BStr(_)) => left.is_unique(),
            (Val::Arr(left), Val::Arr(_)) => Arc::strong_count(left) == 1,
            (Val::Obj(left), Val::Obj(_)) => Arc::strong_count(left) == 1,
            _ => return,
        };
        let (left_bytes, right_bytes) = (shallow_bytes(left), shallow_bytes(right));
        self.will_make((left_bytes + right_bytes) as u64);
        let copied_bytes = right_bytes + if is_in_place { 0 } else { left_bytes };
        self.step((copied_bytes / MADE_BYTES_PER_STEP) as u64);
        // The sum is nested no deeper than its operands, and larger than the left one by the
        // content of the right one.
        if matches!(right, Val::Arr(_) | Val::Obj(_)) {
            self.made(right);
        }
    }

    /// Checks the product of two values before it is created. Multiplication is the only operator
    /// that turns small values into a huge one in a single step.
    pub(super) fn will_multiply(&self, a: &Val, b: &Val) {
        let (text, times) = match (a, b) {
            (Val::TStr(text) | Val::BStr(text), Val::Num(times))
            | (Val::Num(times), Val::TStr(text) | Val::BStr(text)) => (text, times),
            _ => return,
        };
        let times = jaq_std::ValT::as_f64(&Val::Num(times.clone())).unwrap_or(0.0);
        if text.len() as f64 * times > self.max_value_bytes as f64 {
            stop(Excess::Value);
        }
    }

    /// Checks the text of a value before it is created: it repeats shared parts.
    pub(super) fn will_show(&self, value: &Val) {
        if matches!(value, Val::Arr(_) | Val::Obj(_)) {
            let mut num_bytes = 0;
            let num_values = self.walk(value, &mut |part| num_bytes += text_bytes(part));
            self.will_make(num_bytes as u64);
            self.step((num_values / NODES_PER_STEP) as u64);
        }
    }

    /// Counts the copy of an array or object.
    pub(super) fn copied(&self, value: &Val) {
        if matches!(value, Val::Arr(_) | Val::Obj(_)) {
            self.step((shallow_bytes(value) / COPIED_BYTES_PER_STEP) as u64);
        }
    }

    /// Checks periodically whether a path is too long.
    pub(super) fn place(&self, is_long: impl FnOnce() -> bool) {
        match self.places_unseen.get().checked_sub(1) {
            Some(left) => self.places_unseen.set(left),
            None => {
                self.places_unseen.set(UNCHECKED_PATH_STEPS);
                if is_long() {
                    stop(Excess::Stack);
                }
            }
        }
    }

    /// Checks the length of a chain of closures.
    pub(super) fn closures(&self, depth: usize) {
        if depth > MAX_CLOSURES {
            stop(Excess::Stack);
        }
    }

    /// Visits all nodes of a value and calls `leaf` for every value that is not an array or
    /// object. Shared parts are visited as often as they occur, as in printing or comparing.
    /// Returns the number of nodes.
    fn walk(&self, value: &Val, leaf: &mut dyn FnMut(&Val)) -> usize {
        let max_values = self.max_value_bytes / size_of::<Val>();
        let mut todo = vec![(value, 0)];
        let mut num_values = 0;
        while let Some((value, nesting)) = todo.pop() {
            num_values += 1;
            if nesting > MAX_VALUE_NESTING || num_values > max_values {
                stop(Excess::Value);
            }
            match value {
                Val::Arr(values) => todo.extend(values.iter().map(|value| (value, nesting + 1))),
                Val::Obj(map) => {
                    let parts = map.iter().flat_map(|(key, value)| [key, value]);
                    todo.extend(parts.map(|value| (value, nesting + 1)));
                }
                value => leaf(value),
            }
        }
        num_values
    }
}

/// The length of the text of a string or a long number; other values have short texts.
fn text_bytes(value: &Val) -> usize {
    match value {
        Val::Num(Num::BigInt(n)) => n.bits() as usize / 3,
        value => shallow_bytes(value),
    }
}

/// The memory of a value without its children.
fn shallow_bytes(value: &Val) -> usize {
    match value {
        Val::TStr(bytes) | Val::BStr(bytes) => bytes.len(),
        Val::Arr(values) => values.len() * size_of::<Val>(),
        Val::Obj(map) => map.len() * 2 * size_of::<Val>(),
        Val::Null | Val::Bool(_) | Val::Num(_) => 0,
    }
}

fn stop(excess: Excess) -> ! {
    resume_unwind(Box::new(Stop(excess)))
}

/// The approximate current end of the stack.
#[inline(always)]
fn stack_position() -> usize {
    let here = 0u8;
    &raw const *black_box(&here) as usize
}
