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
use std::sync::Arc;

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

/// One step is counted for so many bytes of a value that was made. Together with the number of steps
/// this bounds the memory that many large values take side by side.
const MADE_BYTES_PER_STEP: usize = 128;

/// One step is counted for so many bytes of a value that is read.
const READ_BYTES_PER_STEP: usize = 64;

/// One step is counted for so many values in a value that is compared or shown.
pub(super) const NODES_PER_STEP: usize = 16;

/// One step is counted for so many products of digits, of 64 bits each.
const DIGIT_PRODUCTS_PER_STEP: u64 = 2048;

/// Dropping or comparing a value recurses.
const MAX_VALUE_NESTING: usize = 512;

/// Releasing a path recurses as often as it has parts.
pub(super) const MAX_PATH: usize = 1024;

/// How many steps of a path go unjudged, since looking at its length takes time.
const PLACES_UNSEEN: u32 = 16;

/// How many closures may hold each other: releasing them recurses.
const MAX_CLOSURES: usize = 1000;

/// How many values may be looked into for each value that is made before that counts as steps.
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
    /// How many values may be looked into for free.
    walk_credit: Cell<usize>,
    places_unseen: Cell<u32>,
}

/// What the evaluation is unwound with.
struct Stop(Excess);

/// Why an evaluation ended without a result.
pub(super) enum Stopped {
    /// It used up too much.
    Excess(Excess),
    /// The jq library panicked, with this message.
    Panic(String),
}

impl Meter {
    /// Calls `evaluate` with a meter for a line of `line_bytes`.
    ///
    /// # Errors
    /// The evaluation used up too much, or panicked: the library does so for some values, and a filter
    /// must not end the process.
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
            // Enough for one that doubles again and again to be seen up to its limit.
            walk_credit: Cell::new(4 * max_value_bytes / size_of::<Val>()),
            places_unseen: Cell::new(PLACES_UNSEEN),
        };
        // Unwound or not, nothing of the evaluation is used again but the meter, which ends here.
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
        self.sized(value);
        if matches!(value, Val::Arr(_) | Val::Obj(_)) {
            self.walk_credit
                .set(self.walk_credit.get().saturating_add(WALKED_PER_MADE));
            let num_values = self.walk(value);
            let credit = self.walk_credit.get();
            self.walk_credit.set(credit.saturating_sub(num_values));
            self.step((num_values.saturating_sub(credit) / NODES_PER_STEP) as u64);
        }
    }

    /// Judges the size of a value that was just made, whatever is in it.
    pub(super) fn sized(&self, value: &Val) {
        let value_bytes = match value {
            Val::Num(Num::BigInt(n)) if n.bits() > MAX_NUMBER_BITS => stop(Excess::Value),
            Val::Num(Num::BigInt(n)) => n.bits() as usize / 8,
            value => shallow_bytes(value),
        };
        self.will_make(value_bytes as u64);
        self.step((value_bytes / MADE_BYTES_PER_STEP) as u64);
    }

    /// Judges the size of a value before it is made.
    pub(super) fn will_make(&self, value_bytes: u64) {
        if value_bytes > self.max_value_bytes as u64 {
            stop(Excess::Value);
        }
    }

    /// Judges the sum of two values before it is made.
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
        // The sum nests no deeper than the two, and holds as much more than the left one as is in
        // the right one.
        if matches!(right, Val::Arr(_) | Val::Obj(_)) {
            self.made(right);
        }
    }

    /// Judges the product of two values before it is made: of all operators only this one makes
    /// something huge of something small at once.
    pub(super) fn will_multiply(&self, a: &Val, b: &Val) {
        let (text, times) = match (a, b) {
            (Val::TStr(text) | Val::BStr(text), Val::Num(times))
            | (Val::Num(times), Val::TStr(text) | Val::BStr(text)) => (text, times),
            (Val::Num(Num::BigInt(a)), Val::Num(Num::BigInt(b))) => {
                let products = (a.bits() / 64).saturating_mul(b.bits() / 64);
                return self.step(products / DIGIT_PRODUCTS_PER_STEP);
            }
            _ => return,
        };
        let times = jaq_std::ValT::as_f64(&Val::Num(times.clone())).unwrap_or(0.0);
        if text.len() as f64 * times > self.max_value_bytes as f64 {
            stop(Excess::Value);
        }
    }

    /// Counts the reading of everything in a value, and returns about how much that is.
    pub(super) fn weigh(&self, value: &Val) -> u64 {
        let num_values = match value {
            Val::Arr(_) | Val::Obj(_) => self.walk(value),
            value => 1 + shallow_bytes(value) / READ_BYTES_PER_STEP,
        };
        self.step((num_values / NODES_PER_STEP) as u64);
        self.show_number(value);
        num_values as u64
    }

    /// Counts the reading of a value, without what is in its parts.
    pub(super) fn touch(&self, value: &Val) {
        self.step((shallow_bytes(value) / READ_BYTES_PER_STEP) as u64);
    }

    /// Counts the reading of the elements of a value.
    pub(super) fn iterate(&self, value: &Val) {
        if matches!(value, Val::Arr(_) | Val::Obj(_)) {
            self.step((shallow_bytes(value) / READ_BYTES_PER_STEP / 16) as u64);
        }
    }

    /// Looks now and then whether a path has become too long.
    pub(super) fn place(&self, is_long: impl FnOnce() -> bool) {
        match self.places_unseen.get().checked_sub(1) {
            Some(left) => self.places_unseen.set(left),
            None => {
                self.places_unseen.set(PLACES_UNSEEN);
                if is_long() {
                    stop(Excess::Stack);
                }
            }
        }
    }

    /// Judges how many closures hold each other.
    pub(super) fn closures(&self, depth: usize) {
        if depth > MAX_CLOSURES {
            stop(Excess::Stack);
        }
    }

    /// Showing a long number takes time that grows with the square of its length.
    fn show_number(&self, value: &Val) {
        if let Val::Num(Num::BigInt(n)) = value {
            let digits = n.bits() / 64;
            self.step(digits.saturating_mul(digits) / (DIGIT_PRODUCTS_PER_STEP / 8));
        }
    }

    /// Looks at everything in a value, shared parts as often as they occur, as writing or comparing
    /// the value would do, and returns the number of values in it.
    fn walk(&self, value: &Val) -> usize {
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
                value => self.show_number(value),
            }
        }
        num_values
    }
}

/// The memory that a value takes, without what is in its parts.
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

/// About where the stack ends now.
#[inline(always)]
fn stack_position() -> usize {
    let here = 0u8;
    &raw const *black_box(&here) as usize
}
