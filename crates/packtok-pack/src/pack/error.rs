//! The errors of this module.

use std::path::PathBuf;

/// Why a corpus cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A record cannot be packed.
    #[error(
        "{location}: {}{reason}; {}",
        offset_bytes.map_or_else(String::new, |byte| format!("byte {byte}: ")),
        reason.remedy()
    )]
    Document {
        /// The record.
        location: packtok_corpus::Location,
        /// Offset of its first byte in the uncompressed source; `None` for tables of row groups.
        offset_bytes: Option<u64>,
        /// The reason.
        reason: Box<packtok_corpus::Reason>,
    },
    /// The output already exists.
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
        /// The output.
        path: PathBuf,
        /// The exceeded limit.
        fault: super::reject_limit::RejectFault,
        /// Position and reason of the first rejected line, as the end of a sentence.
        first: String,
        /// The files that list the rejected lines.
        rejects: PathBuf,
    },
    /// An unfinished run with the same output has a different configuration.
    #[error(
        "{}: the unfinished run differs from this one: {what} is {found}, expected {expected}; finish it with its own options and inputs, or start over with --restart (restart: true)",
        path.display()
    )]
    JournalDiffers {
        /// The folder of the unfinished run.
        path: PathBuf,
        /// What differs.
        what: String,
        /// Its value in the unfinished run.
        found: String,
        /// Its value in this run.
        expected: String,
    },
    /// The output is a folder, a device or similar, which must not be replaced by a file.
    #[error("{}: the output is a {found}, not a file; choose another path", path.display())]
    OutputNotAFile {
        /// The output.
        path: PathBuf,
        /// Its kind.
        found: &'static str,
    },
    /// The output is also a source.
    #[error("{}: file is both input and output; choose another output", path.display())]
    OutputIsInput {
        /// The file.
        path: PathBuf,
    },
    /// The existing output has no trailer, so its origin is unknown.
    #[error(
        "{}: the existing output has no trailer, so its origin cannot be verified; set --existing (existing) to replace",
        path.display()
    )]
    ExistingUnknown {
        /// The output.
        path: PathBuf,
    },
    /// The existing output differs from what this run would write.
    #[error(
        "{}: the existing output differs from what this run would write: {what} is {found}, expected {expected}; set --existing (existing) to replace, or choose another output",
        path.display()
    )]
    ExistingDiffers {
        /// The output.
        path: PathBuf,
        /// What differs.
        what: String,
        /// Its value in the output.
        found: String,
        /// Its value in this run.
        expected: String,
    },
    /// An index was given for more than one source.
    #[error(
        "{}: a raw index belongs to one file, but there are {num_sources} input files; pack them one at a time, or without --index-path (index_path)",
        path.display()
    )]
    IndexForMany {
        /// The index.
        path: PathBuf,
        /// Number of sources.
        num_sources: usize,
    },
}

/// Why the options of a run do not match its tokenizer or each other.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// No EOD token is given.
    #[error("--eod: settings.eod_token is missing")]
    NoEod,
    /// There are filters for inputs, but not one for each.
    #[error("input_fields has {found} filters for {expected} inputs; give one for each")]
    InputFields {
        /// Number of filters.
        found: usize,
        /// Number of inputs.
        expected: usize,
    },
    /// Documents are to be padded to a length that one document cannot have.
    #[error(
        "--max-length: tokenizer.config.max_length is {length}; documents can be padded to at most {limit} ids; lower it, or remove --padding"
    )]
    PaddingTooLong {
        /// The length.
        length: u64,
        /// The largest possible length.
        limit: u64,
    },
    /// The id of padding is not one of the tokenizer.
    #[error("the id of padding is {id}, but {tokenizer} has {vocab_size} ids; give its tokenizer")]
    PaddingId {
        /// The id.
        id: u32,
        /// Name of the tokenizer.
        tokenizer: String,
        /// Highest id + 1.
        vocab_size: u64,
    },
    /// A special token is not a single token of the tokenizer.
    #[error(
        "{option} {token:?} is not one token of {tokenizer}; its special tokens are {}",
        listed(special_tokens)
    )]
    NotOneToken {
        /// The flag and the config key of the option.
        option: &'static str,
        /// The token.
        token: String,
        /// Name of the tokenizer.
        tokenizer: String,
        /// The tokenizer's special tokens.
        special_tokens: Vec<String>,
    },
}

/// Number of tokens that a message lists.
const NUM_LISTED: usize = 10;

fn listed(tokens: &[String]) -> String {
    let first = tokens.iter().take(NUM_LISTED);
    let quoted: Vec<String> = first.map(|token| format!("{token:?}")).collect();
    match (quoted.is_empty(), tokens.len().saturating_sub(NUM_LISTED)) {
        (true, _) => "none".to_owned(),
        (false, 0) => quoted.join(", "),
        (false, more) => format!("{} and {more} more", quoted.join(", ")),
    }
}
