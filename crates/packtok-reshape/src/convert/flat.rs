//! Writes datasets whose documents are in a file of their own: Megatron's and datatrove's.
//!
//! The tokens keep their order, so their file is one copy of bytes, made by the kernel where the
//! width stays the same, or a link.

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write};
use std::ops::Range;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use packtok_formats::datatrove::{self, DatatroveMetadata};
use packtok_formats::megatron::{self, LEAST_INT32_VOCAB};
use packtok_formats::{FlatFormat, TokenFile};
use packtok_jobs::{Monitor, remove_if_there, with_suffix};
use packtok_pbin::{HEADER_BYTES, Replace, TempFile, TokenWidth};

use super::formats::Meaning;
use super::paths::{OutputPaths, without};
use super::rest;
use super::steps::{convert_width, for_each_step};
use crate::error::{Error, Result};

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
        let mut others = self.described(first_byte)?;
        if let TokenFile::Pbin(reader) = self.file
            && !self.link
        {
            others.push(rest::of_pbin(reader, &self.paths.data)?);
        }
        if self.replace == Replace::Existing {
            // An index must never describe the tokens of another run.
            let data = self.paths.data.as_path();
            remove_if_there(data).map_err(Error::io(data))?;
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
                datatrove::width_for_vocab(vocab_size.unwrap_or(u64::from(width.max_id()) + 1))
            }
        }
    }

    /// The greatest id that the output can hold.
    fn max_id(&self) -> u32 {
        match self.format {
            FlatFormat::Megatron => megatron::max_id(self.width()),
            FlatFormat::Datatrove => self.width().max_id(),
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
        self.max_id() >= self.file.width().max_id()
    }

    /// Checks that all ids fit, where that does not follow from their width.
    fn check_ids(&self, monitor: &mut Monitor<'_>) -> Result<()> {
        if self.all_ids_fit() {
            return Ok(());
        }
        for_each_step(self.file, monitor, |tokens| self.check_step(tokens))
    }

    fn check_step(&self, tokens: Range<u64>) -> Result<()> {
        let max_id = self.max_id();
        let ids = self.file.width().ids(self.file.tokens(tokens.clone())?);
        let Some((id, token)) = ids.zip(tokens.start..).find(|&(id, _)| id > max_id) else {
            return Ok(());
        };
        let (document, tokens) = match self.file.documents_from(token)?.next() {
            Some(document) => document?,
            None => (0, 0..0),
        };
        Err(Error::IdBeyondType {
            path: self.file.path().into(),
            token: token.saturating_sub(tokens.start),
            document,
            id,
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
            for_each_step(self.file, monitor, |tokens| {
                let bytes = start + tokens.start * to.bytes()..start + tokens.end * to.bytes();
                let num_bytes = bytes.end - bytes.start;
                out.append_from(&source, bytes)?;
                out.start_writeback(copied..copied + num_bytes);
                copied += num_bytes;
                Ok(())
            })?;
            return Ok(out);
        }
        let mut converted = Vec::new();
        for_each_step(self.file, monitor, |tokens| {
            if !self.all_ids_fit() {
                self.check_step(tokens.clone())?;
            }
            converted.clear();
            convert_width(self.file.tokens(tokens)?, from, to, &mut converted);
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
    with_suffix(&prefix, ".linked.json")
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
