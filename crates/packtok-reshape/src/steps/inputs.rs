//! The files whose documents are reshaped.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use packtok_formats::{LossMask, OpenOptions, TokenFile};
use packtok_pbin::{
    CHECKED_DATA_BYTES, Counts, Joined, Metadata, Origin, Reader, Source, Step, TokenWidth,
    TokenizerInfo,
};

use crate::convert::marker::meaning_of_all;
use crate::convert::rest;
use crate::declared_tokenizer::DeclaredTokenizer;
use crate::error::Result;
use crate::loss_mask::loss_mask_of;
use crate::shuffle::documents::check_piece;

/// Open token files, whose documents are numbered from 0 over all of them.
pub(super) struct Inputs {
    pub(super) files: Vec<Input>,
    pub(super) num_documents: u64,
    /// The meaning of the ids, and counts, of all documents together.
    pub(super) metadata: Metadata,
    /// The sources of the documents; without origins, one for each file.
    pub(super) sources: Vec<Source>,
    /// Whether the origin of every document is recorded.
    pub(super) has_origins: bool,
    /// The first file with origins, if others have none, so that they are lost.
    pub(super) lost_origins: Option<PathBuf>,
    /// Bytes of a token in a pbin of these documents.
    pub(super) width: TokenWidth,
}

/// One of the files.
pub(super) struct Input {
    pub(super) file: TokenFile,
    /// What is kept of the pbin that the file was converted from.
    kept: Option<Reader>,
    /// Number of the first document.
    pub(super) first: u64,
    /// Index of the first source among those of all files.
    pub(super) first_source: u64,
    /// The vocabulary that the ids must be in, if it is known.
    pub(super) vocab_size: Option<u64>,
    /// A bit for each piece of the data that was verified.
    verified: Vec<AtomicU64>,
}

impl Inputs {
    /// # Errors
    /// A file is damaged; the files differ in the meaning of their ids.
    pub(super) fn open(
        paths: &[PathBuf],
        open: &OpenOptions,
        tokenizer: Option<&DeclaredTokenizer>,
    ) -> Result<Self> {
        let files = paths.iter().map(|path| TokenFile::open_with(path, open));
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let meaning = meaning_of_all(&files, tokenizer)?;
        let vocab_size = meaning.tokenizer.as_ref().map(|info| info.vocab_size);
        let (mut inputs, mut num_documents) = (Vec::new(), 0);
        for file in files {
            file.verify_offsets()?;
            let kept = match &file {
                TokenFile::Pbin(_) => None,
                _ => rest::kept_reader(&file)?,
            };
            if let (TokenFile::Pbin(reader), _) | (_, Some(reader)) = (&file, &kept) {
                reader.verify_loss_mask()?;
            }
            let pieces = file.data_bytes().div_ceil(CHECKED_DATA_BYTES);
            let verified = (0..pieces.div_ceil(64)).map(|_| AtomicU64::new(0));
            let first = num_documents;
            num_documents += file.num_documents();
            inputs.push(Input {
                file,
                kept,
                first,
                first_source: 0,
                vocab_size,
                verified: verified.collect(),
            });
        }
        let have_origins = |input: &Input| input.reader().is_some_and(Reader::has_origins);
        let has_origins = inputs.iter().all(have_origins);
        let lost_origins = inputs
            .iter()
            .find(|input| !has_origins && have_origins(input));
        let lost_origins = lost_origins.map(|input| input.file.path().to_owned());
        let is_mixed = lost_origins.is_some();
        let mut all = Self {
            files: inputs,
            num_documents,
            metadata: Metadata::default(),
            sources: Vec::new(),
            has_origins,
            lost_origins,
            width: TokenWidth::U32,
        };
        if !is_mixed && all.files.iter().all(|input| input.reader().is_some()) {
            all.join(tokenizer.map(DeclaredTokenizer::info))?;
            return Ok(all);
        }
        // If no vocabulary is known, ids stay as wide as they are.
        let widths = all.files.iter().map(|input| input.file.width());
        let widest = widths.max_by_key(|width| width.bytes());
        all.width = vocab_size.map_or(widest.unwrap_or(TokenWidth::U16), TokenWidth::for_vocab);
        let num_tokens = all.files.iter().map(|input| input.file.num_tokens()).sum();
        all.metadata = Metadata {
            tokenizer: meaning.tokenizer,
            eod: meaning.eod,
            bos: meaning.bos,
            counts: Counts {
                documents: num_documents,
                tokens: num_tokens,
                ..Counts::default()
            },
            ..Metadata::default()
        };
        all.metadata.steps = all.rows_step();
        for input in &mut all.files {
            input.first_source = all.sources.len() as u64;
            match input.reader().filter(|_| has_origins) {
                Some(reader) => all.sources.extend(reader.sources()?),
                None => all.sources.push(input.as_source()),
            }
        }
        Ok(all)
    }

