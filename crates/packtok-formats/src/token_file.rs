//! An open token file of any format.

use std::ops::Range;
use std::path::Path;

use packtok_jobs::with_suffix;
use packtok_pbin::{AccessPattern, HEADER_BYTES, MappedFile, Metadata, Reader, TokenWidth};

use crate::datatrove::{self, DatatrovePaths};
use crate::dolma::{self, DolmaPaths};
use crate::error::{Error, Result};
use crate::first_bytes::first_bytes;
use crate::flat_file::FlatFile;
use crate::format::TokenFormat;
use crate::litdata;
use crate::llm_c;
use crate::loss_mask::LossMask;
use crate::mds;
use crate::megatron::{self, MegatronPaths};
use crate::npy::{self, Element, MAGIC, NpyFile, NpyHeader};
use crate::open_options::OpenOptions;
use crate::raw::{self, RawFile};
use crate::sidecar::{is_marked_as, recorded_dtype};
#[cfg(feature = "tables")]
use crate::{arrow_rows, parquet_rows};

/// An open token file: tokens of one width, divided into documents.
///
/// An enum instead of a trait object, so that reading tokens is inlined. A dataset keeps ten
/// thousand of these open and has one cache line for each, so no variant may exceed
/// [`TokenFile::MAX_BYTES`]. State that reading tokens does not need belongs in a box.
#[derive(Debug)]
pub enum TokenFile {
    /// A pbin.
    Pbin(Reader),
    /// Tokens without a header, which form one document.
    Raw(RawFile),
    /// An NPY array of documents.
    Npy(NpyFile),
    /// Tokens back to back, with documents recorded in another file.
    Flat(FlatFile),
}

const _: () = assert!(size_of::<TokenFile>() <= TokenFile::MAX_BYTES);

impl TokenFile {
    /// The largest size of this type in bytes.
    pub const MAX_BYTES: usize = 48;

    /// Opens the token file at `path`, whose format follows from its content and from the files
    /// beside it.
    ///
    /// A dataset of several files is opened by the name that they share, or by one of them.
    ///
    /// # Errors
    /// Those of the format; as [`Reader::open`] if no format is recognized.
    pub fn open(path: &Path) -> Result<Self> {
        Self::recognize(path, &OpenOptions::default())
    }

    /// Opens the token file at `path` as `options` say.
    ///
    /// # Errors
    /// As [`TokenFile::open`]; [`Error::OtherFormat`], [`Error::OtherDtype`],
    /// [`Error::UnknownDtype`], [`Error::BoundariesAreRecorded`].
    pub fn open_with(path: &Path, options: &OpenOptions) -> Result<Self> {
        let file = match options.format {
            Some(TokenFormat::CepeNpy) => Self::Npy(NpyFile::open(path)?),
            Some(TokenFormat::Npy) => Self::Flat(npy::open_array(path, options)?),
            Some(TokenFormat::Mds) => Self::Flat(mds::open_tokens(path, options)?),
            Some(TokenFormat::Litdata) => Self::Flat(litdata::open(path, options)?),
            Some(TokenFormat::Tatm) => Self::Flat(raw::open_padded(path, options)?),
            Some(TokenFormat::Raw) => Self::open_headless(path, options)?
                .ok_or_else(|| Error::UnknownDtype { path: path.into() })?,
            _ => Self::recognize(path, options)?,
        };
        let format = file.format();
        if let Some(expected) = options.format.filter(|&expected| expected != format) {
            return Err(Error::OtherFormat {
                path: path.into(),
                found: format.name(),
                expected: expected.name(),
            });
        }
        if options.boundaries.is_some() && format.records_documents() {
            return Err(Error::BoundariesAreRecorded {
                path: path.into(),
                format: format.name(),
            });
        }
        file.check_dtype(options)?;
        Ok(file)
    }

