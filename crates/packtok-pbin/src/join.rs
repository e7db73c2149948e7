//! Joins pbins into one that equals packing all documents in one run.
//!
//! Responsible for checking that the parts are compatible and for the metadata of the result.
//! `verify` checks each part and `writer` writes the result.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::header::{HEADER_BYTES, TokenWidth};
use crate::metadata::{Metadata, Options, PartInfo, Source, SpecialToken, TokenizerInfo};
use crate::origins::Origin;
use crate::publish::Replace;
use crate::reader::Reader;
use crate::verify::{Progress, report_progress};
use crate::writer::{Finished, Summary, Writer};

/// Options of a join.
#[derive(Debug, Clone)]
pub struct JoinOptions {
    /// What to do if the output already exists.
    pub replace: Replace,
    /// The tokenizer of the parts that do not name one, as specified by the user.
    pub vouched: Option<TokenizerInfo>,
}

/// Joins `parts` into `dst` and verifies every part while copying it.
///
/// Header, data, index, document offsets and checksums equal those of a file packed in one run; the
/// metadata lists the parts. `progress` receives the bytes done, out of the sum of the parts'
/// sizes.
///
/// # Errors
/// [`Error::NoParts`], [`Error::PartIsOutput`], [`Error::PartWidth`],
/// [`Error::PartTokenizerUnknown`], [`Error::PartDiffers`], [`Error::VouchedDiffers`],
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
    let first_part = Reader::open(first)?;
    let (width, has_origins) = (first_part.width(), first_part.has_origins());
    let mut joined = Joined::new(options.vouched.clone());
    // Report incompatible parts before hours of copying, not after.
    for path in parts {
        let part = Reader::open(path)?;
        check_width(&part, width, first)?;
        check_origins(&part, has_origins, first)?;
        joined.add(&part)?;
    }
    let mut writer = Writer::create(dst, width, has_origins)?;
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
        joined.list(part, data_crc32c);
        done_bytes += part.file_bytes();
    }
    let finished = writer.finish(&joined.metadata, &joined.sources)?;
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

/// Rejects parts of which only some record origins: the result would lose them, or lack some.
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
fn copy(opened: &OpenPart, writer: &mut Writer, progress: Progress<'_>) -> Result<u32> {
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
    Ok(data_crc32c)
}

/// The metadata and sources of the result, and the part that each value came from.
struct Joined {
    metadata: Metadata,
    sources: Vec<Source>,
    vouched: Option<TokenizerInfo>,
    tokenizer_from: PathBuf,
    options_from: PathBuf,
}

impl Joined {
    fn new(vouched: Option<TokenizerInfo>) -> Self {
        Self {
            metadata: Metadata {
                tokenizer: vouched.clone(),
                ..Metadata::default()
            },
            sources: Vec::new(),
            vouched,
            tokenizer_from: PathBuf::new(),
            options_from: PathBuf::new(),
        }
    }

    /// Adds the metadata of a part.
    fn add(&mut self, part: &Reader) -> Result<()> {
        let counts = &mut self.metadata.counts;
        let Some(metadata) = part.metadata()? else {
            // A file without a trailer only provides its counts.
            counts.documents += part.len();
            counts.tokens += part.num_tokens();
            return self.add_tokenizer(part.path(), None);
        };
        counts.add(&metadata.counts);
        self.metadata.stopped_early |= metadata.stopped_early;
        self.sources.extend(part.sources()?);
        self.add_tokenizer(part.path(), metadata.tokenizer.as_ref())?;
        if metadata.options.are_unknown() {
            return Ok(());
        }
        self.add_special(part.path(), metadata)?;
        self.add_options(part.path(), &metadata.options)
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

    fn add_tokenizer(&mut self, path: &Path, found: Option<&TokenizerInfo>) -> Result<()> {
        let Some(found) = found else {
            return match self.vouched {
                Some(_) => Ok(()),
                None => Err(Error::PartTokenizerUnknown { path: path.into() }),
            };
        };
        if let Some(vouched) = self
            .vouched
            .as_ref()
            .filter(|vouched| vouched.fingerprint != found.fingerprint)
        {
            let (found, expected) = (found.fingerprint.clone(), vouched.fingerprint.clone());
            return Err(Error::VouchedDiffers {
                path: path.into(),
                found,
                expected,
            });
        }
        let Some(expected) = &self.metadata.tokenizer else {
            self.metadata.tokenizer = Some(found.clone());
            self.tokenizer_from = path.into();
            return Ok(());
        };
        let (found, expected) = (
            format!("{:?}", found.fingerprint),
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

    fn add_options(&mut self, path: &Path, found: &Options) -> Result<()> {
        if self.metadata.options.are_unknown() {
            self.metadata.options = found.clone();
            self.options_from = path.into();
            return Ok(());
        }
        let both = described(found)
            .into_iter()
            .zip(described(&self.metadata.options));
        for ((what, found), (_, expected)) in both {
            check_same(what, path, &self.options_from, found, expected)?;
        }
        Ok(())
    }

    /// Adds a copied part to the list of parts.
    fn list(&mut self, part: &Reader, data_crc32c: u32) {
        let name = part
            .path()
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let (documents, tokens) = (part.len(), part.num_tokens());
        self.metadata.parts.push(PartInfo {
            name,
            documents,
            tokens,
            data_crc32c,
        });
    }
}

/// The options by name, formatted for messages.
fn described(options: &Options) -> [(&'static str, String); 13] {
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
        ("max_document_bytes", options.max_document_bytes.to_string()),
        ("max_documents", limit(options.max_documents)),
        ("max_tokens", limit(options.max_tokens)),
        ("origins", options.origins.to_string()),
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
