//! Writes the formats whose tokens lie back to back in one file, and publishes what `rows.rs` writes.
//!
//! The tokens keep their order, so their file is one copy of bytes, made by the kernel where the
//! width stays the same, or a link.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::symlink;
use std::path::Path;

use packtok_formats::dolma::DolmaRow;
use packtok_formats::megatron::LEAST_INT32_VOCAB;
use packtok_formats::npy::Element;
use packtok_formats::{
    OutputPaths, Result as FormatsResult, TokenFile, TokenFormat, TokensToWrite,
};
use packtok_jobs::{Monitor, Progress, remove_if_there};
use packtok_pbin::{Replace, TempFile, TokenWidth};

use super::folder_index::remove_index;
use super::loss_masks::LossMasks;
use super::marker::Marker;
use super::meaning::Meaning;
use super::parts::{Parts, check_ids, check_vocabulary, convert_width};
use super::rest;
use crate::error::{Error, Result};

/// Bytes of an index that are written at a time.
const INDEX_BUFFER_BYTES: usize = 1 << 20;

/// A conversion to one of these formats.
pub(super) struct FlatConversion<'a> {
    pub(super) format: TokenFormat,
    pub(super) parts: &'a Parts<'a>,
    pub(super) meaning: &'a Meaning,
    pub(super) masks: &'a LossMasks<'a>,
    pub(super) paths: &'a OutputPaths,
    /// The width that the caller wants.
    pub(super) width: Option<TokenWidth>,
    /// The greatest width of the inputs of all outputs.
    pub(super) input_width: TokenWidth,
    /// Whether the file of the tokens is a link to that of the input.
    pub(super) link: bool,
    pub(super) replace: Replace,
}

