//! Reads an object as a file: sequentially with read-ahead, or at any position. Files that the
//! caller reads are handled in the same way.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path as LocalPath;
use std::sync::Arc;

use bytes::Bytes;
use object_store::{GetOptions, GetRange};
use packtok_pbin::file_system;
use tokio::task::JoinHandle;

use crate::remote::error::{Error, Result};
use crate::remote::foreign::{ForeignFile, ForeignFiles};
use crate::remote::location::{Location, Object, start_thread};
use crate::remote::runtime;

/// Length of the first request: enough to search for the end of a line.
const FIRST_BYTES: u64 = 64 << 10;
/// Length of requests in a long sequential read. Large enough to hide the latency of the store,
/// and small enough that two requests need little memory.
const MOST_BYTES: u64 = 8 << 20;

type Fetching = JoinHandle<Result<Bytes>>;

/// The service that answers requests for bytes.
enum Origin {
    Store(Location),
    Foreign(Arc<dyn ForeignFile>),
}

/// An open object. The part after the read position is fetched ahead. Failed requests are retried
/// for some minutes. All reads return bytes of one version of the object; if the object is
/// replaced, reads fail.
pub struct RemoteFile {
    origin: Origin,
    object: Object,
    at: u64,
    /// Fetched bytes of the object, starting at `near_start`.
    near: Bytes,
    near_start: u64,
    /// The request in flight for the bytes after `near`, and its range.
    ahead: Option<(Range<u64>, Fetching)>,
    step: u64,
}

impl RemoteFile {
    /// Opens an object.
    ///
    /// # Errors
    /// The object does not exist, or the store does not answer.
    pub fn open(location: Location) -> Result<Self> {
        let object = location.object()?;
        Ok(Self::of(location, object))
    }

    /// Opens an object that was queried before.
    pub fn of(location: Location, object: Object) -> Self {
        Self::from(Origin::Store(location), object)
    }

    /// Opens a file that the caller reads.
    ///
    /// # Errors
    /// The errors of the caller.
    pub fn open_foreign(files: &dyn ForeignFiles, url: &str) -> Result<Self> {
        start_thread(url)?;
        let (object, file) = files.open(url)?;
        Ok(Self::from(Origin::Foreign(file), object))
    }

    fn from(origin: Origin, object: Object) -> Self {
        Self {
            origin,
            object,
            at: 0,
            near: Bytes::new(),
            near_start: 0,
            ahead: None,
            step: FIRST_BYTES,
        }
    }

    /// The metadata that the store reported when the object was opened.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// The position at which the next read starts.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// All bytes of a range of the object.
    ///
    /// # Errors
    /// The store does not answer, or the object was replaced.
    pub fn bytes(&self, range: Range<u64>) -> Result<Bytes> {
        self.ended(self.begin(range.clone()), &range)
    }

    /// Downloads the object to a local file.
    ///
    /// # Errors
    /// As [`RemoteFile::bytes`]; or the file cannot be written.
    pub fn save(mut self, path: &LocalPath) -> Result<()> {
        let local = |source| Error::Local {
            path: path.to_owned(),
            source,
        };
        let folder = path.parent().unwrap_or(LocalPath::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(local)?;
        self.step = MOST_BYTES;
        while self.at < self.object.bytes {
            self.load_near()?;
            let rest = self.near.slice((self.at - self.near_start) as usize..);
            io::Write::write_all(&mut file, &rest).map_err(local)?;
            self.at += rest.len() as u64;
        }
        file_system::sync(file.as_file()).map_err(local)?;
        file.persist(path).map_err(|error| local(error.error))?;
        Ok(())
    }

    /// Makes `near` contain the byte at `at`, which must be within the object.
    fn load_near(&mut self) -> Result<()> {
        if self.is_near() {
            return Ok(());
        }
        let wanted = self.at..(self.at + self.step).min(self.object.bytes);
        let (range, fetching) = match self.ahead.take() {
            Some((range, fetching)) if range.contains(&self.at) => (range, fetching),
            other => {
                // After a jump, the bytes fetched ahead are useless. `seek` has made the next
                // request short, because random access rarely continues sequentially.
                if let Some((_, fetching)) = other {
                    fetching.abort();
                }
                let fetching = self.begin(wanted.clone());
                (wanted, fetching)
            }
        };
        self.near = self.ended(fetching, &range)?;
        self.near_start = range.start;
        self.step = (4 * self.step).min(MOST_BYTES);
        let next = range.end..(range.end + self.step).min(self.object.bytes);
        if !next.is_empty() {
            self.ahead = Some((next.clone(), self.begin(next)));
        }
        Ok(())
    }

    fn is_near(&self) -> bool {
        (self.near_start..self.near_start + self.near.len() as u64).contains(&self.at)
    }

    fn begin(&self, range: Range<u64>) -> Fetching {
        match &self.origin {
            Origin::Store(location) => {
                let (location, version) = (location.clone(), self.object.version.clone());
                runtime::handle().spawn(fetch(location, version, range))
            }
            Origin::Foreign(file) => {
                let file = Arc::clone(file);
                runtime::handle().spawn_blocking(move || file.read(range))
            }
        }
    }

    /// Waits for a request and checks that as many bytes arrived as were requested.
    fn ended(&self, fetching: Fetching, range: &Range<u64>) -> Result<Bytes> {
        let fetched = runtime::wait(fetching).unwrap_or_else(|error| {
            Err(Error::Refused {
                url: self.object.url.clone(),
                reason: error.to_string(),
            })
        })?;
        if fetched.len() as u64 != range.end - range.start {
            return Err(Error::Refused {
                url: self.object.url.clone(),
                reason: format!(
                    "the store returned {} bytes, expected {} from byte {}",
                    fetched.len(),
                    range.end - range.start,
                    range.start
                ),
            });
        }
        Ok(fetched)
    }
}

impl Drop for RemoteFile {
    fn drop(&mut self) {
        if let Origin::Foreign(file) = &self.origin {
            file.close();
        }
    }
}

/// Fetches a range of one version of an object.
async fn fetch(location: Location, version: Option<String>, range: Range<u64>) -> Result<Bytes> {
    let options = || GetOptions {
        if_match: version.clone(),
        range: Some(GetRange::Bounded(range.clone())),
        ..GetOptions::default()
    };
    let objects = &location.store.objects;
    let fetched = runtime::retried(async || {
        let answer = objects.get_opts(&location.path, options()).await?;
        answer.bytes().await
    });
    fetched.await.map_err(|error| location.error(&error))
}

impl Read for RemoteFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() || self.at >= self.object.bytes {
            return Ok(0);
        }
        self.load_near().map_err(io::Error::other)?;
        let near = &self.near[(self.at - self.near_start) as usize..];
        let n = near.len().min(buffer.len());
        buffer[..n].copy_from_slice(&near[..n]);
        self.at += n as u64;
        Ok(n)
    }
}