    /// The metadata of a merge of these files, which are pbins or were made from some.
    fn join(&mut self, tokenizer: Option<&TokenizerInfo>) -> Result<()> {
        let mut joined = Joined::new(tokenizer.cloned());
        let mut steps = Vec::new();
        for input in &mut self.files {
            input.first_source = joined.num_sources();
            if let Some(reader) = input.reader() {
                joined.add(reader)?;
                let metadata = reader.metadata()?;
                steps.push(metadata.map_or(Vec::new(), |metadata| metadata.steps.clone()));
            }
        }
        self.width = joined.width().unwrap_or(self.width);
        (self.metadata, self.sources) = joined.finish();
        // Steps of some of the files only would read as if all had them.
        let first = steps.first().cloned().unwrap_or_default();
        let all_have_them = steps.iter().all(|other| *other == first);
        if all_have_them {
            self.metadata.steps = first;
        }
        if !self.has_origins && self.sources.is_empty() {
            self.sources = self.files.iter().map(Input::as_source).collect();
        }
        Ok(())
    }

    /// The step by which readers know that documents are rows, if those of a file are.
    fn rows_step(&self) -> Vec<Step> {
        let has_rows = |input: &Input| {
            let metadata = input.reader().and_then(|reader| reader.metadata().ok()?);
            metadata.is_some_and(Metadata::has_rows)
        };
        let is_some = self.files.iter().any(has_rows);
        is_some.then(Metadata::rows_step).into_iter().collect()
    }

    /// The file of a document, and the number of the document in it.
    #[inline]
    pub(super) fn locate(&self, number: u64) -> (&Input, u64) {
        let next = self.files.partition_point(|input| input.first <= number);
        let input = &self.files[next.saturating_sub(1)];
        (input, number - input.first)
    }

    /// The names of the sources: the files of the corpus where origins are recorded, otherwise the
    /// token files.
    pub(super) fn source_names(&self) -> Vec<String> {
        if self.has_origins {
            let sources = self.sources.iter();
            return sources.map(|source| source.path.clone()).collect();
        }
        let files = self.files.iter();
        files.map(|input| input.as_source().path).collect()
    }

    /// The source of a document, as an index of [`Inputs::source_names`], and its place there;
    /// without origins, its number in its file.
    pub(super) fn origin(&self, number: u64) -> Result<(u64, u64)> {
        let (input, i) = self.locate(number);
        if !self.has_origins {
            let file = self.files.partition_point(|other| other.first <= number);
            return Ok((file.saturating_sub(1) as u64, i));
        }
        let origin = match input.reader() {
            Some(reader) => reader.origin(i)?,
            None => None,
        };
        let Origin { source, offset } = origin.unwrap_or_default();
        Ok((source.saturating_add(input.first_source), offset))
    }

    /// Whether a file has a loss mask. All tokens of the others count.
    pub(super) fn has_loss_mask(&self) -> bool {
        self.files.iter().any(|input| input.loss_mask().is_some())
    }

    /// The tokens of a document, verified.
    pub(super) fn tokens(&self, number: u64) -> Result<(&Input, &[u8])> {
        let (input, i) = self.locate(number);
        let tokens = input.file.document_tokens(i)?;
        Ok((input, input.tokens(tokens)?))
    }

    /// The number of tokens of a document.
    pub(super) fn length(&self, number: u64) -> Result<u64> {
        let (input, i) = self.locate(number);
        let tokens = input.file.document_tokens(i)?;
        Ok(tokens.end - tokens.start)
    }

    /// Removes the pages that were read from memory.
    pub(super) fn release_pages(&self) {
        self.files
            .iter()
            .for_each(|input| input.file.release_pages());
    }

    pub(super) fn data_bytes(&self) -> u64 {
        self.files.iter().map(|input| input.file.data_bytes()).sum()
    }

    pub(super) fn num_tokens(&self) -> u64 {
        self.files.iter().map(|input| input.file.num_tokens()).sum()
    }
}

impl Input {
    /// Whether each token counts in the loss; `None` if all do.
    pub(super) fn loss_mask(&self) -> Option<LossMask<'_>> {
        loss_mask_of(&self.file, self.kept.as_ref())
    }

    /// What records the origins of the documents, and their sources.
    pub(super) fn reader(&self) -> Option<&Reader> {
        match &self.file {
            TokenFile::Pbin(reader) => Some(reader),
            _ => self.kept.as_ref(),
        }
    }

    /// Tokens of the file. Their pieces are verified once.
    ///
    /// # Errors
    /// As [`check_piece`].
    pub(super) fn tokens(&self, tokens: Range<u64>) -> Result<&[u8]> {
        let is_signed = self.file.has_signed_ids();
        let is_checked = self.file.has_data_checksums() || self.vocab_size.is_some() || is_signed;
        if is_checked && !tokens.is_empty() {
            let width = self.file.width().bytes();
            let first = tokens.start * width / CHECKED_DATA_BYTES;
            let last = (tokens.end * width - 1) / CHECKED_DATA_BYTES;
            for piece in first..=last {
                self.verify(piece)?;
            }
        }
        Ok(self.file.tokens(tokens)?)
    }

    fn verify(&self, piece: u64) -> Result<()> {
        let Some(bits) = self.verified.get((piece / 64) as usize) else {
            return Ok(());
        };
        let bit = 1 << (piece % 64);
        if bits.load(Ordering::Relaxed) & bit == 0 {
            check_piece(&self.file, piece, self.vocab_size)?;
            bits.fetch_or(bit, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The file as the source of its documents.
    fn as_source(&self) -> Source {
        let name = self.file.path().file_name().unwrap_or_default();
        Source {
            path: name.to_string_lossy().into_owned(),
            bytes: self.file.file_bytes(),
            crc32c: None,
            format: None,
            input: None,
        }
    }
}
