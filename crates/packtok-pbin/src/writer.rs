//! Writes a pbin, document by document, in bounded memory.
//!
//! Responsible for the order of the file's parts and the consistency of the finished file.
//! `header`, `pickle_write` and `trailer_write` encode the parts.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::checkpoint::{Checkpoint, NUMBERS_PER_ORIGIN, Unfinished, Valid, matching};
use crate::crash;
use crate::data_checksums::DataChecksums;
use crate::error::{Error, Result};
use crate::file_system;
use crate::header::{HEADER_BYTES, Header, TokenWidth};
use crate::loss_mask::MaskSpool;
use crate::metadata::{Metadata, Source};
use crate::origins::{Origin, write_section};
use crate::pickle_write::PairsWriter;
use crate::publish::{Replace, TempFile, folder_of};
use crate::spool::Spool;
use crate::trailer::{
    DATA_CHECKSUMS, LOSS_MASK, MAX_METADATA_BYTES, METADATA, OFFSETS, ORIGINS, REQUIRED, SOURCES,
};
use crate::trailer_write::TrailerWriter;
use crate::verify::{ProgressFn, check_count, check_counts};

/// Smaller than the data that packing appends at a time, so that such data is written without a
/// copy.
const BUFFER_BYTES: usize = 64 * 1024;

/// File names of the unfinished parts in their folder.
const DATA_NAME: &str = "data";
const LENGTHS_NAME: &str = "lengths";
const ORIGINS_NAME: &str = "origins";

/// A pbin in the process of being written to a temporary file.
#[derive(Debug)]
pub struct Writer {
    out: BufWriter<TempFile>,
    path: PathBuf,
    width: TokenWidth,
    data_bytes: u64,
    lengths: Spool,
    /// Source and offset of each document, if they are recorded.
    origins: Option<Spool>,
    /// Whether each token counts in the loss, if that is recorded.
    loss_mask: Option<MaskSpool>,
    checksums: DataChecksums,
}

impl Writer {
    /// Starts a pbin that can be published as `dst`, with the origin of each document if
    /// `has_origins`.
    ///
    /// # Errors
    /// [`Error::NoFileName`], [`Error::Io`].
    pub fn create(dst: &Path, width: TokenWidth, has_origins: bool) -> Result<Self> {
        let folder = folder_of(dst);
        let file = TempFile::create(dst)?;
        let spool = || tempfile::tempfile_in(folder).map_err(Error::io(folder));
        let origins = has_origins.then(spool).transpose()?;
        Self::start(file, (spool()?, origins), width, Valid::default())
    }

