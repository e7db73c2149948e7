//! Tokens that lie back to back in one file, and whose documents are recorded elsewhere.
//!
//! Most formats of trainers are of this kind. They differ in where the documents are recorded: the
//! folder of each format parses its index into a [`DocumentIndex`].

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use packtok_pbin::{AccessPattern, MappedFile, TokenWidth};

use crate::error::{Error, Fault, Result};
use crate::format::TokenFormat;
use crate::loss_mask::{LossMask, MaskBytes};
use crate::narrowed::{NarrowedIds, WideType};
use crate::npy::Element;
use crate::token_read::TokenRead;

/// Where the documents of a file start.
pub(crate) trait DocumentIndex: Debug + Send + Sync {
    /// Number of documents.
    fn num_documents(&self) -> u64;

    /// The first token of document `i`, or the number of tokens if `i` is the number of documents.
    /// Never decreases with `i`.
    fn start(&self, i: u64) -> u64;

    /// Number of tokens of the last document, if it has no EOS although the others have.
    fn tail_tokens(&self) -> u64 {
        0
    }

    /// Whether the ids are signed integers that are read as unsigned ones.
    fn has_signed_ids(&self) -> bool {
        false
    }

    /// CRC32C of the bytes of the index.
    fn crc32c(&self) -> u32;

    /// Bytes of the files of the index.
    fn file_bytes(&self) -> u64;
}

/// An open file of tokens with an index of its documents.
#[derive(Debug)]
pub struct FlatFile {
    /// The file of the tokens, or the copy of its ids.
    map: MappedFile,
    num_tokens: u64,
    /// Position in the map of the first token.
    first_byte: u32,
    width: TokenWidth,
    /// Whether the map is a copy, which is filled as tokens are read.
    is_copy: bool,
    has_loss_mask: bool,
    details: Box<Details>,
}

/// What reading tokens does not need.
#[derive(Debug)]
struct Details {
    format: TokenFormat,
    path: PathBuf,
    data_path: PathBuf,
    data_file_bytes: u64,
    documents: Box<dyn DocumentIndex>,
    narrowed: Option<NarrowedIds>,
    extras: Vec<String>,
    unusable_masks: Vec<String>,
    loss_mask: Option<MaskBytes>,
}

/// The type of the ids in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredType {
    /// The bytes of an id are those of a token.
    Token(TokenWidth),
    /// Ids are copied to 32 bits.
    Wide(WideType),
    /// The map is a copy of the ids.
    Copied(TokenWidth),
}

impl StoredType {
    /// Ids that are elements of this type; `None` if the type is not one of ids.
    pub(crate) fn of(element: Element) -> Option<Self> {
        match element {
            Element::U8 => Some(Self::Token(TokenWidth::U8)),
            Element::U16 => Some(Self::Token(TokenWidth::U16)),
            Element::U32 => Some(Self::Token(TokenWidth::U32)),
            Element::I32 => Some(Self::Wide(WideType::I32)),
            Element::I64 | Element::U64 => Some(Self::Wide(WideType::Bits64)),
            Element::I8 | Element::I16 | Element::F64 => None,
        }
    }

    /// Bytes of one id.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Token(width) => width.bytes(),
            Self::Wide(wide_type) => wide_type.bytes(),
            Self::Copied(width) => width.bytes(),
        }
    }
}

/// The parts of a [`FlatFile`], which the folder of a format has checked.
#[derive(Debug)]
pub(crate) struct FlatParts {
    /// The format.
    pub(crate) format: TokenFormat,
    /// The path that the caller opened.
    pub(crate) path: PathBuf,
    /// The file of the tokens.
    pub(crate) data_path: PathBuf,
    /// The map of that file.
    pub(crate) map: MappedFile,
    /// Position in the file of the first token.
    pub(crate) first_byte: u32,
    /// The type of the ids.
    pub(crate) stored_type: StoredType,
    /// Number of tokens; all are within the file.
    pub(crate) num_tokens: u64,
    /// Where the documents start.
    pub(crate) documents: Box<dyn DocumentIndex>,
}

