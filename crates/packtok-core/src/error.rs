//! Everything that can go wrong while files are made, with the data to say so.

use std::io;
use std::path::{Path, PathBuf};

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Why reading, extracting or packing failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused something; its reason is the source.
    #[error("{}", path.display())]
    Io {
        /// File or folder concerned.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// An object store refused something.
    #[cfg(feature = "remote")]
    #[error(transparent)]
    Store(#[from] packtok_store::Error),
    /// A run ended before its time, and what it has done is kept.
    #[error(
        "{}; finished work is kept next to the output; run the same command again to resume",
        ended_by(source)
    )]
    Kept {
        /// Why it ended.
        source: Box<Error>,
    },
    /// What is wrong with shards, their plan or their markers.
    #[error(transparent)]
    Shard(#[from] crate::shard::ShardError),
    /// The file format's own errors.
    #[error(transparent)]
    Pbin(#[from] packtok_pbin::Error),
    /// The tokenizer's own errors.
    #[error(transparent)]
    Tokenizer(#[from] packtok_tokenizer::Error),
    /// What is wrong with a corpus.
    #[error(transparent)]
    Corpus(#[from] crate::corpus::CorpusError),
    /// What is wrong with a filter.
    #[error(transparent)]
    Field(#[from] crate::field::FieldError),
    /// What ended the work on a corpus.
    #[error(transparent)]
    Pipeline(#[from] crate::pipeline::PipelineError),
    /// What keeps a run from an output.
    #[error(transparent)]
    Journal(#[from] crate::journal::JournalError),
    /// The options of a run do not fit its tokenizer.
    #[error(transparent)]
    Spec(#[from] crate::pack::SpecError),
    /// What keeps a corpus from being packed.
    #[error(transparent)]
    Pack(#[from] crate::pack::PackError),
    /// What keeps a raw index from being written.
    #[error(transparent)]
    RawIndex(#[from] crate::raw_index::RawIndexError),
    /// What is wrong with texts or ids.
    #[error(transparent)]
    Texts(#[from] crate::texts::TextsError),
    /// What is not as it should be.
    #[error(transparent)]
    Verify(#[from] crate::verify::VerifyError),
}

/// What ended a run that keeps its finished work.
fn ended_by(error: &Error) -> String {
    match error {
        // Its own text says that nothing was written, which is wrong here.
        Error::Pipeline(crate::pipeline::PipelineError::Cancelled) => "interrupted".to_owned(),
        error => error.to_string(),
    }
}

impl Error {
    /// An [`Error::Io`] about `path`.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        // One that passed through a reader's hands.
        #[cfg(feature = "remote")]
        let source = match source.downcast() {
            Ok(error) => return Self::Store(error),
            Err(source) => source,
        };
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}
