//! Files that contain only tokens, without a header or an index: tatm's `.bin`, OLMo's `.npy`
//! without a NumPy header, and others.
//!
//! The file records neither the width of its tokens nor the starts of documents. So the caller
//! specifies the width, and the whole file is one document. tatm allocates every file for 2^30
//! tokens and fills the unused end with zeros; [`num_tokens_without_padding`] finds the start of
//! these zeros.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::iter;
use std::ops::Range;
use std::path::Path;

use packtok_pbin::{AccessPattern, MappedFile, TokenWidth};

use crate::boundaries::open_without_index;
use crate::dolma::loss_mask_path;
use crate::error::{Error, Result};
use crate::flat_file::{FlatFile, StoredType};
use crate::format::TokenFormat;
use crate::loss_mask::MaskBytes;
use crate::npy::Element;
use crate::open_options::{Boundaries, OpenOptions};
use crate::sidecar::sidecar_ends_path;
use crate::token_read::TokenRead;
use crate::token_write::{OutputPaths, TokenWrite};

/// Bytes that are compared with zero at a time.
const STEP_BYTES: u64 = 1 << 20;

/// An open file of raw tokens.
#[derive(Debug)]
pub struct RawFile {
    map: MappedFile,
    path: Box<Path>,
    width: TokenWidth,
    /// Number of tokens, excluding the padding.
    num_tokens: u64,
}

impl RawFile {
    /// Opens the file at `path`, whose first `num_tokens` tokens are not padding.
    ///
    /// # Errors
    /// The file cannot be mapped, is shorter, or ends within a token.
    pub fn open(path: &Path, width: TokenWidth, num_tokens: u64) -> Result<Self> {
        let map = MappedFile::open(path)?;
        let file_tokens = check_length(path, map.bytes().len() as u64, width.bytes())?;
        if num_tokens > file_tokens {
            return Err(Error::NoSuchRawTokens {
                path: path.into(),
                start: 0,
                stop: num_tokens,
                num_tokens: file_tokens,
            });
        }
        Ok(Self {
            map,
            path: path.into(),
            width,
            num_tokens,
        })
    }

    fn bytes_of(&self, tokens: &Range<u64>) -> Range<usize> {
        let width = self.width.bytes();
        (tokens.start * width) as usize..(tokens.end * width) as usize
    }
}

impl TokenRead for RawFile {
    fn format(&self) -> TokenFormat {
        TokenFormat::Raw
    }

    fn num_documents(&self) -> u64 {
        1
    }

    fn documents_from(
        &self,
        token: u64,
    ) -> Result<impl Iterator<Item = Result<(u64, Range<u64>)>> + '_> {
        self.tokens(token..token.saturating_add(1))?;
        Ok(iter::once(Ok((0, 0..self.num_tokens))))
    }

    fn data_position(&self) -> Option<u64> {
        Some(0)
    }

    fn index_crc32c(&self) -> u32 {
        0
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn width(&self) -> TokenWidth {
        self.width
    }

    #[inline]
    fn num_tokens(&self) -> u64 {
        self.num_tokens
    }

    fn file_bytes(&self) -> u64 {
        self.map.bytes().len() as u64
    }

    #[inline]
    fn tokens_if_there(&self, tokens: Range<u64>) -> Option<&[u8]> {
        if tokens.start > tokens.end || tokens.end > self.num_tokens {
            return None;
        }
        self.map.bytes().get(self.bytes_of(&tokens))
    }

    fn tokens(&self, tokens: Range<u64>) -> Result<&[u8]> {
        let Range { start, end: stop } = tokens;
        self.tokens_if_there(tokens)
            .ok_or_else(|| Error::NoSuchRawTokens {
                path: self.path().into(),
                start,
                stop,
                num_tokens: self.num_tokens,
            })
    }

    fn document_tokens(&self, i: u64) -> Result<Range<u64>> {
        match i {
            0 => Ok(0..self.num_tokens),
            document => Err(Error::NoSuchRawDocument {
                path: self.path().into(),
                document,
            }),
        }
    }

    fn release_pages(&self) {
        self.map.release_pages();
    }

    fn advise(&self, pattern: AccessPattern) -> Result<()> {
        self.map.advise(pattern).map_err(Error::io(self.path()))
    }

    fn prefetch(&self, tokens: Range<u64>) -> Result<()> {
        self.tokens(tokens.clone())?;
        let bytes = self.bytes_of(&tokens);
        self.map.prefetch(bytes).map_err(Error::io(self.path()))
    }
}

/// How tokens without a header are written.
pub(crate) struct Raw;

