//! Samples for encoder-decoder training, and the retrieval corpus, as CEPE's scripts draw them.
//!
//! `recipe.rs` says what is wanted. `plan.rs` reads all documents once, assigns each to a side by its hash and sorts the windows of
//! documents, or the documents of a stream, by keyed hashes; `windows.rs` has the arithmetic of windows, `quota.rs` that of
//! domains, `sorter.rs` sorts on disk, and `tokens.rs` reads token files. `output.rs` divides what the plan leads to into parts
//! of one file each; `samples.rs` and `retrieval.rs` write a part, `publish.rs` keeps track of parts and moves finished ones to
//! their place. `long.rs` packs long documents into rows instead. Every step may be done by many processes, and no byte depends on how many.

mod error;
mod long;
mod output;
mod plan;
mod publish;
mod quota;
mod recipe;
mod report;
mod retrieval;
mod samples;
mod sorter;
mod tokens;
mod windows;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use packtok_core::pipeline::{Monitor, PipelineError, Progress};
use packtok_tokenizer::Tokenizer;

use crate::error::{Error, Result};
pub use error::SampleError;
pub use long::{LongDomain, LongDomainReport, LongRecipe, LongReport, pack_long};
use output::{Form, Output, Part};
use plan::Plan;
pub use recipe::{Domain, From, IdType, Recipe, Retrieval, Side, Splits, Task};
pub use report::SampleReport;
use samples::Samples;

/// Each thread holds an MDS file in memory; more threads would need more than 500 MB.
const MAX_THREADS: usize = 4;
const TICK: Duration = Duration::from_millis(50);

/// Draws and writes the samples of a recipe; `tokenizer` gives the texts of the retrieval corpus.
///
/// # Errors
/// A recipe that is invalid or that the data cannot fulfil; an output of another plan; a file that cannot be read or written.
pub fn sample(
    recipe: &Recipe,
    task: Task,
    tokenizer: Option<&Tokenizer>,
    num_threads: usize,
    monitor: &mut Monitor<'_>,
) -> Result<SampleReport> {
    recipe.check()?;
    let work = recipe.output.join(publish::WORK_FOLDER);
    let plan = Plan::find_or_make(recipe, &work, monitor)?;
    let form = Form::new(recipe, &plan)?;
    let outputs = output::outputs(recipe, &plan, &form, &work)?;
    let finished = publish::finished(recipe, &outputs)?;
    let parts = samples::parts(recipe, &plan, &form, &outputs)?;
    let needs_texts = |output: &Output| output.side == Side::Retrieval;
    if task != Task::Join
        && tokenizer.is_none()
        && outputs
            .iter()
            .zip(&finished)
            .any(|(output, &is_finished)| needs_texts(output) && !is_finished)
    {
        return Err(SampleError::NoTokenizer.into());
    }
    let mine = match task {
        Task::All => 0..parts.len(),
        Task::Shard { index, count } => share(parts.len(), index, count)?,
        Task::Join => 0..0,
    };
    let missing = parts[mine].iter().filter(|part| {
        !finished[part.output] && !publish::is_written(recipe, &outputs[part.output], part)
    });
    let missing: Vec<&Part> = missing.collect();
    let writing = Writing {
        recipe,
        plan: &plan,
        form: &form,
        outputs: &outputs,
        tokenizer,
    };
    writing.run(&missing, num_threads.clamp(1, MAX_THREADS), monitor)?;
    if !matches!(task, Task::Shard { .. }) {
        publish::join(recipe, &plan, &form, &outputs, &parts, &finished)?;
        publish::clean(recipe, &work)?;
    }
    Ok(SampleReport::new(recipe, &plan, &outputs, &finished, task))
}

/// The parts of shard `index`.
fn share(parts: usize, index: u64, count: u64) -> Result<Range<usize>> {
    if index >= count {
        return Err(SampleError::NoSuchPart { index, count }.into());
    }
    let bound = |shard: u64| (parts as u128 * u128::from(shard) / u128::from(count)) as usize;
    Ok(bound(index)..bound(index + 1))
}

/// Writes parts on several threads.
struct Writing<'a> {
    recipe: &'a Recipe,
    plan: &'a Plan,
    form: &'a Form,
    outputs: &'a [Output],
    tokenizer: Option<&'a Tokenizer>,
}

impl Writing<'_> {
    fn run(&self, parts: &[&Part], num_threads: usize, monitor: &mut Monitor<'_>) -> Result<()> {
        let (next, is_stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (bytes, samples) = (AtomicU64::new(0), AtomicU64::new(0));
        let total_bytes = parts.iter().map(|part| self.bytes(part)).sum();
        let (sender, results) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..num_threads.min(parts.len()) {
                let sender = sender.clone();
                let (next, is_stopped, bytes, samples) = (&next, &is_stopped, &bytes, &samples);
                scope.spawn(move || {
                    let mut written = |count: u64| {
                        bytes.fetch_add(count, Ordering::Relaxed);
                        samples.fetch_add(1, Ordering::Relaxed);
                        if is_stopped.load(Ordering::Relaxed) {
                            return Err(Error::from(packtok_core::Error::Pipeline(
                                PipelineError::Cancelled,
                            )));
                        }
                        Ok(())
                    };
                    while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let result = self.write(part, &mut written);
                        let has_failed = result.is_err();
                        if sender.send(result).is_err() || has_failed {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            let outcome = loop {
                match results.recv_timeout(TICK) {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => break Err(error),
                    Err(RecvTimeoutError::Disconnected) => break Ok(()),
                    Err(RecvTimeoutError::Timeout) => {}
                }
                let progress = Progress {
                    bytes_read: bytes.load(Ordering::Relaxed),
                    total_bytes,
                    documents: samples.load(Ordering::Relaxed),
                    ..Progress::default()
                };
                if let Err(error) = plan::report(monitor, &progress) {
                    break Err(error);
                }
            };
            is_stopped.store(true, Ordering::Relaxed);
            outcome
        })
    }

    /// Bytes that [`Writing::write`] reports for a part.
    fn bytes(&self, part: &Part) -> u64 {
        let samples = part.samples.end - part.samples.start;
        match self.outputs[part.output].side {
            Side::Retrieval => {
                samples
                    * 8
                    * self
                        .recipe
                        .retrieval
                        .as_ref()
                        .map_or(0, |retrieval| retrieval.chunk)
            }
            Side::Test | Side::Train => {
                samples * self.recipe.window().tokens() * self.form.dtype.bytes() as u64
            }
        }
    }

    fn write(&self, part: &Part, written: &mut impl FnMut(u64) -> Result<()>) -> Result<()> {
        let output = &self.outputs[part.output];
        let (folder, marker) = (
            publish::part_folder(output, part),
            publish::marker(output, part),
        );
        let state = if output.side == Side::Retrieval {
            let Some(tokenizer) = self.tokenizer else {
                return Err(SampleError::NoTokenizer.into());
            };
            let path = folder.join(publish::jsonl_name(self.recipe, output));
            std::fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
            let (bytes, sha256) = retrieval::write(
                self.recipe,
                self.plan,
                output,
                part,
                tokenizer,
                &path,
                written,
            )?;
            publish::State::Lines { bytes, sha256 }
        } else {
            let samples = Samples::new(self.recipe, self.plan, self.form, output);
            publish::State::Shard(samples.write(part, &folder, written)?.into())
        };
        publish::record(&marker, &state)
    }
}
