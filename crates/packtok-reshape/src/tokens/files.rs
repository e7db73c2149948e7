//! The files of a corpus, each with the name of its NPY file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use packtok_corpus::{Selection, base_of, base_of_list, expand, read_list};
use serde::Serialize;

use crate::error::{Error, Result};

/// Endings of compressed files.
const COMPRESSED: [&str; 5] = ["gz", "zst", "zstd", "bz2", "xz"];

/// A file of a corpus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CorpusFile {
    /// The file.
    pub path: PathBuf,
    /// Path of the file relative to the base folder of its input.
    pub relative: String,
    /// Length of the file as stored, in bytes.
    pub bytes: u64,
    /// The NPY file for it, relative to the output folder.
    pub npy: String,
}

/// The files of `inputs`, in order, with the names of their NPY files.
///
/// # Errors
/// As [`expand`]; two files have the same NPY file, or a file is not below the folder of its
/// input.
pub fn corpus_files(
    inputs: &[String],
    selection: &Selection,
    root: Option<&Path>,
) -> Result<Vec<CorpusFile>> {
    let expansion = expand(inputs, selection)?;
    let bases: Vec<_> = inputs.iter().map(|input| base_of(input, root)).collect();
    let files = expansion.sources.into_iter();
    let files = files.map(|source| {
        let base = &bases[source.input];
        corpus_file(source.path, source.bytes, base)
    });
    let files = files.collect::<Result<Vec<_>>>()?;
    let mut seen = HashMap::new();
    for file in &files {
        if let Some(first) = seen.insert(&file.npy, &file.path) {
            return Err(Error::SameNpyName {
                first: first.clone(),
                second: file.path.clone(),
                name: file.npy.clone(),
            });
        }
    }
    Ok(files)
}

/// The NPY file of each line of a list, with the number of the line; the files need not exist.
///
/// # Errors
/// The list cannot be read; as [`corpus_files`].
pub fn listed_files(list: &Path, root: Option<&Path>) -> Result<Vec<(u64, String)>> {
    let base = base_of_list(list, root);
    let lines = read_list(list, root)?.into_iter();
    let lines = lines.map(|listed| Ok((listed.line, corpus_file(listed.path, 0, base)?.npy)));
    lines.collect()
}

fn corpus_file(path: PathBuf, bytes: u64, base: &Path) -> Result<CorpusFile> {
    let below = path.strip_prefix(base).ok();
    let is_plain = |below: &&Path| {
        let mut parts = below.components();
        parts.all(|part| {
            matches!(
                part,
                std::path::Component::Normal(_) | std::path::Component::CurDir
            )
        })
    };
    let Some(below) = below.filter(is_plain) else {
        return Err(Error::NotBelowRoot {
            root: base.into(),
            path,
        });
    };
    let Some(relative) = below.to_str().map(str::to_owned) else {
        return Err(Error::NameNotUtf8 { path });
    };
    let npy = npy_name(&relative);
    Ok(CorpusFile {
        path,
        relative,
        bytes,
        npy,
    })
}

/// The NPY file of a corpus file: `.npy` instead of its endings, `.jsonl` or `.jsonl.gz`.
fn npy_name(relative: &str) -> String {
    let path = Path::new(relative);
    let is_compressed = |path: &Path| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| COMPRESSED.contains(&ending))
    };
    let plain = if is_compressed(path) {
        path.with_extension("")
    } else {
        path.to_owned()
    };
    plain.with_extension("npy").to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_of_formats_and_compressions_are_replaced() {
        for (name, expected) in [
            ("arxiv/a.jsonl", "arxiv/a.npy"),
            ("a.b.jsonl.gz", "a.b.npy"),
            ("a.jsonl.zst", "a.npy"),
            ("a.parquet", "a.npy"),
            ("a", "a.npy"),
            ("a.gz", "a.npy"),
        ] {
            assert_eq!(npy_name(name), expected);
        }
    }
}
