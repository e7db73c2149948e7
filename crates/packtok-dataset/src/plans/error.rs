//! The errors of this module.

use std::path::PathBuf;

/// Why a plan or a split cannot be computed, stored or read.
#[derive(Debug, thiserror::Error)]
pub enum PlansError {
    /// A split of a stream that is a side of a split already.
    #[error("one side of a split cannot be split again; split the whole dataset with another rule")]
    SplitOfSplit,
    /// A fraction is outside 0 to 1.
    #[error("the held-out fraction is {found}, expected 0 to 1")]
    Fraction {
        /// The requested fraction.
        found: f64,
    },
    /// There are fewer documents than are to be held out.
    #[error("cannot hold out {expected} documents, the data has {found}")]
    TooFewDocuments {
        /// Number of documents to hold out.
        expected: u64,
        /// Number of documents.
        found: u64,
    },
    /// A block size exceeds the limits of planners.
    #[error(
        "{name} is {found}, expected 1 to {}",
        crate::plans::layout::MAX_BLOCK_TOKENS
    )]
    BlockTokens {
        /// Name of the caller's option.
        name: &'static str,
        /// The requested length.
        found: u64,
    },
    /// A block number is out of range.
    #[error("{}: no block {block}, the plan has {num_blocks}", path.display())]
    NoSuchBlock {
        /// The plan.
        path: PathBuf,
        /// The requested block.
        block: u64,
        /// Number of blocks.
        num_blocks: u64,
    },
    /// A split starts after the last document.
    #[error(
        "the validation side starts at document {document}, but the data has {num_documents} documents"
    )]
    NoSuchSplit {
        /// The first document of the validation side.
        document: u64,
        /// Number of documents.
        num_documents: u64,
    },
    /// A plan file cannot be written to any folder.
    #[error(
        "cannot write {name} to any folder; set cache_dir to a writable folder{}",
        reasons(refusals)
    )]
    NoWritableFolder {
        /// Name of the file.
        name: String,
        /// The error of each folder, with its causes.
        refusals: Vec<String>,
    },
    /// A plan file is invalid.
    #[error("{}: {fault}; delete the file to rebuild it", path.display())]
    PlanFile {
        /// The plan file.
        path: PathBuf,
        /// What is wrong with it.
        fault: crate::plans::layout::PlanFault,
    },
}

/// All refusals, for the end of a message.
fn reasons(refusals: &[String]) -> String {
    let texts = refusals.iter().enumerate();
    texts
        .map(|(i, refusal)| [": ", "; "][i.min(1)].to_owned() + refusal)
        .collect()
}
