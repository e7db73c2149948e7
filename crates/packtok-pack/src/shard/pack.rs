//! Packs one shard: runs the pipeline on its part of the corpus, then writes its marker.
//!
//! Two processes may pack the same shard at once, because clusters sometimes start a task twice.
//! Each process writes its own temporary files. The bytes are equal, and both processes publish
//! the files in the same order, the marker last.

use std::path::{Path, PathBuf};
use std::time::Instant;

use packtok_corpus::OnBadDocument;
use packtok_corpus::Source;
use packtok_corpus::rejects::first_reject;
use packtok_jobs::Monitor;
use packtok_jobs::Shard;
use packtok_pbin::{
    Metadata, Reader, Replace, ShardInfo, WriterInfo, publish_bytes, remove_abandoned,
};
use packtok_tokenizer::{Tokenizer, fingerprint_of};

use super::folder::{marker_path, rejects_path, shard_path, tokenizer_path};
use super::marker::{VERSION, differing};
use super::{CorpusOffset, Marker, ShardPlan, SourcePart};
use crate::error::{Error, Result};
use crate::pack::{
    CorpusPart, Existing, PackOptions, PackReport, RejectFault, Written, metadata, report, write,
};

/// Selects the shard to pack.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// Index of the shard, from 0.
    pub index: u64,
    /// The number of shards, if the caller requires one.
    pub count: Option<u64>,
    /// The number of shards if there is no plan and no other requirement.
    pub default_count: Option<u64>,
}

/// Packs a shard into the folder `options.spec.output`, unless its marker shows that the shard is
/// complete.
///
/// Creates the plan if the folder has none.
///
/// # Errors
/// As [`crate::pack::pack`]; the existing plan does not match; or the folder has no plan and the
/// number of shards is not set.
pub fn pack_shard(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    choice: Choice,
    monitor: &mut Monitor<'_>,
) -> Result<PackReport> {
    let started = Instant::now();
    let plan = find_or_make(options, tokenizer, choice, monitor)?;
    let shard = Shard::new(choice.index, plan.num_shards())?;
    let tokenizer_path = provide_tokenizer(&options.spec.output, tokenizer)?;
    let mut of_shard = options.clone();
    of_shard.spec.output = shard_path(&options.spec.output, shard);
    // Another process may have published the same shard, with equal bytes.
    of_shard.spec.existing = Existing::Replace;
    let run = ShardRun {
        shard,
        plan: &plan,
        options: of_shard,
        tokenizer,
    };
    let kept = match options.spec.existing {
        Existing::Replace => None,
        Existing::Error | Existing::Skip => run.kept()?,
    };
    let mut report = match kept {
        Some(marker) => report_of_marker(&run.options, tokenizer, &marker),
        None => run.pack(started, monitor)?,
    };
    report.tokenizer_path = tokenizer_path;
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

fn find_or_make(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    choice: Choice,
    monitor: &mut Monitor<'_>,
) -> Result<ShardPlan> {
    if let Some(plan) = ShardPlan::find(&options.spec.output)? {
        plan.check(options, tokenizer, choice.count)?;
        return Ok(plan);
    }
    let count = choice.count.or(choice.default_count);
    let count = count.ok_or_else(|| Error::NoPlan {
        path: options.spec.output.clone(),
    })?;
    Shard::new(choice.index, count)?;
    Ok(ShardPlan::make(options, tokenizer, count, monitor)?.plan)
}

/// Writes the tokenizer of all shards into the folder, if it is missing.
fn provide_tokenizer(folder: &Path, tokenizer: &Tokenizer) -> Result<PathBuf> {
    let path = tokenizer_path(folder);
    let json = tokenizer.json().as_bytes();
    if !path.exists() {
        match publish_bytes(&path, json, Replace::Never) {
            Err(packtok_pbin::Error::Exists { .. }) => {}
            published => return Ok(published.map(|()| path)?),
        }
    }
    // Fast path: parsing it would take longer than packing a small shard.
    if std::fs::read(&path).is_ok_and(|existing| existing == json) {
        return Ok(path);
    }
    check_tokenizer(&path, tokenizer.fingerprint()).map(|_| path)
}

/// The text of the tokenizer at `path`, which must have that fingerprint.
pub(super) fn check_tokenizer(path: &Path, expected: &str) -> Result<String> {
    let json = std::fs::read_to_string(path).map_err(|cause| Error::io(path, cause))?;
    let found = fingerprint_of(&path.display().to_string(), &json)?;
    if found == expected {
        return Ok(json);
    }
    Err(Error::ShardTokenizerDiffers {
        path: path.to_owned(),
        found,
        expected: expected.to_owned(),
    })
}

/// The report for a complete shard, from its marker; `options.spec.output` is the shard.
pub fn report_of_marker(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    marker: &Marker,
) -> PackReport {
    let metadata = Metadata {
        shard: Some(ShardInfo {
            index: marker.index,
            count: marker.count,
            plan: marker.plan.clone(),
        }),
        ..metadata(options, tokenizer, marker.counts, false)
    };
    let rejects = rejects_path(&options.spec.output);
    let has_rejects = marker.counts.rejected > 0;
    PackReport {
        source_bytes: marker.source_bytes,
        num_sources: usize::try_from(marker.num_sources).unwrap_or(usize::MAX),
        skipped_existing: true,
        ..report(
            options,
            tokenizer,
            &[],
            &metadata,
            marker.file_bytes,
            has_rejects.then_some(rejects),
        )
    }
}

/// The work of one process on a shard.
struct ShardRun<'a> {
    shard: Shard,
    plan: &'a ShardPlan,
    /// The options of the run, with the shard as output.
    options: PackOptions,
    tokenizer: &'a Tokenizer,
}

