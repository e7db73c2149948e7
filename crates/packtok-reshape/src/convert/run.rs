//! One conversion.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use packtok_formats::datatrove::DatatrovePaths;
use packtok_formats::dolma::loss_mask_path;
use packtok_formats::mds;
use packtok_formats::npy::{Element, IdType};
use packtok_formats::{OpenOptions, OutputPaths, TokenFile, TokenFormat, TokensToWrite};
use packtok_jobs::Monitor;
use packtok_pack::pack::Existing;
use packtok_pbin::{Reader, Replace, TokenWidth};
use serde::Serialize;

use super::flat::FlatConversion;
use super::folder_index::{FolderIndex, check_index};
use super::kept::{Kept, Losing, check_accepted, unknown_losses};
use super::loss_masks::LossMasks;
use super::marker::{Marker, meaning_of_all};
use super::meaning::Meaning;
use super::npy::{NpyWritten, write_npy};
use super::outputs::write_all;
use super::parts::{Parts, check_no_empty_documents};
use super::shards::{Sharding, check_no_others, shard_path};
use super::{pbin, rest, rows};
use crate::declared_tokenizer::DeclaredTokenizer;
use crate::error::{Error, Result};
use crate::existing::without_dots;
use crate::loss_mask::{append_loss_mask, loss_mask_of};

/// The files to convert, and the target format.
#[derive(Debug, Clone)]
pub struct ConvertOptions {
    /// The files to read, in order.
    pub inputs: Vec<PathBuf>,
    /// How to read them.
    pub open: OpenOptions,
    /// The file to write; of a format with several files, the name that they share; of shards of
    /// NPY arrays, their folder.
    pub output: PathBuf,
    /// The format of the output.
    pub to: TokenFormat,
    /// Whether the file of the tokens is a link to that of the input.
    pub link: bool,
    /// How the output is divided into several; `None` for one.
    pub sharding: Option<Sharding>,
    /// Which of them are written: those whose number is `.0` modulo `.1`. `None` for all, and the index of a
    /// folder that has one.
    pub part: Option<(u64, u64)>,
    /// Whether all outputs are there, written in parts, and only the index of a folder is missing. Their
    /// documents are not compared.
    pub completes_parts: bool,
    /// What the input records and the output may lose.
    pub accept_loss: Vec<String>,
    /// The type of ids in formats that have several; `None` for what the tokenizer needs.
    pub dtype: Option<Element>,
    /// The tokenizer of files that do not record theirs.
    pub tokenizer: Option<DeclaredTokenizer>,
    /// The action if the output exists.
    pub existing: Existing,
    /// The file that outputs record as their source; `None` for the input.
    pub source_name: Option<PathBuf>,
    /// Outputs that are written at once.
    pub num_threads: usize,
}

impl ConvertOptions {
    /// The type of ids of CEPE's files.
    fn cepe_type(&self) -> IdType {
        match self.dtype {
            Some(Element::U32) => IdType::Uint32,
            _ => IdType::Int64,
        }
    }

    /// The width that the caller wants.
    fn width(&self) -> Option<TokenWidth> {
        let dtype = self.dtype?;
        let mut widths = [TokenWidth::U8, TokenWidth::U16, TokenWidth::U32].into_iter();
        widths.find(|&width| Element::of_width(width) == dtype)
    }

    /// Whether the output of this number is left to others.
    fn is_of_other_part(&self, number: u64) -> bool {
        (self.part).is_some_and(|(part, num_parts)| number % num_parts != part)
    }

    fn replace(&self) -> Replace {
        match self.existing {
            Existing::Replace => Replace::Existing,
            Existing::Error | Existing::Skip => Replace::Never,
        }
    }
}

/// The result of a conversion.
#[derive(Debug, Serialize)]
pub struct ConvertReport {
    /// The written file, or what several share.
    pub output: PathBuf,
    /// The name of the format that was read.
    pub from: &'static str,
    /// The name of the format that was written.
    pub to: &'static str,
    /// The written files of tokens.
    pub files: Vec<PathBuf>,
    /// Number of documents in the output.
    pub documents: u64,
    /// Number of tokens in the output.
    pub tokens: u64,
    /// Bytes of the files.
    pub file_bytes: u64,
    /// NumPy's name of the type of the ids in the output.
    pub dtype: &'static str,
    /// The tokenizer, EOD and BOS, as far as they are known.
    pub meaning: Meaning,
    /// Where the output has what the input records.
    pub kept: Kept,
    /// Whether existing outputs were kept: they have the same documents.
    pub skipped_existing: bool,
    /// Sentences for the user.
    pub notes: Vec<String>,
}

