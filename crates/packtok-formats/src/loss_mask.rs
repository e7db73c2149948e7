//! The loss mask of a token file: whether each token counts in the loss where it is a label.

#[cfg(feature = "tables")]
use std::fs::File;
#[cfg(feature = "tables")]
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use packtok_pbin::MappedFile;

use crate::error::{Error, Fault, Result};

/// The loss mask of an open file.
#[derive(Debug, Clone, Copy)]
pub struct LossMask<'a>(Kind<'a>);

#[derive(Debug, Clone, Copy)]
enum Kind<'a> {
    Bits(packtok_pbin::LossMask<'a>),
    Bytes(&'a MaskBytes),
}

impl<'a> LossMask<'a> {
    pub(crate) fn of_bytes(bytes: &'a MaskBytes) -> Self {
        Self(Kind::Bytes(bytes))
    }

    /// Appends whether each of `tokens`, which the file has, counts.
    ///
    /// # Errors
    /// [`Error::Fault`] for a byte that is neither 0 nor 1.
    pub fn append_to(self, tokens: Range<u64>, out: &mut Vec<bool>) -> Result<()> {
        match self.0 {
            Kind::Bits(bits) => out.extend(bits.tokens(tokens)),
            Kind::Bytes(bytes) => out.extend(bytes.tokens(tokens)?),
        }
        Ok(())
    }

    /// Calls `ignore` with the ranges of `tokens`, which the file has, that do not count, as positions from
    /// the start of `tokens`.
    ///
    /// # Errors
    /// As [`LossMask::append_to`].
    pub fn ignored(self, tokens: Range<u64>, ignore: impl FnMut(Range<usize>)) -> Result<()> {
        match self.0 {
            Kind::Bits(bits) => runs_of_false(bits.tokens(tokens), ignore),
            Kind::Bytes(bytes) => runs_of_false(bytes.tokens(tokens)?, ignore),
        }
        Ok(())
    }
}

/// Calls `each` with the ranges in which `bits` are false.
fn runs_of_false(bits: impl Iterator<Item = bool>, mut each: impl FnMut(Range<usize>)) {
    let (mut start, mut len) = (None, 0);
    for bit in bits {
        match start {
            None if !bit => start = Some(len),
            Some(first) if bit => {
                each(first..len);
                start = None;
            }
            _ => {}
        }
        len += 1;
    }
    if let Some(first) = start {
        each(first..len);
    }
}

impl<'a> From<packtok_pbin::LossMask<'a>> for LossMask<'a> {
    fn from(bits: packtok_pbin::LossMask<'a>) -> Self {
        Self(Kind::Bits(bits))
    }
}

/// A mask of one byte per token, 0 or 1, as NumPy's and PyTorch's bools.
#[derive(Debug)]
pub(crate) struct MaskBytes {
    path: PathBuf,
    map: MappedFile,
}

impl MaskBytes {
    /// The mask in the file at `path`; `None` if there is no file.
    ///
    /// # Errors
    /// [`Error::MaskLength`]; the file cannot be mapped.
    pub(crate) fn find(path: &Path, num_tokens: u64, data: &Path) -> Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        let map = MappedFile::open(path)?;
        let num_bytes = map.bytes().len() as u64;
        if num_bytes != num_tokens {
            return Err(Error::MaskLength {
                path: path.into(),
                data: data.into(),
                found: num_bytes,
                expected: num_tokens,
            });
        }
        let path = path.into();
        Ok(Some(Self { path, map }))
    }

    fn tokens(&self, tokens: Range<u64>) -> Result<impl Iterator<Item = bool> + '_> {
        let bytes = self.map.bytes();
        let bytes = &bytes[tokens.start as usize..tokens.end.min(bytes.len() as u64) as usize];
        if let Some(at) = bytes.iter().position(|&byte| byte > 1) {
            return Err(Error::fault(Fault {
                path: self.path.clone(),
                offset: tokens.start + at as u64,
                what: "a byte of the loss mask",
                found: bytes[at].to_string(),
                expected: "0 or 1".to_owned(),
                remedy: "the file is damaged, or is no mask of booleans",
            }));
        }
        Ok(bytes.iter().map(|&byte| byte == 1))
    }
}

/// A mask that is collected from other columns of the file at `path`, in a temporary file.
#[cfg(feature = "tables")]
pub(crate) struct MaskWriter {
    path: PathBuf,
    out: BufWriter<File>,
}

