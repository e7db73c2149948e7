//! The pipeline: a corpus becomes a pbin.
//!
//! Lines are packed in the order of the corpus, each either as one document closed by EOD, or
//! counted as empty, blank or rejected: `lines = packed + empty + blank + rejected` always holds.
//! Nothing about the output depends on how many threads worked.

mod existing;
mod limits;
mod ordered;
mod reason;
mod sink;
mod worker;

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use packtok_bpe::{EncodeOptions, SpecialTokensInText, Tokenizer};
use packtok_pbin::{
    Metadata, Options, Replace, SpecialToken, TempFile, TokenWidth, TokenizerInfo, Writer,
    WriterInfo, read_raw_index, remove_abandoned,
};
use serde::Serialize;

pub use reason::Reason;

pub(crate) use ordered::{Consume, Flow, run};
pub(crate) use sink::LineNumbers;
pub(crate) use worker::{DocBatch, Outcome, Sample, UNSAMPLED, Worker};

use crate::corpus::{self, ReadOptions, Source};
use crate::error::{Error, Result};
use crate::field::Field;
use sink::Sink;

/// Name and version that a pbin carries of what wrote it.
const WRITER: &str = "packtok";

/// What becomes of a document without tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyDocument {
    /// It is counted and left out.
    Skip,
    /// It is packed as EOD alone.
    Keep,
    /// It ends the run.
    Fail,
}

/// What becomes of a line that is no document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnBadDocument {
    /// It ends the run.
    Fail,
    /// It is counted, named in the rejects file and left out.
    Skip,
}

/// What becomes of an output that is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It ends the run.
    Error,
    /// It is kept, once it is proven to be what this run would write.
    Skip,
    /// It is replaced, in one step, when the new one is complete.
    Replace,
}

/// Everything that a run needs to know; no defaults live here.
#[derive(Clone)]
pub struct PackOptions {
    /// Files, globs and folders, in order.
    pub inputs: Vec<String>,
    /// The pbin to write.
    pub output: PathBuf,
    /// A raw index whose entries, and only they, are packed.
    pub index_path: Option<PathBuf>,
    /// Where the text is in each line.
    pub field: Field,
    /// How texts are encoded.
    pub encode: EncodeOptions,
    /// The token that closes every document.
    pub eod: SpecialToken,
    /// A token that opens every document, if any.
    pub bos: Option<SpecialToken>,
    /// What becomes of a document without tokens.
    pub empty_document: EmptyDocument,
    /// What becomes of a line that is no document.
    pub on_bad_document: OnBadDocument,
    /// Most documents to pack.
    pub max_documents: Option<u64>,
    /// Most tokens to pack; documents are not cut for it.
    pub max_tokens: Option<u64>,
    /// Threads that work.
    pub num_threads: usize,
    /// How sources are read.
    pub read: ReadOptions,
    /// What becomes of an output that is already there.
    pub existing: Existing,
    /// Secrets, and what is written in their place.
    pub redactions: Vec<(String, String)>,
}

impl PackOptions {
    /// The file that names what was rejected.
    pub fn rejects_path(&self) -> PathBuf {
        with_suffix(&self.output, ".rejects.jsonl")
    }

    /// The copy of the tokenizer that travels with the output.
    pub fn tokenizer_path(&self) -> PathBuf {
        tokenizer_path_of(&self.output)
    }

