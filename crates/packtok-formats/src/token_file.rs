//! An open token file of any format.

use std::ops::Range;
use std::path::Path;

use packtok_jobs::with_suffix;
use packtok_pbin::{AccessPattern, MappedFile, Metadata, Reader, TokenWidth};

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
use crate::token_read::TokenRead;
#[cfg(feature = "tables")]
use crate::{arrow_rows, parquet_rows};

/// An open token file: tokens of one width, divided into documents.
///
/// An enum of what implements [`TokenRead`] instead of a trait object, so that reading tokens is inlined. A dataset keeps ten
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

/// Evaluates an expression with the file of whatever kind, which implements [`TokenRead`].
macro_rules! each {
    ($self:ident, $file:ident => $value:expr) => {
        match $self {
            Self::Pbin($file) => $value,
            Self::Raw($file) => $value,
            Self::Npy($file) => $value,
            Self::Flat($file) => $value,
        }
    };
}

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
        each!(self, file => TokenRead::format(file))
    }

    /// The path that was opened.
    pub fn path(&self) -> &Path {
        each!(self, file => TokenRead::path(file))
    }

    /// Bytes of one token.
    pub fn width(&self) -> TokenWidth {
        each!(self, file => TokenRead::width(file))
    }

    /// Number of documents.
    pub fn num_documents(&self) -> u64 {
        each!(self, file => TokenRead::num_documents(file))
    }

    /// Number of tokens in all documents.
    #[inline]
    pub fn num_tokens(&self) -> u64 {
        each!(self, file => TokenRead::num_tokens(file))
    }

    /// Bytes of the file, and of those beside it that record its documents.
    pub fn file_bytes(&self) -> u64 {
        each!(self, file => TokenRead::file_bytes(file))
    }

    /// Tokens as little-endian bytes.
    ///
    /// # Errors
    /// A range that is out of bounds or decreasing; an id in it does not fit in the width.
    pub fn tokens(&self, tokens: Range<u64>) -> Result<&[u8]> {
        each!(self, file => TokenRead::tokens(file, tokens))
    }

    /// As [`TokenFile::tokens`]; `None` instead of an error, or if ids have not been copied yet.
    #[inline]
    pub fn tokens_if_there(&self, tokens: Range<u64>) -> Option<&[u8]> {
        each!(self, file => TokenRead::tokens_if_there(file, tokens))
    }

    /// The tokens of document `i`, as a range.
    ///
    /// # Errors
    /// The document does not exist, or the index is damaged there.
    pub fn document_tokens(&self, i: u64) -> Result<Range<u64>> {
        each!(self, file => TokenRead::document_tokens(file, i))
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
        Ok(match self {
            Self::Pbin(reader) => Documents::Pbin(TokenRead::documents_from(reader, token)?),
            Self::Raw(raw) => Documents::Raw(raw.documents_from(token)?),
            Self::Npy(npy) => Documents::Npy(npy.documents_from(token)?),
            Self::Flat(flat) => Documents::Flat(flat.documents_from(token)?),
        })
    }

    /// The position in [`TokenFile::data_path`] of the first token; `None` if the file does not store the
    /// tokens in the form that [`TokenFile::tokens`] returns.
    pub fn data_position(&self) -> Option<u64> {
        each!(self, file => TokenRead::data_position(file))
    }

    /// CRC32C of the index of the documents, computed from its bytes.
    pub fn index_crc32c(&self) -> u32 {
        each!(self, file => TokenRead::index_crc32c(file))
    }

    /// Advises the system how the tokens will be read.
    ///
    /// # Errors
    /// The system rejects the advice.
    pub fn advise(&self, pattern: AccessPattern) -> Result<()> {
        each!(self, file => TokenRead::advise(file, pattern))
    }

    /// Asks the system to read the pages of `tokens`, without waiting.
    ///
    /// # Errors
    /// The range is out of bounds, or the system rejects the advice.
    pub fn prefetch(&self, tokens: Range<u64>) -> Result<()> {
        each!(self, file => TokenRead::prefetch(file, tokens))
    }

    /// Removes pages of the file that were read from this process's memory. They stay in the
    /// system's cache. For passes over files that are larger than the memory that a caller may
    /// use.
    pub fn release_pages(&self) {
        each!(self, file => TokenRead::release_pages(file))
    }

    /// The path of the file that has the tokens; different from [`TokenFile::path`] where a dataset
    /// has several files.
    pub fn data_path(&self) -> &Path {
        each!(self, file => TokenRead::data_path(file))
    }

    /// The meaning of the ids, or `None` if the file does not record it.
    ///
    /// # Errors
    /// The metadata is damaged.
    pub fn metadata(&self) -> Result<Option<&Metadata>> {
        each!(self, file => TokenRead::metadata(file))
    }

    /// Whether the file records which tokens count in the loss.
    #[inline]
    pub fn has_loss_mask(&self) -> bool {
        each!(self, file => TokenRead::has_loss_mask(file))
    }

    /// Whether each token counts in the loss where it is a label; `None` if the file does not record it, so
    /// that all do.
    pub fn loss_mask(&self) -> Option<LossMask<'_>> {
        each!(self, file => TokenRead::loss_mask(file))
    }

    /// Verifies the loss mask: its checksum, or that its bytes are 0 and 1. Does nothing if there is none.
    ///
    /// # Errors
    /// The mask is damaged.
    pub fn verify_loss_mask(&self) -> Result<()> {
        each!(self, file => TokenRead::verify_loss_mask(file))
    }

    /// What the file records besides tokens, documents and a loss mask, and no other format has room for:
    /// `sequences` of documents, and their `modes`; other columns.
    pub fn extras(&self) -> &[String] {
        each!(self, file => TokenRead::extras(file))
    }

    /// The names of extras that say how tokens count in the loss, but are no loss mask: labels of other ids,
    /// weights, padding. Who trains with the tokens and without these columns trains something else.
    pub fn unusable_masks(&self) -> &[String] {
        each!(self, file => TokenRead::unusable_masks(file))
    }

    /// Number of tokens of the last document, if it has no EOS although the others have; otherwise 0.
    pub fn tail_tokens(&self) -> u64 {
        each!(self, file => TokenRead::tail_tokens(file))
    }

    /// Whether the ids are signed integers that are read as unsigned ones, so that a negative id, which no
    /// tokenizer gives, is a large one. Checking that when tokens are read would cost more than reading.
    pub fn has_signed_ids(&self) -> bool {
        each!(self, file => TokenRead::has_signed_ids(file))
    }

    /// Checks that none of these tokens is a negative id.
    ///
    /// # Errors
    /// One is negative; as [`TokenFile::tokens`].
    pub fn check_signs(&self, tokens: Range<u64>) -> Result<()> {
        each!(self, file => TokenRead::check_signs(file, tokens))
    }

    /// Whether the file has checksums of its data.
    pub fn has_data_checksums(&self) -> bool {
        each!(self, file => TokenRead::has_data_checksums(file))
    }

    /// Verifies the checksum of a piece of the data, of
    /// [`CHECKED_DATA_BYTES`](packtok_pbin::CHECKED_DATA_BYTES).
    ///
    /// # Errors
    /// The checksum differs.
    pub fn verify_data_piece(&self, piece: u64) -> Result<()> {
        each!(self, file => TokenRead::verify_data_piece(file, piece))
    }

    /// Verifies the checksum of the document offsets.
    ///
    /// # Errors
    /// The checksum differs.
    pub fn verify_offsets(&self) -> Result<()> {
        each!(self, file => TokenRead::verify_offsets(file))
    }

    /// The checksum that identifies the complete content; `None` if the file does not record one.
    pub fn content_crc32c(&self) -> Option<u32> {
        each!(self, file => TokenRead::content_crc32c(file))
    }

    /// Bytes of all tokens.
    pub fn data_bytes(&self) -> u64 {
        each!(self, file => TokenRead::data_bytes(file))
    }
}

/// Whether a file has an ending that files without a header have.
fn is_named_as_headless(path: &Path) -> bool {
    let extension = path.extension();
    extension.is_some_and(|extension| extension == "bin" || extension == "npy")
}

/// The documents of a file of each kind.
enum Documents<P, R, N, F> {
    Pbin(P),
    Raw(R),
    Npy(N),
    Flat(F),
}

impl<P, R, N, F> Iterator for Documents<P, R, N, F>
where
    P: Iterator<Item = Result<(u64, Range<u64>)>>,
    R: Iterator<Item = P::Item>,
    N: Iterator<Item = P::Item>,
    F: Iterator<Item = P::Item>,
{
    type Item = P::Item;

    #[inline]
    fn next(&mut self) -> Option<P::Item> {
        match self {
            Self::Pbin(documents) => documents.next(),
            Self::Raw(documents) => documents.next(),
            Self::Npy(documents) => documents.next(),
            Self::Flat(documents) => documents.next(),
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
        assert_eq!(file.tail_tokens(), 1);
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
