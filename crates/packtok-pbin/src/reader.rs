//! Reads pbins: opening is O(1) with a trailer, and every access checks its own span.
//!
//! Responsible for access to the bytes of a mapped file. `header`, `index` and `trailer` define the
//! layout; `verify` checks complete files.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use memmap2::Mmap;

use crate::checksum::combined;
use crate::error::{Error, Result};
use crate::fault::Checked;
use crate::header::{HEADER_BYTES, Header, TokenWidth};
use crate::index::{Dialect, ParsedIndex, check_span};
use crate::loss_mask::LossMask;
use crate::map::{map_file, open_and_map, release_pages};
use crate::metadata::{Metadata, Source};
use crate::origins::{Origin, Origins};
use crate::trailer::{
    DATA_CHECKSUMS, LOSS_MASK, METADATA, OFFSETS, ORIGINS, SOURCES, Section, Trailer, u32_at,
    u64_at,
};

/// An open pbin; cheap to share between threads.
///
/// The fields needed to read tokens are in the struct itself; the rest is boxed, so that each of
/// ten thousand open files touches one cache line.
pub struct Reader {
    file: Mmap,
    data_bytes: u64,
    width: TokenWidth,
    has_loss_mask: bool,
    about: Box<About>,
}

/// Fields of an open file that are not needed to read tokens.
struct About {
    path: PathBuf,
    dialect: Dialect,
    index: Index,
    metadata: OnceLock<Metadata>,
}

/// The source of the document offsets.
enum Index {
    /// The trailer, at these bytes of the file. Cached because every document access needs them.
    Trailer(Trailer, Range<usize>),
    Parsed(Vec<u64>),
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("path", &self.about.path)
            .field("header", &self.header())
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// Opens the pbin at `path`.
    ///
    /// With a trailer this takes constant time; without one the complete pickled index is parsed.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::NotAFile`], and every variant for an invalid header, index or
    /// trailer.
    pub fn open(path: &Path) -> Result<Self> {
        Self::of_map(map_file(path)?, path)
    }

