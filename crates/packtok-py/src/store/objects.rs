//! Objects in stores: queried, downloaded, uploaded, deleted. Also the user's cache folder.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use packtok_store::user_cache as cache_of_user;
use packtok_store::{Error, IfExists, Location, RemoteFile, Result, is_store};
use pyo3::prelude::*;

use crate::boundary::error::{pack_error, store_error};

/// Maximum delay of Ctrl-C.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Whether a text is a URL rather than a path.
#[pyfunction]
pub(crate) fn is_url(text: &str) -> bool {
    packtok_corpus::is_url(text.as_ref())
}

/// Whether a URL is of a store that packtok reads.
#[pyfunction]
pub(crate) fn is_store_url(url: &str) -> bool {
    is_store(url)
}

/// packtok's folder in the user's cache; None if there is no home folder.
#[pyfunction]
pub(crate) fn user_cache() -> Option<OsString> {
    cache_of_user().map(PathBuf::into_os_string)
}

/// The length of an object; None if it does not exist.
#[pyfunction]
pub(crate) fn object_bytes(py: Python<'_>, url: String) -> PyResult<Option<u64>> {
    wait(py, move || match Location::parse(&url)?.object() {
        Ok(object) => Ok(Some(object.bytes)),
        Err(Error::Absent { .. }) => Ok(None),
        Err(error) => Err(error),
    })
}

/// The URL and length of each object in a folder and its subfolders.
#[pyfunction]
pub(crate) fn list_objects(py: Python<'_>, url: String) -> PyResult<Vec<(String, u64)>> {
    let objects = wait(py, move || Location::parse(&url)?.list())?;
    Ok(objects
        .into_iter()
        .map(|object| (object.url, object.bytes))
        .collect())
}

/// Downloads an object to a file atomically.
#[pyfunction]
pub(crate) fn download(py: Python<'_>, url: String, path: PathBuf) -> PyResult<()> {
    wait(py, move || {
        RemoteFile::open(Location::parse(&url)?)?.save(&path)
    })
}

/// Uploads a file as an object, completely or not at all.
#[pyfunction]
pub(crate) fn upload(py: Python<'_>, path: PathBuf, url: String, replace: bool) -> PyResult<()> {
    let if_exists = if replace {
        IfExists::Replace
    } else {
        IfExists::Refuse
    };
    wait(py, move || {
        Location::parse(&url)?.upload(&path, if_exists, &|_| ())
    })
}

/// Deletes an object; does nothing if it does not exist.
#[pyfunction]
pub(crate) fn delete_object(py: Python<'_>, url: String) -> PyResult<()> {
    wait(py, move || Location::parse(&url)?.delete())
}

/// Runs `call` on a separate thread and waits for it. If Python raises an exception in the
/// meantime, the thread continues alone.
fn wait<T: Send + 'static>(
    py: Python<'_>,
    call: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = channel();
    let mut receiver = Mutex::new(receiver);
    std::thread::Builder::new()
        .name("packtok-store-call".to_owned())
        .spawn(move || sender.send(call()))
        .map_err(|source| {
            let purpose = "the thread that talks to the store";
            pack_error(packtok_pack::Error::Jobs(packtok_jobs::Error::Threads {
                purpose,
                source,
            }))
        })?;
    loop {
        let waited = py.detach(|| {
            let receiver = receiver.get_mut().expect("no other thread uses the lock");
            receiver.recv_timeout(SIGNAL_INTERVAL)
        });
        match waited {
            Ok(answer) => return answer.map_err(|error| store_error(&error)),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                panic!("the thread that talks to the store died")
            }
        }
    }
}
