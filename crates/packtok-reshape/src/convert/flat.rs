//! Writes datasets whose documents are in a file of their own: Megatron's and datatrove's.
//!
//! The tokens keep their order, so their file is one copy of bytes, made by the kernel where the
//! width stays the same, or a link.

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use packtok_formats::datatrove::{self, DatatroveMetadata};
use packtok_formats::megatron::{self, LEAST_INT32_VOCAB};
use packtok_formats::{FlatFormat, TokenFile};
use packtok_jobs::{Monitor, Progress};
use packtok_pbin::{HEADER_BYTES, Replace, TempFile, TokenWidth};

use super::formats::Meaning;
use super::paths::{OutputPaths, appended, without};
use crate::error::{Error, Result};

/// Tokens that are copied between two reports of progress.
pub(super) const STEP_TOKENS: u64 = 16 << 20;
/// Bytes of an index that are written at a time.
const INDEX_BUFFER_BYTES: usize = 1 << 20;

/// What a conversion tells its caller, besides the files.
#[derive(Debug)]
pub(super) struct FlatWritten {
    /// NumPy's name of the type of the ids.
    pub(super) dtype: &'static str,
    /// Sentences for the user.
    pub(super) notes: Vec<String>,
}

/// A conversion to one of these formats.
pub(super) struct FlatConversion<'a> {
    pub(super) format: FlatFormat,
    pub(super) file: &'a TokenFile,
    pub(super) meaning: &'a Meaning,
    pub(super) paths: &'a OutputPaths,
    /// Whether the file of the tokens is a link to the input, a pbin.
    pub(super) link: bool,
    pub(super) replace: Replace,
}

