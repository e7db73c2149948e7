//! What is known about documents that were left out by a list.

use std::collections::HashSet;

use serde::Serialize;

/// The documents that were left out, for a proof.
pub(super) struct Removal {
    pub(super) report: RemovalReport,
    /// Numbers of the documents.
    pub(super) numbers: Vec<u64>,
    /// The listed origins: source and place. All documents that have one were left out; a document
    /// that was left out by its number can have copies with the same origin.
    pub(super) origins: HashSet<(u64, u64)>,
}

/// What is known about listed documents.
#[derive(Debug, Clone, Serialize)]
pub struct RemovalReport {
    /// Number of entries in the lists.
    pub entries: u64,
    /// Documents that were left out.
    pub documents: u64,
    /// The entries that no document has; at most 1000.
    pub unmatched: Vec<String>,
    /// Number of entries that no document has.
    pub num_unmatched: u64,
    /// Whether the documents of the output were compared with those that were left out; false if they
    /// were tokenized again, so that only origins could be compared.
    pub is_proven_by_ids: bool,
    /// Documents of the output, by number, with the same ids as one that was left out by its number or
    /// origin; at most 1000.
    pub same_ids: Vec<u64>,
    /// Number of such documents.
    pub num_same_ids: u64,
}
