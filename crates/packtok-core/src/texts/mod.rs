//! Texts that are in memory: their ids, how many there are, and the texts of ids.
//!
//! The work is cut into runs of neighbouring items, which threads take in order; results are put
//! together in order, so that they do not depend on the number of threads. Threads live for one
//! call. The calling thread puts results together, and checks for an interruption meanwhile.

mod error;

use crate::pipeline::PipelineError;
pub use error::TextsError;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use packtok_tokenizer::{EncodeOptions, Encoder, Result as BpeResult, Tokenizer};

use crate::error::{Error, Result};
use crate::pack::KEPT_IDS;

/// How often the calling thread looks for an interruption.
const TICK: Duration = Duration::from_millis(50);
/// Bytes of items that make a run: long enough that taking it costs nothing.
const RUN_BYTES: usize = 1 << 16;
/// What an item counts beside its bytes, so that a run of empty ones ends too.
const ITEM_BYTES: usize = 16;
/// Encoders that are kept for later calls.
const KEPT_ENCODERS: usize = 64;

/// Looks for an interruption; `Break` ends the call with [`Error::Cancelled`].
pub type Tick<'a> = dyn FnMut() -> ControlFlow<()> + 'a;

/// A tokenizer and encoders that are warm from earlier calls.
pub struct Encoders {
    tokenizer: Tokenizer,
    /// Only ever tried, never waited for: a process that was forked while another thread was in
    /// here goes on without them.
    idle: Mutex<Vec<(EncodeOptions, Encoder)>>,
}

/// The ids of many texts, back to back.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// All ids.
    pub ids: Vec<u32>,
    /// Text `i` has `ids[offsets[i]..offsets[i + 1]]`; one more than there are texts.
    pub offsets: Vec<i64>,
}