/// Writes the documents of token files in another format. `started` receives what is kept before anything
/// is written, and may stop the conversion.
///
/// # Errors
/// An input is damaged, does not have the format that the caller set, or has ids outside the
/// vocabulary of the tokenizer; inputs have different tokenizers; the output exists and may not be
/// replaced.
pub fn convert(
    options: &ConvertOptions,
    started: &mut dyn FnMut(&Kept) -> ControlFlow<()>,
    monitor: &mut Monitor<'_>,
) -> Result<ConvertReport> {
    if !options.to.is_written() {
        let format = options.to.name();
        return Err(Error::OnlyRead { format });
    }
    if !options.completes_parts {
        check_index(options.to, &options.output, options.existing)?;
    }
    let open = |path: &PathBuf| TokenFile::open_with(path, &options.open);
    let files = options.inputs.iter().map(open);
    let files = files.collect::<Result<Vec<_>, _>>()?;
    for file in &files {
        check_input(file, options)?;
    }
    check_signs(&files, monitor)?;
    check_no_empty_documents(options.to, &files)?;
    let meaning = meaning_of_all(&files, options.tokenizer.as_ref())?;
    let outputs = outputs(&files, options)?;
    if options.to == TokenFormat::Pbin && files.len() > 1 {
        let format = options.to.name();
        return Err(Error::SeveralInputs { format });
    }
    let masks = LossMasks::of(&files)?;
    let kept = Kept::new(
        &files,
        &outputs,
        &meaning,
        &masks,
        (options.to, &options.accept_loss),
    )?;
    for (paths, _) in &outputs {
        check_no_input(options, paths)?;
    }
    if options.sharding.is_some() {
        let data: Vec<_> = outputs
            .iter()
            .map(|(paths, _)| paths.data.as_path())
            .collect();
        check_no_others(&data)?;
    }
    if options.existing == Existing::Error && !options.completes_parts {
        let mut outputs = (0..).zip(&outputs);
        let existing = outputs.find_map(|(number, (paths, _))| {
            let path = paths.existing()?;
            (!options.is_of_other_part(number)).then_some(path)
        });
        if let Some(path) = existing {
            let path = path.to_owned();
            return Err(packtok_pbin::Error::Exists { path }.into());
        }
    }
    if started(&kept).is_break() {
        return Err(packtok_jobs::Error::Cancelled.into());
    }
    let mut report = ConvertReport {
        output: options.output.clone(),
        from: files.first().map_or("", |file| file.format().name()),
        to: options.to.name(),
        files: Vec::new(),
        documents: 0,
        tokens: 0,
        file_bytes: 0,
        dtype: "",
        meaning,
        kept,
        skipped_existing: true,
        notes: files.iter().filter_map(tail_note).collect(),
    };
    let unseen = unseen_tokens(&outputs, options);
    let num_documents: u64 = files.iter().map(TokenFile::num_documents).sum();
    let input_width = Parts::whole(&files).width();
    let mut index = FolderIndex::new(options.to).filter(|_| options.part.is_none());
    let outputs: Vec<_> = (0..)
        .zip(&outputs)
        .filter(|(number, _)| !options.is_of_other_part(*number))
        .map(|(number, (paths, parts))| Output {
            options,
            number,
            paths,
            parts,
            meaning: &report.meaning,
            masks: &masks,
            input_width,
        })
        .collect();
    let bytes_of = |output: &Output<'_>| output.parts.num_tokens() * output.parts.width().bytes();
    let all_written = write_all(
        outputs.len(),
        options.num_threads,
        outputs.iter().map(bytes_of).sum(),
        |i, monitor| outputs[i].write(monitor),
        monitor,
    )?;
    for (output, written) in outputs.iter().zip(all_written) {
        let (paths, parts) = (output.paths, output.parts);
        if let Some(index) = &mut index {
            let width = output.flat().width_of_output();
            index.push(&paths.data, parts, width, written.file_bytes)?;
        }
        report.documents += parts.num_documents();
        report.tokens += parts.num_tokens();
        report.file_bytes += written.file_bytes;
        report.dtype = written.dtype;
        report.skipped_existing &= written.is_kept;
        report.notes.extend(written.notes);
        report.files.push(paths.data.clone());
    }
    if let Some(index) = index {
        let sharding = options.sharding.unwrap_or_default();
        index.publish(&options.output, sharding.max_tokens_of(options.to))?;
    }
    report.notes.extend(unseen);
    report
        .notes
        .extend(unknown_losses(&files, &options.accept_loss));
    let num_parts = report.documents.saturating_sub(num_documents);
    if num_parts > 0 && options.part.is_none() {
        report.notes.push(format!(
            "{num_parts} documents are divided between shards, and each part counts as a document"
        ));
    }
    Ok(report)
}

