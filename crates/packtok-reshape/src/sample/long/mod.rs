//! Rows of long documents, as ProLong's training reads them: whole documents packed by best fit,
//! or pieces of fixed lengths.
//!
//! `plan.rs` reads all documents once, packs their positions into rows and divides the rows into
//! files; `rows.rs` writes one file. As for other samples, any number of processes write files,
//! which are moved to their final place at the end.

mod plan;
mod recipe;
mod rows;

use packtok_jobs::Monitor;
use packtok_pack::pack::Existing;
use plan::LongPlan;
use serde_json::json;

use crate::error::Result;
use crate::sample::output::Part;
use crate::sample::publish::{self, WORK_FOLDER};
use crate::sample::recipe::Task;
use crate::sample::report::Written;
use crate::sample::{Tally, write_parts};
pub use recipe::{LongDomain, LongDomainReport, LongRecipe, LongReport};
use rows::Rows;

/// A member of the marker's details.
const SHORT_ROWS: &str = "short_rows";

/// Packs the documents of all domains into rows.
///
/// # Errors
/// A number is out of range; an output belongs to another plan; a file cannot be read or written.
pub fn pack_long(
    recipe: &LongRecipe,
    task: Task,
    num_threads: usize,
    monitor: &mut Monitor<'_>,
) -> Result<LongReport> {
    recipe.check()?;
    if recipe.existing == Existing::Error {
        for domain in &recipe.domains {
            for group in recipe.groups() {
                publish::refuse(&recipe.folder(&domain.name, group))?;
            }
        }
    }
    let work = recipe.output.join(WORK_FOLDER);
    let plan = LongPlan::find_or_make(recipe, &work, monitor)?;
    let result = carry_out(recipe, &plan, task, num_threads, monitor);
    if result.as_ref().is_err_and(publish::is_refusal) {
        plan::remove(recipe, &work);
        publish::remove_if_empty(&work);
    }
    result
}

fn carry_out(
    recipe: &LongRecipe,
    plan: &LongPlan,
    task: Task,
    num_threads: usize,
    monitor: &mut Monitor<'_>,
) -> Result<LongReport> {
    let work = recipe.output.join(WORK_FOLDER);
    let (outputs, parts) = plan.outputs(recipe, &work);
    let finished = outputs
        .iter()
        .map(|output| publish::is_of_plan(&output.folder, &output.fingerprint, recipe.existing))
        .collect::<Result<Vec<_>>>()?;
    let mine = &parts[task.share(parts.len())?];
    let missing: Vec<&Part> = mine
        .iter()
        .filter(|part| !finished[part.output] && !publish::is_written(&outputs[part.output], part))
        .collect();
    let rows = Rows::new(recipe, plan)?;
    let tally = Tally {
        bytes: |part: &Part| 4 * plan.part_tokens(&outputs[part.output], part),
        bytes_per_token: |_: &Part| 4,
    };
    write_parts(&missing, num_threads, &tally, monitor, |part, written| {
        let output = &outputs[part.output];
        let entry = rows.write(output, part, &publish::part_folder(output, part), written)?;
        let state = publish::State::Shard(entry.into());
        publish::record(&publish::marker(output, part), &state)
    })?;
    if !matches!(task, Task::Shard { .. }) {
        publish::check_complete(&recipe.output, &outputs, &parts, &finished)?;
        for (number, output) in outputs.iter().enumerate() {
            if !finished[number] {
                let details = [(SHORT_ROWS.to_owned(), json!(plan.group(output).short_rows))];
                publish::publish_folder(
                    output,
                    &parts
                        .iter()
                        .filter(|part| part.output == number)
                        .collect::<Vec<_>>(),
                    "long documents",
                    &recipe.domains[output.domain].name,
                    details.into_iter().collect(),
                    recipe.existing,
                )?;
            }
        }
        publish::remove_work(&work)?;
    }
    let mut written = Written::new(&outputs, &finished, mine, task)?;
    written.shard_tokens = mine
        .iter()
        .map(|part| plan.part_tokens(&outputs[part.output], part))
        .sum();
    let domains = plan.domains(&outputs, &finished);
    Ok(LongReport {
        output: recipe.output.clone(),
        is_part: matches!(task, Task::Shard { .. }),
        written,
        rows: domains.iter().map(|domain| domain.rows).sum(),
        tokens: domains.iter().map(|domain| domain.row_tokens).sum(),
        domains,
    })
}