    fn recognize(path: &Path, options: &OpenOptions) -> Result<Self> {
        // Trying the pbin first makes opening a pbin as fast as without other formats. Read as a
        // header of a pbin, the magic bytes of NPY declare more than 2^48 bytes of data, so no pbin
        // starts with them.
        match Reader::open(path) {
            Ok(reader) => Ok(Self::Pbin(reader)),
            Err(_) if first_bytes(path) == Some(MAGIC) => Self::recognize_npy(path, options),
            Err(error) => match Self::open_flat(path, options)? {
                Some(file) => Ok(file),
                None if is_named_as_headless(path) && path.is_file() => {
                    let reason = packtok_pbin::chain(&error);
                    Err(Error::NoKnownFormat { reason })
                }
                None => Err(error.into()),
            },
        }
    }

    /// The NPY file at `path`. Arrays of narrow elements have only tokens. Arrays of uint32 have
    /// documents if their lengths fit the array. int64 arrays are what CEPE's scripts write, so that
    /// lengths that do not fit are damage.
    fn recognize_npy(path: &Path, options: &OpenOptions) -> Result<Self> {
        let map = MappedFile::open(path)?;
        let element = NpyHeader::parse(map.bytes(), path)?.element;
        drop(map);
        let open_array = || Ok(Self::Flat(npy::open_array(path, options)?));
        if matches!(element, Element::U8 | Element::U16) || is_marked_as(path, TokenFormat::Npy) {
            return open_array();
        }
        match NpyFile::open(path) {
            // The marker of `packtok tokenize --to cepe-npy` says that there are documents.
            Err(_) if element == Element::U32 && !with_suffix(path, ".done.json").is_file() => {
                open_array()
            }
            file => Ok(Self::Npy(file?)),
        }
    }

    /// The file whose documents are in another file beside it, that has a header of its own, or
    /// whose type is known from elsewhere; `None` if there is none.
    fn open_flat(path: &Path, options: &OpenOptions) -> Result<Option<Self>> {
        if let Some(paths) = MegatronPaths::find(path) {
            return Ok(Some(Self::Flat(megatron::open(path, paths)?)));
        }
        if let Some(paths) = DatatrovePaths::find(path) {
            return Ok(Some(Self::Flat(datatrove::open(path, &paths)?)));
        }
        if mds::is_shard(path) {
            return Ok(Some(Self::Flat(mds::open_tokens(path, options)?)));
        }
        if let Some(chunk) = litdata::open_if_listed(path, options)? {
            return Ok(Some(Self::Flat(chunk)));
        }
        if llm_c::starts_with_magic(path) {
            return Ok(Some(Self::Flat(llm_c::open(path, options)?)));
        }
        #[cfg(feature = "tables")]
        if parquet_rows::starts_with_magic(path) {
            return Ok(Some(Self::Flat(parquet_rows::open(path)?)));
        }
        #[cfg(feature = "tables")]
        if arrow_rows::starts_as_arrow(path) {
            return Ok(Some(Self::Flat(arrow_rows::open(path)?)));
        }
        if let Some(paths) = DolmaPaths::find(path) {
            return Ok(Some(Self::Flat(dolma::open(path, &paths, options)?)));
        }
        Self::open_headless(path, options)
    }

    /// The file without a header, if the type of its ids is known.
    fn open_headless(path: &Path, options: &OpenOptions) -> Result<Option<Self>> {
        let recorded = recorded_dtype(path)?;
        match options.dtype.or(recorded) {
            Some(dtype) => Ok(Some(Self::Flat(raw::open_headless(path, dtype, options)?))),
            None => Ok(None),
        }
    }

    /// Checks that the file has ids of the type that the caller says.
    fn check_dtype(&self, options: &OpenOptions) -> Result<()> {
        let is_raw = matches!(self.format(), TokenFormat::Raw | TokenFormat::Tatm);
        let Some(expected) = options.dtype.filter(|_| !is_raw) else {
            return Ok(());
        };
        let element = match self {
            Self::Npy(npy) => npy.element(),
            _ => Element::of_width(self.width()),
        };
        // Ids that are copied to 32 bits have several types in their file.
        let is_copied = self.data_position().is_none();
        if element == expected || is_copied {
            return Ok(());
        }
        Err(Error::OtherDtype {
            path: self.path().into(),
            found: element.name(),
            expected: expected.name(),
        })
    }

