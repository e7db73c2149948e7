//! Joins shards into the file that one run would have written, byte for byte.
//!
//! Responsible for checking that all shards exist, are complete and belong to one plan, and for the
//! metadata of the file. `packtok-pbin` copies and verifies the parts.

use std::path::{Path, PathBuf};

use packtok_corpus::rejects::{Rejects, first_reject};
use packtok_jobs::Shard;
use packtok_jobs::{Monitor, Progress, report_progress};
use packtok_pbin::{
    CorpusFormat, Counts, Metadata, OpenPart, Reader, Replace, TokenizerInfo, Writer, join_as,
    publish_bytes, remove_abandoned,
};
use serde::Serialize;

use super::folder::{rejects_path, shard_path, tokenizer_path};
use super::join_journal;
use super::marker::differing;
use super::pack::check_tokenizer;
use super::plan::difference;
use super::rejects::LinesBefore;
use super::{Marker, ShardPlan, SourcePart};
use crate::error::{Error, Result};
use crate::pack::{
    Existing, RejectFault, RejectLimit, has_published, remove_leftover, tokenizer_path_of,
};

/// Options of a join.
#[derive(Debug, Clone)]
pub struct JoinOptions {
    /// The folder of the shards.
    pub folder: PathBuf,
    /// The file to write.
    pub output: PathBuf,
    /// The action if the output already exists.
    pub existing: Existing,
    /// Maximum number of rejected documents in all shards; `None` for the limits with which the
    /// shards were packed.
    pub max_rejects: Option<RejectLimit>,
}

/// The result of a join.
#[derive(Debug, Serialize)]
pub struct JoinReport {
    /// The file.
    pub output: PathBuf,
    /// Number of shards.
    pub num_shards: u64,
    /// Number of sources.
    pub num_sources: u64,
    /// Number of documents in the output.
    pub documents: u64,
    /// Number of tokens in the output.
    pub tokens: u64,
    /// Length of the output in bytes.
    pub file_bytes: u64,
    /// The file that lists the rejected lines.
    pub rejects_path: Option<PathBuf>,
    /// The copy of the tokenizer next to the output.
    pub tokenizer_path: PathBuf,
    /// Whether the output already existed and was proven correct.
    pub skipped_existing: bool,
}

/// Joins the shards in a folder, verifying each while it is copied.
///
/// # Errors
/// [`Error::ShardsMissing`]; a shard is damaged or belongs to another plan or program; the errors of
/// publishing.
pub fn join(options: &JoinOptions, monitor: &mut Monitor<'_>) -> Result<JoinReport> {
    let shards = Shards::find(&options.folder)?;
    reject_shard_as_output(&shards, &options.output)?;
    shards.check_rejects(options.max_rejects)?;
    remove_abandoned(&[&options.output, &rejects_path(&options.output)])?;
    let (tokenizer, tokenizer_json) = shards.tokenizer()?;
    let metadata = shards.metadata();
    // A join that was killed after publishing and before reporting is done.
    let is_ours = options.existing == Existing::Error && has_published(&options.output);
    if is_ours || options.existing.keeps(&options.output)? {
        let tokenizer_path = tokenizer_path_of(&options.output);
        let report = shards.prove(options, &metadata, tokenizer_path, monitor)?;
        remove_leftover(&options.output)?;
        return Ok(report);
    }
    let width = metadata.options.width_for_vocab(tokenizer.vocab_size);
    let mut tick = || report_progress(monitor, &Progress::default());
    let shape = (width, metadata.options.origins);
    let (mut started, writer) =
        join_journal::begin(&options.output, shape, &shards.markers, &mut tick)?;
    match shards.write(
        options,
        &metadata,
        &tokenizer_json,
        &mut started,
        writer,
        monitor,
    ) {
        Ok(report) => {
            started.remove()?;
            Ok(report)
        }
        Err(error) => Err(started.give_up(error)),
    }
}

