//! The runtime for network requests, one per process.

use std::future::Future;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime};

use crate::remote::error::innermost;

/// The runtime, never shut down, and the id of the process that started it.
static RUNTIME: Mutex<Option<(u32, Handle)>> = Mutex::new(None);

/// The runtime of this process. A forked process does not have the parent's threads, so it starts
/// a runtime of its own.
///
/// # Errors
/// The thread of the runtime cannot be started.
pub(crate) fn started() -> io::Result<Handle> {
    let pid = std::process::id();
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    match &*runtime {
        Some((owner, handle)) if *owner == pid => Ok(handle.clone()),
        _ => {
            let handle = start()?;
            *runtime = Some((pid, handle.clone()));
            Ok(handle)
        }
    }
}

/// The runtime of this process, after [`started`] succeeded.
pub(crate) fn handle() -> Handle {
    started().expect("the first request to a store starts the runtime or returns the error")
}

/// Starts a runtime that lives as long as the process, because a shutdown would wait for the
/// network.
fn start() -> io::Result<Handle> {
    let runtime: Runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("packtok-store")
        .enable_all()
        .build()?;
    let handle = runtime.handle().clone();
    std::mem::forget(runtime);
    Ok(handle)
}

/// Time for which a request to a store that answered earlier is retried, so that a restart of the
/// server does not fail a run.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Retries a request for some minutes while the store cannot be reached, or if the connection
/// breaks during the answer. All other errors are final, because they would occur again.
pub(crate) async fn retried<T, F: Future<Output = object_store::Result<T>>>(
    request: impl FnMut() -> F,
) -> object_store::Result<T> {
    retried_for(PATIENCE, request).await
}

/// As [`retried`], for a given time.
pub(crate) async fn retried_for<T, F: Future<Output = object_store::Result<T>>>(
    patience: Duration,
    mut request: impl FnMut() -> F,
) -> object_store::Result<T> {
    let started = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        match request().await {
            Err(error) if is_transient(&error) && started.elapsed() < patience => {
                tokio::time::sleep(pause).await;
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
            answer => return answer,
        }
    }
}

/// Whether a request may succeed later: the store cannot be reached or is overloaded. A rejected
/// request is final.
pub(crate) fn is_transient(error: &object_store::Error) -> bool {
    if !matches!(error, object_store::Error::Generic { .. }) {
        return false;
    }
    // Too many requests, and a timeout.
    status(error).is_none_or(|status| status >= 500 || status == 429 || status == 408)
}

/// The HTTP status of a rejected request. The library only has it in the text of an error.
fn status(error: &object_store::Error) -> Option<u16> {
    const START: &str = "Server returned non-2xx status code: ";
    let text = innermost(error).to_string();
    text.strip_prefix(START)?.get(..3)?.parse().ok()
}

/// Blocks until `future` completes.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    handle().block_on(future)
}