impl ShardRun<'_> {
    /// The marker, if the shard is complete already.
    fn kept(&self) -> Result<Option<Marker>> {
        let output = &self.options.spec.output;
        let Some(marker) = Marker::find(output)? else {
            return Ok(None);
        };
        marker.check(self.shard, self.plan.fingerprint(), output)?;
        if self.options.spec.on_bad_document == OnBadDocument::Fail {
            let num_rejected = marker.counts.rejected.to_string();
            let what = "its number of rejected documents";
            differing(&marker_path(output), what, num_rejected, "0".to_owned())?;
        }
        if let Some(fault) =
            RejectFault::of_part(self.options.spec.max_rejects, marker.counts.rejected)
        {
            let rejects = rejects_path(output);
            return Err(Error::TooManyRejects {
                path: output.clone(),
                fault,
                first: first_reject(&rejects),
                rejects,
            });
        }
        Ok(Some(marker))
    }

    fn pack(&self, started: Instant, monitor: &mut Monitor<'_>) -> Result<PackReport> {
        let output = &self.options.spec.output;
        let removed = remove_abandoned(&[
            output,
            &self.options.rejects_path(),
            &self.options.failed_rejects_path(),
        ])?;
        let (first, sources) = self.plan.sources_of(self.shard, &self.options, monitor)?;
        let part = CorpusPart {
            sources: &sources,
            shard: Some(self.info()),
        };
        let written = write(&self.options, self.tokenizer, &part, monitor)?;
        let marker = Marker {
            seconds: started.elapsed().as_secs_f64(),
            ..self.marker(first, &sources, &written)?
        };
        marker.publish(output)?;
        Ok(PackReport {
            removed_temporary: removed,
            ..written.report
        })
    }

    fn info(&self) -> ShardInfo {
        ShardInfo {
            index: self.shard.index(),
            count: self.shard.count(),
            plan: self.plan.fingerprint().to_owned(),
        }
    }

    fn marker(&self, first: usize, sources: &[Source], written: &Written) -> Result<Marker> {
        let output = &self.options.spec.output;
        let trailer_crc32c = Reader::open(output)?.trailer_crc32c();
        let number = |i: usize| (first + i) as u64;
        let place = |i: usize, offset_bytes| CorpusOffset {
            source: number(i),
            offset_bytes,
        };
        let part = |(i, source): (usize, &Source)| {
            let range = source.range.clone()?;
            Some(SourcePart {
                source: number(i),
                start: range.start,
                stop: range.end,
                crc32c: written.digests[i].unwrap_or_default(),
                lines: written.part_lines.get(&i).copied().unwrap_or_default(),
            })
        };
        let last = sources.len().checked_sub(1);
        Ok(Marker {
            packtok_shard: VERSION,
            plan: self.plan.fingerprint().to_owned(),
            index: self.shard.index(),
            count: self.shard.count(),
            writer: WriterInfo::default(),
            file_bytes: written.summary.file_bytes,
            data_crc32c: written.summary.data_crc32c,
            trailer_crc32c: trailer_crc32c.ok_or_else(|| Error::ExistingUnknown {
                path: output.clone(),
            })?,
            counts: written.counts,
            num_sources: sources.len() as u64,
            source_bytes: sources.iter().map(Source::span_bytes).sum(),
            first: sources.first().map(|source| place(0, source.span().start)),
            last: last.map(|i| place(i, sources[i].span().end)),
            parts: sources.iter().enumerate().filter_map(part).collect(),
            max_rejects: self.options.spec.max_rejects,
            seconds: 0.0,
            hostname: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
        })
    }
}
