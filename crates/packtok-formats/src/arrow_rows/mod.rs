//! Arrow files and streams whose rows are tokenized documents, as `save_to_disk` of Hugging Face's
//! datasets writes them: a folder of streams, and a `state.json` that lists them.

mod read;
mod state;

pub(crate) use read::{open, starts_as_arrow};
pub use state::listed_names;