/// Checks, before the input is there, that the output may be written.
///
/// # Errors
/// The output is an input, or exists and may not be replaced.
pub(crate) fn check_outputs(options: &ConvertOptions) -> Result<()> {
    let (to, output) = (options.to, options.output.as_path());
    check_index(to, output, options.existing)?;
    let paths = match options.sharding {
        None => to.paths(output),
        Some(_) => to.paths(&shard_path(to, output, 0)),
    };
    check_no_input(options, &paths)?;
    match paths.existing() {
        Some(path) if options.existing == Existing::Error => {
            let path = path.to_owned();
            Err(packtok_pbin::Error::Exists { path }.into())
        }
        _ => Ok(()),
    }
}

fn check_no_input(options: &ConvertOptions, paths: &OutputPaths) -> Result<()> {
    for path in paths.all() {
        let masks = options.inputs.iter().flat_map(|input| {
            let prefix = input.with_extension("");
            [loss_mask_path(&prefix), DatatrovePaths::of_data(input).loss]
        });
        let mut inputs = options.inputs.iter().cloned().chain(masks);
        if let Some(path) = inputs.find(|input| is_same_file(input, path)) {
            return Err(Error::OutputIsInput { path });
        }
    }
    Ok(())
}

/// The outputs, each with its tokens.
fn outputs<'a>(
    files: &'a [TokenFile],
    options: &'a ConvertOptions,
) -> Result<Vec<(OutputPaths, Parts<'a>)>> {
    let (to, output) = (options.to, &options.output);
    let source = options.source_name.as_deref();
    let Some(sharding) = options.sharding else {
        let parts = Parts::whole(files).with_source(source);
        return Ok(vec![(to.paths(output), parts)]);
    };
    let shards = sharding.divide(files, to)?.into_iter().enumerate();
    let shards = shards.map(|(i, parts)| {
        let paths = to.paths(&shard_path(to, output, i));
        (paths, parts.with_source(source))
    });
    Ok(shards.collect())
}

