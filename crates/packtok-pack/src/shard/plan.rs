//! The plan of a division into shards: the corpus, the options and the number of shards.
//!
//! The plan is written once into the folder of the shards and never replaced. Processes that pack
//! a shard read the sources from the plan instead of listing the inputs again, and compare their
//! options with it. The plan contains no secrets: paths contain placeholders, and processes that
//! know the secrets restore them.

use std::path::{Component, Path, PathBuf};

use packtok_corpus::cut;
use packtok_corpus::{CurrentFolder, Expansion, Ignored, Source};
use packtok_jobs::Shard;
use packtok_jobs::{Monitor, Progress, report_progress};
use packtok_pbin::Counts;
use packtok_tokenizer::Tokenizer;
use serde::Serialize;
use serde_json::Value;

use super::folder::plan_path;
use super::plan_file::{self, Header, SourceLine, VERSION};
use crate::error::{Error, Result};
use crate::pack::{PackOptions, listed, metadata, redacted};

/// Fields that are only known after the inputs were listed, and fields derived from them.
const FROM_LISTING: [&str; 3] = ["root", "num_sources", "total_bytes"];

/// The plan in a folder of shards.
#[derive(Debug, Clone)]
pub struct ShardPlan {
    path: PathBuf,
    pub(super) header: Header,
}

/// A description of a plan.
#[derive(Debug, Clone, Serialize)]
pub struct PlanReport {
    /// The plan's file.
    pub plan: PathBuf,
    /// Fingerprint that identifies the plan.
    pub fingerprint: String,
    /// Number of shards.
    pub num_shards: u64,
    /// Number of sources.
    pub num_sources: u64,
    /// The first sources of the plan.
    pub sources: Vec<PathBuf>,
    /// Length of all sources on disk, in bytes.
    pub source_bytes: u64,
    /// Whether the plan already existed.
    pub skipped_existing: bool,
    /// Files that are not read.
    pub ignored: Vec<Ignored>,
}

/// Lists the inputs and writes the plan for `num_shards` shards into the folder
/// `options.spec.output`.
///
/// # Errors
/// The errors of listing the inputs; an option that cannot be used with shards; an existing plan
/// differs.
pub fn plan(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    num_shards: u64,
    monitor: &mut Monitor<'_>,
) -> Result<PlanReport> {
    Shard::new(0, num_shards)?;
    let Made {
        plan,
        is_new,
        sources,
        ignored,
    } = ShardPlan::make(options, tokenizer, num_shards, monitor)?;
    Ok(PlanReport {
        plan: plan.path,
        fingerprint: plan.header.fingerprint,
        num_shards,
        num_sources: plan.header.num_sources,
        sources,
        source_bytes: plan.header.total_bytes,
        skipped_existing: !is_new,
        ignored,
    })
}

/// A plan that this process wrote or that already existed.
pub(super) struct Made {
    pub(super) plan: ShardPlan,
    /// Whether this call wrote the plan.
    is_new: bool,
    /// The first of its sources.
    sources: Vec<PathBuf>,
    /// Files that it leaves out.
    ignored: Vec<Ignored>,
}

impl ShardPlan {
    /// Reads the plan in `folder`, if there is one.
    ///
    /// # Errors
    /// The plan cannot be read, or its first line is invalid.
    pub fn find(folder: &Path) -> Result<Option<Self>> {
        let path = plan_path(folder);
        match path.symlink_metadata() {
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(Error::io(&path, cause)),
            Ok(_) => {
                let header = plan_file::read_header(&path)?;
                Ok(Some(Self { path, header }))
            }
        }
    }