impl Encoders {
    /// No encoders yet.
    pub fn new(tokenizer: Tokenizer) -> Self {
        Self {
            tokenizer,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// What they encode with.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    fn borrow(&self, options: &EncodeOptions) -> Result<Borrowed<'_>> {
        let idle = self.idle.try_lock().ok().and_then(|mut idle| {
            let at = idle.iter().position(|(of, _)| of == options)?;
            Some(idle.swap_remove(at))
        });
        let encoder = match idle {
            Some(idle) => idle,
            None => (options.clone(), self.tokenizer.encoder(options)?),
        };
        Ok(Borrowed {
            home: self,
            encoder: Some(encoder),
            ids: Vec::new(),
        })
    }

    /// The ids of one text.
    ///
    /// # Errors
    /// When the tokenizer refuses it.
    pub fn encode(&self, text: &str, options: &EncodeOptions) -> Result<Vec<u32>> {
        let mut encoder = self.borrow(options)?;
        let mut ids = Vec::new();
        match catch_unwind(AssertUnwindSafe(|| encoder.encode_into(text, &mut ids))) {
            Ok(outcome) => outcome.map(|()| ids).map_err(Error::from),
            Err(_) => Err(Error::Texts(TextsError::ItemPanicked {
                argument: "texts",
                item: 0,
            })),
        }
    }

    /// The ids of many texts, in `ids`, whose content is replaced and whose memory is used.
    ///
    /// # Errors
    /// The first text, in their order, that the tokenizer refuses.
    pub fn encode_batch<T: AsRef<str> + Sync>(
        &self,
        texts: &[T],
        options: &EncodeOptions,
        num_threads: usize,
        mut ids: Vec<u32>,
        tick: &mut Tick<'_>,
    ) -> Result<Batch> {
        ids.clear();
        let mut offsets = Vec::with_capacity(texts.len() + 1);
        offsets.push(0);
        let items = Items {
            argument: "texts",
            runs: runs(texts.len(), |item| texts[item].as_ref().len()),
        };
        if num_threads.min(items.runs.len()) <= 1 {
            // Straight to where they stay: each copy of the ids costs a good part of what encoding costs.
            let mut encoder = self.borrow(options)?;
            items.in_turn(tick, |item| {
                encoder.encode_into(texts[item].as_ref(), &mut ids)?;
                offsets.push(ids.len() as i64);
                Ok(())
            })?;
            return Ok(Batch { ids, offsets });
        }
        items.on_threads(
            num_threads,
            || self.borrow(options),
            |encoder, item, (ids, ends): &mut (Vec<u32>, Vec<usize>)| {
                encoder.encode_into(texts[item].as_ref(), ids)?;
                ends.push(ids.len());
                Ok(())
            },
            |(ids_of_run, ends)| {
                let start = ids.len();
                ids.extend_from_slice(ids_of_run);
                offsets.extend(ends.iter().map(|end| (start + end) as i64));
                ids_of_run.clear();
                ends.clear();
            },
            tick,
        )?;
        Ok(Batch { ids, offsets })
    }

    /// The number of tokens of each text.
    ///
    /// # Errors
    /// The first text, in their order, that the tokenizer refuses.
    pub fn count<T: AsRef<str> + Sync>(
        &self,
        texts: &[T],
        options: &EncodeOptions,
        num_threads: usize,
        tick: &mut Tick<'_>,
    ) -> Result<Vec<i64>> {
        let runs = in_runs(
            "texts",
            texts.len(),
            |item| texts[item].as_ref().len(),
            num_threads,
            || self.borrow(options),
            |encoder, item, counts: &mut Vec<i64>| {
                counts.push(encoder.count(texts[item].as_ref())?);
                Ok(())
            },
            tick,
        )?;
        Ok(runs.concat())
    }

    /// The text of `ids`.
    ///
    /// # Errors
    /// An id that no token has, or the engine refuses them.
    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String> {
        self.check(ids)?;
        Ok(self.text_of(ids, skip_special_tokens)?)
    }

    /// The texts of the ids of many, which lie as in [`Batch`].
    ///
    /// # Errors
    /// Offsets that fall or go beyond the ids, an id that no token has, or the first list, in their
    /// order, that the engine refuses.
    pub fn decode_batch(
        &self,
        ids: &[u32],
        offsets: &[usize],
        skip_special_tokens: bool,
        num_threads: usize,
        tick: &mut Tick<'_>,
    ) -> Result<Vec<String>> {
        self.check(ids)?;
        let spans = spans(offsets, ids.len())?;
        let runs = in_runs(
            "documents",
            spans.len(),
            |item| 4 * spans[item].len(),
            num_threads,
            || Ok(()),
            |(), item, texts: &mut Vec<String>| {
                let ids = &ids[spans[item].clone()];
                texts.push(self.text_of(ids, skip_special_tokens)?);
                Ok(())
            },
            tick,
        )?;
        Ok(runs.into_iter().flatten().collect())
    }

    fn text_of(&self, ids: &[u32], skip_special_tokens: bool) -> BpeResult<String> {
        match skip_special_tokens {
            true => self.tokenizer.decode_without_special_tokens(ids),
            false => self.tokenizer.decode(ids),
        }
    }

    /// Engines pass over an id that no token has, as if it had not been there.
    fn check(&self, ids: &[u32]) -> Result<()> {
        let vocab_size = self.tokenizer.vocab_size();
        let position = ids.iter().position(|&id| u64::from(id) >= vocab_size);
        match position {
            None => Ok(()),
            Some(position) => Err(Error::Texts(TextsError::NoSuchId {
                position,
                found: ids[position],
                vocab_size,
            })),
        }
    }
}

/// The spans between neighbouring offsets.
fn spans(offsets: &[usize], num_ids: usize) -> Result<Vec<Range<usize>>> {
    let falls = offsets.windows(2).position(|pair| pair[0] > pair[1]);
    if let Some(position) = falls {
        return Err(Error::Texts(TextsError::OffsetsFall {
            position: position + 1,
            found: offsets[position + 1],
            before: offsets[position],
        }));
    }
    match offsets.last() {
        Some(&found) if found > num_ids => {
            Err(Error::Texts(TextsError::OffsetsBeyond { found, num_ids }))
        }
        _ => Ok(offsets.windows(2).map(|pair| pair[0]..pair[1]).collect()),
    }
}

/// An encoder that goes back when it is done with; one that panicked does not.
struct Borrowed<'a> {
    home: &'a Encoders,
    encoder: Option<(EncodeOptions, Encoder)>,
    ids: Vec<u32>,
}