impl TokenWrite for Raw {
    fn paths(output: &Path) -> OutputPaths {
        OutputPaths::of_data(output.to_owned(), vec![sidecar_ends_path(output)])
    }
}

/// Opens the file at `path`, all of whose bytes are ids of this type.
///
/// # Errors
/// The file cannot be mapped, or ends within a token; the type is not one of ids; the ends that
/// `options` names are damaged or belong to another file.
pub(crate) fn open_headless(
    path: &Path,
    dtype: Element,
    options: &OpenOptions,
) -> Result<FlatFile> {
    let stored_type = stored_type_of(path, dtype)?;
    let map = MappedFile::open(path)?;
    let num_tokens = check_length(path, map.bytes().len() as u64, stored_type.bytes())?;
    let place = (0, stored_type, num_tokens);
    let file = open_without_index(TokenFormat::Raw, path, map, place, options)?;
    // OLMo's script writes tokens and mask without an index.
    let is_named = path.extension().is_some_and(|extension| extension == "npy");
    let loss_mask = if is_named {
        MaskBytes::find(&loss_mask_path(&path.with_extension("")), num_tokens, path)?
    } else {
        None
    };
    Ok(file.with_loss_mask(loss_mask))
}

/// Opens the file of tatm at `path`, whose zeros at the end are padding.
///
/// # Errors
/// [`Error::UnknownDtype`]; as [`open_headless`].
pub(crate) fn open_padded(path: &Path, options: &OpenOptions) -> Result<FlatFile> {
    let Some(dtype) = options.dtype else {
        return Err(Error::UnknownDtype { path: path.into() });
    };
    let stored_type = stored_type_of(path, dtype)?;
    let (mut num_tokens, file_bytes) = num_tokens_without_padding(path, stored_type.bytes())?;
    // The last EOS looks like padding if its id is 0.
    let is_padded = num_tokens < file_bytes / stored_type.bytes();
    if is_padded && options.boundaries == Some(Boundaries::Eos(0)) {
        num_tokens += 1;
    }
    let place = (0, stored_type, num_tokens);
    open_without_index(
        TokenFormat::Tatm,
        path,
        MappedFile::open(path)?,
        place,
        options,
    )
}

fn stored_type_of(path: &Path, dtype: Element) -> Result<StoredType> {
    StoredType::of(dtype).ok_or_else(|| Error::DtypeOfNoIds {
        path: path.into(),
        dtype: dtype.name(),
    })
}

/// The number of tokens of `width` bytes in the file at `path` before the zeros at its end, and the
/// length of the file in bytes.
///
/// Reads backwards from the end and skips holes of sparse files, so the cost only grows with the
/// padding that is allocated on disk.
///
/// # Errors
/// The file cannot be read, or ends within a token.
pub fn num_tokens_without_padding(path: &Path, width: u64) -> Result<(u64, u64)> {
    let mut file = File::open(path).map_err(Error::io(path))?;
    let file_bytes = file.metadata().map_err(Error::io(path))?.len();
    check_length(path, file_bytes, width)?;
    let zeros = vec![0; STEP_BYTES.min(file_bytes) as usize];
    let mut buffer = zeros.clone();
    let mut end = end_of_last_extent(&file, file_bytes);
    while end > 0 {
        let start = end.saturating_sub(STEP_BYTES);
        let bytes = &mut buffer[..(end - start) as usize];
        file.seek(SeekFrom::Start(start)).map_err(Error::io(path))?;
        file.read_exact(bytes).map_err(Error::io(path))?;
        // The comparison is a single call of `memcmp`, even without optimization.
        if *bytes != zeros[..bytes.len()]
            && let Some(last) = bytes.iter().rposition(|&byte| byte != 0)
        {
            let used_bytes = start + last as u64 + 1;
            return Ok((used_bytes.div_ceil(width), file_bytes));
        }
        end = start;
    }
    Ok((0, file_bytes))
}

/// The end of the last allocated extent of a file; the end of the file if the system cannot report
/// holes.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn end_of_last_extent(file: &File, file_bytes: u64) -> u64 {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;

    let mut end = 0;
    loop {
        match seek(file, SeekFrom::Data(end)) {
            Ok(start) => match seek(file, SeekFrom::Hole(start)) {
                Ok(hole) if hole > end => end = hole.min(file_bytes),
                _ => return file_bytes,
            },
            // No data after this offset.
            Err(Errno::NXIO) => return end,
            Err(_) => return file_bytes,
        }
        if end == file_bytes {
            return end;
        }
    }
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn end_of_last_extent(_: &File, file_bytes: u64) -> u64 {
    file_bytes
}

