//! Random access to a table file, with one region of it in memory.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;

use super::fault::Fault;

/// Bytes read ahead of a small read: headers of pages and messages follow each other closely.
const AHEAD_BYTES: usize = 64 << 10;

/// A file that can be read at any position.
pub trait ReadAt: Send {
    /// The length of the file.
    ///
    /// # Errors
    /// The system cannot tell.
    fn len_bytes(&self) -> io::Result<u64>;

    /// Fills `buffer` with the bytes from `start`.
    ///
    /// # Errors
    /// The file is shorter or cannot be read.
    fn read_exact_at(&mut self, start: u64, buffer: &mut [u8]) -> io::Result<()>;
}

impl ReadAt for File {
    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_exact_at(&mut self, start: u64, buffer: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, start)
    }
}

/// Bounds for the work with one file, for a caller who waits for some of its records.
#[derive(Debug, Clone, Copy)]
pub struct WorkLimits {
    /// When reading ends.
    pub deadline: Instant,
    /// Most bytes that are read, or decompressed, as one piece of memory.
    pub max_bytes: u64,
}

/// A table file. A clone shares the file and the region.
#[derive(Clone)]
pub struct Window(Arc<Shared>);

struct Shared {
    len_bytes: u64,
    limits: Option<WorkLimits>,
    state: Mutex<State>,
}

struct State {
    file: Box<dyn ReadAt>,
    /// The region in memory, by its start.
    start: u64,
    bytes: Bytes,
}

impl Window {
    /// A window on `file`, with nothing in memory.
    ///
    /// # Errors
    /// The length of the file cannot be read.
    pub fn new(file: impl ReadAt + 'static) -> io::Result<Self> {
        Self::open(file, None)
    }

    /// As [`Window::new`]. Every read after the deadline fails, and that of more bytes.
    ///
    /// # Errors
    /// The length of the file cannot be read.
    pub fn limited(file: impl ReadAt + 'static, limits: WorkLimits) -> io::Result<Self> {
        Self::open(file, Some(limits))
    }

    fn open(file: impl ReadAt + 'static, limits: Option<WorkLimits>) -> io::Result<Self> {
        Ok(Self(Arc::new(Shared {
            len_bytes: file.len_bytes()?,
            limits,
            state: Mutex::new(State {
                file: Box::new(file),
                start: 0,
                bytes: Bytes::new(),
            }),
        })))
    }

    /// Length of the file.
    pub fn len_bytes(&self) -> u64 {
        self.0.len_bytes
    }

    /// Fails after the deadline, if there is one.
    pub(super) fn check_time(&self) -> io::Result<()> {
        match self.0.limits {
            Some(limits) if Instant::now() >= limits.deadline => {
                Err(io::ErrorKind::TimedOut.into())
            }
            _ => Ok(()),
        }
    }

    /// Most bytes that may be in memory as one piece.
    pub(super) fn max_bytes(&self) -> u64 {
        self.0.limits.map_or(u64::MAX, |limits| limits.max_bytes)
    }

    /// Checks the length of a piece of the file that is to be in memory.
    pub(super) fn check_bytes(&self, what: &str, len_bytes: u64) -> Result<(), Fault> {
        let most = self.max_bytes();
        if len_bytes <= most {
            return Ok(());
        }
        Err(Fault::Unsupported(format!(
            "{what} has {len_bytes} bytes, and at most {most} are read to show records"
        )))
    }

    /// Reads a range of the file into memory and keeps it there until the next call.
    ///
    /// # Errors
    /// The file is shorter or cannot be read.
    pub fn keep(&self, range: Range<u64>) -> io::Result<Bytes> {
        let mut state = self.lock();
        // Frees the previous region first, so that only one region is in memory.
        (state.start, state.bytes) = (range.start, Bytes::new());
        let mut bytes = vec![0; (range.end - range.start) as usize];
        state.read_from_file(range.start, &mut bytes)?;
        state.bytes = bytes.into();
        Ok(state.bytes.clone())
    }

    /// The bytes `start..start + len`, which must exist.
    ///
    /// # Errors
    /// The file is shorter or cannot be read.
    pub fn bytes(&self, start: u64, len: usize) -> io::Result<Bytes> {
        if start
            .checked_add(len as u64)
            .is_none_or(|stop| stop > self.0.len_bytes)
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.check_time()?;
        let mut state = self.lock();
        if let Some(kept) = state.kept(start, len) {
            return Ok(kept);
        }
        let mut bytes = vec![0; len];
        state.read_from_file(start, &mut bytes)?;
        Ok(bytes.into())
    }

    /// A sequential reader from `start` to the end of the file.
    pub fn reader(&self, start: u64) -> WindowReader {
        WindowReader {
            window: self.clone(),
            position: start,
        }
    }

    /// Reads some bytes at `start` into `buffer`; 0 at the end of the file.
    fn read_some(&self, start: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.0.len_bytes.saturating_sub(start);
        let len = buffer
            .len()
            .min(usize::try_from(rest).unwrap_or(usize::MAX));
        if len == 0 {
            return Ok(0);
        }
        self.check_time()?;
        let mut state = self.lock();
        if let Some(n) = state.read_kept(start, &mut buffer[..len]) {
            return Ok(n);
        }
        if len >= AHEAD_BYTES {
            return state
                .read_from_file(start, &mut buffer[..len])
                .map(|()| len);
        }
        let ahead = AHEAD_BYTES.min(usize::try_from(rest).unwrap_or(usize::MAX));
        let mut bytes = vec![0; ahead];
        state.read_from_file(start, &mut bytes)?;
        (state.start, state.bytes) = (start, bytes.into());
        Ok(state.read_kept(start, &mut buffer[..len]).unwrap_or(0))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // No code panics while it holds the lock.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The bytes `start..start + len` if all of them are in memory.
    fn kept(&self, start: u64, len: usize) -> Option<Bytes> {
        let from = usize::try_from(start.checked_sub(self.start)?).ok()?;
        let stop = from.checked_add(len)?;
        (stop <= self.bytes.len()).then(|| self.bytes.slice(from..stop))
    }

    /// Copies the bytes from `start` that are in memory; `None` if there are none.
    fn read_kept(&self, start: u64, buffer: &mut [u8]) -> Option<usize> {
        let from = usize::try_from(start.checked_sub(self.start)?).ok()?;
        let kept = self.bytes.get(from..).filter(|kept| !kept.is_empty())?;
        let n = kept.len().min(buffer.len());
        buffer[..n].copy_from_slice(&kept[..n]);
        Some(n)
    }

    fn read_from_file(&mut self, start: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(start, buffer)
    }
}

/// Reads a [`Window`] sequentially.
pub struct WindowReader {
    window: Window,
    position: u64,
}

impl WindowReader {
    /// Moves on without reading.
    pub(super) fn advance(&mut self, num_bytes: u64) {
        self.position = self.position.saturating_add(num_bytes);
    }
}

impl Read for WindowReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.window.read_some(self.position, buffer)?;
        self.position += n as u64;
        Ok(n)
    }
}
