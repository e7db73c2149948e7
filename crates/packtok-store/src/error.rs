//! What can be wrong with a URL, or with what it names.

/// Short for a result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error with the URL that it is about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No URL of a store that is known.
    #[error(
        "{url}: {reason}; expected s3://, gs://, az://, http:// or https:// followed by a name"
    )]
    NotAStore {
        /// What was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The URL holds a user, a password or a query.
    #[error(
        "{url}: the URL contains credentials or a query, which would be recorded with it; set credentials in the environment, such as AWS_ACCESS_KEY_ID"
    )]
    HasCredentials {
        /// What was given, without them.
        url: String,
    },
    /// There is nothing of that name.
    #[error("{url}: no such object")]
    Absent {
        /// Its URL.
        url: String,
    },
    /// There is something of that name already.
    #[error("{url}: the object already exists; choose another URL, or set existing to replace")]
    Exists {
        /// Its URL.
        url: String,
    },
    /// The object is not the one that was looked at first.
    #[error(
        "{url}: the object was replaced while it was read; run again when no process writes it"
    )]
    Changed {
        /// Its URL.
        url: String,
    },
    /// The store refused the request, or does not answer.
    #[error("{url}: {reason}")]
    Refused {
        /// Its URL.
        url: String,
        /// What the store said, in one line.
        reason: String,
    },
    /// A file on this machine could not be read or written.
    #[error("{path}: {source}", path = path.display())]
    Local {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl Error {
    /// What a store's error means for `url`.
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

/// The longest text of a store that is shown.
const MAX_CHARS: usize = 300;

/// What is at the bottom of an error; what lies above it repeats URLs, which may be signed.
fn in_one_line(error: &dyn std::error::Error) -> String {
    let mut bottom = error;
    while let Some(source) = bottom.source() {
        bottom = source;
    }
    let text = bottom.to_string();
    let text: Vec<&str> = text.split_whitespace().collect();
    text.join(" ").chars().take(MAX_CHARS).collect()
}