#[cfg(feature = "tables")]
impl MaskWriter {
    /// # Errors
    /// The temporary file cannot be created.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.into(),
            out: BufWriter::new(tempfile::tempfile()?),
        })
    }

    /// # Errors
    /// The temporary file cannot be written.
    pub(crate) fn push(&mut self, tokens: impl Iterator<Item = bool>) -> io::Result<()> {
        let mut tokens = tokens;
        tokens.try_for_each(|is_counted| self.out.write_all(&[u8::from(is_counted)]))
    }

    /// # Errors
    /// The temporary file cannot be written or mapped.
    pub(crate) fn finish(self) -> io::Result<MaskBytes> {
        let file = self
            .out
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        Ok(MaskBytes {
            path: self.path,
            map: MappedFile::of(&file)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::io::Write;

    use super::*;
    use crate::datatrove::DatatrovePaths;
    use crate::dolma::DolmaPaths;
    use crate::test_support::{documents, golden, golden_documents};
    use crate::{TokenFile, write_ends};

    /// The mask of all tokens of the file at `path`.
    fn mask_of(path: &Path) -> Option<Vec<bool>> {
        let file = TokenFile::open(path).unwrap();
        let mut all = Vec::new();
        let mask = file.loss_mask()?;
        mask.append_to(0..file.num_tokens(), &mut all).unwrap();
        Some(all)
    }

    #[test]
    fn ranges_that_do_not_count_equal_a_loop_over_the_bits() {
        for bits in 0u32..1 << 7 {
            let bits: Vec<bool> = (0..7).map(|i| bits >> i & 1 == 1).collect();
            let mut ranges = vec![true; 7];
            runs_of_false(bits.iter().copied(), |range| ranges[range].fill(false));
            assert_eq!(ranges, bits);
        }
    }

    #[test]
    fn masks_beside_files_of_datatrove_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let paths = DatatrovePaths::of_data(&folder.path().join("a.ds"));
        fs::write(&paths.data, [1, 0, 2, 0, 3, 0]).unwrap();
        let mut ends = Vec::new();
        write_ends(&mut ends, &paths.index, [Ok(2), Ok(1)].into_iter()).unwrap();
        fs::write(&paths.index, ends).unwrap();
        assert_eq!(mask_of(&paths.data), None);
        fs::write(&paths.loss, [0, 1, 1]).unwrap();
        assert_eq!(mask_of(&paths.data), Some(vec![false, true, true]));
        fs::write(&paths.loss, [0, 1, 7]).unwrap();
        let file = TokenFile::open(&paths.data).unwrap();
        let mask = file.loss_mask().unwrap();
        mask.append_to(0..2, &mut Vec::new()).unwrap();
        let message = mask
            .append_to(1..3, &mut Vec::new())
            .unwrap_err()
            .to_string();
        let expected = "a byte of the loss mask is 7 (byte 2); expected 0 or 1";
        assert!(message.contains(expected), "{message}");
        fs::write(&paths.loss, [0, 1]).unwrap();
        let message = TokenFile::open(&paths.data).unwrap_err().to_string();
        let expected = "the loss mask has 2 bytes; expected 3, one for each token of";
        assert!(message.contains(expected), "{message}");
    }

    #[test]
    fn a_mask_that_datatrove_wrote_is_read() {
        let folder = golden("datatrove/loss");
        let masks = fs::read(folder.join("masks.json")).unwrap();
        let masks: BTreeMap<String, Vec<Vec<bool>>> = serde_json::from_slice(&masks).unwrap();
        for (name, expected) in masks {
            let path = folder.join(format!("{name}.ds"));
            assert_eq!(mask_of(&path), Some(expected.concat()));
            let file = TokenFile::open(&path).unwrap();
            assert_eq!(documents(&file), golden_documents("datatrove/loss")[&name]);
        }
    }

    #[test]
    fn masks_beside_files_of_olmo_have_the_names_that_its_tools_give() {
        let folder = tempfile::tempdir().unwrap();
        for (tokens, mask) in [
            ("token_ids_part_0000", "labels_mask_part_0000.npy"),
            ("input_ids", "label_mask.npy"),
            ("part-0-00000", "label_masks/part-0-00000.npy"),
        ] {
            let paths = DolmaPaths::of_prefix(&folder.path().join(tokens));
            assert_eq!(paths.loss_mask, folder.path().join(mask));
        }
        let paths = DolmaPaths::of_prefix(&folder.path().join("token_ids_part_0000"));
        fs::write(&paths.data, [1, 0, 2, 0, 3, 0]).unwrap();
        // open-instruct writes two columns.
        let mut index = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        index.write_all(b"0,2\n2,3\n").unwrap();
        fs::write(&paths.index, index.finish().unwrap()).unwrap();
        fs::write(&paths.loss_mask, [1, 0, 1]).unwrap();
        assert_eq!(mask_of(&paths.data), Some(vec![true, false, true]));
        assert_eq!(TokenFile::open(&paths.data).unwrap().num_documents(), 2);
    }

    #[cfg(feature = "tables")]
    #[test]
    fn labels_that_are_written_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let mut writer = crate::parquet_rows::RowsWriter::masked(Vec::new(), &path).unwrap();
        writer
            .push_masked([5, 6, 7].into_iter(), &[false, true, true])
            .unwrap();
        writer.push_masked([].into_iter(), &[]).unwrap();
        writer.push_masked([8].into_iter(), &[false]).unwrap();
        fs::write(&path, writer.finish().unwrap()).unwrap();
        assert_eq!(mask_of(&path), Some(vec![false, true, true, false]));
        assert!(TokenFile::open(&path).unwrap().extras().is_empty());
    }
}