impl FlatConversion<'_> {
    /// Writes all files. The tokens are published last and make the dataset complete.
    pub(super) fn write(&self, monitor: &mut Monitor<'_>) -> Result<FlatWritten> {
        let mut notes = Vec::new();
        if self.link && self.is_read_as_int32_by_some() {
            notes.push(format!(
                "{}: the tokenizer has {LEAST_INT32_VOCAB} ids or more, so that readers of Megatron that derive the type from the vocabulary expect int32, but the linked ids are uint16",
                self.paths.data.display()
            ));
        }
        let data = if self.link {
            self.check_ids(monitor)?;
            None
        } else {
            Some(self.copied_tokens(monitor)?)
        };
        let first_byte = if self.link { HEADER_BYTES } else { 0 };
        let others = self.described(first_byte)?;
        if self.replace == Replace::Existing {
            // An index must never describe the tokens of another run.
            remove_if_there(&self.paths.data)?;
        }
        for file in others {
            file.publish(Replace::Existing)?;
        }
        match data {
            Some(data) => data.publish(self.replace)?,
            None => notes.extend(self.publish_link()?),
        }
        Ok(FlatWritten {
            dtype: self.dtype(),
            notes,
        })
    }

    /// Bytes of a token of the output.
    fn width(&self) -> TokenWidth {
        let width = self.file.width();
        let vocab_size = self
            .meaning
            .tokenizer
            .as_ref()
            .map(|tokenizer| tokenizer.vocab_size);
        match (self.format, vocab_size) {
            (FlatFormat::Megatron, _) if self.link => width,
            (FlatFormat::Megatron, Some(vocab_size)) => megatron::width_for_vocab(vocab_size),
            (FlatFormat::Megatron, None) => width,
            (FlatFormat::Datatrove, vocab_size) => {
                datatrove::width_for_vocab(vocab_size.unwrap_or(u64::from(greatest_id(width)) + 1))
            }
        }
    }

    /// The greatest id that the output can hold.
    fn max_id(&self) -> u32 {
        match self.format {
            FlatFormat::Megatron => megatron::max_id(self.width()),
            FlatFormat::Datatrove => greatest_id(self.width()),
        }
    }

    /// NumPy's name of the type of the ids in the output.
    fn dtype(&self) -> &'static str {
        dtype(self.format, self.width())
    }

    fn is_read_as_int32_by_some(&self) -> bool {
        let tokenizer = self.meaning.tokenizer.as_ref();
        self.file.width() != TokenWidth::U32
            && tokenizer.is_some_and(|tokenizer| tokenizer.vocab_size >= LEAST_INT32_VOCAB)
    }

    /// Whether every id fits, without reading any.
    fn all_ids_fit(&self) -> bool {
        self.max_id() >= greatest_id(self.file.width())
    }

    /// Checks that all ids fit in a type of the same width.
    fn check_ids(&self, monitor: &mut Monitor<'_>) -> Result<()> {
        if self.all_ids_fit() {
            return Ok(());
        }
        self.for_each_step(monitor, |first, bytes| self.check_step(first, bytes))
    }

    fn check_step(&self, first: u64, bytes: &[u8]) -> Result<()> {
        let max_id = self.max_id();
        let is_too_large = |id: u32| id > max_id;
        let position = match self.file.width() {
            TokenWidth::U8 => bytes.iter().position(|&id| is_too_large(id.into())),
            TokenWidth::U16 => {
                let mut ids = bytes.as_chunks().0.iter();
                ids.position(|&id| is_too_large(u16::from_le_bytes(id).into()))
            }
            TokenWidth::U32 => {
                let mut ids = bytes.as_chunks().0.iter();
                ids.position(|&id| is_too_large(u32::from_le_bytes(id)))
            }
        };
        let Some(position) = position else {
            return Ok(());
        };
        let token = first + position as u64;
        let (document, tokens) = match self.file.documents_from(token)?.next() {
            Some(document) => document?,
            None => (0, 0..0),
        };
        let width = self.file.width().bytes() as usize;
        let id = bytes[position * width..][..width].iter().rev();
        Err(Error::IdBeyondType {
            path: self.file.path().into(),
            token: token.saturating_sub(tokens.start),
            document,
            id: id.fold(0, |id, &byte| id << 8 | u32::from(byte)),
            dtype: self.dtype(),
        })
    }

    /// The tokens under a temporary name.
    fn copied_tokens(&self, monitor: &mut Monitor<'_>) -> Result<TempFile> {
        let mut out = TempFile::create(&self.paths.data)?;
        let (from, to) = (self.file.width(), self.width());
        let is_same_width = from == to && self.all_ids_fit();
        if let Some(start) = self.file.data_position().filter(|_| is_same_width) {
            let path = self.file.path();
            let source = File::open(path).map_err(Error::io(path))?;
            let mut copied = 0;
            return self
                .for_each_step_of(monitor, |first, stop| {
                    let bytes = start + first * to.bytes()..start + stop * to.bytes();
                    let num_bytes = bytes.end - bytes.start;
                    out.append_from(&source, bytes)?;
                    out.start_writeback(copied..copied + num_bytes);
                    copied += num_bytes;
                    Ok(())
                })
                .map(|()| out);
        }
        let mut converted = Vec::new();
        self.for_each_step(monitor, |first, bytes| {
            if !self.all_ids_fit() {
                self.check_step(first, bytes)?;
            }
            converted.clear();
            convert_width(bytes, from, to, &mut converted);
            let written = out.write_all(&converted);
            written.map_err(Error::io(&self.paths.data))
        })?;
        Ok(out)
    }

    /// The files beside the tokens under temporary names, in the order of publishing.
    fn described(&self, first_byte: u64) -> Result<Vec<TempFile>> {
        let lengths = || {
            (0..self.file.num_documents()).map(|i| {
                let tokens = self.file.document_tokens(i)?;
                Ok(tokens.end - tokens.start)
            })
        };
        let mut files = Vec::new();
        for path in &self.paths.others {
            let out = TempFile::create(path)?;
            let mut out = BufWriter::with_capacity(INDEX_BUFFER_BYTES, out);
            let is_metadata = path.extension().is_some_and(|ending| ending == "metadata");
            match self.format {
                FlatFormat::Megatron => {
                    megatron::write_index(&mut out, path, self.width(), first_byte, lengths)?;
                }
                FlatFormat::Datatrove if is_metadata => {
                    let tokenizer = self.meaning.tokenizer.as_ref();
                    let metadata = DatatroveMetadata {
                        tokenizer: tokenizer
                            .map_or("Unknown Tokenizer", |tokenizer| &tokenizer.name)
                            .to_owned(),
                        width: self.width(),
                        num_tokens: self.file.num_tokens(),
                    };
                    let written = out.write_all(metadata.to_text().as_bytes());
                    written.map_err(Error::io(path))?;
                }
                FlatFormat::Datatrove => datatrove::write_index(&mut out, path, lengths())?,
            }
            let out = out.into_inner();
            files.push(out.map_err(|error| Error::io(path)(error.into_error()))?);
        }
        Ok(files)
    }

    /// Links the pbin under the name of the tokens; returns a note if the link is symbolic.
    fn publish_link(&self) -> Result<Option<String>> {
        let (pbin, data) = (self.file.path(), self.paths.data.as_path());
        if let Some(folder) = data.parent() {
            fs::create_dir_all(folder).map_err(Error::io(folder))?;
        }
        match fs::hard_link(pbin, data) {
            Ok(()) => Ok(None),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(packtok_pbin::Error::Exists { path: data.into() }.into())
            }
            Err(error) if can_be_symbolic(&error) => {
                let target = pbin.canonicalize().map_err(Error::io(pbin))?;
                symlink(&target, data).map_err(Error::io(data))?;
                Ok(Some(format!(
                    "{}: a symbolic link, since a hard link is not possible here; the dataset is lost if {} is moved",
                    data.display(),
                    target.display()
                )))
            }
            Err(error) => Err(Error::io(data)(error)),
        }
    }

    /// Calls `each` with the first token and the bytes of steps of tokens.
    fn for_each_step(
        &self,
        monitor: &mut Monitor<'_>,
        mut each: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.for_each_step_of(monitor, |first, stop| {
            each(first, self.file.tokens(first..stop)?)?;
            self.file.release_pages();
            Ok(())
        })
    }

    /// Calls `each` with the first token of a step and the first after it.
    fn for_each_step_of(
        &self,
        monitor: &mut Monitor<'_>,
        mut each: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let (num_tokens, width) = (self.file.num_tokens(), self.file.width().bytes());
        let mut first = 0;
        while first < num_tokens {
            let stop = (first + STEP_TOKENS).min(num_tokens);
            each(first, stop)?;
            first = stop;
            let progress = Progress {
                bytes_read: first * width,
                total_bytes: num_tokens * width,
                tokens: first,
                ..Progress::default()
            };
            if monitor(&progress).is_break() {
                return Err(packtok_jobs::Error::Cancelled.into());
            }
        }
        Ok(())
    }
}

