//! Clients of stores, with what the environment says of credentials and endpoints.

use std::collections::HashMap;
use std::future::Future;
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

use crate::runtime;

/// How long a request is made again by the library: a name that does not exist is not waited for long.
const RETRY: Duration = Duration::from_secs(10);
/// How long one request may take, for a part of some megabytes on a slow line.
const REQUEST: Duration = Duration::from_secs(120);
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// A client of the store that an object lies in.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) objects: Arc<dyn ObjectStore>,
    /// For what only S3 has.
    pub(crate) s3: Option<S3>,
    /// Whether it has ever answered this process: only what was there before is waited for.
    answered: Arc<AtomicBool>,
}

impl Store {
    /// Asks the store something, and again for some minutes if it cannot be reached but could be before.
    pub(crate) async fn ask<T, F: Future<Output = object_store::Result<T>>>(
        &self,
        request: impl FnMut() -> F,
    ) -> object_store::Result<T> {
        let patience = match self.answered.load(Ordering::Relaxed) {
            true => runtime::PATIENCE,
            false => Duration::ZERO,
        };
        let answer = runtime::for_as_long_as(patience, request).await;
        if !matches!(answer, Err(object_store::Error::Generic { .. })) {
            self.answered.store(true, Ordering::Relaxed);
        }
        answer
    }
}

/// S3 as it is, and with a condition: what it writes must not be there yet.
#[derive(Clone)]
pub(crate) struct S3 {
    pub(crate) plain: Arc<AmazonS3>,
    pub(crate) if_absent: Arc<AmazonS3>,
}

/// The clients of this process, by the URL as far as the store's name goes.
static STORES: Mutex<Option<(u32, HashMap<String, Store>)>> = Mutex::new(None);

/// The client for `url`, the same for all objects of a store; one of its own after a fork.
pub(crate) fn store(url: &Url, scheme: &ObjectStoreScheme) -> object_store::Result<Store> {
    let pid = std::process::id();
    let name = &url[..Position::BeforePath];
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    if stores.as_ref().is_none_or(|(owner, _)| *owner != pid) {
        // Connections that a parent has open are the parent's; nothing of them is touched, not even closed.
        std::mem::forget(stores.replace((pid, HashMap::new())));
    }
    let stores = &mut stores.as_mut().expect("there is one now").1;
    if let Some(store) = stores.get(name) {
        return Ok(store.clone());
    }
    let store = connect(url, scheme)?;
    stores.insert(name.to_owned(), store.clone());
    Ok(store)
}

fn connect(url: &Url, scheme: &ObjectStoreScheme) -> object_store::Result<Store> {
    static PROVIDER: Once = Once::new();
    // Fails only if somebody in this process has chosen another, which then serves.
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
    let variables = std::env::vars().filter(|(name, _)| name.starts_with("AWS_"));
    let endpoint = |name: &str| name.starts_with("AWS_ENDPOINT");
    let variables: Vec<_> = variables.collect();
    let is_plain_http = variables
        .iter()
        .any(|(name, value)| endpoint(name) && value.starts_with("http://"));
    // What the user names is meant, as other tools take it, also where it is not encrypted.
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
