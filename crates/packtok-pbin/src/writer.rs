//! Writing a pbin, documents in order, in bounded memory.
//!
//! Responsible for the order of the file's parts and for that what is finished is consistent; the parts'
//! bytes come from `header`, `pickle_write` and `trailer_write`.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::header::{Header, TokenWidth};
use crate::metadata::{Metadata, Source};
use crate::pickle_write::PairsWriter;
use crate::publish::{Replace, TempFile, folder_of};
use crate::trailer::{
    CHECKED_DATA_BYTES, DATA_CHECKSUMS, MAX_METADATA_BYTES, METADATA, OFFSETS, REQUIRED, SOURCES,
};
use crate::trailer_write::TrailerWriter;
use crate::verify::check_counts;

/// Less than what packing appends at a time, so that such data goes to the file without a copy.
const BUFFER_BYTES: usize = 64 * 1024;

/// A pbin that is being written to a temporary file.
#[derive(Debug)]
pub struct Writer {
    out: BufWriter<TempFile>,
    path: PathBuf,
    width: TokenWidth,
    data_bytes: u64,
    lengths: Lengths,
    checksums: DataChecksums,
}

impl Writer {
    /// Starts a pbin that can be published as `dst`.
    ///
    /// # Errors
    /// [`Error::NoFileName`], [`Error::Io`].
    pub fn create(dst: &Path, width: TokenWidth) -> Result<Self> {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, TempFile::create(dst)?);
        // Until the data's length is known the header announces none, as Modalities does.
        out.write_all(
            &Header {
                data_bytes: 0,
                width,
            }
            .encode(),
        )
        .map_err(Error::io(dst))?;
        let lengths = Lengths::create(dst)?;
        let checksums = DataChecksums::default();
        Ok(Self {
            out,
            path: dst.into(),
            width,
            data_bytes: 0,
            lengths,
            checksums,
        })
    }

    /// Appends whole documents: their tokens back to back, and the bytes of each.
    ///
    /// # Errors
    /// [`Error::AppendedBytes`] if the lengths do not add up, [`Error::AppendedTokens`] if a document is
    /// no whole number of tokens (nothing is written then), [`Error::Io`].
    pub fn append(&mut self, data: &[u8], document_bytes: &[u64]) -> Result<()> {
        let mut found: u64 = 0;
        for (&bytes, document) in document_bytes.iter().zip(self.num_documents()..) {
            self.check_document(document, bytes)?;
            found = found.saturating_add(bytes);
        }
        let expected = data.len() as u64;
        if found != expected {
            return Err(Error::AppendedBytes {
                path: self.path.clone(),
                found,
                expected,
            });
        }
        self.write_data(data)?;
        document_bytes
            .iter()
            .try_for_each(|&bytes| self.push_document(bytes))
    }

    /// Bytes of one token.
    pub fn width(&self) -> TokenWidth {
        self.width
    }

    /// Documents appended so far.
    pub fn num_documents(&self) -> u64 {
        self.lengths.num_documents
    }

    /// Bytes of the data segment so far.
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Writes index, trailer and header and waits until all is on the disk.
    ///
    /// # Errors
    /// [`Error::Count`] if the metadata's counts are not those of the file, [`Error::MetadataTooLarge`],
    /// [`Error::Io`].
    pub fn finish(mut self, metadata: &Metadata, sources: &[Source]) -> Result<Finished> {
        let path = self.path.clone();
        let num_tokens = self.data_bytes / self.width.bytes();
        check_counts(metadata, self.num_documents(), num_tokens, &path)?;
        let json = serde_json::to_vec(metadata).map_err(|error| Error::io(&path)(error.into()))?;
        if json.len() as u64 > MAX_METADATA_BYTES {
            return Err(Error::MetadataTooLarge {
                path,
                bytes: json.len() as u64,
            });
        }
        self.write_index()?;
        let header = Header {
            data_bytes: self.data_bytes,
            width: self.width,
        };
        let summary = Summary {
            documents: self.num_documents(),
            tokens: num_tokens,
            file_bytes: 0,
            data_crc32c: self.checksums.whole(),
        };
        let (out, file_bytes) = self
            .write_trailer(header, &json, sources)
            .map_err(Error::io(&path))?;
        let mut file = out
            .into_inner()
            .map_err(|failed| Error::io(&path)(failed.into_error()))?;
        file.write_all_at(&header.encode(), 0)?;
        file.sync()?;
        Ok(Finished {
            file,
            summary: Summary {
                file_bytes,
                ..summary
            },
        })
    }

    /// Writes data that belongs to documents pushed before or after.
    pub(crate) fn write_data(&mut self, data: &[u8]) -> Result<()> {
        self.out.write_all(data).map_err(Error::io(&self.path))?;
        self.checksums.update(data);
        self.data_bytes += data.len() as u64;
        Ok(())
    }

    /// Writes data that stands in `file` from byte `offset` on, as [`Writer::write_data`] does; the system is
    /// asked to copy it, which spares file systems on other machines the way to here and back.
    pub(crate) fn copy_data(&mut self, data: &[u8], file: &File, offset: u64) -> Result<()> {
        self.out.flush().map_err(Error::io(&self.path))?;
        let copied = copy_range(file, offset, self.out.get_ref().as_file(), data.len());
        let copied = copied.map_err(Error::io(&self.path))?;
        self.out
            .write_all(&data[copied..])
            .map_err(Error::io(&self.path))?;
        self.checksums.update(data);
        self.data_bytes += data.len() as u64;
        Ok(())
    }

    /// Notes a document of `bytes` bytes, whose data is written apart.
    pub(crate) fn push_document(&mut self, bytes: u64) -> Result<()> {
        self.lengths.push(bytes).map_err(Error::io(&self.path))
    }

    fn check_document(&self, document: u64, bytes: u64) -> Result<()> {
        if self.width.divides(bytes) {
            return Ok(());
        }
        Err(Error::AppendedTokens {
            path: self.path.clone(),
            document,
            bytes,
            width: self.width.bytes(),
        })
    }

    fn write_index(&mut self) -> Result<()> {
        let Self {
            out, lengths, path, ..
        } = self;
        let mut write = || {
            let mut pairs = PairsWriter::new(&mut *out)?;
            let mut start = 0;
            lengths.for_each(|bytes| {
                pairs.push(start, bytes)?;
                start += bytes;
                Ok(())
            })?;
            pairs.finish().map(drop)
        };
        write().map_err(Error::io(path))
    }

    fn write_trailer(
        mut self,
        header: Header,
        metadata: &[u8],
        sources: &[Source],
    ) -> std::io::Result<(BufWriter<TempFile>, u64)> {
        let index_end = self.out.stream_position()?;
        let mut trailer = TrailerWriter::start(self.out, index_end)?;
        trailer.section(OFFSETS, REQUIRED, |out| {
            let mut stop: u64 = 0;
            out.write_all(&stop.to_le_bytes())?;
            self.lengths.for_each(|bytes| {
                stop += bytes;
                out.write_all(&stop.to_le_bytes())
            })
        })?;
        trailer.section(DATA_CHECKSUMS, 0, |out| {
            self.checksums
                .pieces()
                .try_for_each(|crc32c| out.write_all(&crc32c.to_le_bytes()))
        })?;
        trailer.section(METADATA, 0, |out| out.write_all(metadata))?;
        trailer.section(SOURCES, 0, |out| {
            sources.iter().try_for_each(|source| {
                serde_json::to_writer(&mut *out, source)?;
                out.write_all(b"\n")
            })
        })?;
        trailer.finish(header)
    }
}

