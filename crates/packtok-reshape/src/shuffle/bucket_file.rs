//! The temporary file of the buckets. A thread appends blocks to it while the caller distributes
//! documents. Later, a thread reads the next bucket while the caller writes the previous one to
//! the output.
//!
//! Copying blocks to and from the page cache, and allocating and freeing its pages, takes as much
//! processor time as the rest of a shuffle. The system decides when blocks are written to disk. If
//! there is enough memory, many blocks are read and freed before that.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use packtok_jobs::Error as JobsError;

use crate::error::{Error, Result};

/// Bytes of blocks that wait to be written.
const WAITING_BYTES: usize = 8 << 20;
/// Maximum number of buckets in memory: the caller's bucket and the bucket that is being read.
const NUM_LOADED: usize = 2;

/// The content of a bucket.
#[derive(Default)]
pub(super) struct Stored {
    /// The numbers of its blocks in the file, in order.
    pub(super) blocks: Vec<u32>,
    /// The bytes after the last full block.
    pub(super) rest: Vec<u8>,
}

/// Appends blocks to the file.
pub(super) struct BlockWriter {
    full: Sender<(u32, Vec<u8>)>,
    empty: Receiver<Vec<u8>>,
    block_bytes: usize,
    num_blocks: u32,
    // Last, since it waits for the thread, which ends when the channels are closed.
    thread: Thread<BucketFile>,
}

impl BlockWriter {
    /// Creates the file in `folder`.
    ///
    /// # Errors
    /// The file cannot be created, or the thread cannot be started.
    pub(super) fn create(folder: &Path, block_bytes: usize) -> Result<Self> {
        Self::start(BucketFile {
            file: tempfile::tempfile_in(folder).map_err(Error::io(folder))?,
            folder: folder.to_owned(),
            block_bytes,
        })
    }

    fn start(bucket_file: BucketFile) -> Result<Self> {
        let block_bytes = bucket_file.block_bytes;
        let (full, to_write) = mpsc::channel::<(u32, Vec<u8>)>();
        let (written, empty) = mpsc::channel::<Vec<u8>>();
        // A fixed number of buffers in circulation bounds the memory.
        for _ in 0..(WAITING_BYTES / block_bytes).max(2) {
            // Cannot fail, because `empty` exists.
            let _ = written.send(Vec::new());
        }
        let thread = Thread::start(move || {
            for (first_block, mut blocks) in to_write {
                bucket_file.write(first_block, &blocks)?;
                blocks.clear();
                // The caller may be waiting for the end already.
                let _ = written.send(blocks);
            }
            Ok(bucket_file)
        })?;
        Ok(Self {
            full,
            empty,
            block_bytes,
            num_blocks: 0,
            thread,
        })
    }

    /// Moves the full blocks of a bucket from its rest to the file.
    ///
    /// # Errors
    /// These or earlier blocks cannot be written.
    #[inline]
    pub(super) fn append_full(&mut self, bucket: &mut Stored) -> Result<()> {
        if bucket.rest.len() < self.block_bytes {
            return Ok(());
        }
        self.append(bucket)
    }

    fn append(&mut self, bucket: &mut Stored) -> Result<()> {
        let num_full = bucket.rest.len() / self.block_bytes;
        let num_bytes = num_full * self.block_bytes;
        let Ok(mut buffer) = self.empty.recv() else {
            return Err(self.thread.failure());
        };
        buffer.extend_from_slice(&bucket.rest[num_bytes..]);
        bucket.rest.truncate(num_bytes);
        let full = std::mem::replace(&mut bucket.rest, buffer);
        if self.full.send((self.num_blocks, full)).is_err() {
            return Err(self.thread.failure());
        }
        let next = self.num_blocks + num_full as u32;
        bucket.blocks.extend(self.num_blocks..next);
        self.num_blocks = next;
        Ok(())
    }

