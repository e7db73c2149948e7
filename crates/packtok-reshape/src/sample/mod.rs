//! Samples for encoder-decoder training, and the retrieval corpus, as CEPE's scripts draw them.
//!
//! `recipe.rs` defines the request. `plan.rs` reads all documents once, assigns each to a side by
//! its hash and sorts the windows of documents, or the documents of a stream, by keyed hashes.
//! `windows.rs` has the arithmetic of windows, `quota.rs` the arithmetic of domains; `sorter.rs`
//! sorts on disk, and `tokens.rs` reads token files. `output.rs` divides the samples of a plan
//! into parts of one file each. `samples.rs` and `retrieval.rs` write a part; `publish.rs` records
//! finished parts and moves them to their final place. `long/` packs long documents into rows
//! instead. Any number of processes may share the steps; the number does not affect any byte.

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

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use packtok_jobs::{Monitor, Progress, report_progress};
use packtok_pack::pack::Existing;
use packtok_tokenizer::Tokenizer;

use crate::error::{Error, Result};
pub use long::{LongDomain, LongDomainReport, LongRecipe, LongReport, pack_long};
use output::{Form, Output, Part};
use plan::Plan;
pub use recipe::{Domain, From, Recipe, Retrieval, SampleIdType, Side, Splits, Task};
use report::Written;
pub use report::{SampleReport, SideReport};
use samples::Samples;

/// Each thread maps up to 64 MiB of files whose ids are narrowed; more threads would need more than 500 MB.
const MAX_THREADS: usize = 4;
const TICK: Duration = Duration::from_millis(50);

/// Draws and writes the samples of a recipe. `tokenizer` decodes the texts of the retrieval
/// corpus.
///
/// # Errors
/// The recipe is invalid or the data cannot fulfil it; an output belongs to another plan; a file
/// cannot be read or written.
pub fn sample(
    recipe: &Recipe,
    task: Task,
    tokenizer: Option<&Tokenizer>,
    num_threads: usize,
    monitor: &mut Monitor<'_>,
) -> Result<SampleReport> {
    recipe.check()?;
    if recipe.existing == Existing::Error {
        publish::refuse_all(recipe)?;
    }
    let _lock = if matches!(task, Task::All) {
        Some(plan::wait_for_output(&recipe.output, monitor)?)
    } else {
        None
    };
    let work = recipe.output.join(publish::WORK_FOLDER);
    let plan = Plan::find_or_make(recipe, &work, monitor)?;
    let result = carry_out(recipe, &plan, task, tokenizer, num_threads, monitor);
    if result.as_ref().is_err_and(publish::is_refusal) {
        // Complete outputs need no plan, and unfinished outputs have their own plan.
        Plan::remove(&work);
        publish::remove_if_empty(&work);
    }
    result
}

/// Whether a run that was interrupted can be resumed in the folder `output`.
#[must_use]
pub fn keeps_work(output: &Path) -> bool {
    let entries = std::fs::read_dir(output.join(publish::WORK_FOLDER));
    // The plan, which is complete before any sample is written.
    entries.is_ok_and(|mut entries| {
        entries
            .any(|entry| entry.is_ok_and(|entry| entry.path().extension() == Some("json".as_ref())))
    })
}

fn carry_out(
    recipe: &Recipe,
    plan: &Plan,
    task: Task,
    tokenizer: Option<&Tokenizer>,
    num_threads: usize,
    monitor: &mut Monitor<'_>,
) -> Result<SampleReport> {
    let work = recipe.output.join(publish::WORK_FOLDER);
    let form = Form::new(recipe, plan)?;
    let outputs = output::outputs(recipe, plan, &form, &work)?;
    let finished = publish::finished(recipe, &outputs)?;
    let parts = samples::parts(recipe, plan, &form, &outputs)?;
    let needs_texts = |output: &Output| output.side == Side::Retrieval;
    if task != Task::Join
        && tokenizer.is_none()
        && outputs
            .iter()
            .zip(&finished)
            .any(|(output, &is_finished)| needs_texts(output) && !is_finished)
    {
        return Err(Error::NoTokenizer);
    }
    let mine = &parts[task.share(parts.len())?];
    let missing: Vec<&Part> = mine
        .iter()
        .filter(|part| !finished[part.output] && !publish::is_written(&outputs[part.output], part))
        .collect();
    let writing = Writing {
        recipe,
        plan,
        form: &form,
        outputs: &outputs,
        tokenizer,
    };
    let tally = Tally {
        bytes: |part: &Part| writing.bytes(part),
        bytes_per_token: |part: &Part| writing.bytes_per_token(part),
    };
    write_parts(&missing, num_threads, &tally, monitor, |part, written| {
        writing.write(part, written)
    })?;
    if !matches!(task, Task::Shard { .. }) {
        publish::join(recipe, plan, &form, &outputs, &parts, &finished)?;
        publish::clean(recipe, plan, &form, &work)?;
    }
    let mut written = Written::new(&outputs, &finished, mine, task)?;
    written.shard_tokens = mine.iter().map(|part| writing.tokens(part)).sum();
    Ok(SampleReport::new(
        recipe, plan, &outputs, &finished, task, written,
    ))
}