impl Borrowed<'_> {
    fn encode_into(&mut self, text: &str, ids: &mut Vec<u32>) -> BpeResult<()> {
        let (options, mut encoder) = self.encoder.take().expect("it is only gone while at work");
        let outcome = encoder.encode_into(text, ids);
        self.encoder = Some((options, encoder));
        outcome
    }

    fn count(&mut self, text: &str) -> BpeResult<i64> {
        let mut ids = std::mem::take(&mut self.ids);
        ids.clear();
        self.encode_into(text, &mut ids)?;
        let count = ids.len() as i64;
        if ids.capacity() <= KEPT_IDS {
            self.ids = ids;
        }
        Ok(count)
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        if let (Some(encoder), Ok(mut idle)) = (self.encoder.take(), self.home.idle.try_lock())
            && idle.len() < KEPT_ENCODERS
        {
            idle.push(encoder);
        }
    }
}

/// Positions of runs of neighbouring items, each of about `RUN_BYTES`.
fn runs(num_items: usize, bytes_of: impl Fn(usize) -> usize) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for item in 0..num_items {
        bytes += bytes_of(item) + ITEM_BYTES;
        if bytes >= RUN_BYTES || item + 1 == num_items {
            runs.push(start..item + 1);
            (start, bytes) = (item + 1, 0);
        }
    }
    runs
}

/// What `work` makes of all items, one result for each run of them, in order.
///
/// `argument` is what errors call the list of items.
pub(crate) fn in_runs<W, R: Default + Send>(
    argument: &'static str,
    num_items: usize,
    bytes_of: impl Fn(usize) -> usize,
    num_threads: usize,
    new_worker: impl Fn() -> Result<W> + Sync,
    work: impl Fn(&mut W, usize, &mut R) -> BpeResult<()> + Sync,
    tick: &mut Tick<'_>,
) -> Result<Vec<R>> {
    let items = Items {
        argument,
        runs: runs(num_items, bytes_of),
    };
    let mut results = Vec::with_capacity(items.runs.len());
    if num_threads.min(items.runs.len()) <= 1 {
        let (mut worker, mut result) = (new_worker()?, R::default());
        items.in_turn(tick, |item| work(&mut worker, item, &mut result))?;
        results.push(result);
        return Ok(results);
    }
    let receive = |result: &mut R| results.push(std::mem::take(result));
    items.on_threads(num_threads, new_worker, work, receive, tick)?;
    Ok(results)
}

/// Items of a call, and the runs in which they are taken.
struct Items {
    /// What errors call the list of them.
    argument: &'static str,
    runs: Vec<Range<usize>>,
}

