//! What a run says it did.

use std::path::PathBuf;

use packtok_pbin::{Counts, Metadata, TokenWidth};
use packtok_tokenizer::Tokenizer;
use serde::Serialize;

use super::PackOptions;
use crate::corpus::Source;

/// What a run did.
#[derive(Debug, Serialize)]
pub struct PackReport {
    /// The pbin.
    pub output: PathBuf,
    /// Number of the shard that it is, from 0, if it is one.
    pub shard_index: Option<u64>,
    /// Number of shards that the corpus is divided into, if it is.
    pub num_shards: Option<u64>,
    /// Its documents.
    pub documents: u64,
    /// Its tokens.
    pub tokens: u64,
    /// Lines read; `packed + empty + blank + rejected`.
    pub lines: u64,
    /// Lines that became documents.
    pub packed: u64,
    /// Lines without tokens that were left out.
    pub empty: u64,
    /// Lines of white space.
    pub blank: u64,
    /// Lines that were no documents.
    pub rejected: u64,
    /// EODs inside documents, before the closing one.
    pub eods_in_text: u64,
    /// Length of the pbin in bytes.
    pub file_bytes: u64,
    /// Length of its data segment in bytes.
    pub data_bytes: u64,
    /// Bytes per token.
    pub token_bytes: u64,
    /// Length of all sources on disk, or of the parts that were read, in bytes.
    pub source_bytes: u64,
    /// Number of sources.
    pub num_sources: usize,
    /// Whether a limit ended the run before the corpus did.
    pub stopped_early: bool,
    /// Whether the output was there already and was proven right.
    pub skipped_existing: bool,
    /// What the user should know, a sentence each.
    pub warnings: Vec<String>,
    /// Bytes of the sources that an earlier run had packed and this one did not pack again.
    pub resumed_bytes: u64,
    /// Temporary files of runs that died, removed by this one.
    pub removed_temporary: Vec<PathBuf>,
    /// The file that names what was rejected.
    pub rejects_path: Option<PathBuf>,
    /// The copy of the tokenizer beside the output.
    pub tokenizer_path: PathBuf,
    /// Wall-clock time of the run, in seconds.
    pub seconds: f64,
    /// Threads that worked.
    pub num_cpus: usize,
    /// The engine that gave the ids.
    pub engine: &'static str,
}

/// The report of a finished run, without the time that it took.
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
    let token_bytes = TokenWidth::for_vocab(tokenizer.vocab_size()).bytes();
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
