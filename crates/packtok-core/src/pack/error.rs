//! What can go wrong here, with the data to say so.

use std::path::PathBuf;

/// Why a corpus cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A line cannot be packed.
    #[error(
        "{}:{line}: byte {offset_bytes}: {reason}; {}",
        path.display(),
        reason.remedy()
    )]
    Document {
        /// The source.
        path: PathBuf,
        /// 1-based number of the line.
        line: u64,
        /// Place of its first byte in the uncompressed source.
        offset_bytes: u64,
        /// What is wrong with it.
        reason: Box<super::reason::Reason>,
    },
    /// The output is there already.
    #[error("{}: the output already exists; choose another path, or set --existing (existing in a config) to skip or replace", path.display())]
    OutputExists {
        /// The output.
        path: PathBuf,
    },
    /// More documents were rejected than are allowed.
    #[error(
        "{}: {fault}{first}; see {}; fix the corpus or the options, {}",
        path.display(),
        rejects.display(),
        fault.remedy()
    )]
    TooManyRejects {
        /// The output that was not made.
        path: PathBuf,
        /// In what way there are too many.
        fault: super::reject_limit::RejectFault,
        /// Where the first is and what is wrong with it, as the end of a sentence.
        first: String,
        /// The file, or files, that name them.
        rejects: PathBuf,
    },
    /// An earlier run over the same output was another one.
    #[error(
        "{}: the unfinished run differs from this one: {what} is {found}, expected {expected}; finish it with its own options and inputs, or start over with --restart",
        path.display()
    )]
    JournalDiffers {
        /// The folder of the unfinished run.
        path: PathBuf,
        /// What differs.
        what: String,
        /// How the earlier run had it.
        found: String,
        /// How this run has it.
        expected: String,
    },
    /// The output is a folder, a device or the like, which a file must not replace.
    #[error("{}: the output is a {found}, not a file; choose another path", path.display())]
    OutputNotAFile {
        /// The output.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// The output would be written over a source.
    #[error("{}: file is both input and output; choose another output", path.display())]
    OutputIsInput {
        /// The file.
        path: PathBuf,
    },
    /// The existing output does not say what it was made from.
    #[error(
        "{}: the existing output has no trailer, so its origin cannot be verified; set existing to replace",
        path.display()
    )]
    ExistingUnknown {
        /// The output.
        path: PathBuf,
    },
    /// The existing output was made from something else.
    #[error(
        "{}: the existing output differs from what this run would write: {what} is {found}, expected {expected}; set existing to replace, or choose another output",
        path.display()
    )]
    ExistingDiffers {
        /// The output.
        path: PathBuf,
        /// What differs.
        what: String,
        /// As the output has it.
        found: String,
        /// As this run would have it.
        expected: String,
    },
    /// An index was given for more than one source.
    #[error(
        "{}: a raw index belongs to one file, but there are {num_sources} input files; pack them one at a time, or without index_path",
        path.display()
    )]
    IndexForMany {
        /// The index.
        path: PathBuf,
        /// Number of sources.
        num_sources: usize,
    },
}

/// Why the options of a run cannot be used with its tokenizer.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// There is no token that closes documents.
    #[error("--eod: settings.eod_token is missing")]
    NoEod,
    /// A token is not exactly one token of the tokenizer.
    #[error(
        "{option} {token:?} is not one token of {tokenizer}; its special tokens are {}",
        listed(special_tokens)
    )]
    NotOneToken {
        /// The flag and the key that give it.
        option: &'static str,
        /// The token.
        token: String,
        /// Name of the tokenizer.
        tokenizer: String,
        /// What it could be.
        special_tokens: Vec<String>,
    },
}

fn listed(tokens: &[String]) -> String {
    let quoted: Vec<String> = tokens.iter().map(|token| format!("{token:?}")).collect();
    match quoted.is_empty() {
        true => "none".to_owned(),
        false => quoted.join(", "),
    }
}
