//! Records finished parts, and moves them to their final place when all are written.
//!
//! Part `k` of an output is written into `WORK/FINGERPRINT/k/`, then recorded in
//! `WORK/FINGERPRINT/k.json`. The index of a folder and the marker of a retrieval shard are
//! published last, so an output that has one is complete.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use packtok_formats::mds::{Finished, INDEX_FILE, MARKER_FILE, Marker, ShardEntry};
use packtok_pack::pack::Existing;
use packtok_pbin::{Replace, publish_bytes};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::sample::output::{Form, Output, Part, outputs};
use crate::sample::plan::Plan;
use crate::sample::recipe::{Recipe, Side};

/// The folder of unfinished work in an output.
pub(super) const WORK_FOLDER: &str = ".packtok-sample";

/// A part that is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// An MDS file.
    Shard(Box<ShardEntry>),
    /// A file of JSON lines.
    Lines {
        name: String,
        bytes: u64,
        sha256: String,
    },
}

impl State {
    /// Name and size of the file.
    pub(super) fn file(&self) -> (&str, u64) {
        match self {
            Self::Shard(entry) => (&entry.stored().basename, entry.stored().bytes),
            Self::Lines { name, bytes, .. } => (name, *bytes),
        }
    }
}

pub(super) fn part_folder(output: &Output, part: &Part) -> PathBuf {
    output.work.join(part.number.to_string())
}

pub(super) fn marker(output: &Output, part: &Part) -> PathBuf {
    output.work.join(format!("{}.json", part.number))
}

pub(super) fn jsonl_name(recipe: &Recipe, output: &Output) -> String {
    format!("{}.jsonl", recipe.domains[output.domain].name)
}

/// Records that a part is written.
pub(super) fn record(marker: &Path, state: &State) -> Result<()> {
    let bytes = serde_json::to_vec(state).map_err(|error| Error::io(marker)(error.into()))?;
    Ok(publish_bytes(marker, &bytes, Replace::Existing)?)
}

pub(super) fn is_written(output: &Output, part: &Part) -> bool {
    state(output, part).is_some_and(|state| {
        let (name, bytes) = state.file();
        let places = places(output, part, name);
        places.iter().any(|place| size(place) == Some(bytes))
    })
}

/// The possible paths of the file of a part. A join that was killed may have moved it already.
pub(super) fn places(output: &Output, part: &Part, name: &str) -> [PathBuf; 2] {
    [
        part_folder(output, part).join(name),
        output.folder.join(name),
    ]
}

pub(super) fn state(output: &Output, part: &Part) -> Option<State> {
    let bytes = fs::read(marker(output, part)).ok()?;
    serde_json::from_slice(&bytes).ok()
}

pub(super) fn size(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|metadata| metadata.len())
}

/// Whether each output is finished.
///
/// # Errors
/// An output has samples of another plan that must not be replaced.
pub(super) fn finished(recipe: &Recipe, outputs: &[Output]) -> Result<Vec<bool>> {
    outputs
        .iter()
        .map(|output| is_finished(recipe, output))
        .collect()
}

fn is_finished(recipe: &Recipe, output: &Output) -> Result<bool> {
    if output.side != Side::Retrieval {
        return is_of_plan(&output.folder, &output.fingerprint, recipe.existing);
    }
    let recorded = recorded_plan(recipe, output)?;
    // A process was killed after it had moved the file and before it published the marker.
    if recipe.existing == Existing::Skip && recorded == Some(None) && output.work.is_dir() {
        return Ok(false);
    }
    let path = output.folder.join(jsonl_name(recipe, output));
    is_kept(recorded, path, &output.fingerprint, recipe.existing)
}

/// Whether the folder has the samples of a plan.
///
/// # Errors
/// The folder has samples of another plan that must not be replaced.
pub(super) fn is_of_plan(folder: &Path, plan: &str, existing: Existing) -> Result<bool> {
    is_kept(plan_of_folder(folder)?, folder.to_owned(), plan, existing)
}

/// Whether an output at `path` belongs to `plan` and is kept. `recorded` is a result of
/// [`recorded_plan`].
fn is_kept(
    recorded: Option<Option<String>>,
    path: PathBuf,
    plan: &str,
    existing: Existing,
) -> Result<bool> {
    let Some(recorded) = recorded else {
        return Ok(false);
    };
    match existing {
        Existing::Error => Err(Error::SamplesExist { path }),
        _ if recorded.as_deref() == Some(plan) => Ok(true),
        Existing::Replace => Ok(false),
        Existing::Skip => Err(Error::SamplesOfOtherPlan { path }),
    }
}

/// The plan that the marker of an existing output records, if the output has a marker. The outer
/// `None` means that there is no output.
fn recorded_plan(recipe: &Recipe, output: &Output) -> Result<Option<Option<String>>> {
    if output.side != Side::Retrieval {
        return plan_of_folder(&output.folder);
    }
    let name = jsonl_name(recipe, output);
    let exists = output.folder.join(&name).exists();
    Ok(exists.then(|| lines_of(&output.folder, &name).map(|lines| lines.plan)))
}