/// NumPy's name of the type of ids of this width.
pub(super) fn dtype(format: FlatFormat, width: TokenWidth) -> &'static str {
    match (width, format) {
        (TokenWidth::U8, _) => "uint8",
        (TokenWidth::U16, _) => "uint16",
        (TokenWidth::U32, FlatFormat::Megatron) => "int32",
        (TokenWidth::U32, FlatFormat::Datatrove) => "uint32",
    }
}

/// The path of the marker of a linked dataset, by its tokens, its index or their common name.
pub(super) fn linked_marker_path(path: &Path) -> PathBuf {
    let prefix = without(path, &["bin", "idx"]);
    appended(&prefix, ".linked.json")
}

fn can_be_symbolic(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::CrossesDevices
            | ErrorKind::PermissionDenied
            | ErrorKind::Unsupported
            | ErrorKind::TooManyLinks
    )
}

fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(path)(error)),
        _ => Ok(()),
    }
}

/// Appends ids in another width. Every id must fit.
pub(super) fn convert_width(bytes: &[u8], from: TokenWidth, to: TokenWidth, out: &mut Vec<u8>) {
    let ids: &mut dyn Iterator<Item = u32> = match from {
        TokenWidth::U8 => &mut bytes.iter().map(|&id| id.into()),
        TokenWidth::U16 => &mut bytes
            .as_chunks()
            .0
            .iter()
            .map(|&id| u16::from_le_bytes(id).into()),
        TokenWidth::U32 => &mut bytes.as_chunks().0.iter().map(|&id| u32::from_le_bytes(id)),
    };
    match to {
        _ if from == to => out.extend_from_slice(bytes),
        TokenWidth::U8 => out.extend(ids.map(|id| id as u8)),
        TokenWidth::U16 => ids.for_each(|id| out.extend((id as u16).to_le_bytes())),
        TokenWidth::U32 => ids.for_each(|id| out.extend(id.to_le_bytes())),
    }
}

/// The greatest id of tokens of this width.
pub(super) fn greatest_id(width: TokenWidth) -> u32 {
    match width {
        TokenWidth::U8 => u8::MAX.into(),
        TokenWidth::U16 => u16::MAX.into(),
        TokenWidth::U32 => u32::MAX,
    }
}