    /// Waits until all blocks are written, and starts to read buckets in order.
    ///
    /// # Errors
    /// Blocks cannot be written, or the thread cannot be started.
    pub(super) fn read(self, buckets: Vec<Stored>) -> Result<BucketReader> {
        let Self { full, thread, .. } = self;
        drop(full);
        let bucket_file = thread.finish()?;
        let (loaded, buckets_in_order) = mpsc::channel();
        let (empty, to_fill) = mpsc::channel::<Vec<u8>>();
        for _ in 0..NUM_LOADED {
            // Cannot fail, because `to_fill` exists.
            let _ = empty.send(Vec::new());
        }
        let thread = Thread::start(move || {
            for bucket in buckets {
                // The caller ended early.
                let Ok(mut records) = to_fill.recv() else {
                    break;
                };
                bucket_file.read(&bucket, &mut records)?;
                if loaded.send(records).is_err() {
                    break;
                }
            }
            Ok(())
        })?;
        Ok(BucketReader {
            loaded: buckets_in_order,
            empty,
            thread,
        })
    }
}

/// Reads buckets in order.
pub(super) struct BucketReader {
    loaded: Receiver<Vec<u8>>,
    empty: Sender<Vec<u8>>,
    // Last, as in `BlockWriter`.
    thread: Thread<()>,
}

impl BucketReader {
    /// The records of the next bucket.
    ///
    /// # Errors
    /// The bucket cannot be read.
    pub(super) fn next(&mut self) -> Result<Vec<u8>> {
        self.loaded.recv().map_err(|_| self.thread.failure())
    }

    /// Takes back the memory of a bucket.
    pub(super) fn reuse(&self, records: Vec<u8>) {
        // Fails if no bucket is left.
        let _ = self.empty.send(records);
    }
}

/// A file without a name, which the system removes with the process.
struct BucketFile {
    file: File,
    /// Folder of the file, for messages.
    folder: PathBuf,
    block_bytes: usize,
}

impl BucketFile {
    fn offset(&self, block: u32) -> u64 {
        u64::from(block) * self.block_bytes as u64
    }

    fn write(&self, first_block: u32, blocks: &[u8]) -> Result<()> {
        let offset = self.offset(first_block);
        (self.file.write_all_at(blocks, offset)).map_err(Error::io(&self.folder))
    }

    /// Reads a bucket into `records`, and gives its blocks back to the file system.
    fn read(&self, bucket: &Stored, records: &mut Vec<u8>) -> Result<()> {
        // The buffer keeps the bytes of an earlier bucket, so that only new memory is zeroed.
        records.resize(bucket.blocks.len() * self.block_bytes, 0);
        for (&block, bytes) in (bucket.blocks.iter()).zip(records.chunks_mut(self.block_bytes)) {
            (self.file.read_exact_at(bytes, self.offset(block)))
                .map_err(Error::io(&self.folder))?;
            self.free(block);
        }
        records.extend_from_slice(&bucket.rest);
        Ok(())
    }

    /// Returns a block to the file system after it was read, so that the disk holds the documents
    /// only once. Freed blocks that were not written to disk yet are never written. Where the
    /// system cannot free blocks, the documents are on disk twice until the end.
    fn free(&self, block: u32) {
        let _: io::Result<()> = free(&self.file, self.offset(block), self.block_bytes as u64);
    }
}

#[cfg(target_os = "linux")]
fn free(file: &File, offset: u64, len: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};

    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(file, flags, offset, len).map_err(io::Error::from)
}

#[cfg(not(target_os = "linux"))]
fn free(_: &File, _: u64, _: u64) -> io::Result<()> {
    Ok(())
}

/// A thread that ends when its channels are closed. Dropping waits for its end, so that after an
/// error no thread keeps the file open.
struct Thread<T>(Option<JoinHandle<Result<T>>>);

impl<T: Send + 'static> Thread<T> {
    fn start(run: impl FnOnce() -> Result<T> + Send + 'static) -> Result<Self> {
        let started = std::thread::Builder::new()
            .name("packtok-buckets".to_owned())
            .spawn(run);
        let thread = started.map_err(|source| {
            Error::from(JobsError::Threads {
                purpose: "the thread that writes and reads the temporary file",
                source,
            })
        })?;
        Ok(Self(Some(thread)))
    }

    /// Waits for the end. A panic of the thread continues in the caller.
    fn finish(mut self) -> Result<T> {
        self.join()
    }

    /// The error of a thread that closed its channels early.
    fn failure(&mut self) -> Error {
        match self.join() {
            Err(error) => error,
            Ok(_) => JobsError::WorkerDied.into(),
        }
    }

    fn join(&mut self) -> Result<T> {
        match self.0.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Err(JobsError::WorkerDied.into()),
        }
    }
}