impl Seek for RemoteFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(offset) => self.at.checked_add_signed(offset),
            SeekFrom::End(offset) => self.object.bytes.checked_add_signed(offset),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        if !self.is_near() {
            self.step = FIRST_BYTES;
        }
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// A file in memory that may be shorter than it was.
    struct Memory {
        content: Vec<u8>,
        is_closed: AtomicBool,
    }

    impl ForeignFile for Memory {
        fn read(&self, range: Range<u64>) -> Result<Bytes> {
            let stop = self.content.len().min(range.end as usize);
            Ok(Bytes::copy_from_slice(
                &self.content[range.start as usize..stop],
            ))
        }

        fn close(&self) {
            self.is_closed.store(true, Ordering::Relaxed);
        }
    }

    struct Files(Arc<Memory>, u64);

    impl ForeignFiles for Files {
        fn object(&self, url: &str) -> Result<Object> {
            Ok(Object {
                url: url.to_owned(),
                bytes: self.1,
                version: None,
            })
        }

        fn matching(&self, _: &str) -> Result<Vec<Object>> {
            Ok(Vec::new())
        }

        fn list(&self, _: &str) -> Result<Vec<Object>> {
            Ok(Vec::new())
        }

        fn open(&self, url: &str) -> Result<(Object, Arc<dyn ForeignFile>)> {
            Ok((self.object(url)?, Arc::<Memory>::clone(&self.0)))
        }
    }

    fn memory(len: usize) -> Arc<Memory> {
        Arc::new(Memory {
            content: (0..len).map(|i| (i / 251) as u8).collect(),
            is_closed: AtomicBool::new(false),
        })
    }

    #[test]
    fn a_foreign_file_is_read_from_any_position_and_closed() {
        let memory = memory(3_000_000);
        let files = Files(Arc::clone(&memory), 3_000_000);
        let mut file = RemoteFile::open_foreign(&files, "other://host/a").unwrap();
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        assert!(content == memory.content);
        for start in [0, 1, 2_000_000, 2_999_999, 3_000_000] {
            content.clear();
            file.seek(SeekFrom::Start(start)).unwrap();
            file.read_to_end(&mut content).unwrap();
            assert!(content == memory.content[start as usize..]);
        }
        assert_eq!(
            RemoteFile::bytes(&file, 10..20).unwrap(),
            memory.content[10..20]
        );
        assert!(!memory.is_closed.load(Ordering::Relaxed));
        drop(file);
        assert!(memory.is_closed.load(Ordering::Relaxed));
    }

    #[test]
    fn a_foreign_file_that_is_too_short_is_an_error() {
        let files = Files(memory(100_000), 100_001);
        let mut file = RemoteFile::open_foreign(&files, "other://host/a").unwrap();
        let error = file.read_to_end(&mut Vec::new()).unwrap_err().to_string();
        assert!(error.starts_with("other://host/a: "), "{error}");
        assert!(error.contains("34464 bytes, expected 34465"), "{error}");
    }
}
