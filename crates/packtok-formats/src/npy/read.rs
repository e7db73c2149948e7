//! Reads the documents of an NPY file.
//!
//! uint32 elements are the tokens themselves. Other ids are read from a copy of 32 bits.

use std::ops::Range;
use std::path::Path;

use packtok_pbin::{AccessPattern, MappedFile, TokenWidth};

use super::{Element, NpyHeader};
use crate::error::{ElementValue, Error, Result};
use crate::format::TokenFormat;
use crate::narrowed::{NarrowedIds, WideType};
use crate::token_read::TokenRead;

/// Interval of documents whose start is kept in memory. The starts of other documents are computed
/// by adding lengths.
const STEP: u64 = 64;
/// Bytes of a token as it is read.
const TOKEN_BYTES: u64 = TokenWidth::U32 as u64;

/// An open NPY file of documents.
#[derive(Debug)]
pub struct NpyFile {
    /// The map that ends with the tokens: the file itself, or the copy of its ids, which contains
    /// nothing else.
    map: MappedFile,
    num_tokens: u64,
    details: Box<Details>,
}

#[derive(Debug)]
struct Details {
    path: Box<Path>,
    header: NpyHeader,
    file_bytes: u64,
    num_documents: u64,
    /// First token of each document whose number is a multiple of [`STEP`].
    starts: Box<[u64]>,
    /// Present if ids are not uint32.
    narrowed: Option<NarrowedIds>,
}

impl NpyFile {
    /// Opens the file at `path`. Reads the header and the lengths of the documents.
    ///
    /// # Errors
    /// The file cannot be mapped, is not an array of integers, or the number of documents and their
    /// lengths do not match its size.
    pub fn open(path: &Path) -> Result<Self> {
        let map = MappedFile::open(path)?;
        let header = NpyHeader::parse(map.bytes(), path)?;
        let num_documents = checked_count(map.bytes(), &header, path)?;
        let file = Numbers::new(map.bytes(), &header);
        let num_tokens = match header.element {
            Element::F64 => 0,
            _ => header.elements - 1 - num_documents,
        };
        let starts = checked_starts(&file, num_documents, num_tokens, path)?;
        let file_bytes = map.bytes().len() as u64;
        let (map, narrowed) = if header.element == Element::U32 {
            (map, None)
        } else {
            let wide_type = match header.element {
                Element::I32 => WideType::I32,
                _ => WideType::Bits64,
            };
            let first_byte = file_bytes - num_tokens * header.element.bytes();
            let (copy, narrowed) = NarrowedIds::new(map, first_byte, wide_type, num_tokens, path)?;
            (copy, Some(narrowed))
        };
        Ok(Self {
            map,
            num_tokens,
            details: Box::new(Details {
                path: path.into(),
                header,
                file_bytes,
                num_documents,
                starts,
                narrowed,
            }),
        })
    }

    /// The type of the elements in the file.
    pub fn element(&self) -> Element {
        self.details.header.element
    }

    /// CRC32C of the complete file.
    pub fn crc32c(&self) -> u32 {
        crc32c::crc32c(self.original().bytes())
    }

    /// The numbers of tokens of all documents.
    pub fn document_lengths(&self) -> impl Iterator<Item = u64> + '_ {
        self.lengths(0..self.num_documents())
    }

    /// The map of the file itself.
    fn original(&self) -> &MappedFile {
        let narrowed = self.details.narrowed.as_ref();
        narrowed.map_or(&self.map, NarrowedIds::original)
    }

    /// Position of the first token in the file.
    fn first_token_byte(&self) -> u64 {
        self.file_bytes() - self.num_tokens * self.element().bytes()
    }

    fn lengths(&self, documents: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let numbers = Numbers::new(self.original().bytes(), &self.details.header);
        // Opening has checked the lengths. If another program changes the file, the lengths
        // differ, and reading the tokens fails.
        documents.map(move |i| {
            numbers
                .at(i + 1)
                .and_then(|n| n.try_into().ok())
                .unwrap_or(0)
        })
    }

    #[inline]
    fn are_copied(&self, tokens: &Range<u64>) -> bool {
        let narrowed = self.details.narrowed.as_ref();
        narrowed.is_some_and(|narrowed| narrowed.are_copied(tokens))
    }

    #[cold]
    fn narrow(&self, tokens: &Range<u64>) -> Result<()> {
        match &self.details.narrowed {
            Some(narrowed) => narrowed.copy(tokens, self.path(), |token, _| self.bad_id(token)),
            None => Ok(()),
        }
    }

    fn bad_id(&self, token: u64) -> Error {
        let element = 1 + self.num_documents() + token;
        let numbers = Numbers::new(self.original().bytes(), &self.details.header);
        Error::NpyId {
            path: self.path().into(),
            token,
            element,
            id: ElementValue(numbers.at(element)),
        }
    }
}

