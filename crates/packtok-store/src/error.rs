//! Errors of URLs and of the objects they name.

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error with the URL that it concerns.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a URL of a supported store.
    #[error(
        "{url}: {reason}; expected s3://, gs://, az://, http:// or https:// followed by a name"
    )]
    NotAStore {
        /// The text given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The URL contains a user, a password or a query.
    #[error(
        "{url}: the URL contains credentials or a query, which would be recorded with it; set credentials in the environment, such as AWS_ACCESS_KEY_ID"
    )]
    HasCredentials {
        /// The URL without them.
        url: String,
    },
    /// The object does not exist.
    #[error("{url}: no such object")]
    Absent {
        /// Its URL.
        url: String,
    },
    /// The object already exists.
    #[error("{url}: the object already exists; choose another URL, or set existing to replace")]
    Exists {
        /// Its URL.
        url: String,
    },
    /// The object was replaced after it was opened.
    #[error(
        "{url}: the object was replaced while it was read; run again when no process writes it"
    )]
    Changed {
        /// Its URL.
        url: String,
    },
    /// The store rejected the request or does not answer.
    #[error("{url}: {reason}")]
    Refused {
        /// Its URL.
        url: String,
        /// The store's message, in one line.
        reason: String,
    },
    /// A thread for requests could not be started.
    #[error("{url}: cannot start a thread for the network")]
    NoThread {
        /// The URL of the first request.
        url: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A local file could not be read or written.
    #[error("{}", path.display())]
    Local {
        /// The file.
        path: std::path::PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl Error {
    /// Maps an error of the store to an error for `url`.
    pub(crate) fn of(url: &str, error: &object_store::Error) -> Self {
        let url = url.to_owned();
        match error {
            object_store::Error::NotFound { .. } => Self::Absent { url },
            object_store::Error::AlreadyExists { .. } => Self::Exists { url },
            object_store::Error::Precondition { .. } => Self::Changed { url },
            other => Self::Refused {
                url,
                reason: in_one_line(other),
            },
        }
    }
}

/// Maximum length of a store's message.
const MAX_CHARS: usize = 300;

/// The innermost cause of an error. The outer ones repeat URLs, which may be signed.
fn in_one_line(error: &dyn std::error::Error) -> String {
    let mut bottom = error;
    while let Some(source) = bottom.source() {
        bottom = source;
    }
    let text = bottom.to_string();
    let text: Vec<&str> = text.split_whitespace().collect();
    text.join(" ").chars().take(MAX_CHARS).collect()
}