/// The pbins of all shards in order, after checking that all exist and belong to one plan.
///
/// # Errors
/// As [`join`], except for faults in the content of shards.
pub fn list(folder: &Path, max_rejects: Option<RejectLimit>) -> Result<Vec<PathBuf>> {
    let shards = Shards::find(folder)?;
    shards.check_rejects(max_rejects)?;
    let paths = shards
        .opened()
        .map(|part| Ok(part?.reader().path().to_owned()));
    paths.collect()
}

/// Rejects an output that is one of the shards: joining would destroy it.
fn reject_shard_as_output(shards: &Shards, output: &Path) -> Result<()> {
    let Ok(resolved) = output.canonicalize() else {
        return Ok(());
    };
    let is_output = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path == resolved);
    if shards.parts().any(|(path, _)| is_output(&path)) {
        Err(Error::OutputIsInput {
            path: output.to_owned(),
        })
    } else {
        Ok(())
    }
}

/// All shards of a plan, each with its marker.
struct Shards {
    folder: PathBuf,
    plan: ShardPlan,
    markers: Vec<Marker>,
}

impl Shards {
    /// Writes the file, resuming after the shards that it already contains, and publishes
    /// everything.
    fn write(
        &self,
        options: &JoinOptions,
        metadata: &Metadata,
        tokenizer_json: &str,
        started: &mut join_journal::StartedJoin,
        writer: Writer,
        monitor: &mut Monitor<'_>,
    ) -> Result<JoinReport> {
        let mut rejects = Rejects::new(rejects_path(&options.output));
        let mut lines_before = LinesBefore::default();
        for (path, marker) in self.parts() {
            lines_before.append(&rejects_path(&path), marker, &mut rejects)?;
        }
        let sources = self.sources(monitor)?;
        let file_bytes = |marker: &Marker| marker.file_bytes;
        let total_bytes = self.markers.iter().map(file_bytes).sum();
        let num_done = started.num_shards();
        let done_bytes: u64 = self.markers[..num_done].iter().map(file_bytes).sum();
        let finished = join_as(
            writer,
            self.opened().skip(num_done),
            (metadata, &sources),
            &mut |checkpoint| started.note(checkpoint),
            &mut |bytes_read| {
                monitor(&Progress {
                    bytes_read: done_bytes + bytes_read,
                    total_bytes,
                    resumed_bytes: done_bytes,
                    ..Progress::default()
                })
            },
        )?;
        started.check_owner()?;
        options.existing.reject_new_output(&options.output)?;
        let rejects_path = rejects.publish()?;
        let tokenizer_path = tokenizer_path_of(&options.output);
        publish_bytes(
            &tokenizer_path,
            tokenizer_json.as_bytes(),
            Replace::Existing,
        )?;
        let summary = finished.publish(options.existing.replace())?;
        Ok(JoinReport {
            output: options.output.clone(),
            num_shards: self.plan.num_shards(),
            num_sources: sources.len() as u64,
            documents: summary.documents,
            tokens: summary.tokens,
            file_bytes: summary.file_bytes,
            rejects_path,
            tokenizer_path,
            skipped_existing: false,
        })
    }

    fn find(folder: &Path) -> Result<Self> {
        let plan = ShardPlan::find(folder)?.ok_or_else(|| Error::NothingPlanned {
            path: folder.to_owned(),
        })?;
        let count = plan.num_shards();
        let mut markers = Vec::new();
        let mut missing = Vec::new();
        for index in 0..count {
            let shard = Shard::new(index, count)?;
            let path = shard_path(folder, shard);
            match Marker::find(&path)? {
                None => missing.push(index),
                Some(marker) => {
                    marker.check(shard, plan.fingerprint(), &path)?;
                    markers.push(marker);
                }
            }
        }
        if missing.is_empty() {
            return Ok(Self {
                folder: folder.to_owned(),
                plan,
                markers,
            });
        }
        Err(Error::ShardsMissing {
            folder: folder.to_owned(),
            shards: ranges(&missing),
            count,
        })
    }

