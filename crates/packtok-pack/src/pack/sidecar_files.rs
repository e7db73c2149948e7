//! The files next to an output.

use std::io::Write;
use std::path::{Path, PathBuf};

use packtok_jobs::with_suffix;
use packtok_pbin::{Replace, TempFile};
use packtok_tokenizer::Tokenizer;

use crate::error::{Error, Result};

/// The path of the tokenizer's copy next to a pbin.
pub(crate) fn tokenizer_path_of(output: &Path) -> PathBuf {
    with_suffix(output, ".tokenizer.json")
}

/// Writes the tokenizer next to a pbin, and returns its path.
pub(crate) fn publish_tokenizer(output: &Path, tokenizer: &Tokenizer) -> Result<PathBuf> {
    let file = write_tokenizer(output, tokenizer)?;
    let path = file.dst().to_owned();
    file.publish(Replace::Existing)?;
    Ok(path)
}

/// Writes the tokenizer's copy to an unpublished file and syncs it.
pub(super) fn write_tokenizer(output: &Path, tokenizer: &Tokenizer) -> Result<TempFile> {
    let path = tokenizer_path_of(output);
    let mut file = TempFile::create(&path)?;
    file.write_all(tokenizer.json().as_bytes())
        .map_err(|error| Error::io(&path, error))?;
    file.sync()?;
    Ok(file)
}
