//! What a format needs to be written.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use packtok_pbin::TokenWidth;

use crate::dolma::DolmaRow;
use crate::ends::write_ends;
use crate::error::Result;
use crate::megatron;
use crate::npy::Element;

/// A format that is written. Its tokens lie back to back after its header, unless it has a writer of its own
/// as pbins, Parquet and MDS do.
pub trait TokenWrite {
    /// The files of an output that the caller names `output`: a file, or the name that several files share,
    /// with or without their ending.
    fn paths(output: &Path) -> OutputPaths;

    /// Bytes of a token for a vocabulary: two if all ids fit, otherwise four.
    fn width_for_vocab(vocab_size: u64) -> TokenWidth {
        if vocab_size <= 1 << 16 {
            TokenWidth::U16
        } else {
            TokenWidth::U32
        }
    }

    /// Bytes of a token if the vocabulary is not known, and the tokens are read in `width`.
    fn width_for(width: TokenWidth) -> TokenWidth {
        match width {
            TokenWidth::U8 | TokenWidth::U16 => TokenWidth::U16,
            TokenWidth::U32 => TokenWidth::U32,
        }
    }

    /// The type of the ids of this width.
    fn element(width: TokenWidth) -> Element {
        Element::of_width(width)
    }

    /// The bytes before the first token. `path` is for messages.
    ///
    /// # Errors
    /// The format has no room for so many tokens or documents; a length is an error.
    fn header(_path: &Path, _tokens: &impl TokensToWrite) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    /// Whether the tokens have what the file at `path` records, one of [`OutputPaths::others`].
    ///
    /// # Errors
    /// The tokens cannot be read.
    fn is_needed(_path: &Path, _tokens: &impl TokensToWrite) -> Result<bool> {
        Ok(true)
    }

    /// Writes the file at `path`, one of [`OutputPaths::others`], but for the loss mask.
    ///
    /// # Errors
    /// A length is an error, or too large; `out` cannot be written.
    fn write_other(out: &mut impl Write, path: &Path, tokens: &impl TokensToWrite) -> Result<()> {
        write_ends(out, path, tokens.lengths())
    }
}

/// The tokens of an output, as its format describes them.
pub trait TokensToWrite {
    /// Bytes of a token.
    fn width(&self) -> TokenWidth;

    /// Number of documents.
    fn num_documents(&self) -> u64;

    /// Number of tokens in all documents.
    fn num_tokens(&self) -> u64;

    /// The numbers of tokens of the documents.
    fn lengths(&self) -> impl Iterator<Item = Result<u64>>;

    /// The documents as rows of dolma's index.
    fn rows(&self) -> impl Iterator<Item = Result<DolmaRow>>;

    /// Position of the first token in its file.
    fn first_byte(&self) -> u64;

    /// The name of the tokenizer, if it is known.
    fn tokenizer_name(&self) -> Option<&str>;

    /// Whether every document starts with the BOS that is known.
    ///
    /// # Errors
    /// The tokens cannot be read.
    fn all_start_with_bos(&self) -> Result<bool>;
}

/// The files of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPaths {
    /// The file of the tokens.
    pub data: PathBuf,
    /// The files that describe them. They are published first: the tokens make the output complete.
    pub others: Vec<PathBuf>,
    /// The one of them that has the loss mask, if the format has a file of its own for it. It is only
    /// written if there is a mask.
    pub loss_mask: Option<PathBuf>,
    /// The file that [`TokenFile::open`](crate::TokenFile::open) takes. A linked pbin would open as a pbin.
    pub to_open: PathBuf,
}

impl OutputPaths {
    /// A file of tokens, with others beside it.
    pub(crate) fn of_data(data: PathBuf, others: Vec<PathBuf>) -> Self {
        Self {
            to_open: data.clone(),
            data,
            others,
            loss_mask: None,
        }
    }

    /// The file that keeps this output from being written: the tokens, or a file that no killed
    /// conversion can have left.
    pub fn existing(&self) -> Option<&Path> {
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        let is_foreign = |path: &&PathBuf| {
            let is_index = path.extension().is_some_and(|ending| ending == "idx");
            let is_megatron = self.to_open != self.data;
            exists(path) && is_index && is_megatron && !megatron::starts_with_magic(path)
        };
        let data = exists(&self.data).then_some(self.data.as_path());
        data.or_else(|| self.others.iter().find(is_foreign).map(PathBuf::as_path))
    }

    /// All files.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        let others = self.others.iter();
        others.chain([&self.data]).map(PathBuf::as_path)
    }
}

/// The path without its extension, if that is one of `endings`.
pub fn without_ending(path: &Path, endings: &[&str]) -> PathBuf {
    let extension = path.extension().and_then(OsStr::to_str);
    if extension.is_some_and(|extension| endings.contains(&extension)) {
        path.with_extension("")
    } else {
        path.to_owned()
    }
}