    /// Fails if all shards together have more rejects than `limit` allows. Without `limit`, the
    /// limits with which the shards were packed apply.
    fn check_rejects(&self, limit: Option<RejectLimit>) -> Result<()> {
        let counts = self.metadata().counts;
        let limits = match limit {
            Some(_) => vec![limit],
            None => self
                .markers
                .iter()
                .map(|marker| marker.max_rejects)
                .collect(),
        };
        let mut faults =
            (limits.iter()).filter_map(|limit| RejectFault::of_complete(*limit, &counts, false));
        let Some(fault) = faults.next() else {
            return Ok(());
        };
        let mut rejected = self
            .parts()
            .filter(|(_, marker)| marker.counts.rejected > 0);
        let first = rejected
            .next()
            .map(|(path, _)| first_reject(&rejects_path(&path)));
        Err(Error::TooManyRejects {
            path: self.folder.clone(),
            fault,
            first: first.unwrap_or_default(),
            rejects: self.folder.join("*.rejects.jsonl"),
        })
    }

    /// The pbins in order, each with its marker.
    fn parts(&self) -> impl Iterator<Item = (PathBuf, &Marker)> {
        let path = |marker: &Marker| {
            let shard = Shard::new(marker.index, marker.count);
            // The marker was compared with its shard when it was read, so the number is valid.
            shard.map_or_else(
                |_| self.folder.clone(),
                |shard| shard_path(&self.folder, shard),
            )
        };
        self.markers
            .iter()
            .map(move |marker| (path(marker), marker))
    }

    /// The pbins in order, opened and compared with plan and markers.
    fn opened(&self) -> impl Iterator<Item = Result<OpenPart>> {
        self.parts().map(|(path, marker)| {
            let first_source = marker.first.map_or(0, |first| first.source);
            let part = OpenPart::open(&path)?.with_first_source(first_source);
            let reader = part.reader();
            let crc = |crc: Option<u32>| {
                crc.map_or_else(|| "none".to_owned(), |crc| format!("{crc:08x}"))
            };
            for (what, found, expected) in [
                (
                    "its trailer's checksum",
                    reader.trailer_crc32c(),
                    marker.trailer_crc32c,
                ),
                (
                    "the checksum of its tokens",
                    reader.data_crc32c()?,
                    marker.data_crc32c,
                ),
            ] {
                differing(&path, what, crc(found), crc(Some(expected)))?;
            }
            self.check_metadata(reader, marker)?;
            Ok(part)
        })
    }

    fn check_metadata(&self, reader: &Reader, marker: &Marker) -> Result<()> {
        let recorded = reader.metadata()?.cloned().unwrap_or_default();
        let expected = Metadata {
            counts: marker.counts,
            shard: Some(packtok_pbin::ShardInfo {
                index: marker.index,
                count: marker.count,
                plan: marker.plan.clone(),
            }),
            ..self.metadata()
        };
        compare_metadata(reader.path(), &recorded, &expected)
    }

    /// The metadata of the joined file, equal to that of a single run.
    fn metadata(&self) -> Metadata {
        let header = &self.plan.header;
        Metadata {
            writer: header.writer.clone(),
            tokenizer: header.tokenizer.clone(),
            eod: header.eod.clone(),
            bos: header.bos.clone(),
            options: header.options.clone(),
            counts: self.markers.iter().fold(Counts::EMPTY, |mut sum, marker| {
                sum.add(&marker.counts);
                sum
            }),
            ..Metadata::default()
        }
    }

