//! The marker next to a token file whose format has no room for metadata: the meaning of its ids,
//! counts, checksums.
//!
//! CEPE's `a.npy` has the marker `a.npy.done.json`, a name that no corpus file has; other files have
//! `.packtok/a.bin.json`, or `a.linked.json` if they are a link to a pbin. The marker is
//! written after the file, so a file with a marker is complete. Every byte of the marker follows from the
//! input, the options that change bytes, and the version.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use packtok_formats::npy::IdType;
use packtok_formats::{
    TokenFile, TokenFormat, crc32c_of_lengths, sidecar_marker_path, without_ending,
};
use packtok_jobs::{remove_if_there, with_suffix};
use packtok_pbin::{Options, Replace, SpecialToken, TokenizerInfo, WriterInfo, publish_bytes};
use serde::{Deserialize, Serialize};

use super::meaning::Meaning;
use super::npy::NpyWritten;
use super::parts::Parts;
use super::stated_dtype;
use crate::declared_tokenizer::DeclaredTokenizer;
use crate::error::{Error, Result};

/// The meaning of the ids, and the options that change bytes. Equal for all files of one dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenPlan {
    /// The type of the ids.
    pub dtype: String,
    /// The tokenizer, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<TokenizerInfo>,
    /// The token before every document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bos: Option<SpecialToken>,
    /// The token after every document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eod: Option<SpecialToken>,
    /// The options of tokenizing; `None` for a converted file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Options>,
}

impl TokenPlan {
    pub(super) fn meaning(self) -> Meaning {
        Meaning {
            tokenizer: self.tokenizer,
            eod: self.eod,
            bos: self.bos,
        }
    }

    /// The first difference from `expected`: the name of the field, and both values.
    pub fn difference(&self, expected: &Self) -> Option<(&'static str, String, String)> {
        if self.dtype != expected.dtype {
            return Some(("dtype", self.dtype.clone(), expected.dtype.clone()));
        }
        let meaning = |plan: &Self| plan.clone().meaning();
        let options = |plan: &Self| serde_json::to_string(&plan.options).unwrap_or_default();
        meaning(self).difference(&meaning(expected)).or_else(|| {
            let (recorded, expected) = (options(self), options(expected));
            (recorded != expected).then_some(("options", recorded, expected))
        })
    }
}

/// The file that a token file was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkedSource {
    /// Path relative to the root of the inputs; the file name for a conversion.
    pub path: String,
    /// Bytes of the file as stored.
    pub bytes: u64,
    /// CRC32C of the source, if all of it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc32c: Option<u32>,
}

/// The content of a marker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// The format of the file.
    pub format: String,
    /// The program that wrote it.
    pub writer: WriterInfo,
    /// Number of documents in the file.
    pub documents: u64,
    /// Number of tokens in the file.
    pub tokens: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// CRC32C of all bytes of the file; of a dataset of several files, of its index.
    pub crc32c: u32,
    /// Records of the source that were skipped as bad; they are listed in the rejects file.
    #[serde(default)]
    pub rejected: u64,
    /// The file it was made from.
    pub source: MarkedSource,
    /// The meaning of the ids.
    pub plan: TokenPlan,
}

/// The marker of the file at `path`.
pub fn marker_path(path: &Path) -> PathBuf {
    with_suffix(path, ".done.json")
}

impl Marker {
    pub(super) fn of_conversion(
        parts: &Parts<'_>,
        meaning: &Meaning,
        id_type: IdType,
        written: &NpyWritten,
    ) -> Self {
        let plan = plan_of(meaning, id_type.name());
        Self::of(written, plan, source_of(parts), 0)
    }

    /// The marker of a written dataset of any format but CEPE's, which is open as `written`.
    pub(super) fn of_dataset(
        parts: &Parts<'_>,
        meaning: &Meaning,
        format: TokenFormat,
        dtype: &str,
        written: &TokenFile,
    ) -> Self {
        Self {
            format: format.name().to_owned(),
            writer: WriterInfo::default(),
            documents: written.num_documents(),
            tokens: written.num_tokens(),
            file_bytes: written.file_bytes(),
            crc32c: written.index_crc32c(),
            rejected: 0,
            source: source_of(parts),
            plan: plan_of(meaning, dtype),
        }
    }

    /// The marker of a written file of rows or samples, without opening it again.
    pub(super) fn of_rows(
        parts: &Parts<'_>,
        meaning: &Meaning,
        format: TokenFormat,
        dtype: &str,
        file_bytes: u64,
    ) -> Result<Self> {
        Ok(Self {
            format: format.name().to_owned(),
            writer: WriterInfo::default(),
            documents: parts.num_documents(),
            tokens: parts.num_tokens(),
            file_bytes,
            crc32c: crc32c_of_lengths(parts.lengths())?,
            rejected: 0,
            source: source_of(parts),
            plan: plan_of(meaning, dtype),
        })
    }

    /// The marker of a written NPY file.
    pub(crate) fn of(
        written: &NpyWritten,
        plan: TokenPlan,
        source: MarkedSource,
        rejected: u64,
    ) -> Self {
        Self {
            format: TokenFormat::CepeNpy.name().to_owned(),
            writer: WriterInfo::default(),
            documents: written.documents,
            tokens: written.tokens,
            file_bytes: written.file_bytes,
            crc32c: written.crc32c,
            rejected,
            source,
            plan,
        }
    }

