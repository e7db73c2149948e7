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
        /// The rejected text.
        url: String,
        /// The fault of the text.
        reason: String,
    },
    /// The URL contains a user, a password or a query.
    #[error(
        "{url}: the URL contains credentials or a query, which would be recorded with it; set credentials in the environment, such as AWS_ACCESS_KEY_ID, or for fsspec in its configuration"
    )]
    HasCredentials {
        /// The URL without credentials and query.
        url: String,
    },
    /// The object does not exist.
    #[error("{url}: no such object")]
    Absent {
        /// URL of the object.
        url: String,
    },
    /// There is no such bucket or container.
    #[error("{url}: no such bucket; check its name and the endpoint")]
    NoBucket {
        /// The URL of an object in it.
        url: String,
    },
    /// No credentials were found.
    #[error("{url}: no credentials found; they are looked for in {places}")]
    NoCredentials {
        /// The URL that needs credentials.
        url: String,
        /// The places that were searched for credentials, and the remedy.
        places: &'static str,
    },
    /// The object already exists.
    #[error(
        "{url}: the object already exists; choose another URL, or set --existing (existing) to replace"
    )]
    Exists {
        /// URL of the object.
        url: String,
    },
    /// The object was replaced after it was opened.
    #[error(
        "{url}: the object was replaced while it was read; run again when no process writes it"
    )]
    Changed {
        /// URL of the object.
        url: String,
    },
    /// The store rejected the request or does not answer.
    #[error("{url}: {reason}")]
    Refused {
        /// URL of the request.
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
        let chain: Vec<String> = chain(error).map(ToString::to_string).collect();
        let is_about = |texts: &[&str]| {
            let mut texts = texts.iter();
            texts.any(|text| chain.iter().any(|error| error.contains(text)))
        };
        if let Some((_, places)) = METADATA_SERVICES.iter().find(|(paths, _)| is_about(paths)) {
            return Self::NoCredentials { url, places };
        }
        if is_about(&NO_BUCKET) {
            return Self::NoBucket { url };
        }
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

/// Parts of answers from stores if the bucket does not exist.
const NO_BUCKET: [&str; 3] = [
    "<Code>NoSuchBucket<",
    "The specified bucket does not exist",
    "<Code>ContainerNotFound<",
];

/// Requests that are only sent if no other place has credentials, and the places where credentials
/// are looked for.
const METADATA_SERVICES: [(&[&str], &str); 3] = [
    (
        &["/latest/api/token", "/latest/meta-data/"],
        "the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), ~/.aws (AWS_PROFILE) and the metadata service of AWS; set them, or AWS_SKIP_SIGNATURE=true for a public bucket",
    ),
    (
        &["/computeMetadata/"],
        "the environment (GOOGLE_SERVICE_ACCOUNT), the file of gcloud auth application-default login (GOOGLE_APPLICATION_CREDENTIALS) and the metadata service of Google; set one of them, or GOOGLE_SKIP_SIGNATURE=true for a public bucket",
    ),
    (
        &["/metadata/identity/"],
        "the environment (AZURE_STORAGE_ACCOUNT_KEY and related variables) and the metadata service of Azure; set them, or AZURE_SKIP_SIGNATURE=true for a public container",
    ),
];

/// The error and its causes.
fn chain(error: &object_store::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    let first: &(dyn std::error::Error + 'static) = error;
    std::iter::successors(Some(first), |error| error.source())
}

/// The innermost cause of an error.
pub(crate) fn innermost(error: &object_store::Error) -> &(dyn std::error::Error + 'static) {
    chain(error).last().unwrap_or(error)
}

/// The innermost cause of an error, or the code and message of an answer in XML. The outer causes
/// are dropped because they repeat URLs, which may be signed.
fn in_one_line(error: &object_store::Error) -> String {
    let text = innermost(error).to_string();
    let tag = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once(&format!("</{name}>"))?.0)
    };
    let answer = tag("Code").map(|code| match tag("Message") {
        Some(message) => format!("{code}: {message}"),
        None => code.to_owned(),
    });
    let text = answer.unwrap_or(text);
    let text: Vec<&str> = text.split_whitespace().collect();
    text.join(" ").chars().take(MAX_CHARS).collect()
}