/// The number of tokens in `bytes`.
fn check_length(path: &Path, bytes: u64, width: u64) -> Result<u64> {
    if bytes.is_multiple_of(width) {
        return Ok(bytes / width);
    }
    Err(Error::RawPartialToken {
        path: path.into(),
        bytes,
        width,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::TokenFile;
    use crate::test_support::documents;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), bytes).unwrap();
        file
    }

    #[test]
    fn padding_is_found_wherever_it_starts() {
        for len in [
            0,
            1,
            63,
            64,
            65,
            1000,
            STEP_BYTES as usize - 1,
            STEP_BYTES as usize,
            3 << 20,
        ] {
            for padding in [0, 1, 2, 63, 64, 65, 5000, (1 << 20) + 6] {
                let mut bytes = vec![7u8; len];
                bytes.resize(len + padding, 0);
                let file = file(&bytes);
                let counts = num_tokens_without_padding(file.path(), 1).unwrap();
                assert_eq!(counts, (len as u64, bytes.len() as u64), "{len} {padding}");
            }
        }
    }

    #[test]
    fn a_token_whose_last_byte_is_zero_is_no_padding() {
        let file = file(&[5, 0, 0, 1, 6, 0, 0, 0, 0, 0]);
        let counts = num_tokens_without_padding(file.path(), 2).unwrap();
        assert_eq!(counts, (3, 10));
    }

    #[test]
    fn tokens_are_those_of_the_file_up_to_the_padding() {
        let bytes: Vec<u8> = [1u16, 2, 3, 4, 0, 0]
            .iter()
            .flat_map(|id| id.to_le_bytes())
            .collect();
        let file = file(&bytes);
        let raw = RawFile::open(file.path(), TokenWidth::U16, 4).unwrap();
        assert_eq!(raw.tokens(1..3).unwrap(), &bytes[2..6]);
        assert_eq!(raw.tokens_if_there(0..5), None);
        assert_eq!(raw.tokens_if_there(Range { start: 3, end: 2 }), None);
        assert_eq!(raw.document_tokens(0).unwrap(), 0..4);
        assert!(raw.document_tokens(1).is_err());
        raw.prefetch(0..4).unwrap();
        raw.advise(AccessPattern::Random).unwrap();
        assert!(RawFile::open(file.path(), TokenWidth::U16, 7).is_err());
    }

    #[test]
    fn a_file_of_tatm_ends_before_its_padding() {
        let bytes: Vec<u8> = [5u16, 1, 6, 0, 7, 1, 0, 0].map(u16::to_le_bytes).concat();
        let file = file(&bytes);
        let mut options = OpenOptions {
            format: Some(TokenFormat::Tatm),
            dtype: Some(Element::U16),
            boundaries: Some(Boundaries::Eos(1)),
        };
        let read =
            |options: &OpenOptions| documents(&TokenFile::open_with(file.path(), options).unwrap());
        assert_eq!(read(&options), [vec![5, 1], vec![6, 0, 7, 1]]);
        // The last document ends with the first zero of the padding.
        options.boundaries = Some(Boundaries::Eos(0));
        assert_eq!(read(&options), [vec![5, 1, 6, 0], vec![7, 1, 0]]);
        options.dtype = None;
        let error = TokenFile::open_with(file.path(), &options).unwrap_err();
        assert!(error.to_string().contains("--input-dtype"), "{error}");
    }

    #[test]
    fn holes_are_padding() {
        let file = file(&[7; 5000]);
        file.as_file().set_len(1 << 40).unwrap();
        let counts = num_tokens_without_padding(file.path(), 1).unwrap();
        assert_eq!(counts, (5000, 1 << 40));
        // Data after a hole, and zeros that were written before another.
        let mut writer = file.as_file();
        writer.seek(SeekFrom::Start(1 << 30)).unwrap();
        std::io::Write::write_all(&mut writer, &[1, 2, 0, 0]).unwrap();
        let counts = num_tokens_without_padding(file.path(), 2).unwrap();
        assert_eq!(counts, ((1 << 29) + 1, 1 << 40));
        let empty = tempfile::NamedTempFile::new().unwrap();
        empty.as_file().set_len(1 << 40).unwrap();
        let counts = num_tokens_without_padding(empty.path(), 1).unwrap();
        assert_eq!(counts, (0, 1 << 40));
    }

    #[test]
    fn a_partial_token_is_an_error() {
        let file = file(&[1, 2, 3]);
        let error = num_tokens_without_padding(file.path(), 2).unwrap_err();
        let expected = "the file is 3 bytes, which is no whole number of tokens of 2 bytes";
        assert!(error.to_string().contains(expected), "{error}");
        assert!(RawFile::open(file.path(), TokenWidth::U16, 1).is_err());
    }
}