    /// The marker of the file at `path`; `None` if the file has no marker.
    ///
    /// # Errors
    /// The marker cannot be read or is damaged.
    pub fn find(path: &Path) -> Result<Option<Self>> {
        // Linked tokens are a pbin, which describes itself.
        let is_index = path.extension().is_none_or(|extension| extension != "bin");
        let of_index = (path.extension().is_some_and(|extension| extension == "idx"))
            .then(|| sidecar_marker_path(&path.with_extension("bin")));
        let of_prefix = [".bin", ".ds", ".npy", ".parquet"].map(|ending| with_suffix(path, ending));
        let of_prefix = of_prefix.iter().filter(|data| data.exists());
        let candidates = [marker_path(path), sidecar_marker_path(path)]
            .into_iter()
            .chain(of_index)
            .chain(of_prefix.map(|data| sidecar_marker_path(data)))
            .chain(is_index.then(|| linked_marker_path(path)));
        for marker in candidates {
            let bytes = match fs::read(&marker) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::io(&marker)(error)),
            };
            let parsed = serde_json::from_slice(&bytes);
            return parsed.map(Some).map_err(|source| Error::DamagedMarker {
                path: marker,
                source,
            });
        }
        Ok(None)
    }

    /// Writes the marker of the file at `path` atomically.
    ///
    /// # Errors
    /// The marker cannot be written.
    pub fn publish(&self, path: &Path) -> Result<()> {
        self.publish_as(marker_path(path))
    }

    /// Writes the marker of the dataset with the tokens `data` atomically. The marker of a dataset
    /// whose tokens are linked and do not start at byte 0 is visible: Megatron's `merge_datasets.py` expects an index beside each file of a
    /// folder and so stops, instead of merging positions that it counts from 0.
    ///
    /// # Errors
    /// The marker cannot be written.
    pub(super) fn publish_for_dataset(&self, data: &Path, is_visible: bool) -> Result<()> {
        if is_visible {
            self.publish_as(linked_marker_path(data))
        } else {
            self.publish_as(sidecar_marker_path(data))
        }
    }

    /// Removes the markers of an earlier dataset with the tokens `data`, of whatever format.
    ///
    /// # Errors
    /// A marker cannot be removed.
    pub(super) fn remove(data: &Path) -> Result<()> {
        for marker in [
            marker_path(data),
            sidecar_marker_path(data),
            linked_marker_path(data),
        ] {
            remove_if_there(&marker).map_err(Error::io(&marker))?;
        }
        Ok(())
    }

    fn publish_as(&self, marker: PathBuf) -> Result<()> {
        let mut bytes = serde_json::to_vec(self).map_err(|source| Error::DamagedMarker {
            path: marker.clone(),
            source,
        })?;
        bytes.push(b'\n');
        Ok(publish_bytes(&marker, &bytes, Replace::Existing)?)
    }
}

/// The path of the marker of a linked dataset, by its tokens, its index or their common name.
fn linked_marker_path(path: &Path) -> PathBuf {
    let prefix = without_ending(path, &["bin", "idx"]);
    with_suffix(&prefix, ".linked.json")
}

/// The meaning of the ids of all files, each from its trailer or its marker. They must agree, and
/// with the caller's tokenizer, if any.
pub(crate) fn meaning_of_all<'a>(
    files: impl IntoIterator<Item = &'a TokenFile>,
    tokenizer: Option<&DeclaredTokenizer>,
) -> Result<Meaning> {
    let mut files = files.into_iter();
    let Some(first) = files.next() else {
        return Ok(Meaning::default());
    };
    let meaning = meaning_of(first, tokenizer)?;
    for file in files {
        if let Some((what, found, expected)) = meaning_of(file, tokenizer)?.difference(&meaning) {
            let paths = [file.path(), first.path()].map(Path::to_owned);
            return Err(Error::OtherMeaning {
                paths: paths.into(),
                what,
                found,
                expected,
            });
        }
    }
    Ok(meaning)
}

fn meaning_of(file: &TokenFile, declared: Option<&DeclaredTokenizer>) -> Result<Meaning> {
    let tokenizer = declared.map(DeclaredTokenizer::info);
    let recorded = match file.metadata()? {
        Some(metadata) => Meaning {
            tokenizer: metadata.tokenizer.clone(),
            eod: metadata.eod.clone(),
            bos: metadata.bos.clone(),
        },
        None => Marker::find(file.path())?
            .map(|marker| marker.plan.meaning())
            .unwrap_or_default(),
    };
    if let Some(info) = recorded.tokenizer.as_ref().or(tokenizer) {
        stated_dtype::check(file, info.vocab_size)?;
    }
    if let (None, Some(declared)) = (&recorded.tokenizer, declared) {
        declared.check(file)?;
    }
    match (&recorded.tokenizer, tokenizer) {
        (Some(recorded), Some(tokenizer)) if recorded.fingerprint != tokenizer.fingerprint => {
            Err(Error::TokenizerDiffers {
                path: file.path().into(),
                found: recorded.fingerprint.clone(),
                expected: tokenizer.fingerprint.clone(),
            })
        }
        (None, Some(tokenizer)) => Ok(Meaning {
            tokenizer: Some(tokenizer.clone()),
            ..recorded
        }),
        _ => Ok(recorded),
    }
}

/// The first of the files; of several, their bytes together.
fn source_of(parts: &Parts<'_>) -> MarkedSource {
    let files = parts.documents();
    let name = files.first().map(|(file, _)| parts.source_name(file));
    MarkedSource {
        path: name.unwrap_or_default(),
        bytes: files.iter().map(|(file, _)| file.file_bytes()).sum(),
        crc32c: None,
    }
}

fn plan_of(meaning: &Meaning, dtype: &str) -> TokenPlan {
    TokenPlan {
        dtype: dtype.to_owned(),
        tokenizer: meaning.tokenizer.clone(),
        bos: meaning.bos.clone(),
        eod: meaning.eod.clone(),
        options: None,
    }
}