impl FlatConversion<'_> {
    /// Writes all files and returns sentences for the user. The tokens are published last and make
    /// the dataset complete.
    pub(super) fn write(&self, monitor: &mut Monitor<'_>) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        let is_megatron = self.format == TokenFormat::Megatron;
        if self.link && is_megatron && self.is_read_as_int32_by_some() {
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
        notes.extend(self.publish(data)?);
        Ok(notes)
    }

    /// Publishes `data`, or a link, after the files beside it; returns a note if the link is symbolic.
    /// What is replaced is removed first: nothing may describe the tokens of another run, not even after
    /// a crash.
    pub(super) fn publish(&self, data: Option<TempFile>) -> Result<Option<String>> {
        let mut others = Vec::new();
        for path in &self.paths.others {
            match self.described(path)? {
                Some(file) => {
                    if self.is_loss_mask(path) && self.replace == Replace::Never {
                        check_absent_or_same(path, &file)?;
                    }
                    others.push(file);
                }
                // A run that was killed had the same mask, so that this is a file of others.
                None if self.is_loss_mask(path) && self.replace == Replace::Never => {
                    check_absent(path)?;
                }
                // A killed run can have left one.
                None => remove_if_there(path).map_err(Error::io(path))?,
            }
        }
        let whole_file = self.parts.as_whole_file();
        // A linked pbin still has all of it.
        let is_linked_pbin = self.link && matches!(whole_file, Some(TokenFile::Pbin(_)));
        if let Some(file) = whole_file.filter(|_| !is_linked_pbin) {
            others.extend(rest::of_file(file, &self.paths.data)?);
        }
        if self.replace == Replace::Existing {
            for path in [&self.paths.data].into_iter().chain(&self.paths.others) {
                remove_if_there(path).map_err(Error::io(path))?;
            }
            let folder = self.paths.data.parent().unwrap_or(Path::new(""));
            remove_index(self.format, folder)?;
            Marker::remove(&self.paths.data)?;
            rest::remove(&self.paths.data)?;
        }
        for file in others {
            file.publish(Replace::Existing)?;
        }
        match data {
            Some(data) => {
                data.publish(self.replace)?;
                Ok(None)
            }
            None => self.publish_link(),
        }
    }

    /// Bytes of a token of the output.
    pub(super) fn width_of_output(&self) -> TokenWidth {
        let tokenizer = self.meaning.tokenizer.as_ref();
        match (self.width, tokenizer) {
            _ if self.link => self.input_width,
            (Some(width), _) => width,
            (None, Some(tokenizer)) => self.format.width_for_vocab(tokenizer.vocab_size),
            (None, None) => self.format.width_for(self.input_width),
        }
    }

    /// NumPy's name of the type of the ids in the output.
    pub(super) fn dtype(&self) -> &'static str {
        self.element().name()
    }

    /// The type of the ids in the output.
    pub(super) fn element(&self) -> Element {
        self.format.element(self.width_of_output())
    }

    fn is_read_as_int32_by_some(&self) -> bool {
        let tokenizer = self.meaning.tokenizer.as_ref();
        self.parts.width() != TokenWidth::U32
            && tokenizer.is_some_and(|tokenizer| tokenizer.vocab_size >= LEAST_INT32_VOCAB)
    }

    /// Checks that all ids fit, where that does not follow from their width.
    fn check_ids(&self, monitor: &mut Monitor<'_>) -> Result<()> {
        self.parts
            .for_each_step(monitor, |file, tokens| self.check_step(file, tokens))
    }

    pub(super) fn check_step(&self, file: &TokenFile, tokens: Range<u64>) -> Result<()> {
        if let Some(tokenizer) = &self.meaning.tokenizer {
            check_vocabulary(file, tokens.clone(), tokenizer.vocab_size)?;
        }
        let max_id = self.format.max_id(self.width_of_output());
        check_ids(file, tokens, max_id, self.dtype())
    }

    /// The tokens under a temporary name.
    fn copied_tokens(&self, monitor: &mut Monitor<'_>) -> Result<TempFile> {
        let mut out = TempFile::create(&self.paths.data)?;
        let header = self.format.header(&self.paths.data, self)?;
        out.write_all(&header)
            .map_err(Error::io(&self.paths.data))?;
        let (to, mut written) = (self.width_of_output(), header.len() as u64);
        let mut converted = Vec::new();
        self.parts.for_each_step(monitor, |file, tokens| {
            self.check_step(file, tokens.clone())?;
            let num_bytes = (tokens.end - tokens.start) * to.bytes();
            let position = file.data_position().filter(|_| file.width() == to);
            if let Some(start) = position {
                let path = file.data_path();
                let source = File::open(path).map_err(Error::io(path))?;
                let start = start + tokens.start * to.bytes();
                out.append_from(&source, start..start + num_bytes)?;
                out.start_writeback(written..written + num_bytes);
            } else {
                converted.clear();
                convert_width(file.tokens(tokens)?, file.width(), to, &mut converted);
                out.write_all(&converted)
                    .map_err(Error::io(&self.paths.data))?;
            }
            written += num_bytes;
            Ok(())
        })?;
        Ok(out)
    }

    /// The file beside the tokens that is to have this path, under a temporary name; `None` if the
    /// documents have nothing to record there.
    fn described(&self, path: &Path) -> Result<Option<TempFile>> {
        let is_loss_mask = self.is_loss_mask(path);
        let is_needed = if is_loss_mask {
            self.has_loss_mask()
        } else {
            self.format.is_needed(path, self)?
        };
        if !is_needed {
            return Ok(None);
        }
        let out = TempFile::create(path)?;
        let mut out = BufWriter::with_capacity(INDEX_BUFFER_BYTES, out);
        if is_loss_mask {
            self.write_loss_mask(&mut out, path)?;
        } else {
            self.format.write_other(&mut out, path, self)?;
        }
        let out = out.into_inner();
        out.map(Some)
            .map_err(|error| Error::io(path)(error.into_error()))
    }

    fn is_loss_mask(&self, path: &Path) -> bool {
        self.paths.loss_mask.as_deref() == Some(path)
    }

    /// Whether an input has a loss mask. All outputs of a conversion have one then, so that they have the
    /// same columns and files.
    pub(super) fn has_loss_mask(&self) -> bool {
        !self.masks.are_none()
    }

    /// Writes a byte for each token, 1 if it counts in the loss.
    fn write_loss_mask(&self, out: &mut impl Write, path: &Path) -> Result<()> {
        let mut is_counted = Vec::new();
        let mut bytes = Vec::new();
        let mut monitor = |_: &Progress| ControlFlow::Continue(());
        self.parts.for_each_step(&mut monitor, |file, tokens| {
            is_counted.clear();
            bytes.clear();
            self.masks.append_to(file, tokens, &mut is_counted)?;
            bytes.extend(is_counted.iter().copied().map(u8::from));
            out.write_all(&bytes).map_err(Error::io(path))
        })
    }

    /// Links the tokens of the input under the name of the output; returns a note if the link is
    /// symbolic.
    fn publish_link(&self) -> Result<Option<String>> {
        let Some(linked) = self.parts.first_file().map(TokenFile::data_path) else {
            return Ok(None);
        };
        // A hard link to a symbolic link would be another symbolic link, which may lead elsewhere.
        let linked = &linked.canonicalize().map_err(Error::io(linked))?;
        let data = self.paths.data.as_path();
        if let Some(folder) = data.parent() {
            fs::create_dir_all(folder).map_err(Error::io(folder))?;
        }
        match fs::hard_link(linked, data) {
            Ok(()) => Ok(None),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(packtok_pbin::Error::Exists { path: data.into() }.into())
            }
            Err(error) if can_be_symbolic(&error) => {
                symlink(linked, data).map_err(Error::io(data))?;
                Ok(Some(format!(
                    "{}: a symbolic link, since a hard link is not possible here; the dataset is lost if {} is moved",
                    data.display(),
                    linked.display()
                )))
            }
            Err(error) => Err(Error::io(data)(error)),
        }
    }
}