    fn recorded(&self) -> Options {
        Options {
            field: redacted(self.field.pattern(), &self.redactions),
            add_special_tokens: self.encode.add_special_tokens,
            special_tokens_in_text: match self.encode.special_tokens_in_text {
                SpecialTokensInText::Parse => "parse",
                SpecialTokensInText::Text => "text",
                SpecialTokensInText::Fail => "fail",
            }
            .to_owned(),
            empty_document: match self.empty_document {
                EmptyDocument::Skip => "skip",
                EmptyDocument::Keep => "keep",
                EmptyDocument::Fail => "fail",
            }
            .to_owned(),
            truncate_to: self.encode.truncate_to.map(|tokens| tokens as u64),
            max_document_bytes: self.read.max_document_bytes,
            max_documents: self.max_documents,
            max_tokens: self.max_tokens,
        }
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Bytes of the sources read, as they lie on disk.
    pub bytes_read: u64,
    /// Bytes of all sources.
    pub total_bytes: u64,
    /// Documents written.
    pub documents: u64,
    /// Tokens written.
    pub tokens: u64,
}

/// Told how far a run is, 10 to 20 times a second; `Break` ends the run with [`Error::Cancelled`].
pub type Monitor<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// What a run did.
#[derive(Debug, Serialize)]
pub struct PackReport {
    /// The pbin.
    pub output: PathBuf,
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
    /// Length of all sources on disk, in bytes.
    pub source_bytes: u64,
    /// Number of sources.
    pub num_sources: usize,
    /// Whether a limit ended the run before the corpus did.
    pub stopped_early: bool,
    /// Whether the output was there already and was proven right.
    pub skipped_existing: bool,
    /// What the user should know, a sentence each.
    pub warnings: Vec<String>,
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

/// Packs a corpus.
///
/// # Errors
/// The first thing that is wrong, in the order of the corpus; nothing is left under a final name,
/// and no temporary file.
pub fn pack(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    monitor: &mut Monitor<'_>,
) -> Result<PackReport> {
    let started = Instant::now();
    let sources = corpus::expand(&options.inputs)?;
    refuse_output_among(&sources, options)?;
    let removed_temporary = remove_temporary(options)?;
    let mut report = match existing::check(options, tokenizer, &sources, monitor)? {
        Some(report) => report,
        None => write(options, tokenizer, &sources, monitor)?,
    };
    report.removed_temporary = removed_temporary;
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

fn write(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    sources: &[Source],
    monitor: &mut Monitor<'_>,
) -> Result<PackReport> {
    let workers = (0..options.num_threads.max(1))
        .map(|_| Worker::new(tokenizer, options, Sample::ALL))
        .collect::<Result<Vec<_>>>()?;
    let reader = reader(options, sources)?;
    let width = TokenWidth::for_vocab(tokenizer.vocab_size());
    let writer = Writer::create(&options.output, width)?;
    let mut monitor = |progress: &Progress| monitor(progress);
    let mut sink = Sink::new(options, sources, writer, &mut monitor);
    let digests = run(reader, workers, 4 * options.read.chunk_bytes, &mut sink)
        .map_err(|error| name_panic(error, sources))?;
    let counts = sink.counts;
    let stopped_early = sink.stopped_early;
    let metadata = metadata(options, tokenizer, counts, stopped_early);
    let digests = recorded_digests(options, sources, digests, stopped_early, &mut sink)?;
    let recorded = recorded_sources(options, sources, digests);
    let finished = sink.writer.finish(&metadata, &recorded)?;
    let tokenizer_copy = write_tokenizer(&options.output, tokenizer)?;
    // All that needs room on the disk is there: from here on names are given.
    existing::refuse_newcomer(options)?;
    let rejects_path = sink.rejects.publish()?;
    tokenizer_copy.publish(Replace::Existing)?;
    let replace = match options.existing {
        Existing::Replace => Replace::Existing,
        Existing::Error | Existing::Skip => Replace::Never,
    };
    let summary = finished.publish(replace)?;
    Ok(report(
        options,
        tokenizer,
        sources,
        &metadata,
        summary.file_bytes,
        rejects_path,
    ))
}

pub(crate) fn reader(options: &PackOptions, sources: &[Source]) -> Result<corpus::Reader> {
    let Some(index_path) = &options.index_path else {
        return Ok(corpus::Reader::new(sources.to_vec(), options.read));
    };
    let [source] = sources else {
        return Err(Error::IndexForMany {
            path: index_path.clone(),
            num_sources: sources.len(),
        });
    };
    let entries = read_raw_index(index_path)?;
    corpus::Reader::indexed(source.clone(), entries, options.read)
}

/// The thread that panicked knows only the number of the source.
pub(crate) fn name_panic(error: Error, sources: &[Source]) -> Error {
    match error {
        Error::Panicked {
            source_index,
            offset_bytes,
        } => Error::EnginePanicked {
            path: sources[source_index].path.clone(),
            offset_bytes,
        },
        other => other,
    }
}

/// Writing the output would destroy, or grow, what is being read.
fn refuse_output_among(sources: &[Source], options: &PackOptions) -> Result<()> {
    let Ok(output) = options.output.canonicalize() else {
        return Ok(());
    };
    let is_output = |source: &&Source| source.path.canonicalize().is_ok_and(|path| path == output);
    match sources.iter().find(is_output) {
        Some(source) => Err(Error::OutputIsInput {
            path: source.path.clone(),
        }),
        None => Ok(()),
    }
}

fn remove_temporary(options: &PackOptions) -> Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    for path in [
        &options.output,
        &options.rejects_path(),
        &options.tokenizer_path(),
    ] {
        removed.extend(remove_abandoned(path)?);
    }
    Ok(removed)
}

fn metadata(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    counts: packtok_pbin::Counts,
    stopped_early: bool,
) -> Metadata {
    let recorded_token = |special: &SpecialToken| SpecialToken {
        token: redacted(&special.token, &options.redactions),
        id: special.id,
    };
    Metadata {
        writer: WriterInfo {
            name: WRITER.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        tokenizer: Some(TokenizerInfo {
            name: redacted(tokenizer.name(), &options.redactions),
            fingerprint: tokenizer.fingerprint().to_owned(),
            vocab_size: tokenizer.vocab_size(),
        }),
        eod: Some(recorded_token(&options.eod)),
        bos: options.bos.as_ref().map(recorded_token),
        counts,
        options: options.recorded(),
        stopped_early,
        parts: Vec::new(),
    }
}

/// The checksums that the trailer names.
///
/// A run that a limit stopped has read an amount that depends on the chunks, so it records none;
/// one by index reads parts only, so the file is read once more.
fn recorded_digests(
    options: &PackOptions,
    sources: &[Source],
    digests: Vec<Option<u32>>,
    stopped_early: bool,
    sink: &mut Sink<'_>,
) -> Result<Vec<Option<u32>>> {
    match options.index_path {
        _ if stopped_early => Ok(vec![None; sources.len()]),
        Some(_) => corpus::digests(sources, |bytes_read| sink.tick(bytes_read)),
        None => Ok(digests),
    }
}

/// The sources as the trailer names them.
fn recorded_sources(
    options: &PackOptions,
    sources: &[Source],
    digests: Vec<Option<u32>>,
) -> Vec<packtok_pbin::Source> {
    let recorded = sources.iter().zip(digests);
    recorded
        .map(|(source, crc32c)| packtok_pbin::Source {
            path: redacted(&source.label, &options.redactions),
            bytes: source.bytes,
            crc32c,
        })
        .collect()
}

/// The name of the tokenizer's copy beside a pbin.
pub(crate) fn tokenizer_path_of(output: &Path) -> PathBuf {
    with_suffix(output, ".tokenizer.json")
}

/// Writes the tokenizer beside a pbin, and returns where.
pub(crate) fn publish_tokenizer(output: &Path, tokenizer: &Tokenizer) -> Result<PathBuf> {
    let file = write_tokenizer(output, tokenizer)?;
    let path = file.dst().to_owned();
    file.publish(Replace::Existing)?;
    Ok(path)
}

/// The tokenizer's copy, on the disk and without its name.
fn write_tokenizer(output: &Path, tokenizer: &Tokenizer) -> Result<TempFile> {
    let path = tokenizer_path_of(output);
    let mut file = TempFile::create(&path)?;
    std::io::Write::write_all(&mut file, tokenizer.json().as_bytes())
        .map_err(|error| Error::io(&path, error))?;
    file.sync()?;
    Ok(file)
}

fn report(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    sources: &[Source],
    metadata: &Metadata,
    file_bytes: u64,
    rejects_path: Option<PathBuf>,
) -> PackReport {
    let counts = &metadata.counts;
    let token_bytes = TokenWidth::for_vocab(tokenizer.vocab_size()).bytes();
    PackReport {
        output: options.output.clone(),
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
        source_bytes: sources.iter().map(|source| source.bytes).sum(),
        num_sources: sources.len(),
        stopped_early: metadata.stopped_early,
        skipped_existing: false,
        warnings: warnings(options, counts),
        removed_temporary: Vec::new(),
        rejects_path,
        tokenizer_path: options.tokenizer_path(),
        seconds: 0.0,
        num_cpus: options.num_threads,
        engine: tokenizer.engine().name(),
    }
}

fn warnings(options: &PackOptions, counts: &packtok_pbin::Counts) -> Vec<String> {
    let mut warnings = Vec::new();
    if counts.documents == 0 {
        warnings.push("no document was packed: the output is valid and empty".to_owned());
    }
    if counts.eods_in_text > 0 {
        warnings.push(format!(
            "{} {:?} inside documents were parsed from their text; set special_tokens_in_text to text or fail if they do not end documents",
            counts.eods_in_text, options.eod.token
        ));
    }
    warnings
}

/// `text` with every secret replaced.
fn redacted(text: &str, redactions: &[(String, String)]) -> String {
    redactions
        .iter()
        .filter(|(secret, _)| !secret.is_empty())
        .fold(text.to_owned(), |text, (secret, shown)| {
            text.replace(secret, shown)
        })
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}