/// Functions that return the size of a part, for progress.
struct Tally<B, T> {
    /// Bytes that writing a part reports.
    bytes: B,
    bytes_per_token: T,
}

/// Writes parts on several threads.
fn write_parts<B, T>(
    parts: &[&Part],
    num_threads: usize,
    tally: &Tally<B, T>,
    monitor: &mut Monitor<'_>,
    write: impl Fn(&Part, &mut dyn FnMut(u64) -> Result<()>) -> Result<()> + Sync,
) -> Result<()>
where
    B: Fn(&Part) -> u64,
    T: Fn(&Part) -> u64 + Sync,
{
    let (next, is_stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let [bytes, samples, tokens] = [const { AtomicU64::new(0) }; 3];
    let total_bytes = parts.iter().map(|part| (tally.bytes)(part)).sum();
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..num_threads.clamp(1, MAX_THREADS).min(parts.len()) {
            let sender = sender.clone();
            let (next, is_stopped, write) = (&next, &is_stopped, &write);
            let (bytes, samples, tokens) = (&bytes, &samples, &tokens);
            let bytes_per_token = &tally.bytes_per_token;
            scope.spawn(move || {
                while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let per_token = bytes_per_token(part);
                    let mut written = |count: u64| {
                        bytes.fetch_add(count, Ordering::Relaxed);
                        samples.fetch_add(1, Ordering::Relaxed);
                        tokens.fetch_add(count / per_token, Ordering::Relaxed);
                        if is_stopped.load(Ordering::Relaxed) {
                            return Err(Error::from(packtok_jobs::Error::Cancelled));
                        }
                        Ok(())
                    };
                    let result = write(part, &mut written);
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
                samples: Some(samples.load(Ordering::Relaxed)),
                tokens: tokens.load(Ordering::Relaxed),
                ..Progress::default()
            };
            if let Err(error) = report_progress(monitor, &progress) {
                break Err(error.into());
            }
        };
        is_stopped.store(true, Ordering::Relaxed);
        outcome
    })
}

/// Writes one part of a recipe's samples.
struct Writing<'a> {
    recipe: &'a Recipe,
    plan: &'a Plan,
    form: &'a Form,
    outputs: &'a [Output],
    tokenizer: Option<&'a Tokenizer>,
}

impl Writing<'_> {
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

    /// Tokens of the samples or chunks of a part, without the neighbours of chunks.
    fn tokens(&self, part: &Part) -> u64 {
        let chunk = self
            .recipe
            .retrieval
            .as_ref()
            .map_or(0, |retrieval| retrieval.chunk);
        let tokens = match self.outputs[part.output].side {
            Side::Retrieval => chunk,
            Side::Test | Side::Train => self.recipe.window().tokens(),
        };
        (part.samples.end - part.samples.start) * tokens
    }

    fn bytes_per_token(&self, part: &Part) -> u64 {
        match self.outputs[part.output].side {
            // 4 bytes per token of a chunk and its neighbour in memory.
            Side::Retrieval => 4,
            Side::Test | Side::Train => self.form.dtype.bytes() as u64,
        }
    }

    fn write(&self, part: &Part, written: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        let mut written = |bytes| written(bytes);
        let written = &mut written;
        let output = &self.outputs[part.output];
        let (folder, marker) = (
            publish::part_folder(output, part),
            publish::marker(output, part),
        );
        let state = if output.side == Side::Retrieval {
            let Some(tokenizer) = self.tokenizer else {
                return Err(Error::NoTokenizer);
            };
            let name = publish::jsonl_name(self.recipe, output);
            let path = folder.join(&name);
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
            publish::State::Lines {
                name,
                bytes,
                sha256,
            }
        } else {
            let samples = Samples::new(self.recipe, self.plan, self.form, output);
            publish::State::Shard(samples.write(part, &folder, written)?.into())
        };
        publish::record(&marker, &state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_counts_bytes_samples_and_tokens() {
        let part = |output, samples| Part {
            output,
            number: 0,
            samples,
        };
        let parts = [part(0, 0..3), part(1, 5..6)];
        let tally = Tally {
            bytes: |part: &Part| 8 * (part.samples.end - part.samples.start),
            bytes_per_token: |part: &Part| if part.output == 0 { 2 } else { 4 },
        };
        let mut last = Progress::default();
        let mut monitor = |progress: &Progress| {
            last = *progress;
            std::ops::ControlFlow::Continue(())
        };
        let parts: Vec<_> = parts.iter().collect();
        write_parts(&parts, 2, &tally, &mut monitor, |part, written| {
            part.samples.clone().try_for_each(|_| written(8))
        })
        .unwrap();
        assert_eq!((last.bytes_read, last.total_bytes), (32, 32));
        assert_eq!((last.samples, last.tokens), (Some(4), 14));
    }
}
