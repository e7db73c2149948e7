//! Clients of object stores, configured from the environment's credentials and endpoints.

use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use http::header::{HeaderMap, HeaderValue, IF_NONE_MATCH};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, ObjectStoreScheme, RetryConfig};
use url::{Position, Url};

use crate::remote::{profile, runtime};

/// Time for which the library retries a request. It is short, so that unknown host names and
/// missing credentials fail within ten seconds.
const RETRY: Duration = Duration::from_secs(7);
/// Timeout of one request. Sufficient for a part of several megabytes on a slow connection.
const REQUEST: Duration = Duration::from_secs(120);
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// A client of one store.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) objects: Arc<dyn ObjectStore>,
    /// Set for S3, which needs extra operations.
    pub(crate) s3: Option<S3>,
    /// Whether the store has answered a request of this process. Only such a store is retried for
    /// a long time.
    answered: Arc<AtomicBool>,
}

impl Store {
    /// Sends a request. If the store answered earlier and cannot be reached now, retries for some
    /// minutes.
    pub(crate) async fn ask<T, F: Future<Output = object_store::Result<T>>>(
        &self,
        request: impl FnMut() -> F,
    ) -> object_store::Result<T> {
        let patience = if self.answered.load(Ordering::Relaxed) {
            runtime::PATIENCE
        } else {
            Duration::ZERO
        };
        let answer = runtime::retried_for(patience, request).await;
        if !matches!(&answer, Err(error) if runtime::is_transient(error)) {
            self.answered.store(true, Ordering::Relaxed);
        }
        answer
    }
}

/// Two S3 clients. The requests of one are plain; the writes of the other carry the condition that
/// the object does not exist yet.
#[derive(Clone)]
pub(crate) struct S3 {
    pub(crate) plain: Arc<AmazonS3>,
    pub(crate) if_absent: Arc<AmazonS3>,
}

/// The clients of this process, keyed by the URL up to the store's name. The process id is stored
/// to detect forks.
static STORES: Mutex<Option<(u32, HashMap<String, Store>)>> = Mutex::new(None);

/// The client for `url`, shared by all objects of a store. A forked process builds its own.
pub(crate) fn store(url: &Url, scheme: &ObjectStoreScheme) -> object_store::Result<Store> {
    let pid = std::process::id();
    let name = &url[..Position::BeforePath];
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    if stores.as_ref().is_none_or(|(owner, _)| *owner != pid) {
        // Open connections belong to the parent process. This process must neither use nor close
        // them.
        std::mem::forget(stores.replace((pid, HashMap::new())));
    }
    let stores = &mut stores.as_mut().expect("just set if it was missing").1;
    if let Some(store) = stores.get(name) {
        return Ok(store.clone());
    }
    let store = connect(url, scheme)?;
    stores.insert(name.to_owned(), store.clone());
    Ok(store)
}

fn connect(url: &Url, scheme: &ObjectStoreScheme) -> object_store::Result<Store> {
    static PROVIDER: Once = Once::new();
    // Fails only if this process has already installed another provider, which works too.
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let other = |objects: Arc<dyn ObjectStore>| Store {
        objects,
        s3: None,
        answered: Arc::default(),
    };
    Ok(match scheme {
        ObjectStoreScheme::AmazonS3 => {
            let plain = Arc::new(s3(url, HeaderMap::new())?);
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
            let if_absent = Arc::new(s3(url, headers)?);
            Store {
                objects: plain.clone(),
                s3: Some(S3 { plain, if_absent }),
                answered: Arc::default(),
            }
        }
        ObjectStoreScheme::GoogleCloudStorage => other(Arc::new(
            GoogleCloudStorageBuilder::from_env()
                .with_url(url.as_str())
                .with_retry(retry())
                .build()?,
        )),
        ObjectStoreScheme::MicrosoftAzure => other(Arc::new(
            MicrosoftAzureBuilder::from_env()
                .with_url(url.as_str())
                .with_retry(retry())
                .build()?,
        )),
        _ => other(Arc::new(
            HttpBuilder::new()
                .with_url(&url[..Position::BeforePath])
                .with_client_options(client(HeaderMap::new()).with_allow_http(true))
                .with_retry(retry())
                .build()?,
        )),
    })
}

fn s3(url: &Url, headers: HeaderMap) -> object_store::Result<AmazonS3> {
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        name.starts_with("AWS_").then_some((name, value))
    });
    let mut variables: HashMap<_, _> = variables.collect();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    profile::add_profile(&mut variables, home.as_deref()).map_err(|error| {
        object_store::Error::Generic {
            store: "S3",
            source: Box::new(error),
        }
    })?;
    let endpoint = |name: &str| name.starts_with("AWS_ENDPOINT");
    let is_plain_http = variables
        .iter()
        .any(|(name, value)| endpoint(name) && value.starts_with("http://"));
    // Unencrypted endpoints are allowed if the user names one, as in other tools.
    let client = client(headers).with_allow_http(is_plain_http);
    let mut builder = AmazonS3Builder::new()
        .with_url(url.as_str())
        .with_client_options(client)
        .with_retry(retry());
    for (name, value) in variables {
        if let Ok(key) = name.to_ascii_lowercase().parse() {
            builder = builder.with_config(key, value);
        }
    }
    builder.build()
}

fn client(headers: HeaderMap) -> ClientOptions {
    ClientOptions::new()
        .with_default_headers(headers)
        .with_timeout(REQUEST)
}

fn retry() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            max_backoff: MAX_BACKOFF,
            ..BackoffConfig::default()
        },
        max_retries: usize::MAX,
        retry_timeout: RETRY,
    }
}