impl Items {
    /// Calls `work` with each item of a run; a panic is an error that names the item.
    fn run(&self, run: Range<usize>, mut work: impl FnMut(usize) -> BpeResult<()>) -> Result<()> {
        let argument = self.argument;
        let mut at = run.start;
        // What a panic may leave half-done is the result, which is dropped, and the worker, which is not used again.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            for item in run {
                at = item;
                work(item)?;
            }
            Ok(())
        }));
        match outcome {
            Ok(Ok(())) => Ok(()),
            Ok(Err(source)) => Err(Error::Texts(TextsError::Item {
                argument,
                item: at,
                source: Box::new(source),
            })),
            Err(_) => Err(Error::Texts(TextsError::ItemPanicked {
                argument,
                item: at,
            })),
        }
    }

    /// Calls `work` with each item, on this thread.
    fn in_turn(
        &self,
        tick: &mut Tick<'_>,
        mut work: impl FnMut(usize) -> BpeResult<()>,
    ) -> Result<()> {
        for run in &self.runs {
            if tick().is_break() {
                return Err(Error::Pipeline(PipelineError::Cancelled));
            }
            self.run(run.clone(), &mut work)?;
        }
        Ok(())
    }

    /// Has threads work on all items, and calls `receive` with the result of each run, in order, on this thread.
    /// `receive` leaves an empty result, whose memory is used for another run.
    fn on_threads<W, R: Default + Send>(
        &self,
        num_threads: usize,
        new_worker: impl Fn() -> Result<W> + Sync,
        work: impl Fn(&mut W, usize, &mut R) -> BpeResult<()> + Sync,
        mut receive: impl FnMut(&mut R),
        tick: &mut Tick<'_>,
    ) -> Result<()> {
        let num_threads = num_threads.min(self.runs.len());
        let shared = Shared::new(self.runs.len(), num_threads);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(num_threads)
            .thread_name(|i| format!("packtok-{i}"))
            .build()
            .map_err(|source| Error::Pipeline(PipelineError::Threads { source }))?;
        let work_all = || {
            let Some(first) = shared.take() else { return };
            let mut worker = match new_worker() {
                Ok(worker) => worker,
                Err(error) => return shared.put(first, Err(error)),
            };
            let mut taken = Some(first);
            while let Some(at) = taken {
                let mut result: R = shared.spare();
                let outcome = self.run(self.runs[at].clone(), |item| {
                    work(&mut worker, item, &mut result)
                });
                shared.put(at, outcome.map(|()| result));
                taken = shared.take();
            }
        };
        pool.in_place_scope(|scope| {
            for _ in 0..num_threads {
                scope.spawn(|_| {
                    work_all();
                    shared.leave();
                });
            }
            shared.receive_all(&mut receive, tick)
        })
    }
}

/// What threads share of a call.
struct Shared<R> {
    state: Mutex<State<R>>,
    changed: Condvar,
    num_runs: usize,
    next: AtomicUsize,
    is_over: AtomicBool,
}

struct State<R> {
    results: Vec<Option<Result<R>>>,
    /// The first run whose result is still to be received.
    awaited: usize,
    /// Empty results.
    spare: Vec<R>,
    num_at_work: usize,
}