    /// Lists the inputs and writes the plan. If a plan exists, or another process writes one
    /// first, both plans must be equal.
    pub(super) fn make(
        options: &PackOptions,
        tokenizer: &Tokenizer,
        num_shards: u64,
        monitor: &mut Monitor<'_>,
    ) -> Result<Made> {
        reject_unsupported_options(options)?;
        let path = plan_path(&options.spec.output);
        let Expansion { sources, ignored } = options.spec.expand()?;
        // Reports an unsupported format or a missing column before any task starts. Checks only
        // the first file: opening a million files would take longer than the rest of the plan.
        if let Some(first) = sources.first() {
            packtok_corpus::check(first, &options.spec.read())?;
        }
        report_progress(monitor, &Progress::default())?;
        let root = match options.spec.plugin {
            Some(_) => String::new(),
            None => root_of(&sources, &options.spec.output)?,
        };
        let first_sources = listed(&sources);
        let mut header = Header {
            root: redacted(&root, &options.spec.redactions),
            num_sources: sources.len() as u64,
            total_bytes: sources.iter().map(|source| source.bytes).sum(),
            ..expected(options, tokenizer, num_shards)?
        };
        let lines = || sources.iter().map(|source| line_of(source, options));
        header.fingerprint = plan_file::fingerprint(&header, lines(), &path)?;
        let made = Self { path, header };
        if let Some(existing) = Self::find(&options.spec.output)? {
            existing.compare(&made, lines())?;
            return Ok(Made {
                plan: existing,
                is_new: false,
                sources: first_sources,
                ignored,
            });
        }
        match plan_file::publish(&made.path, &made.header, lines()) {
            Ok(()) => Ok(Made {
                plan: made,
                is_new: true,
                sources: first_sources,
                ignored,
            }),
            Err(Error::Pbin(packtok_pbin::Error::Exists { .. })) => {
                let header = plan_file::read_header(&made.path)?;
                let path = made.path.clone();
                let winner = Self { path, header };
                winner.compare(&made, lines())?;
                Ok(Made {
                    plan: winner,
                    is_new: false,
                    sources: first_sources,
                    ignored,
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Checks that the plan matches a run, as far as possible without listing the inputs.
    pub(super) fn check(
        &self,
        options: &PackOptions,
        tokenizer: &Tokenizer,
        num_shards: Option<u64>,
    ) -> Result<()> {
        reject_unsupported_options(options)?;
        let num_shards = num_shards.unwrap_or(self.header.num_shards);
        self.compare_headers(&expected(options, tokenizer, num_shards)?, &FROM_LISTING)
    }

    /// Number of shards.
    pub fn num_shards(&self) -> u64 {
        self.header.num_shards
    }

    /// Fingerprint that identifies the plan.
    pub fn fingerprint(&self) -> &str {
        &self.header.fingerprint
    }

    /// Raw bytes of all sources.
    pub fn total_bytes(&self) -> u64 {
        self.header.total_bytes
    }

    /// Path of the plan file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The sources of a shard, and the number of the first source. Accesses only the files of this
    /// shard.
    pub(super) fn sources_of(
        &self,
        shard: Shard,
        options: &PackOptions,
        monitor: &mut Monitor<'_>,
    ) -> Result<(usize, Vec<Source>)> {
        let root = PathBuf::from(restored(&self.header.root, &options.spec.redactions));
        let corpora = options.spec.read().plugin;
        // The parts of a plug-in's corpora have no known lengths, so they count alike.
        let total = match corpora {
            Some(_) => self.header.num_sources,
            None => self.header.total_bytes,
        };
        let (mut shares, mut ordinal, mut before) = (Vec::new(), 0, 0);
        plan_file::for_each_source(&self.path, &self.header, |line| {
            let weight = corpora.as_ref().map_or(line.bytes, |_| 1);
            if let Some(share) = shard.share(total, before, weight) {
                let source = match &corpora {
                    None => (planned(&root, &line, options), share),
                    Some(corpora) => {
                        let label = restored(&line.path, &options.spec.redactions);
                        (corpora.labelled(label, line.input)?, 0..0)
                    }
                };
                shares.push((ordinal, source));
            }
            ordinal += 1;
            before += weight;
            Ok(())
        })?;
        let mut first = 0;
        let mut sources = Vec::with_capacity(shares.len());
        for (ordinal, (source, share)) in shares {
            let mut tick = || Ok(report_progress(monitor, &Progress::default())?);
            tick()?;
            if corpora.is_none() {
                check_length(&source)?;
            }
            if let Some(source) = cut(source, share, &mut tick)? {
                if sources.is_empty() {
                    first = ordinal;
                }
                sources.push(source);
            }
        }
        Ok((first, sources))
    }

    /// Calls `each` with the label and length of every source.
    pub(super) fn for_each_source(
        &self,
        mut each: impl FnMut(&str, u64) -> Result<()>,
    ) -> Result<()> {
        plan_file::for_each_source(&self.path, &self.header, |line| {
            each(&line.path, line.bytes)
        })
    }

    /// Checks that this plan equals the plan `made` for `sources`.
    fn compare<'a>(
        &self,
        made: &Self,
        mut sources: impl Iterator<Item = SourceLine<'a>>,
    ) -> Result<()> {
        self.compare_headers(&made.header, &[])?;
        if self.header.fingerprint == made.header.fingerprint {
            return Ok(());
        }
        let describe = |line: SourceLine<'_>| format!("{} of {} bytes", line.path, line.bytes);
        let mut ordinal = 0;
        plan_file::for_each_source(&self.path, &self.header, |line| {
            let expected = sources.next().map_or_else(|| "none".to_owned(), describe);
            self.compare_texts(&format!("source {ordinal}"), describe(line), expected)?;
            ordinal += 1;
            Ok(())
        })
    }

    /// Compares the fields except those in `left_out`, and reports the first difference.
    fn compare_headers(&self, expected: &Header, left_out: &[&str]) -> Result<()> {
        let fields = |header: &Header| {
            let mut fields = serde_json::to_value(header).unwrap_or_default();
            for name in left_out.iter().chain(&["fingerprint"]) {
                fields[*name].take();
            }
            fields
        };
        match difference(&fields(&self.header), &fields(expected)) {
            None => Ok(()),
            Some((what, found, expected)) => self.compare_texts(&what, found, expected),
        }
    }

    fn compare_texts(&self, what: &str, found: String, expected: String) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        Err(Error::PlanDiffers {
            path: self.path.clone(),
            what: what.to_owned(),
            found,
            expected,
        })
    }
}

/// The first difference between two JSON values, with both values.
pub(super) fn difference(found: &Value, expected: &Value) -> Option<(String, String, String)> {
    let inner = |name: &str, found: Option<&Value>, expected: Option<&Value>| {
        let (found, expected) = (found.unwrap_or_default(), expected.unwrap_or_default());
        difference(found, expected).map(|(rest, found, expected)| {
            let name = if rest.is_empty() || rest.starts_with('[') {
                format!("{name}{rest}")
            } else {
                format!("{name}.{rest}")
            };
            (name, found, expected)
        })
    };
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => found
            .keys()
            .chain(expected.keys())
            .find_map(|name| inner(name, found.get(name), expected.get(name))),
        (Value::Array(found), Value::Array(expected)) => (0..found.len().max(expected.len()))
            .find_map(|i| inner(&format!("[{i}]"), found.get(i), expected.get(i))),
        _ if found == expected => None,
        _ => Some((
            String::new(),
            describe_value(found),
            describe_value(expected),
        )),
    }
}

fn describe_value(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        value => value.to_string(),
    }
}

/// The expected first line of a plan, without the fields that depend on listing the inputs.
fn expected(options: &PackOptions, tokenizer: &Tokenizer, num_shards: u64) -> Result<Header> {
    let recorded = metadata(options, tokenizer, Counts::default(), false);
    let current = CurrentFolder::of(options.spec.input.iter().map(Path::new))?;
    let named = |input: &String| {
        let path = current.absolute(Path::new(input));
        let name = match options.spec.plugin {
            Some(_) => input.into(),
            None => path.to_string_lossy(),
        };
        redacted(&name, &options.spec.redactions)
    };
    Ok(Header {
        packtok_plan: VERSION,
        fingerprint: String::new(),
        num_shards,
        writer: recorded.writer,
        tokenizer: recorded.tokenizer,
        eod: recorded.eod,
        bos: recorded.bos,
        options: recorded.options,
        inputs: options.spec.input.iter().map(named).collect(),
        root: String::new(),
        num_sources: 0,
        total_bytes: 0,
    })
}

/// Rejects options that a single shard cannot evaluate: limits over the whole run, and an index,
/// which has an order of its own.
fn reject_unsupported_options(options: &PackOptions) -> Result<()> {
    let limit = "where it stops depends on the preceding shards, which a shard does not see";
    let refused = [
        (
            "max_documents",
            options.spec.recorded.max_documents.is_some(),
            limit,
        ),
        (
            "max_tokens",
            options.spec.recorded.max_tokens.is_some(),
            limit,
        ),
        (
            "index_path",
            options.spec.index_path.is_some(),
            "it selects lines in its own order, but shards are byte ranges of the files in order",
        ),
    ];
    match refused.into_iter().find(|(_, is_given, _)| *is_given) {
        None => Ok(()),
        Some((option, _, reason)) => Err(Error::NotForShards { option, reason }),
    }
}

/// The common folder of all sources. Checks that every source can be reached from this folder.
fn root_of(sources: &[Source], folder: &Path) -> Result<String> {
    let paths = sources.iter().map(|source| source.path.as_path());
    let current = CurrentFolder::of(paths.chain([folder]))?;
    let folder = current.absolute(folder);
    let mut root = PathBuf::new();
    for source in sources {
        let path = current.absolute(&source.path);
        if path.starts_with(&folder) {
            return Err(Error::SourceInOutput {
                path: path.into_owned(),
                folder: folder.into_owned(),
            });
        }
        if path.to_str().is_none() {
            return Err(Error::PathNotUtf8 {
                path: path.into_owned(),
            });
        }
        if root.as_os_str().is_empty() {
            let num_names = source.label.split('/').count();
            root = path.ancestors().nth(num_names).unwrap_or(&path).to_owned();
        }
        let mut names = source.path.components();
        if names.any(|name| name == Component::ParentDir) {
            reject_ambiguous_path(&source.path, &path)?;
        }
    }
    // Valid UTF-8, because the complete path is.
    Ok(root.to_string_lossy().into_owned())
}

/// Rejects a path in which `..` after a symbolic link leads to another file.
fn reject_ambiguous_path(path: &Path, named: &Path) -> Result<()> {
    let resolved = |path: &Path| path.canonicalize().map_err(|cause| Error::io(path, cause));
    if resolved(path)? == resolved(named)? {
        Ok(())
    } else {
        Err(Error::ThroughLink { path: path.into() })
    }
}

fn line_of<'a>(source: &Source, options: &PackOptions) -> SourceLine<'a> {
    SourceLine {
        path: redacted(&source.label, &options.spec.redactions).into(),
        bytes: source.bytes,
        format: source.format,
        // Needed only to find the filter of the input, or the corpus of a plug-in.
        input: if options.spec.recorded.input_fields.is_empty() && options.spec.plugin.is_none() {
            0
        } else {
            source.input
        },
    }
}

fn planned(root: &Path, line: &SourceLine<'_>, options: &PackOptions) -> Source {
    let label = restored(&line.path, &options.spec.redactions);
    Source {
        path: root.join(&label),
        label,
        bytes: line.bytes,
        format: line.format,
        input: line.input,
        range: None,
        files: None,
    }
}

/// `text` with the placeholders replaced by their secrets.
fn restored(text: &str, redactions: &[(String, String)]) -> String {
    redactions
        .iter()
        .filter(|(_, placeholder)| !placeholder.is_empty())
        .fold(text.to_owned(), |text, (secret, placeholder)| {
            text.replace(placeholder, secret)
        })
}

fn check_length(source: &Source) -> Result<()> {
    let found_bytes = packtok_corpus::len_of(&source.path)?;
    if found_bytes == source.bytes {
        return Ok(());
    }
    Err(Error::SourceNotAsPlanned {
        path: source.path.clone(),
        planned_bytes: source.bytes,
        found_bytes,
    })
}
