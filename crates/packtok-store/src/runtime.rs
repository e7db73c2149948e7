//! The one runtime that waits for the network.

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime};

/// The process that started the runtime, and the runtime, which is never ended.
static RUNTIME: Mutex<Option<(u32, Handle)>> = Mutex::new(None);

/// The runtime of this process. After a fork the threads of the parent's are gone, so that a child has one of
/// its own.
pub(crate) fn handle() -> Handle {
    let pid = std::process::id();
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    match &*runtime {
        Some((owner, handle)) if *owner == pid => handle.clone(),
        _ => {
            let handle = start();
            *runtime = Some((pid, handle.clone()));
            handle
        }
    }
}

/// Starts a runtime that lives as long as the process: to end it would be to wait for the network.
fn start() -> Handle {
    let runtime: Runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("packtok-store")
        .enable_all()
        .build()
        .expect("a thread for the network can be started");
    let handle = runtime.handle().clone();
    std::mem::forget(runtime);
    handle
}

/// How long what has begun well is tried again: a server that is started again is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Makes a request again and again, for some minutes, while the store cannot be reached, also when it went away in
/// the middle of its answer; every other error is an answer, which would come again.
pub(crate) async fn patiently<T, F: Future<Output = object_store::Result<T>>>(
    request: impl FnMut() -> F,
) -> object_store::Result<T> {
    for_as_long_as(PATIENCE, request).await
}

/// As [`patiently`], with a patience of its own.
pub(crate) async fn for_as_long_as<T, F: Future<Output = object_store::Result<T>>>(
    patience: Duration,
    mut request: impl FnMut() -> F,
) -> object_store::Result<T> {
    let started = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        match request().await {
            Err(object_store::Error::Generic { .. }) if started.elapsed() < patience => {
                tokio::time::sleep(pause).await;
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
            answer => return answer,
        }
    }
}

/// Waits for `future`.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    handle().block_on(future)
}
