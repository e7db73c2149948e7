//! Bounds what a filter may use up on one document: steps, stack and the size of values.
//!
//! The jq library has no limits of its own, but it fetches its table of terms anew for every term
//! that it evaluates, and the caller provides that table: so [`Meter::step`] is called for each
//! step. There is no way to return an error from there; the evaluation is unwound, without a word
//! from the panic hook, and caught where it was started. The limits count steps and bytes, not
//! time, so that a document is judged alike on every machine. Only the stack is measured in bytes
//! of this build.

use std::cell::Cell;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use jaq_core::data::{DataT, HasLut};
use jaq_core::{Filter, Lut};
use jaq_json::{Num, Val};

use super::bad::Excess;

/// Unoptimised, ten million steps take seconds, and the tests use them up time and again.
const BASE_STEPS: u64 = if cfg!(test) { 200_000 } else { 10_000_000 };
const STEPS_PER_BYTE: u64 = 64;

/// Half the stack of the smallest threads, those that Rust starts by default.
const MAX_STACK_BYTES: usize = 1 << 20;

const BASE_VALUE_BYTES: usize = if cfg!(test) { 4 << 20 } else { 64 << 20 };
const VALUE_BYTES_PER_BYTE: usize = 16;

/// One step is counted for so many bytes of a value that was made.
const BYTES_PER_STEP: usize = 1024;

/// Dropping or comparing a value recurses.
const MAX_VALUE_NESTING: usize = 512;

/// How many more values may be looked into for each value that is made: looking into a growing one
/// each time would take quadratic time.
const WALKED_PER_MADE: usize = 64;

/// Longest big number, in bits: arithmetic on longer ones is too slow.
const MAX_NUMBER_BITS: u64 = 1 << 20;

/// Makes the jq library work on [`Val`] with a meter at hand.
pub(super) struct Metered;

impl DataT for Metered {
    type V<'a> = Val;
    type Data<'a> = Run<'a>;
}

/// What one run of a filter has at hand.
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

/// Counts what one run of a filter uses up.
pub(super) struct Meter {
    steps_left: Cell<u64>,
    stack_start: usize,
    max_value_bytes: usize,
    /// How many values may be looked into.
    walk_credit: Cell<usize>,
}

/// What the evaluation is unwound with.
struct Stop(Excess);

impl Meter {
    /// Calls `evaluate` with a meter for a line of `line_bytes`.
    ///
    /// # Errors
    /// The evaluation used up too much.
    ///
    /// # Panics
    /// If `evaluate` does.
    pub(super) fn run<T>(
        line_bytes: usize,
        evaluate: impl FnOnce(&Meter) -> T,
    ) -> Result<T, Excess> {
        let max_value_bytes =
            BASE_VALUE_BYTES.saturating_add(line_bytes.saturating_mul(VALUE_BYTES_PER_BYTE));
        let meter = Self {
            steps_left: Cell::new(BASE_STEPS + STEPS_PER_BYTE * line_bytes as u64),
            stack_start: stack_position(),
            max_value_bytes,
            // Enough for one that doubles again and again to be seen up to its limit.
            walk_credit: Cell::new(4 * max_value_bytes / size_of::<Val>()),
        };
        // Unwound or not, nothing of the evaluation is used again but the meter, which ends here.
        catch_unwind(AssertUnwindSafe(|| evaluate(&meter))).map_err(|payload| {
            match payload.downcast::<Stop>() {
                Ok(stop) => stop.0,
                Err(payload) => resume_unwind(payload),
            }
        })
    }

    /// Counts `num_steps` steps, and looks at the stack.
    pub(super) fn step(&self, num_steps: u64) {
        match self.steps_left.get().checked_sub(num_steps) {
            Some(left) => self.steps_left.set(left),
            None => stop(Excess::Steps),
        }
        if self.stack_start.abs_diff(stack_position()) > MAX_STACK_BYTES {
            stop(Excess::Stack);
        }
    }

    /// Judges a value that was just made.
    pub(super) fn made(&self, value: &Val) {
        let value_bytes = match value {
            Val::TStr(bytes) | Val::BStr(bytes) => bytes.len(),
            Val::Arr(values) => values.len() * size_of::<Val>(),
            Val::Obj(map) => map.len() * 2 * size_of::<Val>(),
            Val::Num(Num::BigInt(n)) if n.bits() > MAX_NUMBER_BITS => stop(Excess::Value),
            Val::Null | Val::Bool(_) | Val::Num(_) => return,
        };
        if value_bytes > self.max_value_bytes {
            stop(Excess::Value);
        }
        self.step((value_bytes / BYTES_PER_STEP) as u64);
        if matches!(value, Val::Arr(_) | Val::Obj(_)) {
            self.walk(value);
        }
    }

    /// Judges the product of two values before it is made: of all operators only this one makes
    /// something huge of something small at once.
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

    /// Looks at everything in a value, shared parts as often as they occur, as far as the credit
    /// goes: writing or comparing the value would do the same.
    fn walk(&self, value: &Val) {
        let credit = self.walk_credit.get() + WALKED_PER_MADE;
        let mut todo = vec![(value, 0)];
        let mut num_values = 0;
        while num_values < credit
            && let Some((value, nesting)) = todo.pop()
        {
            num_values += 1;
            if nesting > MAX_VALUE_NESTING || num_values > self.max_value_bytes / size_of::<Val>() {
                stop(Excess::Value);
            }
            match value {
                Val::Arr(values) => todo.extend(values.iter().map(|value| (value, nesting + 1))),
                Val::Obj(map) => {
                    let parts = map.iter().flat_map(|(key, value)| [key, value]);
                    todo.extend(parts.map(|value| (value, nesting + 1)));
                }
                _ => {}
            }
        }
        self.walk_credit.set(credit - num_values);
    }
}

fn stop(excess: Excess) -> ! {
    resume_unwind(Box::new(Stop(excess)))
}

/// About where the stack ends now.
#[inline(always)]
fn stack_position() -> usize {
    let here = 0u8;
    &raw const *black_box(&here) as usize
}