/// A sentence about the tokens that a reader of samples of this length does not see, at the end of the
/// last shard. `None` if the caller does not name a length.
fn unseen_tokens(outputs: &[(OutputPaths, Parts<'_>)], options: &ConvertOptions) -> Option<String> {
    let multiple = options.sharding?.multiple_of?;
    let (_, last) = outputs.last()?;
    let num_tokens = last.num_tokens() % multiple;
    (num_tokens > 0).then(|| {
        format!("the last {num_tokens} tokens are fewer than {multiple}: trainers that read samples of that length do not see them")
    })
}

/// A sentence about the tokens after the last EOS.
fn tail_note(file: &TokenFile) -> Option<String> {
    let num_tokens = file.tail_tokens();
    (num_tokens > 0).then(|| {
        format!(
            "{}: the {num_tokens} tokens after the last EOS are a document",
            file.path().display()
        )
    })
}

/// Checks that no id of `files` is negative, where that does not show when they are read.
pub(super) fn check_signs<'a>(
    files: impl IntoIterator<Item = &'a TokenFile>,
    monitor: &mut Monitor<'_>,
) -> Result<()> {
    let signed = files.into_iter().filter(|file| file.has_signed_ids());
    Parts::whole(signed).for_each_step(monitor, |file, tokens| Ok(file.check_signs(tokens)?))
}

/// Checks that the input can be linked, if it is to be, and that the caller accepts the loss of what it
/// records besides documents. No output holds it: in Megatron's files, too, each document is written as
/// one sequence.
fn check_input(file: &TokenFile, options: &ConvertOptions) -> Result<()> {
    if options.link && !can_be_linked(file, options.to) {
        return Err(Error::NotLinkable {
            path: file.path().into(),
            found: file.format().name(),
            format: options.to.name(),
        });
    }
    check_extras(file, options)
}

/// Checks that the caller accepts the loss of what a file records besides documents.
pub(crate) fn check_extras(file: &TokenFile, options: &ConvertOptions) -> Result<()> {
    let losing = Losing {
        to: options.to.name(),
        accept_loss: &options.accept_loss,
    };
    let mut extras = file.extras().iter();
    extras.try_for_each(|name| check_accepted(file.path(), name, losing))
}

/// Whether the file of the tokens is, as it is, one of this format.
fn can_be_linked(file: &TokenFile, to: TokenFormat) -> bool {
    let tokens_alone = || {
        let bytes = std::fs::metadata(file.data_path()).map(|metadata| metadata.len());
        bytes.is_ok_and(|bytes| bytes == file.data_bytes())
    };
    match (to, file.data_position()) {
        // The index says where each document is.
        (TokenFormat::Megatron, Some(_)) => true,
        (TokenFormat::Raw | TokenFormat::Datatrove | TokenFormat::Dolma, Some(0)) => tokens_alone(),
        _ => false,
    }
}

/// One output of a conversion.
struct Output<'a> {
    options: &'a ConvertOptions,
    /// Its number among all outputs.
    number: u64,
    paths: &'a OutputPaths,
    parts: &'a Parts<'a>,
    meaning: &'a Meaning,
    masks: &'a LossMasks<'a>,
    /// The greatest width of the inputs of all outputs.
    input_width: TokenWidth,
}

/// What was written.
struct Written {
    file_bytes: u64,
    dtype: &'static str,
    is_kept: bool,
    notes: Vec<String>,
}