    /// Also records whether each token counts in the loss, which is added with
    /// [`Writer::push_loss_mask`]. Not for a pbin that is resumed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn with_loss_mask(mut self) -> Result<Self> {
        let folder = folder_of(&self.path);
        let file = tempfile::tempfile_in(folder).map_err(Error::io(folder))?;
        self.loss_mask = Some(MaskSpool::new(file));
        Ok(self)
    }

    /// Starts a pbin whose unfinished parts are in `folder`, or resumes after the last of
    /// `checkpoints` that matches the existing parts; also returns the number of matching
    /// checkpoints.
    ///
    /// Existing parts are read once; `progress` receives the bytes read. The caller guarantees that
    /// no other writer uses the folder.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Cancelled`] if `progress` breaks.
    pub fn keep(
        dst: &Path,
        (width, has_origins): (TokenWidth, bool),
        folder: &Path,
        checkpoints: &[Checkpoint],
        progress: ProgressFn<'_>,
    ) -> Result<(Self, usize)> {
        let file = TempFile::keep(&folder.join(DATA_NAME), dst)?;
        let spool = |name| {
            let path = folder.join(name);
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            options.open(&path).map_err(Error::io(&path))
        };
        let lengths = spool(LENGTHS_NAME)?;
        let origins = has_origins.then(|| spool(ORIGINS_NAME)).transpose()?;
        let files = Unfinished {
            data: file.as_file(),
            lengths: &lengths,
            origins: origins.as_ref(),
        };
        let (num_agreed, valid) = matching(&files, checkpoints, progress, dst)?;
        let writer = Self::start(file, (lengths, origins), width, valid)?;
        Ok((writer, num_agreed))
    }

    /// Whether `folder` contains the data of an unfinished pbin, which is not `dst` itself under a
    /// second name.
    pub fn is_kept(folder: &Path, dst: &Path) -> bool {
        File::open(folder.join(DATA_NAME))
            .is_ok_and(|data| !file_system::is_named(&data, dst).unwrap_or(false))
    }

    /// Resumes after the valid part of the files; `lengths` and `origins` are spools.
    fn start(
        mut file: TempFile,
        (lengths, origins): (File, Option<File>),
        width: TokenWidth,
        valid: Valid,
    ) -> Result<Self> {
        let path = file.dst().to_owned();
        let data_bytes = valid.checksums.num_bytes();
        let start = || {
            file.as_file().set_len(HEADER_BYTES + data_bytes)?;
            // Until the length of the data is known, the header specifies 0 bytes of data, as in
            // Modalities.
            let placeholder = Header {
                data_bytes: 0,
                width,
            };
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&placeholder.encode())?;
            file.seek(SeekFrom::End(0))?;
            let lengths = Spool::resume(lengths, valid.lengths)?;
            let origins = origins.map(|file| Spool::resume(file, valid.origins));
            Ok((lengths, origins.transpose()?))
        };
        let (lengths, origins) = start().map_err(Error::io(&path))?;
        Ok(Self {
            out: BufWriter::with_capacity(BUFFER_BYTES, file),
            path,
            width,
            data_bytes,
            lengths,
            origins,
            loss_mask: None,
            checksums: valid.checksums,
        })
    }

    /// Flushes everything appended so far to the system and returns a checkpoint.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn checkpoint(&mut self) -> Result<Checkpoint> {
        self.out.flush().map_err(Error::io(&self.path))?;
        self.lengths.flush().map_err(Error::io(&self.path))?;
        if let Some(origins) = &mut self.origins {
            origins.flush().map_err(Error::io(&self.path))?;
        }
        Ok(Checkpoint {
            documents: self.num_documents(),
            data_bytes: self.data_bytes,
            data_crc32c: self.checksums.total(),
            lengths_crc32c: self.lengths.spooled.crc32c,
            origins_crc32c: self.origins.as_ref().map(|origins| origins.spooled.crc32c),
        })
    }

    /// Appends complete documents: their concatenated tokens, and the length of each in bytes.
    ///
    /// # Errors
    /// [`Error::AppendedBytes`] if the lengths do not add up, [`Error::AppendedTokens`] if a
    /// document ends inside a token (nothing is written in either case), [`Error::Io`].
    pub fn append(&mut self, data: &[u8], document_bytes: &[u64]) -> Result<()> {
        let mut total_bytes: u64 = 0;
        for (&bytes, document) in document_bytes.iter().zip(self.num_documents()..) {
            self.check_document(document, bytes)?;
            total_bytes = total_bytes.saturating_add(bytes);
        }
        let expected = data.len() as u64;
        if total_bytes != expected {
            return Err(Error::AppendedBytes {
                path: self.path.clone(),
                found: total_bytes,
                expected,
            });
        }
        self.write_data(data)?;
        document_bytes
            .iter()
            .try_for_each(|&bytes| self.push_document(bytes))
    }

    /// The path that the file can be published as.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of one token.
    pub fn width(&self) -> TokenWidth {
        self.width
    }

    /// Documents appended so far.
    pub fn num_documents(&self) -> u64 {
        self.lengths.spooled.num_numbers
    }

    /// Whether the origin of each document is recorded.
    pub fn has_origins(&self) -> bool {
        self.origins.is_some()
    }

    /// Records the origins of the next documents, before or after their data. Without origins in
    /// the file, does nothing.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn push_origins(&mut self, origins: impl IntoIterator<Item = Origin>) -> Result<()> {
        let Some(spool) = &mut self.origins else {
            return Ok(());
        };
        let mut push = |origin: Origin| {
            spool.push(origin.source)?;
            spool.push(origin.offset)
        };
        (origins.into_iter().try_for_each(&mut push)).map_err(Error::io(&self.path))
    }

    /// Records whether each of the next tokens counts in the loss where it is a label, before or after
    /// their data. Does nothing if that is not recorded in the file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn push_loss_mask(&mut self, tokens: impl IntoIterator<Item = bool>) -> Result<()> {
        let Some(spool) = &mut self.loss_mask else {
            return Ok(());
        };
        let pushed = tokens.into_iter().try_for_each(|bit| spool.push(bit));
        pushed.map_err(Error::io(&self.path))
    }

    /// Whether the loss mask is recorded.
    pub fn has_loss_mask(&self) -> bool {
        self.loss_mask.is_some()
    }

    /// Bytes of the data segment so far.
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Writes index, trailer and header, and waits until everything is on disk.
    ///
    /// # Errors
    /// [`Error::Count`] if the metadata's counts do not match the file,
    /// [`Error::MetadataTooLarge`], [`Error::Io`].
    pub fn finish(mut self, metadata: &Metadata, sources: &[Source]) -> Result<Finished> {
        let path = self.path.clone();
        let num_tokens = self.data_bytes / self.width.bytes();
        check_counts(metadata, self.num_documents(), num_tokens, &path)?;
        if let Some(origins) = &self.origins {
            let num_origins = origins.spooled.num_numbers / NUMBERS_PER_ORIGIN;
            check_count(
                "number of origins",
                num_origins,
                self.num_documents(),
                &path,
            )?;
        }
        if let Some(mask) = &self.loss_mask {
            check_count(
                "number of tokens in the loss mask",
                mask.num_tokens,
                num_tokens,
                &path,
            )?;
        }
        let json = serde_json::to_vec(metadata).map_err(|error| Error::io(&path)(error.into()))?;
        if json.len() as u64 > MAX_METADATA_BYTES {
            return Err(Error::MetadataTooLarge {
                path,
                bytes: json.len() as u64,
            });
        }
        self.write_index()?;
        crash::point("index written");
        let header = Header {
            data_bytes: self.data_bytes,
            width: self.width,
        };
        let summary = Summary {
            documents: self.num_documents(),
            tokens: num_tokens,
            file_bytes: 0,
            data_crc32c: self.checksums.total(),
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

    /// Writes data of documents whose lengths are added with [`Writer::push_document`], before or
    /// after this call.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write_data(&mut self, data: &[u8]) -> Result<()> {
        self.out.write_all(data).map_err(Error::io(&self.path))?;
        self.checksums.update(data);
        self.data_bytes += data.len() as u64;
        Ok(())
    }

    /// As [`TempFile::start_writeback`], for a range of the data segment.
    pub fn start_writeback(&self, data: Range<u64>) {
        let start = HEADER_BYTES + data.start;
        (self.out.get_ref()).start_writeback(start..HEADER_BYTES + data.end);
    }

    /// As [`Writer::write_data`], for data that is also in `file` from byte `offset` on. The
    /// system copies the data, so that a network file system need not transfer it to this machine
    /// and back.
    pub(crate) fn copy_data(&mut self, data: &[u8], file: &File, offset: u64) -> Result<()> {
        self.out.flush().map_err(Error::io(&self.path))?;
        let copied =
            file_system::copy_range(file, offset, self.out.get_ref().as_file(), data.len());
        let copied = copied.map_err(Error::io(&self.path))?;
        self.out
            .write_all(&data[copied..])
            .map_err(Error::io(&self.path))?;
        self.checksums.update(data);
        self.data_bytes += data.len() as u64;
        Ok(())
    }

    /// Records a document of `bytes` bytes, whose data is written separately with
    /// [`Writer::write_data`]. The caller guarantees that the lengths add up to the data.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn push_document(&mut self, bytes: u64) -> Result<()> {
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
        if let Some(origins) = &mut self.origins {
            trailer.section(ORIGINS, 0, |out| {
                write_section(out, |each| {
                    let mut source = None;
                    origins.for_each(|number| match source.take() {
                        None => {
                            source = Some(number);
                            Ok(())
                        }
                        Some(source) => each(Origin {
                            source,
                            offset: number,
                        }),
                    })
                })
            })?;
        }
        if let Some(mask) = self.loss_mask.take() {
            trailer.section(LOSS_MASK, 0, |out| mask.write_section(out))?;
        }
        trailer.finish(header)
    }
}

/// A complete pbin on disk under its temporary name.
#[derive(Debug)]
pub struct Finished {
    file: TempFile,
    summary: Summary,
}

impl Finished {
    /// Renames the file to its destination.
    ///
    /// # Errors
    /// As [`TempFile::publish`].
    pub fn publish(self, replace: Replace) -> Result<Summary> {
        self.file.publish(replace)?;
        Ok(self.summary)
    }

    /// The temporary name.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Counts and checksum of the file.
    pub fn summary(&self) -> Summary {
        self.summary
    }
}

/// Counts and checksum of a written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Documents in the file.
    pub documents: u64,
    /// Tokens in the file.
    pub tokens: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// CRC32C of the data segment.
    pub data_crc32c: u32,
}