impl TokenRead for NpyFile {
    fn format(&self) -> TokenFormat {
        TokenFormat::CepeNpy
    }

    fn width(&self) -> TokenWidth {
        TokenWidth::U32
    }

    fn path(&self) -> &Path {
        &self.details.path
    }

    fn num_documents(&self) -> u64 {
        self.details.num_documents
    }

    #[inline]
    fn num_tokens(&self) -> u64 {
        self.num_tokens
    }

    fn file_bytes(&self) -> u64 {
        self.details.file_bytes
    }

    fn index_crc32c(&self) -> u32 {
        let (bytes, first) = (self.original().bytes(), self.first_token_byte());
        crc32c::crc32c(&bytes[..first as usize])
    }

    #[inline]
    fn tokens_if_there(&self, tokens: Range<u64>) -> Option<&[u8]> {
        if tokens.start > tokens.end || tokens.end > self.num_tokens {
            return None;
        }
        let bytes = self.map.bytes();
        let first = bytes.len() as u64 - self.num_tokens * TOKEN_BYTES;
        // Elements start after a header, so that only the copy starts with tokens.
        if first == 0 && !self.are_copied(&tokens) {
            return None;
        }
        let start = first + tokens.start * TOKEN_BYTES;
        let stop = first + tokens.end * TOKEN_BYTES;
        bytes.get(start as usize..stop as usize)
    }

    fn tokens(&self, tokens: Range<u64>) -> Result<&[u8]> {
        if let Some(bytes) = self.tokens_if_there(tokens.clone()) {
            return Ok(bytes);
        }
        let Range { start, end: stop } = tokens;
        if start <= stop && stop <= self.num_tokens {
            self.narrow(&tokens)?;
        }
        self.tokens_if_there(tokens)
            .ok_or_else(|| Error::NoSuchTokens {
                path: self.path().into(),
                start,
                stop,
                num_tokens: self.num_tokens,
            })
    }

    fn document_tokens(&self, i: u64) -> Result<Range<u64>> {
        if i >= self.num_documents() {
            return Err(Error::NoSuchDocument {
                path: self.path().into(),
                document: i,
                num_documents: self.num_documents(),
            });
        }
        let block = i / STEP;
        let lengths = self.lengths(block * STEP..i);
        let start = lengths.fold(self.details.starts[block as usize], u64::saturating_add);
        let length = self.lengths(i..i + 1).sum::<u64>();
        Ok(start..start.saturating_add(length))
    }

