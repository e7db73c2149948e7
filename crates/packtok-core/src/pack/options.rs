//! Everything that a run needs to know; no defaults live here.

use std::path::PathBuf;

use packtok_bpe::EncodeOptions;
use packtok_pbin::SpecialToken;

use super::RejectLimit;
use super::beside::{tokenizer_path_of, with_suffix};
use crate::corpus::ReadOptions;
use crate::field::Field;
use crate::rejects::failed_rejects_path;

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
    /// Most documents to reject; without one, all but the last.
    pub max_rejects: Option<RejectLimit>,
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
    /// Bytes of text between two notes of how far a run is.
    pub span_bytes: u64,
    /// Whether what an earlier run left of the output is discarded.
    pub restart: bool,
    /// Secrets, and what is written in their place.
    pub redactions: Vec<(String, String)>,
}

impl PackOptions {
    /// The file that names what was rejected.
    pub fn rejects_path(&self) -> PathBuf {
        with_suffix(&self.output, ".rejects.jsonl")
    }

    /// The same, of a run that failed and was to replace an output, which keeps its own.
    pub fn failed_rejects_path(&self) -> PathBuf {
        failed_rejects_path(&self.output)
    }

    /// The copy of the tokenizer that travels with the output.
    pub fn tokenizer_path(&self) -> PathBuf {
        tokenizer_path_of(&self.output)
    }
}
