//! Selects, changes and reorders the documents of token files, without the texts they came from.
//!
//! A [`Reshaper`] opens the files (`inputs`) and counts how often each document is used
//! (`selection`): 1 at first. Selecting steps lower or raise that number, and each reports the
//! documents and tokens that it leaves out, so that the counts add up. `removal` finds the documents
//! of a list, and proves that the output has none of them. `output` writes the used documents once,
//! shortened or tokenized again (`retokenize`), in their order or shuffled, as a pbin, which
//! [`convert`](crate::convert) turns into other formats.

mod inputs;
mod output;
mod removal;
mod removed;
mod retokenize;
mod selection;
mod truncation;

pub use output::{ReshapeReport, ShuffledUnit, Shuffling, WriteOptions};
pub use removed::RemovalReport;
pub use retokenize::{RetokenizeReport, Retokenizing};
pub use selection::{Reshaper, StepReport};
