//! Joins pbins into one file that equals packing all documents in one run.
//!
//! Responsible for checking that the parts are compatible and for the metadata of the result.
//! `verify` checks each part and `writer` writes the result.

use std::fs::{self, File};
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::header::{HEADER_BYTES, TokenWidth};
use crate::metadata::{Counts, Metadata, Options, PartInfo, Source, SpecialToken, TokenizerInfo};
use crate::origins::Origin;
use crate::publish::Replace;
use crate::reader::Reader;
use crate::verify::{ProgressFn, report_progress};
use crate::writer::{Finished, Summary, Writer};

/// Options of a join.
#[derive(Debug, Clone)]
pub struct JoinOptions {
    /// Whether an existing output is replaced.
    pub replace: Replace,
    /// The tokenizer of all parts that do not name one, as the user declared it.
    pub declared_tokenizer: Option<TokenizerInfo>,
}

/// Joins `parts` into `dst` and verifies every part while copying it.
///
/// Header, data, index, document offsets and checksums equal those of a file packed in one run; the
/// metadata lists the parts. `progress` receives the bytes done, out of the sum of the parts'
/// sizes.
///
/// # Errors
/// [`Error::NoParts`], [`Error::PartIsOutput`], [`Error::PartWidth`],
/// [`Error::PartTokenizerUnknown`], [`Error::PartDiffers`], [`Error::DeclaredTokenizerDiffers`],
/// [`Error::Exists`]; the errors of [`Reader::open`] and [`Reader::verify`] for a part;
/// [`Error::Cancelled`] if `progress` breaks.
pub fn join(
    parts: &[PathBuf],
    dst: &Path,
    options: &JoinOptions,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Summary> {
    check_output(parts, dst, options.replace)?;
    let first = parts
        .first()
        .ok_or_else(|| Error::NoParts { path: dst.into() })?;
    let mut joined = Joined::new(options.declared_tokenizer.clone());
    joined.requires_tokenizer = true;
    // Reports incompatible parts before the parts are copied, which may take hours.
    for path in parts {
        let part = Reader::open(path)?;
        joined.add(&part)?;
    }
    let width = (joined.width()).ok_or_else(|| Error::NoParts { path: dst.into() })?;
    let mut writer = Writer::create(dst, width, joined.has_origins())?;
    if joined.has_loss_mask() {
        writer = writer.with_loss_mask()?;
    }
    let mut done_bytes = 0;
    let mut num_sources = 0;
    for path in parts {
        let opened = OpenPart::open(path)?.with_first_source(num_sources);
        let part = opened.reader();
        num_sources += part.sources()?.len() as u64;
        check_width(part, width, first)?;
        let data_crc32c = copy(&opened, &mut writer, &mut |bytes| {
            progress(done_bytes + bytes)
        })?;
        joined.list(part, 0..part.len(), data_crc32c)?;
        done_bytes += part.file_bytes();
    }
    let (metadata, sources) = joined.finish();
    let finished = writer.finish(&metadata, &sources)?;
    report_progress(progress, done_bytes)?;
    finished.publish(options.replace)
}

/// Appends parts to a writer and finishes it with the given metadata and sources.
///
/// The caller guarantees that metadata and sources describe the parts together with what the writer
/// already contains. The parts are verified while they are copied. `copied` receives a checkpoint
/// after each part; `progress` receives the bytes done, out of the sum of the parts' sizes.
///
/// # Errors
/// The errors of `parts` and `copied`; [`Error::PartWidth`]; the errors of [`Reader::verify`] for a
/// part; [`Error::Count`] if the metadata's counts do not match the parts; [`Error::Cancelled`] if
/// `progress` breaks.
pub fn join_as<E: From<Error>>(
    mut writer: Writer,
    parts: impl Iterator<Item = std::result::Result<OpenPart, E>>,
    (metadata, sources): (&Metadata, &[Source]),
    copied: &mut dyn FnMut(&Checkpoint) -> std::result::Result<(), E>,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> std::result::Result<Finished, E> {
    let (dst, width) = (writer.path().to_owned(), writer.width());
    let mut done_bytes = 0;
    for part in parts {
        let part = part?;
        check_width(part.reader(), width, &dst)?;
        copy(&part, &mut writer, &mut |bytes| {
            progress(done_bytes + bytes)
        })?;
        copied(&writer.checkpoint()?)?;
        done_bytes += part.reader().file_bytes();
    }
    let finished = writer.finish(metadata, sources)?;
    report_progress(progress, done_bytes)?;
    Ok(finished)
}

/// Rejects an output that exists or is one of the parts, before anything is read.
fn check_output(parts: &[PathBuf], dst: &Path, replace: Replace) -> Result<()> {
    let Ok(output) = fs::metadata(dst) else {
        return Ok(());
    };
    for part in parts {
        let is_output = fs::metadata(part)
            .is_ok_and(|part| (part.dev(), part.ino()) == (output.dev(), output.ino()));
        if is_output {
            return Err(Error::PartIsOutput { path: part.clone() });
        }
    }
    match replace {
        Replace::Never => Err(Error::Exists { path: dst.into() }),
        Replace::Existing => Ok(()),
    }
}

fn check_width(part: &Reader, width: TokenWidth, first: &Path) -> Result<()> {
    if part.width() == width {
        return Ok(());
    }
    let (found, expected) = (part.width().bytes(), width.bytes());
    Err(Error::PartWidth {
        path: part.path().into(),
        found,
        first: first.into(),
        expected,
    })
}

/// Rejects parts if only some of them record origins: the result would have incomplete origins.
fn check_origins(part: &Reader, has_origins: bool, first: &Path) -> Result<()> {
    let described = |has_origins| if has_origins { "on" } else { "off" }.to_owned();
    let (found, expected) = (described(part.has_origins()), described(has_origins));
    check_same("option origins", part.path(), first, found, expected)
}

/// A pbin that is open for copying: its reader and the open file.
#[derive(Debug)]
pub struct OpenPart {
    reader: Reader,
    file: File,
    first_source: u64,
}

impl OpenPart {
    /// Opens the pbin at `path`.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn open(path: &Path) -> Result<Self> {
        let (reader, file) = Reader::open_with_file(path)?;
        Ok(Self {
            reader,
            file,
            first_source: 0,
        })
    }

    /// Sets the index that the first source of the part has among the sources of the result.
    pub fn with_first_source(self, first_source: u64) -> Self {
        Self {
            first_source,
            ..self
        }
    }

    /// The reader of the part.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }
}

/// Copies the documents of a part, reading each byte once, and returns the CRC32C of its data.
fn copy(opened: &OpenPart, writer: &mut Writer, progress: ProgressFn<'_>) -> Result<u32> {
    let part = opened.reader();
    let mut data_crc32c = 0;
    let mut offset = HEADER_BYTES;
    let mut copy_piece = |piece: &[u8]| {
        data_crc32c = crc32c::crc32c_append(data_crc32c, piece);
        writer.copy_data(piece, &opened.file, offset)?;
        offset += piece.len() as u64;
        Ok(())
    };
    part.for_each_data_piece(&mut copy_piece, progress)?;
    part.verify_rest(progress)?;
    for i in 0..part.len() {
        let span = part.document_span(i)?;
        writer.push_document(span.end - span.start)?;
    }
    part.for_each_origin(|_, origin| {
        writer.push_origins([Origin {
            source: origin.source.saturating_add(opened.first_source),
            ..origin
        }])
    })?;
    push_loss_mask(part, 0..part.num_tokens(), writer)?;
    Ok(data_crc32c)
}

/// Records the loss mask of some tokens of a part. All tokens count in a part without a mask.
///
/// # Errors
/// [`Error::Io`].
fn push_loss_mask(part: &Reader, tokens: Range<u64>, writer: &mut Writer) -> Result<()> {
    match part.loss_mask() {
        Some(mask) => writer.push_loss_mask(mask.tokens(tokens)),
        None => writer.push_loss_mask(tokens.map(|_| true)),
    }
}

/// The metadata and sources of a file that is made from parts, and the part that each value came
/// from. Parts must agree in token width, origins, tokenizer, EOD, BOS and options.
#[derive(Debug, Clone)]
pub struct Joined {
    metadata: Metadata,
    sources: Vec<Source>,
    declared_tokenizer: Option<TokenizerInfo>,
    /// Whether it is an error if the tokenizer of a part is unknown.
    requires_tokenizer: bool,
    /// Whether the tokenizer of a part is unknown.
    lacks_tokenizer: bool,
    /// Path, token width and whether there are origins, of the first part.
    first: Option<(PathBuf, TokenWidth, bool)>,
    /// Whether a part has a loss mask.
    has_loss_mask: bool,
    tokenizer_from: PathBuf,
    options_from: PathBuf,
}

impl Joined {
    /// Starts without parts. `declared_tokenizer` is the tokenizer of all parts that do not name
    /// their own. If it is `None` and the tokenizer of any part is unknown, the tokenizer of the
    /// result is unknown too.
    pub fn new(declared_tokenizer: Option<TokenizerInfo>) -> Self {
        Self {
            requires_tokenizer: false,
            lacks_tokenizer: false,
            first: None,
            has_loss_mask: false,
            metadata: Metadata {
                tokenizer: declared_tokenizer.clone(),
                counts: Counts::EMPTY,
                ..Metadata::default()
            },
            sources: Vec::new(),
            declared_tokenizer,
            tokenizer_from: PathBuf::new(),
            options_from: PathBuf::new(),
        }
    }

    /// Adds the metadata of a complete part.
    ///
    /// # Errors
    /// [`Error::PartWidth`], [`Error::PartTokenizerUnknown`], [`Error::PartDiffers`],
    /// [`Error::DeclaredTokenizerDiffers`]; metadata or sources of the part are damaged.
    pub fn add(&mut self, part: &Reader) -> Result<()> {
        self.add_documents(part, 0..part.len())
    }

    /// Adds the metadata of a part of which only `documents` are used.
    ///
    /// # Errors
    /// As [`Joined::add`]; [`Error::NoSuchDocument`].
    pub fn add_documents(&mut self, part: &Reader, documents: Range<u64>) -> Result<()> {
        self.add_layout(part)?;
        self.has_loss_mask |= part.has_loss_mask();
        let metadata = part.metadata()?;
        let is_whole = documents == (0..part.len());
        let counts = &mut self.metadata.counts;
        match metadata.filter(|_| is_whole) {
            Some(metadata) => counts.add(&metadata.counts),
            // A part without a trailer does not record anything about the corpus. The other counts
            // describe all documents of a part, so they do not apply to some of them.
            None => {
                let data = part.documents_span(documents.clone())?;
                counts.documents += documents.end - documents.start;
                counts.tokens += part.width().tokens_in(data.end - data.start);
                counts.text = None;
            }
        }
        self.metadata.rearranged |= !is_whole;
        let Some(metadata) = metadata else {
            return self.add_tokenizer(part.path(), None);
        };
        self.metadata.stopped_early |= metadata.stopped_early;
        self.metadata.rearranged |= metadata.rearranged;
        if metadata.has_rows() && !self.metadata.has_rows() {
            // Readers must know that EOD does not end all documents.
            self.metadata.steps.push(Metadata::rows_step());
        }
        self.sources.extend(part.sources()?);
        self.add_tokenizer(part.path(), metadata.tokenizer.as_ref())?;
        if metadata.options.are_unknown() {
            return Ok(());
        }
        self.add_special(part.path(), metadata)?;
        self.add_options(part.path(), &metadata.options)
    }

    /// The token width of the parts; `None` without parts.
    pub fn width(&self) -> Option<TokenWidth> {
        self.first.as_ref().map(|&(_, width, _)| width)
    }

    /// Whether the parts record origins.
    pub fn has_origins(&self) -> bool {
        (self.first.as_ref()).is_some_and(|&(_, _, has_origins)| has_origins)
    }

    /// Whether a part has a loss mask. All tokens of the parts without one count in the loss.
    pub fn has_loss_mask(&self) -> bool {
        self.has_loss_mask
    }

    /// Number of sources of the parts so far.
    pub fn num_sources(&self) -> u64 {
        self.sources.len() as u64
    }

    fn add_layout(&mut self, part: &Reader) -> Result<()> {
        let Some((first, width, has_origins)) = &self.first else {
            self.first = Some((part.path().into(), part.width(), part.has_origins()));
            return Ok(());
        };
        check_width(part, *width, first)?;
        check_origins(part, *has_origins, first)
    }

    /// Adds EOD and BOS of a part with known options. Must be called before the part's options are
    /// added.
    fn add_special(&mut self, path: &Path, part: &Metadata) -> Result<()> {
        let joined = &mut self.metadata;
        if joined.options.are_unknown() {
            joined.eod.clone_from(&part.eod);
            joined.bos.clone_from(&part.bos);
            return Ok(());
        }
        for (what, found, expected) in [
            ("EOD", &part.eod, &joined.eod),
            ("BOS", &part.bos, &joined.bos),
        ] {
            let (found, expected) = (
                described_token(found.as_ref()),
                described_token(expected.as_ref()),
            );
            check_same(what, path, &self.options_from, found, expected)?;
        }
        Ok(())
    }

    fn add_tokenizer(&mut self, path: &Path, tokenizer: Option<&TokenizerInfo>) -> Result<()> {
        let Some(tokenizer) = tokenizer else {
            self.lacks_tokenizer |= self.declared_tokenizer.is_none();
            return if self.lacks_tokenizer && self.requires_tokenizer {
                Err(Error::PartTokenizerUnknown { path: path.into() })
            } else {
                Ok(())
            };
        };
        if let Some(declared_tokenizer) = self
            .declared_tokenizer
            .as_ref()
            .filter(|declared_tokenizer| declared_tokenizer.fingerprint != tokenizer.fingerprint)
        {
            return Err(Error::DeclaredTokenizerDiffers {
                path: path.into(),
                found: tokenizer.fingerprint.clone(),
                expected: declared_tokenizer.fingerprint.clone(),
            });
        }
        let Some(expected) = &self.metadata.tokenizer else {
            self.metadata.tokenizer = Some(tokenizer.clone());
            self.tokenizer_from = path.into();
            return Ok(());
        };
        let (found, expected) = (
            format!("{:?}", tokenizer.fingerprint),
            format!("{:?}", expected.fingerprint),
        );
        check_same(
            "tokenizer fingerprint",
            path,
            &self.tokenizer_from,
            found,
            expected,
        )
    }

    fn add_options(&mut self, path: &Path, options: &Options) -> Result<()> {
        if self.metadata.options.are_unknown() {
            self.metadata.options = options.clone();
            self.options_from = path.into();
            return Ok(());
        }
        let both = described(options)
            .into_iter()
            .zip(described(&self.metadata.options));
        for ((what, found), (_, expected)) in both {
            check_same(what, path, &self.options_from, found, expected)?;
        }
        Ok(())
    }

    /// Adds a part, or `documents` of it, to the list of parts; `data_crc32c` is the checksum of
    /// their data.
    ///
    /// # Errors
    /// [`Error::NoSuchDocument`]; [`Error::DocumentSpan`] if the offsets there are damaged.
    pub fn list(&mut self, part: &Reader, documents: Range<u64>, data_crc32c: u32) -> Result<()> {
        let name = part
            .path()
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let data = part.documents_span(documents.clone())?;
        self.metadata.parts.push(PartInfo {
            name,
            documents: documents.end - documents.start,
            tokens: part.width().tokens_in(data.end - data.start),
            data_crc32c,
        });
        Ok(())
    }

    /// The metadata and the sources of the result.
    pub fn finish(self) -> (Metadata, Vec<Source>) {
        let mut metadata = self.metadata;
        if self.lacks_tokenizer {
            // The metadata of other parts do not apply to all documents.
            metadata.tokenizer = None;
            metadata.eod = None;
            metadata.bos = None;
            metadata.options = Options::default();
        }
        (metadata, self.sources)
    }
}

/// The options by name, formatted for messages.
fn described(options: &Options) -> [(&'static str, String); 16] {
    let limit =
        |limit: Option<u64>| limit.map_or_else(|| "unset".into(), |limit| limit.to_string());
    [
        (
            "format",
            options
                .format
                .map_or_else(|| "unset".into(), |format| quoted(&format)),
        ),
        ("text_separator", format!("{:?}", options.text_separator)),
        ("source", format!("{:?}", options.source)),
        ("field", format!("{:?}", options.field)),
        ("input_fields", format!("{:?}", options.input_fields)),
        ("add_special_tokens", options.add_special_tokens.to_string()),
        (
            "special_tokens_in_text",
            quoted(&options.special_tokens_in_text),
        ),
        ("empty_document", quoted(&options.empty_document)),
        ("truncate_to", limit(options.truncate_to)),
        ("truncate_side", quoted(&options.truncate_side)),
        (
            "padding",
            (options.padding.as_ref()).map_or_else(|| "unset".into(), quoted),
        ),
        ("max_document_bytes", options.max_document_bytes.to_string()),
        ("max_documents", limit(options.max_documents)),
        ("max_tokens", limit(options.max_tokens)),
        ("origins", options.origins.to_string()),
        ("token_width", quoted(&options.token_width)),
    ]
}

/// The JSON encoding of an option's value.
fn quoted(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn described_token(token: Option<&SpecialToken>) -> String {
    token.map_or_else(
        || "unset".into(),
        |token| format!("{:?} with id {}", token.token, token.id),
    )
}

fn check_same(
    what: &'static str,
    path: &Path,
    first: &Path,
    found: String,
    expected: String,
) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::PartDiffers {
        path: path.into(),
        what,
        found,
        first: first.into(),
        expected,
    })
}
