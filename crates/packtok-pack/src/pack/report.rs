//! The report of a run.

use std::path::PathBuf;

use packtok_corpus::{Ignored, Source};
use packtok_pbin::{Counts, Metadata};
use packtok_tokenizer::Tokenizer;
use serde::Serialize;

use super::PackOptions;

/// The most sources that a report lists; the file itself lists all of them.
const LISTED_SOURCES: usize = 1000;

/// The result of a run.
#[derive(Debug, Serialize)]
pub struct PackReport {
    /// The pbin.
    pub output: PathBuf,
    /// Number of the shard, from 0, if the output is a shard.
    pub shard_index: Option<u64>,
    /// Number of shards of the corpus, if it is divided.
    pub num_shards: Option<u64>,
    /// Number of documents in the file.
    pub documents: u64,
    /// Number of tokens in the file.
    pub tokens: u64,
    /// Lines read: `packed + empty + blank + rejected`.
    pub lines: u64,
    /// Lines that became documents.
    pub packed: u64,
    /// Skipped lines without tokens.
    pub empty: u64,
    /// Lines with whitespace only.
    pub blank: u64,
    /// Lines that are not documents.
    pub rejected: u64,
    /// EODs inside documents, not counting the closing one.
    pub eods_in_text: u64,
    /// Length of the pbin in bytes.
    pub file_bytes: u64,
    /// Length of its data segment in bytes.
    pub data_bytes: u64,
    /// Bytes per token.
    pub token_bytes: u64,
    /// Length in bytes of all sources on disk, or of the parts that were read.
    pub source_bytes: u64,
    /// Number of sources.
    pub num_sources: usize,
    /// The first `LISTED_SOURCES` sources.
    pub sources: Vec<PathBuf>,
    /// Files of the inputs that were not read.
    pub ignored: Vec<Ignored>,
    /// Name of the source plug-in; `None` if the sources are files.
    pub source: Option<String>,
    /// Whether a limit ended the run before the end of the corpus.
    pub stopped_early: bool,
    /// Whether the output already existed and was proven correct.
    pub skipped_existing: bool,
    /// Warnings for the user, one sentence each.
    pub warnings: Vec<String>,
    /// Bytes of the sources packed by an earlier run and not packed again.
    pub resumed_bytes: u64,
    /// Temporary files of killed runs that this run removed.
    pub removed_temporary: Vec<PathBuf>,
    /// The file that lists the rejected lines.
    pub rejects_path: Option<PathBuf>,
    /// The copy of the tokenizer next to the output.
    pub tokenizer_path: PathBuf,
    /// Wall-clock time of the run, in seconds.
    pub seconds: f64,
    /// Number of threads.
    pub num_cpus: usize,
    /// The engine that produced the ids.
    pub engine: &'static str,
}

/// The report of a finished run, without its duration.
pub(crate) fn report(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    sources: &[Source],
    metadata: &Metadata,
    file_bytes: u64,
    rejects_path: Option<PathBuf>,
) -> PackReport {
    let counts = &metadata.counts;
    let shard = metadata.shard.as_ref();
    let token_bytes = options.width_for(tokenizer).bytes();
    PackReport {
        output: options.spec.output.clone(),
        shard_index: shard.map(|shard| shard.index),
        num_shards: shard.map(|shard| shard.count),
        documents: counts.documents,
        tokens: counts.tokens,
        lines: counts.lines,
        packed: counts.packed,
        empty: counts.empty,
        blank: counts.blank,
        rejected: counts.rejected,
        eods_in_text: counts.eods_in_text,
        file_bytes,
        data_bytes: counts.tokens * token_bytes,
        token_bytes,
        source_bytes: sources.iter().map(Source::span_bytes).sum(),
        num_sources: sources.len(),
        sources: listed(sources),
        ignored: Vec::new(),
        source: metadata.options.source.clone(),
        stopped_early: metadata.stopped_early,
        skipped_existing: false,
        warnings: warnings(options, counts),
        resumed_bytes: 0,
        removed_temporary: Vec::new(),
        rejects_path,
        tokenizer_path: options.tokenizer_path(),
        seconds: 0.0,
        num_cpus: options.spec.num_cpus,
        engine: tokenizer.engine_chosen(options.spec.engine).name(),
    }
}

/// The first sources, for a report, which is to stay small.
pub(crate) fn listed(sources: &[Source]) -> Vec<PathBuf> {
    let first = sources.iter().take(LISTED_SOURCES);
    first.map(|source| source.path.clone()).collect()
}

fn warnings(options: &PackOptions, counts: &Counts) -> Vec<String> {
    let mut warnings = Vec::new();
    if counts.documents == 0 {
        warnings.push("no document was packed; the output is valid but empty".to_owned());
    }
    if counts.eods_in_text > 0 {
        warnings.push(format!(
            "{} {:?} tokens inside documents were parsed from text; if they do not end documents, set --special-tokens-in-text (special_tokens_in_text) to text or fail",
            counts.eods_in_text, options.eod.token
        ));
    }
    warnings
}
