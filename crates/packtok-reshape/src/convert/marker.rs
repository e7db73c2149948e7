//! The marker next to a token file whose format has no room for metadata: the meaning of its ids,
//! counts, checksums.
//!
//! `a.npy` has the marker `a.npy.done.json`, a name that no corpus file has; a dataset of several
//! files has `.packtok/a.json`, or `a.linked.json` if its tokens are a link to a pbin. The marker is
//! written after the file, so a file with a marker is complete. Every byte of the marker follows from the
//! input, the options that change bytes, and the version.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use packtok_formats::TokenFile;
use packtok_formats::npy::IdType;
use packtok_jobs::with_suffix;
use packtok_pbin::{Options, Replace, SpecialToken, TokenizerInfo, WriterInfo, publish_bytes};
use serde::{Deserialize, Serialize};

use super::flat::linked_marker_path;
use super::formats::{Meaning, TokenFormat};
use super::npy::NpyWritten;
use super::paths::sidecar_path;
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
        let token = |token: &Option<SpecialToken>| match token {
            Some(SpecialToken { token, id }) => format!("{token:?} ({id})"),
            None => "none".to_owned(),
        };
        let fingerprint = |plan: &Self| {
            let tokenizer = plan.tokenizer.as_ref();
            tokenizer.map_or("unknown".to_owned(), |tokenizer| {
                tokenizer.fingerprint.clone()
            })
        };
        let options = |plan: &Self| serde_json::to_string(&plan.options).unwrap_or_default();
        let pairs = [
            ("dtype", self.dtype.clone(), expected.dtype.clone()),
            ("tokenizer", fingerprint(self), fingerprint(expected)),
            ("BOS", token(&self.bos), token(&expected.bos)),
            ("EOD", token(&self.eod), token(&expected.eod)),
            ("options", options(self), options(expected)),
        ];
        pairs
            .into_iter()
            .find(|(_, recorded, expected)| recorded != expected)
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
        file: &TokenFile,
        meaning: &Meaning,
        id_type: IdType,
        written: &NpyWritten,
    ) -> Self {
        let plan = plan_of(meaning, id_type.name());
        Self::of(written, plan, source_of(file), 0)
    }

    /// The marker of a written dataset of several files, which is open as `written`.
    pub(super) fn of_dataset(
        file: &TokenFile,
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
            source: source_of(file),
            plan: plan_of(meaning, dtype),
        }
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
        let candidates = [
            Some(marker_path(path)),
            Some(sidecar_path(path, ".json")),
            is_index.then(|| linked_marker_path(path)),
        ];
        for marker in candidates.into_iter().flatten() {
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

    /// Writes the marker of the dataset with the tokens `data` atomically. The marker of a linked
    /// dataset is visible: Megatron's `merge_datasets.py` expects an index beside each file of a
    /// folder and so stops, instead of merging positions that it counts from 0.
    ///
    /// # Errors
    /// The marker cannot be written.
    pub(super) fn publish_for_dataset(&self, data: &Path, is_linked: bool) -> Result<()> {
        if is_linked {
            self.publish_as(linked_marker_path(data))
        } else {
            self.publish_as(sidecar_path(data, ".json"))
        }
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

fn source_of(file: &TokenFile) -> MarkedSource {
    let name = file.path().file_name().unwrap_or_default();
    MarkedSource {
        path: name.to_string_lossy().into_owned(),
        bytes: file.file_bytes(),
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
