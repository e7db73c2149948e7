//! Handling of an output that already exists.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use packtok_jobs::with_suffix;
use packtok_pack::pack::Existing;
use packtok_pbin::remove_abandoned;

use crate::error::{Error, Result};

/// Endings of the files of tokens in formats that have several files.
const TOKENS_ENDINGS: [&str; 3] = [".bin", ".ds", ".npy"];
/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 256 << 10;

/// Rejects an output that is an input and removes the files of killed runs. Returns whether the
/// output exists and is to be kept.
///
/// # Errors
/// An input does not exist or is the output; the output exists and is neither kept nor replaced.
pub(crate) fn prepare(inputs: &[PathBuf], output: &Path, existing: Existing) -> Result<bool> {
    let output_metadata = fs::metadata(without_dots(output));
    for input in inputs {
        let metadata = metadata_of(input).map_err(Error::io(input))?;
        let is_output = (output_metadata.as_ref())
            .is_ok_and(|output| (output.dev(), output.ino()) == (metadata.dev(), metadata.ino()));
        if is_output {
            let path = input.clone();
            return Err(packtok_pack::Error::OutputIsInput { path }.into());
        }
    }
    let keeps = existing.keeps(output)?;
    remove_abandoned(&[output])?;
    Ok(keeps)
}

/// The path without `..`, which a folder before it that does not exist yet would otherwise hide.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
    if path.exists() {
        return path.to_owned();
    }
    let mut resolved = PathBuf::new();
    for part in path.components() {
        let is_back = part == Component::ParentDir && resolved.file_name().is_some();
        if is_back {
            resolved.pop();
        } else {
            resolved.push(part);
        }
    }
    resolved
}

/// The metadata of an input, or of its tokens if it is the name that several files share.
fn metadata_of(input: &Path) -> io::Result<fs::Metadata> {
    fs::metadata(input).or_else(|error| {
        let mut named = TOKENS_ENDINGS
            .iter()
            .map(|ending| with_suffix(input, ending));
        named.find_map(|data| fs::metadata(data).ok()).ok_or(error)
    })
}

/// Compares the result of a run, under its temporary name, with the existing output.
///
/// # Errors
/// [`Error::ExistingBytesDiffer`]; a file cannot be read.
pub(crate) fn compare(result: &Path, existing: &Path) -> Result<()> {
    let open = |path: &Path| {
        let file = File::open(path).map_err(Error::io(path))?;
        Ok::<_, Error>(BufReader::with_capacity(BUFFER_BYTES, file))
    };
    let (mut result_reader, mut existing_reader) = (open(result)?, open(existing)?);
    let mut offset = 0;
    loop {
        let result_bytes = result_reader.fill_buf().map_err(Error::io(result))?;
        let existing_bytes = existing_reader.fill_buf().map_err(Error::io(existing))?;
        if result_bytes.is_empty() && existing_bytes.is_empty() {
            return Ok(());
        }
        let len = result_bytes.len().min(existing_bytes.len());
        let num_same = (result_bytes.iter().zip(existing_bytes))
            .take_while(|(a, b)| a == b)
            .count();
        if num_same < len || len == 0 {
            return Err(Error::ExistingBytesDiffer {
                path: existing.into(),
                offset: offset + num_same as u64,
            });
        }
        offset += len as u64;
        result_reader.consume(len);
        existing_reader.consume(len);
    }
}