impl FlatFile {
    /// # Errors
    /// [`Error::NarrowedCopy`].
    pub(crate) fn new(parts: FlatParts) -> Result<Self> {
        let mut data_file_bytes = parts.map.bytes().len() as u64;
        let mut is_copy = false;
        let (map, first_byte, width, narrowed) = match parts.stored_type {
            StoredType::Token(width) => (parts.map, parts.first_byte, width, None),
            StoredType::Copied(width) => {
                // The file itself is that which records the documents.
                (is_copy, data_file_bytes) = (true, 0);
                (parts.map, parts.first_byte, width, None)
            }
            StoredType::Wide(wide_type) => {
                let first_byte = parts.first_byte.into();
                let (copy, narrowed) = NarrowedIds::new(
                    parts.map,
                    first_byte,
                    wide_type,
                    parts.num_tokens,
                    &parts.data_path,
                )?;
                is_copy = true;
                (copy, 0, TokenWidth::U32, Some(narrowed))
            }
        };
        Ok(Self {
            map,
            num_tokens: parts.num_tokens,
            first_byte,
            width,
            is_copy,
            has_loss_mask: false,
            details: Box::new(Details {
                format: parts.format,
                path: parts.path,
                data_path: parts.data_path,
                data_file_bytes,
                documents: parts.documents,
                narrowed,
                extras: Vec::new(),
                unusable_masks: Vec::new(),
                loss_mask: None,
            }),
        })
    }

    /// This file, which records more than ids, documents and a loss mask.
    pub(crate) fn with_extras(mut self, extras: Vec<String>) -> Self {
        self.details.extras = extras;
        self
    }

    /// This file, some of whose extras have the names of loss masks, but other values.
    pub(crate) fn with_unusable_masks(mut self, names: Vec<String>) -> Self {
        self.details.unusable_masks = names;
        self
    }

    /// This file with a loss mask of all its tokens.
    pub(crate) fn with_loss_mask(mut self, loss_mask: Option<MaskBytes>) -> Self {
        self.has_loss_mask = loss_mask.is_some();
        self.details.loss_mask = loss_mask;
        self
    }

    /// The map of the file of the tokens.
    fn original(&self) -> &MappedFile {
        let narrowed = self.details.narrowed.as_ref();
        narrowed.map_or(&self.map, NarrowedIds::original)
    }

    #[cold]
    fn are_copied(&self, tokens: &Range<u64>) -> bool {
        let narrowed = self.details.narrowed.as_ref();
        narrowed.is_none_or(|narrowed| narrowed.are_copied(tokens))
    }

    fn bytes_of(&self, tokens: &Range<u64>) -> Range<usize> {
        let (first, width) = (u64::from(self.first_byte), self.width.bytes());
        (first + tokens.start * width) as usize..(first + tokens.end * width) as usize
    }

    fn no_such_tokens(&self, start: u64, stop: u64) -> Error {
        Error::NoSuchTokens {
            path: self.path().into(),
            start,
            stop,
            num_tokens: self.num_tokens,
        }
    }

    fn io(&self, source: io::Error) -> Error {
        Error::Io {
            path: self.data_path().into(),
            source,
        }
    }
}

impl TokenRead for FlatFile {
    fn verify_loss_mask(&self) -> Result<()> {
        let mask = self.loss_mask();
        mask.map_or(Ok(()), |mask| mask.ignored(0..self.num_tokens, |_| ()))
    }

    fn format(&self) -> TokenFormat {
        self.details.format
    }

    fn path(&self) -> &Path {
        &self.details.path
    }

    fn data_path(&self) -> &Path {
        &self.details.data_path
    }

    fn width(&self) -> TokenWidth {
        self.width
    }

    fn num_documents(&self) -> u64 {
        self.details.documents.num_documents()
    }

    #[inline]
    fn num_tokens(&self) -> u64 {
        self.num_tokens
    }

    fn file_bytes(&self) -> u64 {
        self.details.data_file_bytes + self.details.documents.file_bytes()
    }

    fn data_position(&self) -> Option<u64> {
        (!self.is_copy).then(|| self.first_byte.into())
    }

    fn extras(&self) -> &[String] {
        &self.details.extras
    }

    fn unusable_masks(&self) -> &[String] {
        &self.details.unusable_masks
    }

    #[inline]
    fn has_loss_mask(&self) -> bool {
        self.has_loss_mask
    }