    /// The format of the file.
    pub fn format(&self) -> TokenFormat {
        match self {
            Self::Pbin(_) => TokenFormat::Pbin,
            Self::Raw(_) => TokenFormat::Raw,
            Self::Npy(_) => TokenFormat::CepeNpy,
            Self::Flat(flat) => flat.format(),
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Pbin(reader) => reader.path(),
            Self::Raw(raw) => raw.path(),
            Self::Npy(npy) => npy.path(),
            Self::Flat(flat) => flat.path(),
        }
    }

    /// Bytes of one token.
    pub fn width(&self) -> TokenWidth {
        match self {
            Self::Pbin(reader) => reader.width(),
            Self::Raw(raw) => raw.width(),
            Self::Npy(_) => TokenWidth::U32,
            Self::Flat(flat) => flat.width(),
        }
    }

    /// Number of documents.
    pub fn num_documents(&self) -> u64 {
        match self {
            Self::Pbin(reader) => reader.len(),
            Self::Raw(_) => 1,
            Self::Npy(npy) => npy.num_documents(),
            Self::Flat(flat) => flat.num_documents(),
        }
    }

    /// Number of tokens in all documents.
    #[inline]
    pub fn num_tokens(&self) -> u64 {
        match self {
            Self::Pbin(reader) => reader.num_tokens(),
            Self::Raw(raw) => raw.num_tokens(),
            Self::Npy(npy) => npy.num_tokens(),
            Self::Flat(flat) => flat.num_tokens(),
        }
    }

    /// Bytes of all tokens.
    pub fn data_bytes(&self) -> u64 {
        match self {
            Self::Pbin(reader) => reader.data_bytes(),
            Self::Raw(raw) => raw.num_tokens() * raw.width().bytes(),
            Self::Npy(npy) => npy.num_tokens() * TokenWidth::U32.bytes(),
            Self::Flat(flat) => flat.num_tokens() * flat.width().bytes(),
        }
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> u64 {
        match self {
            Self::Pbin(reader) => reader.file_bytes(),
            Self::Raw(raw) => raw.file_bytes(),
            Self::Npy(npy) => npy.file_bytes(),
            Self::Flat(flat) => flat.file_bytes(),
        }
    }

    /// Tokens `tokens` as little-endian bytes.
    ///
    /// # Errors
    /// A range that is out of bounds or decreasing.
    pub fn tokens(&self, tokens: Range<u64>) -> Result<&[u8]> {
        match self {
            Self::Pbin(reader) => Ok(reader.tokens(tokens)?),
            Self::Raw(raw) => Ok(raw.tokens(tokens)?),
            Self::Npy(npy) => Ok(npy.tokens(tokens)?),
            Self::Flat(flat) => flat.tokens(tokens),
        }
    }

    /// As [`TokenFile::tokens`], but returns `None` instead of an error.
    #[inline]
    pub fn tokens_if_there(&self, tokens: Range<u64>) -> Option<&[u8]> {
        match self {
            Self::Pbin(reader) => reader.tokens_if_there(tokens),
            Self::Raw(raw) => raw.tokens_if_there(tokens),
            Self::Npy(npy) => npy.tokens_if_there(tokens),
            Self::Flat(flat) => flat.tokens_if_there(tokens),
        }
    }

    /// The tokens of document `i`, as a range.
    ///
    /// # Errors
    /// The document does not exist, or the index is damaged there.
    pub fn document_tokens(&self, i: u64) -> Result<Range<u64>> {
        match self {
            Self::Pbin(reader) => Ok(reader.document_tokens(i)?),
            Self::Raw(raw) => Ok(raw.document_tokens(i)?),
            Self::Npy(npy) => Ok(npy.document_tokens(i)?),
            Self::Flat(flat) => flat.document_tokens(i),
        }
    }

    /// The documents starting with the one that contains token `token`, each with its tokens,
    /// including empty ones.
    ///
    /// # Errors
    /// There is no such token. The iterator returns an error where the index is damaged.
    pub fn documents_from(
        &self,
        token: u64,
    ) -> Result<impl Iterator<Item = Result<(u64, Range<u64>)>> + '_> {
        match self {
            Self::Pbin(reader) => {
                let documents = reader.documents_from(token)?;
                Ok(Documents::Many(documents.map(|document| Ok(document?))))
            }
            Self::Raw(raw) => {
                raw.tokens(token..token.saturating_add(1))?;
                Ok(Documents::One(Some(raw.num_tokens())))
            }
            Self::Npy(npy) => Ok(Documents::OfNpy(npy.documents_from(token)?.map(Ok))),
            Self::Flat(flat) => Ok(Documents::OfFlat(flat.documents_from(token)?.map(Ok))),
        }
    }