impl Output<'_> {
    fn write(&self, monitor: &mut Monitor<'_>) -> Result<Written> {
        if self.options.completes_parts {
            return self.written_by_others();
        }
        if self.options.existing == Existing::Skip && self.paths.existing().is_some() {
            return self.keep_existing(monitor);
        }
        packtok_pbin::remove_abandoned(&self.paths.all().collect::<Vec<_>>())?;
        match self.options.to {
            TokenFormat::Pbin => self.write_pbin(monitor),
            TokenFormat::CepeNpy => self.write_cepe(monitor),
            TokenFormat::Parquet | TokenFormat::Mds => self.write_rows(monitor),
            _ => self.write_flat(monitor),
        }
    }

    /// The output that another call has written.
    fn written_by_others(&self) -> Result<Written> {
        let data = self.paths.data.as_path();
        if !data.exists() {
            let path = data.to_owned();
            return Err(Error::PartMissing { path });
        }
        let expected = (self.parts.num_documents(), self.parts.num_tokens());
        // Opening a file of rows would copy it, and an MDS shard has its number of documents at its start.
        let counts = match self.options.to {
            TokenFormat::Parquet => expected,
            TokenFormat::Mds => {
                self.check_dtype(data, TokenWidth::U32)?;
                (mds::describe_tokens(data)?.1, expected.1)
            }
            _ => {
                let written = self.open_written()?;
                self.check_dtype(data, written.width())?;
                (written.num_documents(), written.num_tokens())
            }
        };
        // Not all formats record documents.
        let is_same =
            counts == expected || (counts.1 == expected.1 && !self.options.to.records_documents());
        if !is_same {
            return Err(Error::OtherPart {
                path: data.into(),
                found: counts,
                expected,
            });
        }
        Ok(Written {
            file_bytes: data.metadata().map_err(Error::io(data))?.len(),
            dtype: self.flat().dtype(),
            is_kept: true,
            notes: Vec::new(),
        })
    }

    /// Checks that the existing output at `path`, whose ids are read in this width, has the type of ids that
    /// this call would write.
    fn check_dtype(&self, path: &Path, width: TokenWidth) -> Result<()> {
        let to = self.options.to;
        let existing = match to {
            // Theirs may be others than those of the call that wrote them.
            TokenFormat::Pbin | TokenFormat::CepeNpy => return Ok(()),
            TokenFormat::Mds => mds::describe_tokens(path)?.0,
            _ => to.element(width).name(),
        };
        let expected = self.flat().dtype();
        if existing == expected {
            return Ok(());
        }
        Err(Error::ExistingDtype {
            path: path.into(),
            found: existing,
            expected,
        })
    }

    /// Checks that the existing output has the same documents and loss mask, and completes its marker.
    fn keep_existing(&self, monitor: &mut Monitor<'_>) -> Result<Written> {
        let existing = self.open_written()?;
        self.check_dtype(&self.paths.data, existing.width())?;
        let difference = match self.parts.first_difference(&existing, monitor)? {
            None => self.first_mask_difference(&existing)?,
            difference => difference,
        };
        if let Some(document) = difference {
            return Err(Error::ExistingDocumentDiffers {
                path: existing.path().into(),
                document,
            });
        }
        self.complete_marker(&existing)?;
        Ok(Written {
            file_bytes: existing.file_bytes(),
            dtype: self.options.to.element(existing.width()).name(),
            is_kept: true,
            notes: Vec::new(),
        })
    }

    /// The first document of which the existing output has another loss mask; `None` if there is none.
    fn first_mask_difference(&self, existing: &TokenFile) -> Result<Option<u64>> {
        let is_recorded = self.options.to.records_loss_masks();
        let kept = if is_recorded {
            None
        } else {
            rest::kept_reader(existing)?
        };
        let mask = loss_mask_of(existing, kept.as_ref());
        let has_mask = mask.is_some() || self.flat().has_loss_mask();
        // Where nothing is kept of a pbin, the loss of the mask was accepted.
        if !has_mask || !(is_recorded || kept.is_some()) {
            return Ok(None);
        }
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for (document, span) in (0..).zip(self.parts.document_spans()) {
            let (file, tokens) = span?;
            own.clear();
            other.clear();
            self.masks.append_to(file, tokens, &mut own)?;
            let tokens = existing.document_tokens(document)?;
            append_loss_mask(mask, tokens, &mut other)?;
            if own != other {
                return Ok(Some(document));
            }
        }
        Ok(None)
    }

    /// The output as a token file, also where its bytes do not say what it is.
    fn open_written(&self) -> Result<TokenFile> {
        let to = self.options.to;
        // The index of chunks is written after them.
        let is_headless = matches!(to, TokenFormat::Raw | TokenFormat::Litdata);
        let open = OpenOptions {
            format: Some(to),
            dtype: is_headless.then(|| self.flat().element()),
            boundaries: None,
        };
        Ok(TokenFile::open_with(&self.paths.to_open, &open)?)
    }

    fn flat(&self) -> FlatConversion<'_> {
        FlatConversion {
            format: self.options.to,
            parts: self.parts,
            meaning: self.meaning,
            masks: self.masks,
            paths: self.paths,
            width: self.options.width(),
            input_width: self.input_width,
            link: self.options.link,
            replace: self.options.replace(),
        }
    }

    fn write_pbin(&self, monitor: &mut Monitor<'_>) -> Result<Written> {
        let (dst, replace) = (&self.paths.data, self.options.replace());
        let format = self.options.to.name();
        let Some(file) = self.parts.as_whole_file() else {
            return Err(Error::SeveralInputs { format });
        };
        let linked = rest::linked_pbin(file);
        let own = match file {
            TokenFile::Pbin(reader) => Some(reader),
            _ => linked.as_ref(),
        };
        // A file that does not name its tokenizer gets a trailer if the caller does.
        let is_complete = |reader: &&Reader| {
            let metadata = reader.metadata().ok().flatten();
            let has_tokenizer = metadata.is_some_and(|metadata| metadata.tokenizer.is_some());
            has_tokenizer || self.options.tokenizer.is_none()
        };
        if let Some(reader) = own.filter(is_complete) {
            let file_bytes = pbin::copy(reader, dst, replace, monitor)?;
            return Ok(Written {
                file_bytes,
                dtype: Element::of_width(reader.width()).name(),
                is_kept: false,
                notes: Vec::new(),
            });
        }
        let restored = rest::restore(file, dst, replace, monitor)?;
        let file_bytes = match restored {
            Some(file_bytes) => file_bytes,
            None => pbin::write(file, self.meaning, self.masks, dst, replace, monitor)?,
        };
        Ok(Written {
            file_bytes,
            dtype: Element::of_width(TokenFile::open(dst)?.width()).name(),
            is_kept: false,
            notes: Vec::new(),
        })
    }

    fn write_cepe(&self, monitor: &mut Monitor<'_>) -> Result<Written> {
        let (dst, id_type) = (&self.paths.data, self.options.cepe_type());
        let documents = self.parts.documents();
        let vocab_size = (self.meaning.tokenizer.as_ref()).map(|tokenizer| tokenizer.vocab_size);
        let replace = self.options.replace();
        let written = write_npy(&documents, dst, id_type, vocab_size, replace, monitor)?;
        Marker::of_conversion(self.parts, self.meaning, id_type, &written).publish(dst)?;
        Ok(Written {
            file_bytes: written.file_bytes,
            dtype: id_type.name(),
            is_kept: false,
            notes: Vec::new(),
        })
    }

    fn write_rows(&self, monitor: &mut Monitor<'_>) -> Result<Written> {
        let conversion = self.flat();
        let file = match self.options.to {
            TokenFormat::Mds => rows::mds(&conversion, self.number, monitor)?,
            _ => rows::parquet(&conversion, monitor)?,
        };
        conversion.publish(Some(file))?;
        let (data, to, dtype) = (&self.paths.data, self.options.to, conversion.dtype());
        let file_bytes = data.metadata().map_err(Error::io(data))?.len();
        let marker = Marker::of_rows(self.parts, self.meaning, to, dtype, file_bytes)?;
        marker.publish_for_dataset(data, false)?;
        Ok(Written {
            file_bytes,
            dtype,
            is_kept: false,
            notes: Vec::new(),
        })
    }

    fn write_flat(&self, monitor: &mut Monitor<'_>) -> Result<Written> {
        let conversion = self.flat();
        let notes = conversion.write(monitor)?;
        self.marked(conversion.dtype(), notes)
    }

    /// Whether others must notice the marker: positions in a linked file count from its first byte.
    fn has_visible_marker(&self) -> bool {
        self.flat().first_byte() > 0
    }

    /// Writes the marker of the output, which is published.
    fn marked(&self, dtype: &'static str, notes: Vec<String>) -> Result<Written> {
        let written = self.open_written()?;
        let to = self.options.to;
        let marker = Marker::of_dataset(self.parts, self.meaning, to, dtype, &written);
        marker.publish_for_dataset(&self.paths.data, self.has_visible_marker())?;
        Ok(Written {
            file_bytes: written.file_bytes(),
            dtype,
            is_kept: false,
            notes,
        })
    }

    /// Writes the marker of an existing output that has none. A run that was killed after writing the
    /// output leaves it without a marker.
    fn complete_marker(&self, existing: &TokenFile) -> Result<()> {
        if matches!(existing, TokenFile::Flat(_)) && Marker::find(&self.paths.data)?.is_none() {
            let (to, is_visible) = (self.options.to, self.has_visible_marker());
            let dtype = to.element(existing.width()).name();
            let marker = Marker::of_dataset(self.parts, self.meaning, to, dtype, existing);
            marker.publish_for_dataset(&self.paths.data, is_visible)?;
        }
        let TokenFile::Npy(npy) = existing else {
            return Ok(());
        };
        let (output, id_type) = (&self.paths.data, self.options.cepe_type());
        let is_as_requested = npy.element() == id_type.element();
        if !is_as_requested || Marker::find(output)?.is_some() {
            return Ok(());
        }
        let written = NpyWritten::of(npy);
        Marker::of_conversion(self.parts, self.meaning, id_type, &written).publish(output)
    }
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), without_dots(b).canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}