    /// Checks that the existing output equals what joining would write.
    fn prove(
        &self,
        options: &JoinOptions,
        metadata: &Metadata,
        tokenizer_path: PathBuf,
        monitor: &mut Monitor<'_>,
    ) -> Result<JoinReport> {
        let output = &options.output;
        let file = Reader::open(output)?;
        let existing_metadata = file.metadata()?.ok_or_else(|| Error::ExistingUnknown {
            path: output.clone(),
        })?;
        let existing = |differs: Error| match differs {
            Error::PartDiffers {
                path,
                what,
                found,
                expected,
            } => Error::ExistingDiffers {
                path,
                what,
                found,
                expected,
            },
            other => other,
        };
        compare_metadata(output, existing_metadata, metadata).map_err(existing)?;
        let (sources, recorded) = (self.sources(monitor)?, file.sources()?);
        for i in 0..sources.len().max(recorded.len()) {
            let describe = |source: Option<&packtok_pbin::Source>| {
                source.map_or_else(|| "none".to_owned(), |source| format!("{source:?}"))
            };
            let (found, expected) = (describe(recorded.get(i)), describe(sources.get(i)));
            differing(output, &format!("its source {i}"), found, expected).map_err(existing)?;
        }
        let data_crc32c = self.opened().try_fold(0, |crc, part| {
            let part = part?;
            let reader = part.reader();
            let part_crc32c = reader.data_crc32c()?.unwrap_or_default();
            Ok::<_, Error>(crc32c::crc32c_combine(
                crc,
                part_crc32c,
                reader.data_bytes() as usize,
            ))
        })?;
        let hex = |crc: u32| format!("{crc:08x}");
        let recorded_crc32c = hex(file.data_crc32c()?.unwrap_or_default());
        let what = "the checksum of its tokens";
        differing(output, what, recorded_crc32c, hex(data_crc32c)).map_err(existing)?;
        file.verify(&mut |bytes_read| {
            monitor(&Progress {
                bytes_read,
                total_bytes: file.file_bytes(),
                ..Progress::default()
            })
        })?;
        let rejects = rejects_path(output);
        Ok(JoinReport {
            output: output.clone(),
            num_shards: self.plan.num_shards(),
            num_sources: sources.len() as u64,
            documents: file.len(),
            tokens: file.num_tokens(),
            file_bytes: file.file_bytes(),
            rejects_path: (metadata.counts.rejected > 0).then_some(rejects),
            tokenizer_path,
            skipped_existing: true,
        })
    }

    /// The metadata and the text of the tokenizer.
    fn tokenizer(&self) -> Result<(&TokenizerInfo, String)> {
        let planned = self.plan.header.tokenizer.as_ref();
        let planned = planned.ok_or_else(|| Error::PlanDamaged {
            path: self.plan.path().to_owned(),
            what: "tokenizer",
            found: "none".to_owned(),
            expected: "a name and a fingerprint".to_owned(),
        })?;
        let json = check_tokenizer(&tokenizer_path(&self.folder), &planned.fingerprint)?;
        Ok((planned, json))
    }

    /// The sources of the plan with their checksums. Checks that the shards cover each source
    /// completely.
    fn sources(&self, monitor: &mut Monitor<'_>) -> Result<Vec<packtok_pbin::Source>> {
        let mut pieces = self.pieces().peekable();
        let mut sources = Vec::new();
        self.plan.for_each_source(|label, bytes| {
            let number = sources.len() as u64;
            if number.is_multiple_of(SOURCES_PER_CALL) {
                report_progress(monitor, &Progress::default())?;
            }
            let mut covered = Covered {
                label,
                bytes,
                num_pieces: 0,
                stop: 0,
                crc32c: 0,
                format: None,
                input: None,
            };
            let is_next = |piece: &Result<ShardPart>| match piece {
                Ok(piece) => piece.part.source == number,
                Err(_) => true,
            };
            while let Some(piece) = pieces.next_if(is_next) {
                covered.add(&piece?)?;
            }
            if covered.stop != bytes || covered.num_pieces == 0 {
                let next = pieces.next().transpose()?;
                let path = next.map_or_else(|| self.plan.path().into(), |piece| piece.path);
                return Err(covered.gap(path, bytes));
            }
            sources.push(packtok_pbin::Source {
                path: label.to_owned(),
                bytes,
                crc32c: Some(covered.crc32c),
                format: covered.format,
                input: covered.input,
            });
            Ok(())
        })?;
        Ok(sources)
    }