    /// The meaning of the ids, or `None` if the file does not record it.
    ///
    /// # Errors
    /// The metadata is damaged.
    pub fn metadata(&self) -> Result<Option<&Metadata>> {
        match self {
            Self::Pbin(reader) => Ok(reader.metadata()?),
            Self::Raw(_) | Self::Npy(_) | Self::Flat(_) => Ok(None),
        }
    }

    /// Whether the file records which tokens count in the loss.
    #[inline]
    pub fn has_loss_mask(&self) -> bool {
        match self {
            Self::Pbin(reader) => reader.has_loss_mask(),
            Self::Flat(flat) => flat.has_loss_mask(),
            Self::Raw(_) | Self::Npy(_) => false,
        }
    }

    /// Whether each token counts in the loss where it is a label; `None` if the file does not record it, so
    /// that all do.
    pub fn loss_mask(&self) -> Option<LossMask<'_>> {
        match self {
            Self::Pbin(reader) => reader.loss_mask().map(LossMask::from),
            Self::Flat(flat) => flat.loss_mask(),
            Self::Raw(_) | Self::Npy(_) => None,
        }
    }

    /// Whether the file has checksums of its data.
    pub fn has_data_checksums(&self) -> bool {
        match self {
            Self::Pbin(reader) => reader.has_data_checksums(),
            Self::Raw(_) | Self::Npy(_) | Self::Flat(_) => false,
        }
    }

    /// Verifies the checksum of a piece of the data, of
    /// [`CHECKED_DATA_BYTES`](packtok_pbin::CHECKED_DATA_BYTES).
    ///
    /// # Errors
    /// The checksum differs.
    pub fn verify_data_piece(&self, piece: u64) -> Result<()> {
        match self {
            Self::Pbin(reader) => Ok(reader.verify_data_piece(piece)?),
            Self::Raw(_) | Self::Npy(_) | Self::Flat(_) => Ok(()),
        }
    }

    /// Verifies the checksum of the document offsets.
    ///
    /// # Errors
    /// The checksum differs.
    pub fn verify_offsets(&self) -> Result<()> {
        match self {
            Self::Pbin(reader) => Ok(reader.verify_offsets()?),
            Self::Raw(_) | Self::Npy(_) | Self::Flat(_) => Ok(()),
        }
    }

    /// Verifies the loss mask: its checksum, or that its bytes are 0 and 1. Does nothing if there is none.
    ///
    /// # Errors
    /// The mask is damaged.
    pub fn verify_loss_mask(&self) -> Result<()> {
        match self {
            Self::Pbin(reader) => Ok(reader.verify_loss_mask()?),
            Self::Flat(flat) => flat
                .loss_mask()
                .map_or(Ok(()), |mask| mask.ignored(0..flat.num_tokens(), |_| ())),
            Self::Raw(_) | Self::Npy(_) => Ok(()),
        }
    }

    /// The checksum that identifies the complete content; `None` if the file does not record one.
    pub fn content_crc32c(&self) -> Option<u32> {
        match self {
            Self::Pbin(reader) => reader.trailer_crc32c(),
            Self::Raw(_) | Self::Npy(_) | Self::Flat(_) => None,
        }
    }

    /// CRC32C of the index of the documents, computed from its bytes.
    pub fn index_crc32c(&self) -> u32 {
        match self {
            Self::Pbin(reader) => reader.index_crc32c(),
            Self::Raw(_) => 0,
            Self::Npy(npy) => npy.index_crc32c(),
            Self::Flat(flat) => flat.index_crc32c(),
        }
    }

    /// Advises the system how the tokens will be read.
    ///
    /// # Errors
    /// The system rejects the advice.
    pub fn advise(&self, pattern: AccessPattern) -> Result<()> {
        match self {
            Self::Pbin(reader) => Ok(reader.advise(pattern)?),
            Self::Raw(raw) => Ok(raw.advise(pattern)?),
            Self::Npy(npy) => Ok(npy.advise(pattern)?),
            Self::Flat(flat) => flat.advise(pattern),
        }
    }

    /// Removes pages of the file that were read from this process's memory. They stay in the
    /// system's cache. For passes over files that are larger than the memory that a caller may
    /// use.
    pub fn release_pages(&self) {
        match self {
            Self::Pbin(reader) => reader.release_pages(),
            Self::Raw(raw) => raw.release_pages(),
            Self::Npy(npy) => npy.release_pages(),
            Self::Flat(flat) => flat.release_pages(),
        }
    }

    /// The path of the file that has the tokens; different from [`TokenFile::path`] where a dataset
    /// has several files.
    pub fn data_path(&self) -> &Path {
        match self {
            Self::Flat(flat) => flat.data_path(),
            Self::Pbin(_) | Self::Raw(_) | Self::Npy(_) => self.path(),
        }
    }

    /// The position in [`TokenFile::data_path`] of the first token; `None` if the file does not
    /// store the tokens in the form that [`TokenFile::tokens`] returns.
    pub fn data_position(&self) -> Option<u64> {
        match self {
            Self::Pbin(_) => Some(HEADER_BYTES),
            Self::Raw(_) => Some(0),
            Self::Npy(npy) => npy.data_position(),
            Self::Flat(flat) => flat.data_position(),
        }
    }

    /// Advises the system that `tokens` are needed next.
    ///
    /// # Errors
    /// The range is out of bounds, or the system rejects the advice.
    pub fn prefetch(&self, tokens: Range<u64>) -> Result<()> {
        match self {
            Self::Pbin(reader) => Ok(reader.prefetch(tokens)?),
            Self::Raw(raw) => Ok(raw.prefetch(tokens)?),
            Self::Npy(npy) => Ok(npy.prefetch(tokens)?),
            Self::Flat(flat) => flat.prefetch(tokens),
        }
    }
}