fn plan_of_folder(folder: &Path) -> Result<Option<Option<String>>> {
    if !folder.join(INDEX_FILE).exists() {
        return Ok(None);
    }
    let marker = Marker::of_folder(folder)?;
    Ok(Some(marker.map(|marker| marker.plan)))
}

/// Rejects a recipe if one of its outputs exists. Reads no documents.
pub(super) fn refuse_all(recipe: &Recipe) -> Result<()> {
    for side in [Side::Test, Side::Train] {
        let quotas = recipe.quotas(side);
        for (domain, _) in recipe
            .domains
            .iter()
            .zip(quotas)
            .filter(|(_, quota)| *quota > 0)
        {
            refuse(&recipe.output.join(side.name()).join(&domain.name))?;
        }
    }
    let folder = recipe.output.join(Side::Retrieval.name());
    let quotas = recipe.quotas(Side::Retrieval);
    for shard in recipe.retrieval_shards() {
        for (domain, _) in recipe
            .domains
            .iter()
            .zip(&quotas)
            .filter(|(_, quota)| **quota > 0)
        {
            let path = folder
                .join(shard.to_string())
                .join(format!("{}.jsonl", domain.name));
            if path.exists() {
                return Err(Error::SamplesExist { path });
            }
        }
    }
    Ok(())
}

/// Rejects a folder that has samples.
pub(super) fn refuse(folder: &Path) -> Result<()> {
    if folder.join(INDEX_FILE).exists() {
        let path = folder.to_owned();
        return Err(Error::SamplesExist { path });
    }
    Ok(())
}

/// Whether the error means that existing outputs must not be replaced.
pub(super) fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::SamplesExist { .. } | Error::SamplesOfOtherPlan { .. }
    )
}

/// A file of a retrieval shard, in its marker.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Lines {
    plan: String,
    samples: u64,
    bytes: u64,
    sha256: String,
}

/// The files that the marker of a retrieval shard lists.
fn listed(folder: &Path) -> Map<String, Value> {
    let bytes = fs::read(folder.join(MARKER_FILE)).unwrap_or_default();
    let content: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    content["files"].as_object().cloned().unwrap_or_default()
}

fn lines_of(folder: &Path, name: &str) -> Option<Lines> {
    serde_json::from_value(listed(folder).get(name)?.clone()).ok()
}

/// Checks that all parts of unfinished outputs are written.
///
/// # Errors
/// [`Error::PartsMissing`].
pub(super) fn check_complete(
    path: &Path,
    outputs: &[Output],
    parts: &[Part],
    finished: &[bool],
) -> Result<()> {
    let missing = parts
        .iter()
        .filter(|part| !finished[part.output] && state(&outputs[part.output], part).is_none())
        .count();
    if missing > 0 {
        return Err(Error::PartsMissing {
            path: path.to_owned(),
            missing,
            total: parts.len(),
        });
    }
    Ok(())
}

/// Publishes all outputs that are not finished.
///
/// # Errors
/// Parts are missing or damaged; a file cannot be moved.
pub(super) fn join(
    recipe: &Recipe,
    plan: &Plan,
    form: &Form,
    outputs: &[Output],
    parts: &[Part],
    finished: &[bool],
) -> Result<()> {
    check_complete(&recipe.output, outputs, parts, finished)?;
    for (number, output) in outputs
        .iter()
        .enumerate()
        .filter(|&(number, _)| !finished[number])
    {
        let parts: Vec<&Part> = parts.iter().filter(|part| part.output == number).collect();
        match output.side {
            Side::Retrieval => publish_lines(output, parts[0])?,
            Side::Test | Side::Train => publish_samples(recipe, plan, form, output, &parts)?,
        }
    }
    Ok(())
}

fn publish_samples(
    recipe: &Recipe,
    plan: &Plan,
    form: &Form,
    output: &Output,
    parts: &[&Part],
) -> Result<()> {
    publish_folder(
        output,
        parts,
        "samples",
        &recipe.domains[output.domain].name,
        details(recipe, plan, form)?,
        recipe.existing,
    )
}

/// Moves the files of all parts to their place, and publishes the marker and the index.
pub(super) fn publish_folder(
    output: &Output,
    parts: &[&Part],
    kind: &str,
    domain: &str,
    details: Map<String, Value>,
    existing: Existing,
) -> Result<()> {
    let folder = &output.folder;
    fs::create_dir_all(folder).map_err(Error::io(folder))?;
    if existing == Existing::Replace {
        remove_samples(folder)?;
    }
    let mut entries = Vec::with_capacity(parts.len());
    for part in parts {
        if let Some(State::Shard(entry)) = state(output, part) {
            let name = &entry.stored().basename;
            put(output, part, name, entry.stored().bytes)?;
            entries.push(*entry);
        }
    }
    let finished = Finished {
        folder: folder.clone(),
        num_samples: entries.iter().map(|entry| entry.samples).sum(),
        entries,
    };
    let marker = Marker {
        version: 1,
        kind: kind.to_owned(),
        plan: output.fingerprint.clone(),
        side: output.side.name().to_owned(),
        domain: domain.to_owned(),
        start: 0,
        stop: finished.num_samples,
        index_sha256: None,
        shards: None,
        details,
    };
    finished.publish(Some(marker))?;
    fs::remove_dir_all(&output.work).map_err(Error::io(&output.work))
}

