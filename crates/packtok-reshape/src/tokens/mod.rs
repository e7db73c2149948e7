//! A folder of NPY files, one for each file of a corpus: the names of the files, and their content
//! from a packed corpus that records the origins of its documents.
//!
//! Tokenizing is packing: `packtok-pack` packs the files that are missing, on all cores and
//! resumable, into one pbin of the narrowest width. The NPY files are then written from the pbin,
//! because an NPY file stores the lengths of all documents before the first id.

mod facts;
mod files;
mod rejects;
mod split;

pub use facts::{Facts, facts};
pub use files::{CorpusFile, corpus_files, listed_files};
pub use split::{SplitOptions, SplitReport, Target, plan_of, split};