impl<T> Drop for Thread<T> {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // The caller has an error already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK_BYTES: usize = 4 << 10;

    fn bucket_file(file: File) -> BucketFile {
        BucketFile {
            file,
            folder: PathBuf::from("folder"),
            block_bytes: BLOCK_BYTES,
        }
    }

    /// The kind of the system's error; all errors name the folder.
    fn kind(error: Error) -> io::ErrorKind {
        match error {
            Error::Io { path, source } if path == Path::new("folder") => source.kind(),
            error => panic!("{error:?}"),
        }
    }

    #[test]
    fn buckets_are_read_as_they_were_written() {
        let file = bucket_file(tempfile::tempfile().unwrap());
        let mut writer = BlockWriter::start(file).unwrap();
        let mut buckets = [const { Vec::new() }; 3];
        let mut stored: Vec<Stored> = buckets.iter().map(|_| Stored::default()).collect();
        for i in 0..3000_usize {
            let bytes = vec![i as u8; i % 1000 * (i % 3)];
            buckets[i % 3].extend_from_slice(&bytes);
            stored[i % 3].rest.extend_from_slice(&bytes);
            writer.append_full(&mut stored[i % 3]).unwrap();
            assert!(stored[i % 3].rest.len() < BLOCK_BYTES);
        }
        assert!(stored[1].blocks.len() > 1 && stored[2].blocks.len() > 1);
        let mut reader = writer.read(stored).unwrap();
        for bucket in buckets {
            let records = reader.next().unwrap();
            assert!(records == bucket);
            reader.reuse(records);
        }
        assert!(reader.next().is_err());
    }

    #[test]
    fn blocks_that_cannot_be_written_are_an_error_of_the_caller() {
        let read_only = || File::open("/dev/null").unwrap();
        let mut writer = BlockWriter::start(bucket_file(read_only())).unwrap();
        let error = loop {
            let mut bucket = Stored {
                rest: vec![0; BLOCK_BYTES],
                ..Stored::default()
            };
            if let Err(error) = writer.append_full(&mut bucket) {
                break error;
            }
        };
        let expected = (read_only().write_at(&[0], 0)).unwrap_err().kind();
        assert_eq!(kind(error), expected);

        let mut writer = BlockWriter::start(bucket_file(read_only())).unwrap();
        let mut bucket = Stored {
            rest: vec![0; BLOCK_BYTES],
            ..Stored::default()
        };
        // The error may arrive later, if the thread has not reached the block yet.
        let error = match writer.append_full(&mut bucket) {
            Ok(()) => writer.read(vec![bucket]).err().unwrap(),
            Err(error) => error,
        };
        assert_eq!(kind(error), expected);
    }

    #[test]
    fn blocks_that_cannot_be_read_are_an_error_of_the_caller() {
        let file = tempfile::tempfile().unwrap();
        let writer = BlockWriter::start(bucket_file(file)).unwrap();
        let absent = Stored {
            blocks: vec![0],
            rest: Vec::new(),
        };
        let mut reader = writer.read(vec![Stored::default(), absent]).unwrap();
        assert!(reader.next().unwrap().is_empty());
        let error = reader.next().unwrap_err();
        assert_eq!(kind(error), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_panic_of_the_thread_continues_in_the_caller() {
        let mut thread = Thread::<()>::start(|| panic!("of the thread")).unwrap();
        let caller = std::panic::AssertUnwindSafe(|| thread.failure());
        let panic = std::panic::catch_unwind(caller).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"of the thread"));
    }

    #[test]
    fn dropping_waits_for_the_thread() {
        let (ended, is_ended) = mpsc::channel();
        let thread = Thread::start(move || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            ended.send(()).unwrap();
            Ok(())
        });
        drop(thread.unwrap());
        assert_eq!(is_ended.try_recv(), Ok(()));
    }
}