/// Whether a file has an ending that files without a header have.
fn is_named_as_headless(path: &Path) -> bool {
    let extension = path.extension();
    extension.is_some_and(|extension| extension == "bin" || extension == "npy")
}

/// The documents of a file with an index, or the single document, with its number of tokens.
enum Documents<I, N, F> {
    Many(I),
    OfNpy(N),
    OfFlat(F),
    One(Option<u64>),
}

impl<I, N, F> Iterator for Documents<I, N, F>
where
    I: Iterator<Item = Result<(u64, Range<u64>)>>,
    N: Iterator<Item = I::Item>,
    F: Iterator<Item = I::Item>,
{
    type Item = I::Item;

    #[inline]
    fn next(&mut self) -> Option<I::Item> {
        match self {
            Self::Many(documents) => documents.next(),
            Self::OfNpy(documents) => documents.next(),
            Self::OfFlat(documents) => documents.next(),
            Self::One(num_tokens) => num_tokens.take().map(|stop| Ok((0, 0..stop))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open_options::Boundaries;
    use crate::test_support::{documents, golden};

    #[test]
    fn a_pbin_reads_the_same_through_both_types() {
        for name in ["example.pbin", "plain_u8.pbin", "plain_u32.pbin"] {
            let path = golden(name);
            let file = TokenFile::open(&path).unwrap();
            let reader = Reader::open(&path).unwrap();
            assert_eq!(file.path(), path);
            assert_eq!(file.width(), reader.width());
            assert_eq!(file.num_tokens(), reader.num_tokens());
            assert_eq!(file.num_documents(), reader.len());
            assert_eq!(file.data_bytes(), reader.data_bytes());
            assert_eq!(file.content_crc32c(), reader.trailer_crc32c());
            let all = 0..file.num_tokens();
            assert_eq!(file.tokens(all.clone()).unwrap(), reader.data());
            assert_eq!(file.tokens_if_there(all), Some(reader.data()));
            assert_eq!(file.tokens_if_there(0..file.num_tokens() + 1), None);
            let bytes = std::fs::read(&path).unwrap();
            let data = &bytes[file.data_position().unwrap() as usize..];
            assert!(data.starts_with(reader.data()));
            let first = reader.document_at(0).unwrap();
            let expected = (first..reader.len()).map(|i| (i, reader.document_tokens(i).unwrap()));
            let documents = file.documents_from(0).unwrap().map(Result::unwrap);
            assert!(documents.eq(expected), "{name}");
        }
    }

    #[test]
    fn an_error_is_that_of_the_format() {
        let Error::Pbin(error) = TokenFile::open(&golden("README.md")).unwrap_err() else {
            panic!("expected an error of a pbin");
        };
        assert_eq!(
            error.to_string(),
            Reader::open(&golden("README.md")).unwrap_err().to_string()
        );
    }

    /// A file of these ids in a folder of its own.
    fn raw_file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    fn two_bytes(ids: &[u16]) -> Vec<u8> {
        ids.iter().flat_map(|id| id.to_le_bytes()).collect()
    }

    #[test]
    fn files_without_a_header_are_read_as_the_caller_says() {
        let (folder, path) = raw_file("train.bin", &two_bytes(&[5, 9, 0, 7, 0, 0, 8]));
        let message = TokenFile::open(&path).unwrap_err().to_string();
        let expected = "if the file has only tokens, set --input-dtype (input_dtype), as uint16";
        assert!(message.contains(expected), "{message}");
        let open = |dtype, boundaries| {
            let options = OpenOptions {
                format: None,
                dtype,
                boundaries,
            };
            TokenFile::open_with(&path, &options)
        };
        let u16s = Some(Element::U16);
        let file = open(u16s, None).unwrap();
        assert_eq!(file.format(), TokenFormat::Raw);
        assert_eq!(documents(&file), [[5, 9, 0, 7, 0, 0, 8]]);
        let file = open(u16s, Some(Boundaries::Eos(0))).unwrap();
        let expected = [vec![5, 9, 0], vec![7, 0], vec![0], vec![8]];
        assert_eq!(documents(&file), expected);
        let TokenFile::Flat(flat) = &file else {
            panic!("it is flat");
        };
        assert_eq!(flat.tail_tokens(), 1);
        let file = open(u16s, Some(Boundaries::Bos(0))).unwrap();
        let expected = [vec![5, 9], vec![0, 7], vec![0], vec![0, 8]];
        assert_eq!(documents(&file), expected);
        // No id of two bytes is this large, so there are no boundaries.
        let file = open(u16s, Some(Boundaries::Eos(1 << 20))).unwrap();
        assert_eq!(file.num_documents(), 1);
        let ends = folder.path().join("ends");
        std::fs::write(&ends, [3u64, 3, 7].map(u64::to_le_bytes).concat()).unwrap();
        let file = open(u16s, Some(Boundaries::File(ends.clone()))).unwrap();
        assert_eq!(documents(&file), [vec![5, 9, 0], vec![], vec![7, 0, 0, 8]]);
        std::fs::write(&ends, [3u64, 6].map(u64::to_le_bytes).concat()).unwrap();
        let message = open(u16s, Some(Boundaries::File(ends)))
            .unwrap_err()
            .to_string();
        let expected =
            "the end of the last document is 6 (byte 8); expected 7, the number of tokens in";
        assert!(message.contains(expected), "{message}");
        let message = open(Some(Element::U32), None).unwrap_err().to_string();
        assert!(
            message.contains("no whole number of tokens of 4 bytes"),
            "{message}"
        );
        let message = open(Some(Element::F64), None).unwrap_err().to_string();
        assert!(
            message.contains("is float64; expected uint8, uint16"),
            "{message}"
        );
    }

    #[test]
    fn a_search_crosses_pieces_and_types() {
        for dtype in [Element::U8, Element::U16, Element::I32, Element::U64] {
            let width = dtype.bytes() as usize;
            // More than a piece of the copy of wide ids.
            let ids = (0..600_000u64).map(|i| if i % 1000 == 999 { 3 } else { 4 + i % 7 });
            let bytes: Vec<u8> = ids
                .flat_map(|id| id.to_le_bytes()[..width].to_vec())
                .collect();
            let (_folder, path) = raw_file("a", &bytes);
            let options = OpenOptions {
                format: Some(TokenFormat::Raw),
                dtype: Some(dtype),
                boundaries: Some(Boundaries::Eos(3)),
            };
            let file = TokenFile::open_with(&path, &options).unwrap();
            assert_eq!(file.num_documents(), 600);
            assert_eq!(file.document_tokens(599).unwrap(), 599_000..600_000);
        }
    }

    #[test]
    fn npy_arrays_of_tokens_are_told_from_those_of_documents() {
        let array = |element, elements, bytes: &[u8]| {
            [NpyHeader::encode(element, elements), bytes.to_vec()].concat()
        };
        let (_folder, path) = raw_file("a.npy", &array(Element::U16, 3, &two_bytes(&[1, 1, 9])));
        let file = TokenFile::open(&path).unwrap();
        assert_eq!(
            (file.format(), documents(&file)),
            (TokenFormat::Npy, vec![vec![1, 1, 9]])
        );
        // One document of one token, or three tokens.
        let four_bytes = [1u32, 1, 9].map(u32::to_le_bytes).concat();
        let (_folder, path) = raw_file("a.npy", &array(Element::U32, 3, &four_bytes));
        let file = TokenFile::open(&path).unwrap();
        assert_eq!(
            (file.format(), documents(&file)),
            (TokenFormat::CepeNpy, vec![vec![9]])
        );
        let as_array = OpenOptions {
            format: Some(TokenFormat::Npy),
            ..OpenOptions::default()
        };
        let file = TokenFile::open_with(&path, &as_array).unwrap();
        assert_eq!(documents(&file), [[1, 1, 9]]);
        // Lengths that do not fit.
        let four_bytes = [1u32, 5, 9].map(u32::to_le_bytes).concat();
        let (folder, path) = raw_file("a.npy", &array(Element::U32, 3, &four_bytes));
        assert_eq!(TokenFile::open(&path).unwrap().format(), TokenFormat::Npy);
        // The marker of CEPE's documents.
        std::fs::write(folder.path().join("a.npy.done.json"), b"{}").unwrap();
        let message = TokenFile::open(&path).unwrap_err().to_string();
        assert!(message.contains("document 0 has length 5"), "{message}");
        // int64 is what CEPE's scripts save.
        let eight_bytes = [1u64, 5, 9].map(u64::to_le_bytes).concat();
        let (_folder, path) = raw_file("a.npy", &array(Element::I64, 3, &eight_bytes));
        let message = TokenFile::open(&path).unwrap_err().to_string();
        assert!(
            message.contains("set --format (format) to npy if it has only tokens"),
            "{message}"
        );
        let file = TokenFile::open_with(&path, &as_array).unwrap();
        assert_eq!(documents(&file), [[1, 5, 9]]);
    }

    #[test]
    fn options_that_contradict_a_file_are_errors() {
        let pbin = golden("plain_u16.pbin");
        let options = OpenOptions::default();
        for (options, expected) in [
            (
                OpenOptions {
                    format: Some(TokenFormat::Megatron),
                    ..options.clone()
                },
                "the file has the format pbin, expected megatron; leave out --format (format)",
            ),
            (
                OpenOptions {
                    dtype: Some(Element::U32),
                    ..options.clone()
                },
                "records uint16 ids; expected uint32, as --input-dtype",
            ),
            (
                OpenOptions {
                    boundaries: Some(Boundaries::Eos(0)),
                    ..options.clone()
                },
                "a pbin file records its documents; remove --boundaries",
            ),
            (
                OpenOptions {
                    format: Some(TokenFormat::Raw),
                    ..options
                },
                "does not record their type; set --input-dtype",
            ),
        ] {
            let message = TokenFile::open_with(&pbin, &options)
                .unwrap_err()
                .to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