/// Has the system copy up to `len` bytes of `source`, from byte `offset` on, to where `out` stands; returns how
/// many were copied, which is fewer, or none, where it cannot.
fn copy_range(source: &File, mut offset: u64, out: &File, len: usize) -> std::io::Result<usize> {
    let mut copied = 0;
    while copied < len {
        match rustix::fs::copy_file_range(source, Some(&mut offset), out, None, len - copied) {
            Ok(0) => break,
            Ok(n) => copied += n,
            Err(Errno::INTR) => {}
            // Other file systems or kernels than can do it; what is wrong with the disk, writing will say.
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {
                break;
            }
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(copied)
}

/// A whole pbin on the disk that has not got its name yet.
#[derive(Debug)]
pub struct Finished {
    file: TempFile,
    summary: Summary,
}

impl Finished {
    /// Gives the file its name.
    ///
    /// # Errors
    /// As [`TempFile::publish`].
    pub fn publish(self, replace: Replace) -> Result<Summary> {
        self.file.publish(replace)?;
        Ok(self.summary)
    }

    /// What the file holds.
    pub fn summary(&self) -> Summary {
        self.summary
    }
}

/// What a written file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Documents in the file.
    pub documents: u64,
    /// Tokens in the file.
    pub tokens: u64,
    /// Bytes of the whole file.
    pub file_bytes: u64,
    /// CRC32C of the data segment.
    pub data_crc32c: u32,
}

/// The lengths of the documents so far, spooled to a file without a name.
#[derive(Debug)]
struct Lengths {
    spool: BufWriter<File>,
    num_documents: u64,
}

impl Lengths {
    fn create(dst: &Path) -> Result<Self> {
        let folder = folder_of(dst);
        let spool = tempfile::tempfile_in(folder).map_err(Error::io(folder))?;
        Ok(Self {
            spool: BufWriter::with_capacity(BUFFER_BYTES, spool),
            num_documents: 0,
        })
    }

    fn push(&mut self, bytes: u64) -> std::io::Result<()> {
        self.num_documents += 1;
        self.spool.write_all(&bytes.to_le_bytes())
    }

    fn for_each(
        &mut self,
        mut length: impl FnMut(u64) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        self.spool.seek(SeekFrom::Start(0))?;
        let mut spooled = BufReader::with_capacity(BUFFER_BYTES, self.spool.get_ref());
        let mut bytes = [0; 8];
        for _ in 0..self.num_documents {
            spooled.read_exact(&mut bytes)?;
            length(u64::from_le_bytes(bytes))?;
        }
        Ok(())
    }
}

/// CRC32C of every piece of the data so far: four bytes of memory for each MiB.
#[derive(Debug, Default)]
struct DataChecksums {
    whole_pieces: Vec<u32>,
    last: u32,
    last_bytes: u64,
}

impl DataChecksums {
    fn update(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let room = (CHECKED_DATA_BYTES - self.last_bytes).min(data.len() as u64);
            let (piece, rest) = data.split_at(room as usize);
            self.last = crc32c::crc32c_append(self.last, piece);
            self.last_bytes += room;
            if self.last_bytes == CHECKED_DATA_BYTES {
                self.whole_pieces.push(std::mem::take(&mut self.last));
                self.last_bytes = 0;
            }
            data = rest;
        }
    }

    fn pieces(&self) -> impl Iterator<Item = u32> {
        let last = (self.last_bytes > 0).then_some(self.last);
        self.whole_pieces.iter().copied().chain(last)
    }

    fn whole(&self) -> u32 {
        let whole = self.whole_pieces.iter();
        let whole = whole.fold(0, |crc, &piece| {
            crc32c::crc32c_combine(crc, piece, CHECKED_DATA_BYTES as usize)
        });
        crc32c::crc32c_combine(whole, self.last, self.last_bytes as usize)
    }
}
