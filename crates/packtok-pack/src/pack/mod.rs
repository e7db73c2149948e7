//! Packing: from a corpus to a pbin.
//!
//! Lines are processed in corpus order. Each becomes one document with a closing EOD, or is counted
//! as empty, blank or rejected: `lines = packed + empty + blank + rejected` always holds. The
//! output does not depend on the number of threads.

mod corpus_part;
mod existing;
mod explain;
mod leftover;
mod limits;
mod options;
mod process;
mod recorded;
mod reject_limit;
mod report;
mod resume;
mod run;
mod sidecar_files;
mod sink;
mod worker;

pub(crate) use corpus_part::{CorpusPart, reader};
pub(crate) use existing::output_exists;
pub(crate) use explain::explain;
pub(crate) use leftover::{has_published, remove_leftover};
pub use options::{Existing, PackOptions, PackSpec};
pub(crate) use process::process;
pub(crate) use recorded::{metadata, redacted};
pub use reject_limit::{NotALimit, RejectFault, RejectLimit};
pub use report::PackReport;
pub(crate) use report::{listed, report};
pub use run::pack;
pub(crate) use run::{Written, write};
pub(crate) use sidecar_files::{publish_tokenizer, tokenizer_path_of};
pub(crate) use sink::LineNumbers;
pub(crate) use worker::{DocBatch, KEPT_IDS, Outcome, Reject, Sample, UNSAMPLED};
