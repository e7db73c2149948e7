//! The one runtime that waits for the network.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

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

/// Waits for `future`.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    handle().block_on(future)
}