/// As the format describes them.
impl TokensToWrite for FlatConversion<'_> {
    fn width(&self) -> TokenWidth {
        self.width_of_output()
    }

    fn num_documents(&self) -> u64 {
        self.parts.num_documents()
    }

    fn num_tokens(&self) -> u64 {
        self.parts.num_tokens()
    }

    fn lengths(&self) -> impl Iterator<Item = FormatsResult<u64>> {
        self.parts.lengths()
    }

    /// The rows name the token file as their source.
    fn rows(&self) -> impl Iterator<Item = FormatsResult<DolmaRow>> {
        let files = self.parts.documents();
        let sources = files.into_iter().flat_map(|(file, documents)| {
            let name = self.parts.source_name(file);
            documents.map(move |document| (name.clone(), document))
        });
        let lengths = self.parts.lengths();
        lengths.zip(sources).map(|(length, (source, document))| {
            Ok(DolmaRow {
                length: length?,
                id: document,
                source,
                line: document + 1,
            })
        })
    }

    fn first_byte(&self) -> u64 {
        let linked = self.parts.first_file().filter(|_| self.link);
        linked.and_then(TokenFile::data_position).unwrap_or(0)
    }

    fn tokenizer_name(&self) -> Option<&str> {
        let tokenizer = self.meaning.tokenizer.as_ref();
        tokenizer.map(|tokenizer| tokenizer.name.as_str())
    }

    fn all_start_with_bos(&self) -> FormatsResult<bool> {
        let Some(bos) = &self.meaning.bos else {
            return Ok(false);
        };
        for document in self.parts.document_spans() {
            let (file, tokens) = document?;
            let first = file.tokens(tokens.start..tokens.end.min(tokens.start + 1))?;
            if file.width().ids(first).next() != Some(bos.id) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Checks that the file at `path` does not exist, or is what a run that was killed has left of `file`.
///
/// # Errors
/// [`packtok_pbin::Error::Exists`].
fn check_absent_or_same(path: &Path, file: &TempFile) -> Result<()> {
    let (Ok(existing), Ok(new)) = (File::open(path), File::open(file.path())) else {
        return check_absent(path);
    };
    let [existing, new] = [existing, new].map(|file| BufReader::new(file).bytes());
    let is_same = existing.map(|byte| byte.ok()).eq(new.map(|byte| byte.ok()));
    if is_same { Ok(()) } else { check_absent(path) }
}

/// # Errors
/// [`packtok_pbin::Error::Exists`].
fn check_absent(path: &Path) -> Result<()> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let path = path.to_owned();
    Err(packtok_pbin::Error::Exists { path }.into())
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