    /// The part of each source that each shard contains, in order.
    fn pieces(&self) -> impl Iterator<Item = Result<ShardPart>> {
        self.parts().flat_map(|(path, marker)| {
            let sources = match Reader::open(&path).and_then(|reader| reader.sources()) {
                Ok(sources) => sources,
                Err(error) => return vec![Err(error.into())],
            };
            let first = marker.first.map_or(0, |first| first.source);
            let piece = |(number, recorded): (u64, packtok_pbin::Source)| {
                let part = marker.parts.iter().find(|part| part.source == number);
                Ok(ShardPart {
                    path: path.clone(),
                    part: part.copied().unwrap_or(SourcePart {
                        source: number,
                        start: 0,
                        stop: recorded.bytes,
                        crc32c: recorded.crc32c.unwrap_or_default(),
                        lines: 0,
                    }),
                    recorded,
                })
            };
            (first..).zip(sources).map(piece).collect()
        })
    }
}

/// Sources between two calls of the monitor.
const SOURCES_PER_CALL: u64 = 1 << 14;

/// The part of one source in one shard.
struct ShardPart {
    /// The shard.
    path: PathBuf,
    part: SourcePart,
    recorded: packtok_pbin::Source,
}

/// The part of a source that the pieces so far cover.
struct Covered<'a> {
    label: &'a str,
    bytes: u64,
    num_pieces: u64,
    stop: u64,
    crc32c: u32,
    format: Option<CorpusFormat>,
    input: Option<u64>,
}

impl Covered<'_> {
    fn add(&mut self, piece: &ShardPart) -> Result<()> {
        let part = piece.part;
        let describe = |path: &str, bytes: u64| format!("{path} of {bytes} bytes");
        let recorded = &piece.recorded;
        let expected = describe(self.label, self.bytes);
        let what = format!("its source {}", part.source);
        differing(
            &piece.path,
            &what,
            describe(&recorded.path, recorded.bytes),
            expected,
        )?;
        if part.start != self.stop || part.stop < part.start {
            return Err(self.gap(piece.path.clone(), part.start));
        }
        let bytes = (part.stop - part.start) as usize;
        self.crc32c = match self.num_pieces {
            // A part of a plug-in's corpus has a checksum but no bytes.
            0 => part.crc32c,
            _ => crc32c::crc32c_combine(self.crc32c, part.crc32c, bytes),
        };
        self.stop = part.stop;
        (self.format, self.input) = (piece.recorded.format, piece.recorded.input);
        self.num_pieces += 1;
        Ok(())
    }

    fn gap(&self, path: PathBuf, start: u64) -> Error {
        Error::SourceNotCovered {
            path,
            label: self.label.to_owned(),
            found: start,
            expected: self.stop,
        }
    }
}

/// Compares the metadata, and reports the first difference.
fn compare_metadata(path: &Path, found: &Metadata, expected: &Metadata) -> Result<()> {
    let json = |metadata: &Metadata| serde_json::to_value(metadata).unwrap_or_default();
    match difference(&json(found), &json(expected)) {
        None => Ok(()),
        Some((what, found, expected)) => differing(path, &format!("its {what}"), found, expected),
    }
}

/// Formats sorted numbers as ranges: `3, 7-9`.
fn ranges(numbers: &[u64]) -> String {
    let runs = numbers.chunk_by(|number, next| number + 1 == *next);
    let texts = runs.map(|run| match run {
        [number] => number.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_listed_as_ranges() {
        assert_eq!(ranges(&[3, 7, 8, 9, 11, 12]), "3, 7-9, 11-12");
        assert_eq!(ranges(&[0]), "0");
    }
}