    fn loss_mask(&self) -> Option<LossMask<'_>> {
        self.details.loss_mask.as_ref().map(LossMask::of_bytes)
    }

    fn tail_tokens(&self) -> u64 {
        self.details.documents.tail_tokens()
    }

    fn has_signed_ids(&self) -> bool {
        self.details.documents.has_signed_ids()
    }

    fn check_signs(&self, tokens: Range<u64>) -> Result<()> {
        if !self.has_signed_ids() {
            return Ok(());
        }
        let bits = 8 * self.width.bytes();
        let max_id = u32::MAX >> (33 - bits);
        let bytes = self.tokens(tokens.clone())?;
        if self.width.greatest_id(bytes) <= max_id {
            return Ok(());
        }
        let mut ids = self.width.ids(bytes).zip(tokens.start..);
        match ids.find(|&(id, _)| id > max_id) {
            None => Ok(()),
            Some((id, token)) => Err(Error::fault(Fault {
                path: self.data_path().into(),
                offset: u64::from(self.first_byte) + token * self.width.bytes(),
                what: "an id",
                found: (i64::from(id) - (1 << bits)).to_string(),
                expected: format!("a number in 0..={max_id}"),
                remedy: "the file is damaged, or its ids are of another type",
            })),
        }
    }

    fn index_crc32c(&self) -> u32 {
        self.details.documents.crc32c()
    }

    #[inline]
    fn tokens_if_there(&self, tokens: Range<u64>) -> Option<&[u8]> {
        if tokens.start > tokens.end || tokens.end > self.num_tokens {
            return None;
        }
        if self.is_copy && !self.are_copied(&tokens) {
            return None;
        }
        self.map.bytes().get(self.bytes_of(&tokens))
    }

    fn tokens(&self, tokens: Range<u64>) -> Result<&[u8]> {
        if let Some(bytes) = self.tokens_if_there(tokens.clone()) {
            return Ok(bytes);
        }
        let Range { start, end: stop } = tokens;
        if let Some(narrowed) = &self.details.narrowed
            && start <= stop
            && stop <= self.num_tokens
        {
            let path = self.data_path();
            narrowed.copy(&tokens, path, |token, id| bad_id(path, narrowed, token, id))?;
        }
        self.tokens_if_there(tokens)
            .ok_or_else(|| self.no_such_tokens(start, stop))
    }

    fn document_tokens(&self, i: u64) -> Result<Range<u64>> {
        let documents = &self.details.documents;
        if i < documents.num_documents() {
            return Ok(documents.start(i)..documents.start(i + 1));
        }
        Err(Error::NoSuchDocument {
            path: self.path().into(),
            document: i,
            num_documents: documents.num_documents(),
        })
    }

    fn documents_from(
        &self,
        token: u64,
    ) -> Result<impl Iterator<Item = Result<(u64, Range<u64>)>> + '_> {
        if token >= self.num_tokens {
            return Err(self.no_such_tokens(token, token.saturating_add(1)));
        }
        let documents = &self.details.documents;
        let num_documents = documents.num_documents();
        // The last document that starts at or before the token: earlier ones that start there are
        // empty.
        let (mut first, mut after) = (0, num_documents);
        while after - first > 1 {
            let middle = first + (after - first) / 2;
            if documents.start(middle) <= token {
                first = middle;
            } else {
                after = middle;
            }
        }
        let mut start = documents.start(first);
        Ok((first..num_documents).map(move |i| {
            let stop = documents.start(i + 1);
            Ok((i, std::mem::replace(&mut start, stop)..stop))
        }))
    }

    fn release_pages(&self) {
        self.map.release_pages();
        if let Some(narrowed) = &self.details.narrowed {
            narrowed.original().release_pages();
        }
    }

    fn advise(&self, pattern: AccessPattern) -> Result<()> {
        let advised = self.original().advise(pattern);
        advised.map_err(|source| self.io(source))
    }

    fn prefetch(&self, tokens: Range<u64>) -> Result<()> {
        if tokens.start > tokens.end || tokens.end > self.num_tokens {
            return Err(self.no_such_tokens(tokens.start, tokens.end));
        }
        let bytes = match &self.details.narrowed {
            Some(narrowed) => narrowed.original_bytes(&tokens),
            None => self.bytes_of(&tokens),
        };
        let advised = self.original().prefetch(bytes);
        advised.map_err(|source| self.io(source))
    }
}

/// The error for an id that does not fit in 32 bits.
fn bad_id(path: &Path, narrowed: &NarrowedIds, token: u64, id: i128) -> Error {
    Error::fault(Fault {
        path: path.into(),
        offset: narrowed.original_bytes(&(token..token)).start as u64,
        what: "an id",
        found: id.to_string(),
        expected: "a number in 0..=4294967295".to_owned(),
        remedy: "the file is damaged, or has something other than token ids",
    })
}
