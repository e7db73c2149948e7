//! The outputs of a recipe's plan, and their division into parts.
//!
//! A part is one file. Any number of processes write parts into a work folder, in any order;
//! `join` moves the parts to their final place.

use std::ops::Range;
use std::path::{Path, PathBuf};

use packtok_formats::mds::{self, Columns, Compression, Hash};
use packtok_jobs::hex;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::sample::plan::Plan;
use crate::sample::recipe::{Recipe, SampleIdType, Side};

/// A folder of samples, or a shard of the retrieval corpus.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) side: Side,
    /// The domain; for a retrieval shard, the domain of one of its files.
    pub(super) domain: usize,
    /// The retrieval shard.
    pub(super) shard: u64,
    /// The folder to publish.
    pub(super) folder: PathBuf,
    /// The folder of finished parts.
    pub(super) work: PathBuf,
    /// Identifies the samples and the form in which they are written.
    pub(super) fingerprint: String,
    /// The positions of its samples in the plan's order.
    pub(super) samples: Range<u64>,
}

/// A file of an output.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Number of the output.
    pub(super) output: usize,
    /// Number of the file in the output.
    pub(super) number: u64,
    /// Positions of its samples.
    pub(super) samples: Range<u64>,
}

/// The options for writing samples.
pub(super) struct Form {
    pub(super) dtype: SampleIdType,
    pub(super) columns: Columns,
    pub(super) options: mds::Options,
}

impl Form {
    pub(super) fn new(recipe: &Recipe, plan: &Plan) -> Result<Self> {
        let width = plan.files.first().map_or(2, |file| file.token_bytes);
        let dtype = recipe.dtype.unwrap_or(SampleIdType::of_width(width));
        let ids = format!("ndarray:{}", dtype.name());
        let mut columns = vec![
            ("domain", "str"),
            ("prev_token_ids", &*ids),
            ("token_ids", &*ids),
        ];
        if recipe.origin {
            columns.extend([("source", "str"), ("start", "int")]);
        }
        let compression = recipe
            .compression
            .as_deref()
            .map(Compression::parse)
            .transpose();
        Ok(Self {
            dtype,
            columns: Columns::new(columns)?,
            options: mds::Options {
                size_limit: Some(recipe.size_limit),
                hashes: vec![Hash::Sha256, Hash::Xxh64],
                compression: compression?,
                first_shard: 0,
            },
        })
    }
}

/// All outputs, in order: test, train, then the retrieval shards.
///
/// # Errors
/// [`Error::TooFewSamples`].
pub(super) fn outputs(
    recipe: &Recipe,
    plan: &Plan,
    form: &Form,
    work: &Path,
) -> Result<Vec<Output>> {
    let mut outputs = Vec::new();
    for side in [Side::Test, Side::Train] {
        for (domain, requested) in recipe.quotas(side).into_iter().enumerate() {
            let samples = taken(recipe, plan, side, domain, 0..requested)?;
            let name = &recipe.domains[domain].name;
            let folder = recipe.output.join(side.name()).join(name);
            outputs.push(output(
                recipe,
                plan,
                form,
                work,
                (side, domain, 0),
                folder,
                samples,
            ));
        }
    }
    let quotas = recipe.quotas(Side::Retrieval);
    for shard in recipe.retrieval_shards() {
        for (domain, &requested) in quotas.iter().enumerate() {
            let wanted = shard.saturating_mul(requested)..(shard + 1).saturating_mul(requested);
            let samples = taken(recipe, plan, Side::Retrieval, domain, wanted)?;
            let folder = recipe
                .output
                .join(Side::Retrieval.name())
                .join(shard.to_string());
            let place = (Side::Retrieval, domain, shard);
            outputs.push(output(recipe, plan, form, work, place, folder, samples));
        }
    }
    outputs.retain(|output| !output.samples.is_empty());
    Ok(outputs)
}

/// The positions of `wanted` that exist.
fn taken(
    recipe: &Recipe,
    plan: &Plan,
    side: Side,
    domain: usize,
    wanted: Range<u64>,
) -> Result<Range<u64>> {
    let counts = &plan.group(side, domain).counts;
    let stop = wanted.end.min(counts.available);
    if stop < wanted.end && !wanted.is_empty() && !recipe.allow_short {
        return Err(Error::TooFewSamples {
            side: side.name(),
            domain: recipe.domains[domain].name.clone(),
            requested: wanted.end,
            available: counts.available,
            documents: counts.documents,
            too_short: counts.too_short,
        });
    }
    Ok(wanted.start.min(stop)..stop)
}

fn output(
    recipe: &Recipe,
    plan: &Plan,
    form: &Form,
    work: &Path,
    (side, domain, shard): (Side, usize, u64),
    folder: PathBuf,
    samples: Range<u64>,
) -> Output {
    let fingerprint = fingerprint(recipe, plan, form, side, domain, &samples);
    Output {
        work: work.join(&fingerprint[..32]),
        side,
        domain,
        shard,
        folder,
        fingerprint,
        samples,
    }
}

/// Identifies the samples of an output, wherever it and its token files are.
fn fingerprint(
    recipe: &Recipe,
    plan: &Plan,
    form: &Form,
    side: Side,
    domain: usize,
    samples: &Range<u64>,
) -> String {
    let counts = &plan.group(side, domain).counts;
    let sources = recipe.origin.then(|| {
        let files = recipe.domains[domain].files.iter();
        files
            .map(|path| recipe.source_name(path))
            .collect::<Vec<_>>()
    });
    let windows = match (&recipe.retrieval, side) {
        (Some(retrieval), Side::Retrieval) => json!([retrieval.chunk]),
        _ => json!([
            recipe.from,
            recipe.context,
            recipe.decoder,
            recipe.min_tokens
        ]),
    };
    let form = match side {
        Side::Retrieval => json!(null),
        _ => json!([
            form.dtype,
            recipe.compression,
            recipe.origin,
            recipe.size_limit
        ]),
    };
    let content = json!([
        1,
        side,
        recipe.domains[domain].name,
        [samples.start, samples.end],
        windows,
        recipe.splits,
        recipe.seed,
        form,
        sources,
        counts.documents,
        counts.tokens,
        counts.digest,
    ]);
    hex(&Sha256::digest(content.to_string()))
}