/// More about the samples, for the readers of a marker.
fn details(recipe: &Recipe, plan: &Plan, form: &Form) -> Result<Map<String, Value>> {
    let content = json!({
        "from": recipe.from,
        "context": recipe.context,
        "decoder": recipe.decoder,
        "min_tokens": recipe.min_tokens,
        "splits": recipe.splits,
        "seed": recipe.seed,
        "dtype": form.dtype,
        "tokenizer": tokenizer_of(plan)?,
    });
    Ok(content.as_object().cloned().unwrap_or_default())
}

/// The tokenizer that the token files record.
fn tokenizer_of(plan: &Plan) -> Result<Value> {
    let Some(first) = plan.files.first() else {
        return Ok(Value::Null);
    };
    let file = packtok_formats::TokenFile::open(&first.path)?;
    let metadata = file.metadata()?;
    let tokenizer = metadata.and_then(|metadata| metadata.tokenizer.as_ref());
    Ok(tokenizer.map_or(Value::Null, |tokenizer| {
        json!({"name": tokenizer.name, "fingerprint": tokenizer.fingerprint, "vocab_size": tokenizer.vocab_size})
    }))
}

/// Removes the index, then the files of a folder that is replaced.
fn remove_samples(folder: &Path) -> Result<()> {
    let index = folder.join(INDEX_FILE);
    match fs::remove_file(&index) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io(&index)(error)),
    }
    for entry in fs::read_dir(folder).map_err(Error::io(folder))? {
        let path = entry.map_err(Error::io(folder))?.path();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        if name.starts_with("shard.") && name.contains(".mds") {
            fs::remove_file(&path).map_err(Error::io(&path))?;
        }
    }
    Ok(())
}

fn publish_lines(output: &Output, part: &Part) -> Result<()> {
    let Some(State::Lines {
        name,
        bytes,
        sha256,
    }) = state(output, part)
    else {
        return Ok(());
    };
    fs::create_dir_all(&output.folder).map_err(Error::io(&output.folder))?;
    put(output, part, &name, bytes)?;
    let lines = Lines {
        plan: output.fingerprint.clone(),
        samples: output.samples.end - output.samples.start,
        bytes,
        sha256,
    };
    let mut files = listed(&output.folder);
    files.insert(name, json!(lines));
    let content =
        json!({"version": 1, "kind": "retrieval corpus", "shard": output.shard, "files": files});
    let mut bytes = serde_json::to_vec_pretty(&content).unwrap_or_default();
    bytes.push(b'\n');
    publish_bytes(&output.folder.join(MARKER_FILE), &bytes, Replace::Existing)?;
    fs::remove_dir_all(&output.work).map_err(Error::io(&output.work))
}

/// Moves the file of a part to its final place, unless an earlier attempt has moved it.
fn put(output: &Output, part: &Part, name: &str, bytes: u64) -> Result<()> {
    let (from, to) = (
        part_folder(output, part).join(name),
        output.folder.join(name),
    );
    let place = if from.exists() { &from } else { &to };
    let Some(file_bytes) = size(place) else {
        return Err(Error::PartVanished { path: from });
    };
    if file_bytes != bytes {
        return Err(Error::PartDamaged {
            path: place.clone(),
            found: file_bytes,
            expected: bytes,
            marker: marker(output, part),
        });
    }
    if place == &from {
        fs::rename(&from, &to).map_err(Error::io(&to))?;
    }
    Ok(())
}

/// Removes the folder of unfinished work. Keeps it if only one retrieval shard was requested and
/// another shard still needs the plan.
pub(super) fn clean(recipe: &Recipe, plan: &Plan, form: &Form, work: &Path) -> Result<()> {
    if needs_plan(recipe, plan, form, work) {
        return Ok(());
    }
    Plan::remove(work);
    remove_work(work)
}

fn needs_plan(recipe: &Recipe, plan: &Plan, form: &Form, work: &Path) -> bool {
    let mut whole = recipe.clone();
    let only = (whole.retrieval.as_mut()).and_then(|retrieval| retrieval.only.take());
    if only.is_none() {
        return false;
    }
    let is_missing = |output: &Output| {
        let recorded = recorded_plan(&whole, output).ok().flatten().flatten();
        recorded.as_ref() != Some(&output.fingerprint)
    };
    // On an error, all shards together request more chunks than exist.
    outputs(&whole, plan, form, work).map_or(true, |outputs| outputs.iter().any(is_missing))
}

pub(super) fn remove_work(work: &Path) -> Result<()> {
    match fs::remove_dir_all(work) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(work)(error)),
        _ => Ok(()),
    }
}

/// Removes the folder of unfinished work if the folder is empty.
pub(super) fn remove_if_empty(work: &Path) {
    // A folder that is not empty contains the files of an unfinished run.
    drop(fs::remove_dir(work));
}