    fn documents_from(
        &self,
        token: u64,
    ) -> Result<impl Iterator<Item = Result<(u64, Range<u64>)>> + '_> {
        if token >= self.num_tokens {
            return Err(Error::NoSuchTokens {
                path: self.path().into(),
                start: token,
                stop: token.saturating_add(1),
                num_tokens: self.num_tokens,
            });
        }
        let starts = &self.details.starts;
        let block = starts.partition_point(|&start| start <= token) - 1;
        let first = block as u64 * STEP;
        let mut start = starts[block];
        let lengths = self.lengths(first..self.num_documents());
        let documents = lengths.zip(first..).map(move |(length, document)| {
            let stop = start.saturating_add(length);
            (document, std::mem::replace(&mut start, stop)..stop)
        });
        let documents = documents.skip_while(move |(_, tokens)| tokens.end <= token);
        Ok(documents.map(Ok))
    }

    fn advise(&self, pattern: AccessPattern) -> Result<()> {
        let advised = self.original().advise(pattern);
        advised.map_err(Error::io(self.path()))
    }

    fn prefetch(&self, tokens: Range<u64>) -> Result<()> {
        let Range { start, end: stop } = tokens;
        if start > stop || stop > self.num_tokens {
            return Err(Error::NoSuchTokens {
                path: self.path().into(),
                start,
                stop,
                num_tokens: self.num_tokens,
            });
        }
        let (first, width) = (self.first_token_byte(), self.element().bytes());
        let bytes = (first + start * width) as usize..(first + stop * width) as usize;
        let advised = self.original().prefetch(bytes);
        advised.map_err(Error::io(self.path()))
    }

    fn release_pages(&self) {
        self.map.release_pages();
        if let Some(narrowed) = &self.details.narrowed {
            narrowed.original().release_pages();
        }
    }

    fn data_position(&self) -> Option<u64> {
        let is_narrowed = self.details.narrowed.is_some();
        (!is_narrowed).then(|| self.first_token_byte())
    }
}

/// The elements of a file as numbers.
#[derive(Clone, Copy)]
struct Numbers<'a> {
    bytes: &'a [u8],
    element: Element,
}

impl<'a> Numbers<'a> {
    fn new(file: &'a [u8], header: &NpyHeader) -> Self {
        Self {
            bytes: &file[header.header_bytes as usize..],
            element: header.element,
        }
    }

    /// Element `i`; `None` if the element does not exist or is not an integer.
    #[inline]
    fn at(&self, i: u64) -> Option<i128> {
        let width = self.element.bytes() as usize;
        let start = (i as usize).checked_mul(width)?;
        let bytes = self.bytes.get(start..start.checked_add(width)?)?;
        match self.element {
            Element::I64 => bytes.try_into().ok().map(|b| i64::from_le_bytes(b).into()),
            Element::U64 => bytes.try_into().ok().map(|b| u64::from_le_bytes(b).into()),
            Element::I32 => bytes.try_into().ok().map(|b| i32::from_le_bytes(b).into()),
            Element::U32 => bytes.try_into().ok().map(|b| u32::from_le_bytes(b).into()),
            _ => None,
        }
    }
}

/// The number of documents, which leaves space for their lengths.
fn checked_count(bytes: &[u8], header: &NpyHeader, path: &Path) -> Result<u64> {
    let descr = || header.element.descr().to_owned();
    let elements = header.elements;
    match header.element {
        Element::I64 | Element::U64 | Element::I32 | Element::U32 => {}
        Element::F64 if elements == 1 && bytes.ends_with(&0f64.to_le_bytes()) => return Ok(0),
        Element::F64 => {
            return Err(Error::NpyFloat {
                path: path.into(),
                elements,
            });
        }
        Element::I8 | Element::I16 | Element::U8 | Element::U16 => {
            return Err(Error::NpyTooNarrow {
                path: path.into(),
                descr: descr(),
            });
        }
    }
    let first = Numbers::new(bytes, header).at(0);
    match first.and_then(|count| u64::try_from(count).ok()) {
        Some(count) if count < elements => Ok(count),
        _ => Err(Error::NpyNumDocuments {
            path: path.into(),
            found: ElementValue(first),
            elements,
        }),
    }
}