    /// Opens the pbin at `path` like [`Reader::open`] and also returns the mapped file.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub(crate) fn open_with_file(path: &Path) -> Result<(Self, File)> {
        let (file, map) = open_and_map(path)?;
        Ok((Self::of_map(map, path)?, file))
    }

    fn of_map(file: Mmap, path: &Path) -> Result<Self> {
        let header = Header::decode(&file, path)?;
        let file_bytes = file.len() as u64;
        let Some(data_end) = header.data_end().filter(|&end| end <= file_bytes) else {
            return Err(Error::DataTruncated {
                path: path.into(),
                data_bytes: header.data_bytes,
                file_bytes,
            });
        };
        let (dialect, index) = match Trailer::decode(&file, header, path)? {
            Some(trailer) => {
                let span = trailer.section(OFFSETS).map_or(0..0, Section::span);
                let offsets = span.start as usize..span.end as usize;
                (Dialect::Packtok, Index::Trailer(trailer, offsets))
            }
            None => {
                let parsed = ParsedIndex::parse(&file[data_end as usize..], header, path)?;
                let offset = data_end + parsed.bytes;
                if offset != file_bytes {
                    return Err(Error::BytesAfterIndex {
                        path: path.into(),
                        offset,
                        bytes: file_bytes - offset,
                    });
                }
                (parsed.dialect, Index::Parsed(parsed.offsets))
            }
        };
        let has_loss_mask = match &index {
            Index::Trailer(trailer, _) => trailer.section(LOSS_MASK).is_some(),
            Index::Parsed(_) => false,
        };
        let about = About {
            path: path.into(),
            dialect,
            index,
            metadata: OnceLock::new(),
        };
        Ok(Self {
            file,
            data_bytes: header.data_bytes,
            width: header.width,
            has_loss_mask,
            about: about.into(),
        })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.about.path
    }

    /// Bytes of one token.
    pub fn width(&self) -> TokenWidth {
        self.width
    }

    /// Number of documents.
    pub fn len(&self) -> u64 {
        match &self.about.index {
            Index::Trailer(_, offsets) => offsets.len() as u64 / 8 - 1,
            Index::Parsed(offsets) => offsets.len() as u64 - 1,
        }
    }

    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of tokens in all documents.
    #[inline]
    pub fn num_tokens(&self) -> u64 {
        self.width.tokens_in(self.data_bytes)
    }

    /// Bytes of the data segment.
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> u64 {
        self.file.len() as u64
    }

    /// The program that wrote the file, as far as its index shows.
    pub fn dialect(&self) -> Dialect {
        self.about.dialect
    }

    /// Bytes of document `i`, counted from the start of the data.
    ///
    /// # Errors
    /// [`Error::NoSuchDocument`]; [`Error::DocumentSpan`] if the offsets there are damaged.
    pub fn document_span(&self, i: u64) -> Result<Range<u64>> {
        self.check_document(i)?;
        let (start, stop) = (self.offset(i), self.offset(i + 1));
        check_span(self.header(), &self.about.path, i, start, stop)?;
        Ok(start..stop)
    }

    /// Bytes of consecutive documents, counted from the start of the data.
    ///
    /// # Errors
    /// As [`Reader::document_span`].
    pub fn documents_span(&self, documents: Range<u64>) -> Result<Range<u64>> {
        if documents.is_empty() {
            return Ok(0..0);
        }
        let first = self.document_span(documents.start)?;
        let last = self.document_span(documents.end - 1)?;
        Ok(first.start..last.end.max(first.start))
    }

    fn check_document(&self, i: u64) -> Result<()> {
        let documents = self.len();
        if i < documents {
            Ok(())
        } else {
            Err(Error::NoSuchDocument {
                path: self.about.path.clone(),
                document: i,
                documents,
            })
        }
    }

    /// The tokens of document `i` as little-endian bytes.
    ///
    /// # Errors
    /// As [`Reader::document_span`].
    pub fn document(&self, i: u64) -> Result<&[u8]> {
        let span = self.document_span(i)?;
        Ok(&self.data()[span.start as usize..span.end as usize])
    }

    /// Tokens `start..stop` of the data segment as little-endian bytes.
    ///
    /// # Errors
    /// [`Error::NoSuchTokens`] for a range that is out of bounds or decreasing.
    pub fn tokens(&self, tokens: Range<u64>) -> Result<&[u8]> {
        let Range { start, end: stop } = tokens;
        let bytes = self.tokens_if_there(tokens);
        bytes.ok_or_else(|| self.no_such_tokens(start, stop))
    }

    /// As [`Reader::tokens`], but returns `None` instead of an error.
    #[inline]
    pub fn tokens_if_there(&self, tokens: Range<u64>) -> Option<&[u8]> {
        let Range { start, end: stop } = tokens;
        if start > stop || stop > self.num_tokens() {
            return None;
        }
        let width = self.width.bytes();
        self.data()
            .get((start * width) as usize..(stop * width) as usize)
    }

    pub(crate) fn no_such_tokens(&self, start: u64, stop: u64) -> Error {
        Error::NoSuchTokens {
            path: self.about.path.clone(),
            start,
            stop,
            tokens: self.num_tokens(),
        }
    }

    /// The complete data segment.
    #[inline]
    pub fn data(&self) -> &[u8] {
        &self.file[HEADER_BYTES as usize..][..self.data_bytes as usize]
    }

    /// The meaning of the ids, or `None` if the file does not record it; parsed at the first call.
    ///
    /// # Errors
    /// [`Error::Checksum`], [`Error::Json`].
    pub fn metadata(&self) -> Result<Option<&Metadata>> {
        if let Some(metadata) = self.about.metadata.get() {
            return Ok(Some(metadata));
        }
        let Some(section) = self.section(METADATA) else {
            return Ok(None);
        };
        let json = self.checked_section(section)?;
        let parsed = serde_json::from_slice(json)
            .map_err(|source| self.json_error("metadata", section.offset, source))?;
        Ok(Some(self.about.metadata.get_or_init(|| parsed)))
    }

    /// The files of the corpus in order; empty if the file does not record them.
    ///
    /// # Errors
    /// [`Error::Checksum`], [`Error::Json`].
    pub fn sources(&self) -> Result<Vec<Source>> {
        let Some(section) = self.section(SOURCES) else {
            return Ok(Vec::new());
        };
        let mut offset = section.offset;
        let mut sources = Vec::new();
        for line in self
            .checked_section(section)?
            .split_inclusive(|&byte| byte == b'\n')
        {
            sources.push(
                serde_json::from_slice(line)
                    .map_err(|source| self.json_error("sources", offset, source))?,
            );
            offset += line.len() as u64;
        }
        Ok(sources)
    }

    /// Whether the file records where each document came from.
    pub fn has_origins(&self) -> bool {
        self.section(ORIGINS).is_some()
    }

    /// The origin of document `i`, or `None` if the file does not record origins. Decodes at most
    /// one block of origins.
    ///
    /// # Errors
    /// [`Error::NoSuchDocument`]; [`Error::DamagedOrigin`] if the bytes there are damaged.
    pub fn origin(&self, i: u64) -> Result<Option<Origin>> {
        self.check_document(i)?;
        let Some(origins) = self.origins() else {
            return Ok(None);
        };
        let origin = origins.get(i).ok_or_else(|| self.damaged_origin(i))?;
        Ok(Some(origin))
    }

    /// The documents that came from source `source`, which are consecutive; `None` if the file
    /// does not record origins.
    ///
    /// # Errors
    /// [`Error::SourceScattered`] if the file was shuffled and the documents are not consecutive;
    /// [`Error::DamagedOrigin`] if the bytes of the origins are damaged.
    pub fn documents_of_source(&self, source: u64) -> Result<Option<Range<u64>>> {
        if !self.has_origins() {
            return Ok(None);
        }
        if (self.metadata()?).is_some_and(|metadata| metadata.rearranged) {
            return self.scan_for_source(source).map(Some);
        }
        let start = self.first_from_source(source)?;
        let stop = match source.checked_add(1) {
            Some(next) => self.first_from_source(next)?,
            None => self.len(),
        };
        Ok(Some(start..stop.max(start)))
    }

    /// Like [`Reader::documents_of_source`], for origins in any order.
    fn scan_for_source(&self, source: u64) -> Result<Range<u64>> {
        let mut documents = 0..0;
        self.for_each_origin(|document, origin| {
            if origin.source != source {
                return Ok(());
            }
            if documents.is_empty() {
                documents = document..document;
            }
            if documents.end != document {
                let path = self.about.path.clone();
                return Err(Error::SourceScattered {
                    path,
                    source_index: source,
                });
            }
            documents.end += 1;
            Ok(())
        })?;
        Ok(documents)
    }

    /// The first document from `source` or a later one.
    fn first_from_source(&self, source: u64) -> Result<u64> {
        let (mut start, mut stop) = (0, self.len());
        while start < stop {
            let middle = start + (stop - start) / 2;
            match self.origin(middle)? {
                Some(origin) if origin.source < source => start = middle + 1,
                _ => stop = middle,
            }
        }
        Ok(start)
    }

    /// Calls `each` with the origin of every document in order. Does nothing if the file does not
    /// record origins.
    ///
    /// # Errors
    /// [`Error::DamagedOrigin`], and the errors of `each`.
    pub fn for_each_origin<E: From<Error>>(
        &self,
        each: impl FnMut(u64, Origin) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let Some(origins) = self.origins() else {
            return Ok(());
        };
        match origins.for_each(each)? {
            None => Ok(()),
            Some(document) => Err(self.damaged_origin(document).into()),
        }
    }

    /// The error that the origin of a document is damaged.
    pub fn damaged_origin(&self, document: u64) -> Error {
        Error::DamagedOrigin {
            path: self.about.path.clone(),
            document,
        }
    }

    pub(crate) fn origins(&self) -> Option<Origins<'_>> {
        let section = self.section(ORIGINS)?;
        Some(Origins::new(self.section_bytes(section), self.len()))
    }

    /// Whether the file records which tokens count in the loss.
    #[inline]
    pub fn has_loss_mask(&self) -> bool {
        self.has_loss_mask
    }

    /// Whether each token counts in the loss where it is a label; `None` if the file does not record it,
    /// so that all do.
    pub fn loss_mask(&self) -> Option<LossMask<'_>> {
        let section = self.section(LOSS_MASK)?;
        Some(LossMask::new(
            self.section_bytes(section),
            self.num_tokens(),
        ))
    }

    /// CRC32C of the data segment, combined from the trailer's checksums without reading the data;
    /// `None` if the file has no checksums.
    ///
    /// # Errors
    /// [`Error::Checksum`] if the trailer's checksums are damaged.
    pub fn data_crc32c(&self) -> Result<Option<u32>> {
        let Some(section) = self.section(DATA_CHECKSUMS) else {
            return Ok(None);
        };
        let pieces = self.checked_section(section)?.chunks_exact(4);
        let pieces = pieces.map(|piece| u32_at(piece, 0));
        Ok(Some(combined(pieces, self.data_bytes)))
    }

    /// Removes pages of the file that were read from this process's memory. They stay in the
    /// system's cache. For passes over files that are larger than the memory that a caller may
    /// use.
    pub fn release_pages(&self) {
        release_pages(&self.file);
    }

    pub(crate) fn header(&self) -> Header {
        Header {
            data_bytes: self.data_bytes,
            width: self.width,
        }
    }

    pub(crate) fn file(&self) -> &[u8] {
        &self.file
    }

    pub(crate) fn map(&self) -> &Mmap {
        &self.file
    }

    pub(crate) fn trailer(&self) -> Option<&Trailer> {
        match &self.about.index {
            Index::Trailer(trailer, _) => Some(trailer),
            Index::Parsed(_) => None,
        }
    }

    pub(crate) fn section(&self, kind: u32) -> Option<&Section> {
        self.trailer()?.section(kind)
    }

    /// The bytes of a section; its span was checked when the file was opened.
    pub(crate) fn section_bytes(&self, section: &Section) -> &[u8] {
        let span = section.span();
        &self.file[span.start as usize..span.end as usize]
    }

    /// The bytes of a section, after verifying their checksum.
    pub(crate) fn checked_section(&self, section: &Section) -> Result<&[u8]> {
        let bytes = self.section_bytes(section);
        let found = crc32c::crc32c(bytes);
        if found != section.crc32c {
            let (start, stop) = (section.span().start, section.span().end);
            let what = Checked::Section(section.kind);
            return Err(Error::Checksum {
                path: self.about.path.clone(),
                what,
                start,
                stop,
                found,
                expected: section.crc32c,
            });
        }
        Ok(bytes)
    }

    /// Offset `i` of `0..=len`, not checked against adjacent offsets.
    pub(crate) fn offset(&self, i: u64) -> u64 {
        match &self.about.index {
            Index::Trailer(_, offsets) => u64_at(&self.file[offsets.clone()], i as usize * 8),
            Index::Parsed(offsets) => offsets[i as usize],
        }
    }

    fn json_error(&self, section: &'static str, offset: u64, source: serde_json::Error) -> Error {
        Error::Json {
            path: self.about.path.clone(),
            section,
            offset,
            source,
        }
    }
}
