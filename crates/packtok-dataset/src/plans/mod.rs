//! Plans: which documents share a block, which are held out, and the files that store both.

pub mod best_fit;
pub mod cache;
pub mod layout;
pub mod plan;
pub mod plan_file;
pub mod split;
pub mod whole_documents;