/// The start of every [`STEP`]th document; checks that the lengths cover the tokens.
fn checked_starts(
    numbers: &Numbers<'_>,
    num_documents: u64,
    num_tokens: u64,
    path: &Path,
) -> Result<Box<[u64]>> {
    let mut starts = Vec::with_capacity(num_documents.div_ceil(STEP) as usize);
    let mut sum: u64 = 0;
    for document in 0..num_documents {
        if document.is_multiple_of(STEP) {
            starts.push(sum);
        }
        let element = document + 1;
        let (length, left) = (numbers.at(element), num_tokens - sum);
        match length.and_then(|length| u64::try_from(length).ok()) {
            Some(length) if length <= left => sum += length,
            _ => {
                return Err(Error::NpyDocumentLength {
                    path: path.into(),
                    document,
                    element,
                    found: ElementValue(length),
                    left,
                });
            }
        }
    }
    if sum != num_tokens {
        return Err(Error::NpyLengths {
            path: path.into(),
            documents: num_documents,
            sum,
            tokens: num_tokens,
        });
    }
    Ok(starts.into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::narrowed::PIECE_TOKENS;

    fn numbers<const N: usize>(
        element: Element,
        all: &[i64],
        of: impl Fn(i64) -> [u8; N],
    ) -> Vec<u8> {
        let mut file = NpyHeader::encode(element, all.len() as u64);
        all.iter().for_each(|&number| file.extend(of(number)));
        file
    }

    fn int64(all: &[i64]) -> Vec<u8> {
        numbers(Element::I64, all, i64::to_le_bytes)
    }

    fn open(bytes: &[u8]) -> (tempfile::NamedTempFile, Result<NpyFile>) {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), bytes).unwrap();
        let opened = NpyFile::open(file.path());
        (file, opened)
    }

    fn message(bytes: &[u8]) -> String {
        open(bytes).1.unwrap_err().to_string()
    }

    fn ids(bytes: &[u8]) -> Vec<u32> {
        let (ids, rest) = bytes.as_chunks();
        assert!(rest.is_empty());
        ids.iter().map(|&id| u32::from_le_bytes(id)).collect()
    }

    #[test]
    fn every_integer_type_gives_the_same_tokens() {
        let all = [3, 2, 0, 3, 7, 8, 9, 10, 11];
        let files = [
            int64(&all),
            numbers(Element::U64, &all, i64::to_le_bytes),
            numbers(Element::I32, &all, |n| (n as i32).to_le_bytes()),
            numbers(Element::U32, &all, |n| (n as u32).to_le_bytes()),
        ];
        for bytes in files {
            let (_kept, file) = open(&bytes);
            let file = file.unwrap();
            assert_eq!((file.num_documents(), file.num_tokens()), (3, 5));
            assert_eq!(file.document_tokens(0).unwrap(), 0..2);
            assert_eq!(file.document_tokens(1).unwrap(), 2..2);
            assert_eq!(file.document_tokens(2).unwrap(), 2..5);
            assert!(file.document_tokens(3).is_err());
            assert_eq!(ids(file.tokens(0..5).unwrap()), [7, 8, 9, 10, 11]);
            assert_eq!(ids(file.tokens_if_there(1..3).unwrap()), [8, 9]);
            assert!(file.tokens(0..6).is_err());
            assert_eq!(file.tokens_if_there(Range { start: 2, end: 1 }), None);
            let from = |token| {
                let documents = file.documents_from(token).unwrap();
                documents.collect::<Result<Vec<_>>>().unwrap()
            };
            assert_eq!(from(0), [(0, 0..2), (1, 2..2), (2, 2..5)]);
            assert_eq!(from(2), [(2, 2..5)]);
            assert!(file.documents_from(5).is_err());
            file.prefetch(1..5).unwrap();
            file.advise(AccessPattern::Random).unwrap();
        }
    }

    #[test]
    fn wide_ids_are_narrowed_when_they_are_read() {
        // Three documents that fill more than one piece.
        let lengths = [PIECE_TOKENS as i64, 5, 40];
        let num_tokens: i64 = lengths.iter().sum();
        let mut all = vec![3];
        all.extend(lengths);
        all.extend((0..num_tokens).map(|i| i % 50_000));
        let (_kept, file) = open(&int64(&all));
        let file = file.unwrap();
        assert_eq!(file.tokens_if_there(0..1), None);
        let last = file.document_tokens(2).unwrap();
        let expected: Vec<u32> = last.clone().map(|i| (i % 50_000) as u32).collect();
        assert_eq!(ids(file.tokens(last).unwrap()), expected);
        assert_eq!(file.tokens_if_there(0..1), None);
        assert_eq!(ids(file.tokens(4..6).unwrap()), [4, 5]);
    }

    #[test]
    fn the_starts_of_many_documents_are_found() {
        let lengths: Vec<i64> = (0..1000).map(|i| i * 7 % 5).collect();
        let num_tokens: i64 = lengths.iter().sum();
        let mut all = vec![1000];
        all.extend(&lengths);
        all.extend(std::iter::repeat_n(1, num_tokens as usize));
        let (_kept, file) = open(&int64(&all));
        let file = file.unwrap();
        let mut start = 0;
        for (i, &length) in (0..).zip(&lengths) {
            let tokens = start..start + length as u64;
            assert_eq!(file.document_tokens(i).unwrap(), tokens);
            for token in tokens.clone() {
                let first = file.documents_from(token).unwrap().next().unwrap();
                assert_eq!(first.unwrap(), (i, tokens.clone()));
            }
            start = tokens.end;
        }
    }

    #[test]
    fn an_id_outside_32_bits_names_its_position() {
        for id in [-1, 1 << 32, i64::MIN] {
            let (_kept, file) = open(&int64(&[1, 3, 5, 6, id]));
            let error = file.unwrap().tokens(0..1).unwrap_err().to_string();
            let expected = format!(
                "token 2 (element 4 of the array) is {id}; expected an id in 0..=4294967295"
            );
            assert!(error.ends_with(&expected), "{error}");
        }
        let (_kept, file) = open(&int64(&[1, 1, u32::MAX.into()]));
        assert_eq!(ids(file.unwrap().tokens(0..1).unwrap()), [u32::MAX]);
    }

    #[test]
    fn counts_that_do_not_match_the_file_are_errors() {
        for (all, expected) in [
            (
                &[][..],
                "the number of documents, is missing, but the array has 0 elements",
            ),
            (&[-1, 2], "the number of documents, is -1, but"),
            (
                &[2, 1],
                "the number of documents, is 2, but the array has 2 elements",
            ),
            (&[i64::MAX], "is 9223372036854775807, but"),
            (
                &[1, -5, 1],
                "document 0 has length -5 (element 1), but 1 elements are left",
            ),
            (
                &[2, 2, 2, 7, 7, 7],
                "document 1 has length 2 (element 2), but 1 elements are left",
            ),
            (
                &[1, 1, 7, 7],
                "the lengths of the 1 documents sum to 1, but the array has 2 ids",
            ),
            (
                &[0, 9],
                "the lengths of the 0 documents sum to 0, but the array has 1 ids",
            ),
        ] {
            let error = message(&int64(all));
            assert!(error.contains(expected), "{all:?}: {error}");
        }
        let torn = &int64(&[1, 3, 5, 6, 7])[..150];
        assert!(
            message(torn).contains("end at byte 168, but the file has 150; the file is truncated")
        );
        let u16 = numbers(Element::U16, &[0], |n| (n as u16).to_le_bytes());
        assert!(message(&u16).contains("dtype \"<u2\", too narrow: the number of documents"));
    }

    #[test]
    fn the_empty_file_of_floats_has_no_documents() {
        let float = |all: &[f64]| {
            let mut file = NpyHeader::encode(Element::F64, all.len() as u64);
            all.iter()
                .for_each(|number| file.extend(number.to_le_bytes()));
            file
        };
        let (_kept, file) = open(&float(&[0.]));
        let file = file.unwrap();
        assert_eq!((file.num_documents(), file.num_tokens()), (0, 0));
        assert!(file.tokens(0..0).unwrap().is_empty());
        assert!(message(&float(&[1., 1., 5.])).contains("3 elements of dtype float64"));
        assert!(message(&float(&[1.])).contains("1 elements of dtype float64"));
        for bytes in [
            int64(&[0]),
            numbers(Element::U32, &[0], |n| (n as u32).to_le_bytes()),
        ] {
            assert_eq!(open(&bytes).1.unwrap().num_documents(), 0);
        }
    }
}