impl<R: Default> Shared<R> {
    fn new(num_runs: usize, num_threads: usize) -> Self {
        Self {
            state: Mutex::new(State {
                results: (0..num_runs).map(|_| None).collect(),
                awaited: 0,
                spare: Vec::new(),
                num_at_work: num_threads,
            }),
            changed: Condvar::new(),
            num_runs,
            next: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next run.
    fn take(&self) -> Option<usize> {
        // Acquired, so that a run is not taken before this is known.
        let is_over = self.is_over.load(Ordering::Acquire);
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        (at < self.num_runs && !is_over).then_some(at)
    }

    fn spare(&self) -> R {
        self.state().spare.pop().unwrap_or_default()
    }

    fn put(&self, at: usize, result: Result<R>) {
        if result.is_err() {
            // Runs before this one are all taken, so that the first error there is will be found.
            self.is_over.store(true, Ordering::Release);
        }
        let mut state = self.state();
        state.results[at] = Some(result);
        if at == state.awaited {
            self.changed.notify_one();
        }
    }

    fn leave(&self) {
        self.state().num_at_work -= 1;
        self.changed.notify_one();
    }

    /// Calls `receive` with each result, in order, until one is an error or all threads have left.
    fn receive_all(&self, receive: &mut impl FnMut(&mut R), tick: &mut Tick<'_>) -> Result<()> {
        let mut outcome = Ok(());
        let mut state = self.state();
        loop {
            let awaited = state.awaited;
            if let Some(result) = state.results.get_mut(awaited).and_then(Option::take) {
                state.awaited += 1;
                match result {
                    Ok(mut result) if outcome.is_ok() => {
                        drop(state);
                        receive(&mut result);
                        state = self.state();
                        state.spare.push(result);
                    }
                    Err(error) if outcome.is_ok() => outcome = Err(error),
                    _ => {}
                }
                continue;
            }
            if state.num_at_work == 0 {
                return outcome;
            }
            let waited = self.changed.wait_timeout(state, TICK);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            if outcome.is_ok() && tick().is_break() {
                self.is_over.store(true, Ordering::Release);
                outcome = Err(Error::Pipeline(PipelineError::Cancelled));
            }
            state = self.state();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoders() -> Encoders {
        Encoders::new(Tokenizer::builtin("gpt2").unwrap())
    }

    fn go_on() -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Texts of all lengths, more than one run of them.
    fn texts() -> Vec<String> {
        let text = |i: usize| "some words 12 \u{e9}\n".repeat(i % 37) + &i.to_string();
        let mut texts: Vec<String> = (0..2000).map(text).collect();
        texts[7].clear();
        texts
    }

    #[test]
    fn any_number_of_threads_gives_what_one_text_at_a_time_gives() {
        let (encoders, texts) = (encoders(), texts());
        let options = EncodeOptions::default();
        let mut expected = Batch::default();
        expected.offsets.push(0);
        for text in &texts {
            expected
                .ids
                .extend(encoders.tokenizer().encode(text, &options).unwrap());
            expected.offsets.push(expected.ids.len() as i64);
        }
        let counts: Vec<i64> = expected
            .offsets
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect();
        let offsets: Vec<usize> = expected.offsets.iter().map(|&at| at as usize).collect();
        for num_threads in [1, 2, 7] {
            let found =
                encoders.encode_batch(&texts, &options, num_threads, vec![7; 3], &mut go_on);
            assert_eq!(found.unwrap(), expected);
            let found = encoders.count(&texts, &options, num_threads, &mut go_on);
            assert_eq!(found.unwrap(), counts);
            let found =
                encoders.decode_batch(&expected.ids, &offsets, false, num_threads, &mut go_on);
            assert_eq!(found.unwrap(), texts);
        }
        let none: [&str; 0] = [];
        let found = encoders
            .encode_batch(&none, &options, 3, Vec::new(), &mut go_on)
            .unwrap();
        assert_eq!((found.ids.len(), found.offsets), (0, vec![0]));
    }

    #[test]
    fn the_first_text_that_is_refused_is_named_whatever_the_threads() {
        let encoders = encoders();
        let mut texts = texts();
        texts[900] += "<|endoftext|>";
        texts[1800] += "<|endoftext|>";
        let options = EncodeOptions {
            special_tokens_in_text: packtok_tokenizer::SpecialTokensInText::Fail,
            ..EncodeOptions::default()
        };
        for num_threads in [1, 2, 7] {
            let error = encoders
                .encode_batch(&texts, &options, num_threads, vec![7; 3], &mut go_on)
                .unwrap_err();
            assert_eq!(
                packtok_pbin::chain(&error),
                "texts[900]: the text contains the special token \"<|endoftext|>\""
            );
        }
    }

    #[test]
    fn a_panic_is_an_error_that_names_the_item() {
        for num_threads in [1, 4] {
            let work = |(): &mut (), item: usize, _: &mut ()| {
                assert!(item != 5, "as if an engine had a bug");
                Ok(())
            };
            let bytes_of = |_| RUN_BYTES;
            let found = in_runs(
                "texts",
                9,
                bytes_of,
                num_threads,
                || Ok(()),
                work,
                &mut go_on,
            );
            assert_eq!(
                found.unwrap_err().to_string(),
                "texts[5]: packtok panicked on this item; this is a bug, please report it with the item"
            );
        }
    }

    #[test]
    fn an_interruption_ends_the_call() {
        let (encoders, texts) = (encoders(), texts());
        let mut stop = || ControlFlow::Break(());
        let found = encoders.count(&texts, &EncodeOptions::default(), 1, &mut stop);
        assert!(matches!(
            found,
            Err(Error::Pipeline(PipelineError::Cancelled))
        ));
    }

    #[test]
    fn an_id_that_no_token_has_is_refused() {
        let error = encoders().decode(&[1, 50_257], false).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ids[1] is 50257, expected an id below 50257"
        );
    }
}
