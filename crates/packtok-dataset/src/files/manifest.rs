//! Entries that describe token files without opening them, and manifests that list entries.
//!
//! A manifest is JSON lines, one per file, with paths relative to the manifest. A listed file is
//! compared with its entry when it is first opened.

use std::fs;
use std::path::{Path, PathBuf};

use packtok_formats::raw::num_tokens_without_padding;
use packtok_formats::{TokenFile, TokenFormat};
use packtok_pbin::{HEADER_BYTES, Replace, TokenWidth, publish_bytes};
use packtok_store::is_url;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::files::fingerprint::DataFingerprint;

/// Describes and identifies a token file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Path of the file.
    pub path: PathBuf,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of one token.
    pub token_bytes: u64,
    /// Number of documents.
    pub documents: u64,
    /// Number of tokens.
    pub tokens: u64,
    /// Checksum of the trailer, which identifies the complete content; absent without a trailer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trailer_crc32c: Option<u32>,
    /// CRC32C of the index of a file without a trailer: the pickle of a pbin, or everything before
    /// the first token of an NPY file. Distinguishes files that differ only in the lengths of
    /// their documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_crc32c: Option<u32>,
    /// The format of the file.
    #[serde(default, skip_serializing_if = "is_pbin")]
    pub format: TokenFormat,
}

impl Entry {
    /// The entry of an open file.
    pub fn of(file: &TokenFile) -> Self {
        let trailer_crc32c = file.content_crc32c();
        let format = file.format();
        let has_index = !matches!(file, TokenFile::Raw(_)) && trailer_crc32c.is_none();
        Self {
            path: file.path().to_owned(),
            file_bytes: file.file_bytes(),
            token_bytes: file.width().bytes(),
            documents: file.num_documents(),
            tokens: file.num_tokens(),
            trailer_crc32c,
            index_crc32c: has_index.then(|| file.index_crc32c()),
            format,
        }
    }

    /// The entry of the raw tokens of `width` at `path`, without the zero padding at the end of the
    /// file.
    ///
    /// # Errors
    /// [`Error::Formats`] if the file cannot be read or ends within a token.
    pub fn of_raw(path: &Path, width: TokenWidth) -> Result<Self> {
        let (tokens, file_bytes) = num_tokens_without_padding(path, width.bytes())?;
        Ok(Self {
            path: path.to_owned(),
            file_bytes,
            token_bytes: width.bytes(),
            documents: 1,
            tokens,
            trailer_crc32c: None,
            index_crc32c: None,
            format: TokenFormat::Raw,
        })
    }

    /// The width of a token, which [`Entry::check`] has checked.
    pub(crate) fn width(&self) -> TokenWidth {
        match self.token_bytes {
            1 => TokenWidth::U8,
            2 => TokenWidth::U16,
            _ => TokenWidth::U32,
        }
    }

    /// Checks that the file at the path matches the entry; `current` is the entry of that file.
    ///
    /// # Errors
    /// [`Error::FileReplaced`] for the first number that differs.
    pub(crate) fn compare(&self, current: &Self) -> Result<()> {
        let crc = |crc: Option<u32>| u64::from(crc.unwrap_or(0));
        let numbers = [
            ("file_bytes", current.file_bytes, self.file_bytes),
            ("token_bytes", current.token_bytes, self.token_bytes),
            ("documents", current.documents, self.documents),
            ("tokens", current.tokens, self.tokens),
            (
                "trailer_crc32c",
                crc(current.trailer_crc32c),
                crc(self.trailer_crc32c),
            ),
            (
                "index_crc32c",
                crc(current.index_crc32c),
                crc(self.index_crc32c),
            ),
        ];
        match numbers
            .into_iter()
            .find(|(_, found, expected)| found != expected)
        {
            None => Ok(()),
            Some((what, found, expected)) => Err(Error::FileReplaced {
                path: self.path.clone(),
                what,
                found,
                expected,
            }),
        }
    }

    /// Checks that the numbers are possible for a file, so that sums of them can be trusted.
    pub(crate) fn check(&self) -> Result<()> {
        // These may be compressed, or have narrower ids than the copies that are read.
        let stored_bytes = match self.format {
            TokenFormat::Parquet | TokenFormat::Arrow | TokenFormat::Mds | TokenFormat::Litdata => {
                0
            }
            _ => self.token_bytes,
        };
        let data_bytes = self.tokens.checked_mul(stored_bytes);
        let header_bytes = match self.format {
            TokenFormat::Pbin => HEADER_BYTES,
            _ => 0,
        };
        let least = data_bytes.and_then(|bytes| bytes.checked_add(header_bytes));
        let width_is_known = matches!(self.token_bytes, 1 | 2 | 4);
        if width_is_known && least.is_some_and(|least| least <= self.file_bytes) {
            return Ok(());
        }
        Err(Error::ImpossibleEntry {
            path: self.path.clone(),
            tokens: self.tokens,
            token_bytes: self.token_bytes,
            file_bytes: self.file_bytes,
        })
    }
}

fn is_pbin(format: &TokenFormat) -> bool {
    *format == TokenFormat::Pbin
}

/// SHA-256 of the entries in order: names without folders, numbers and checksums.
pub fn fingerprint<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> DataFingerprint {
    let mut hash = Sha256::new();
    for entry in entries {
        let name = entry.path.file_name().unwrap_or_default();
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name.as_encoded_bytes());
        for number in [
            entry.file_bytes,
            entry.token_bytes,
            entry.documents,
            entry.tokens,
        ] {
            hash.update(number.to_le_bytes());
        }
        for crc in [entry.trailer_crc32c, entry.index_crc32c] {
            // A missing checksum is encoded as 2^32, which no checksum has.
            hash.update(crc.map_or(1 << 32, u64::from).to_le_bytes());
        }
        if !is_pbin(&entry.format) {
            hash.update(entry.format.manifest_name());
        }
    }
    hash.finalize().into()
}

/// The entries of the manifest at `path`, with relative paths joined to its folder.
///
/// # Errors
/// [`Error::Io`], [`Error::ManifestLine`].
pub fn read_manifest(path: &Path) -> Result<Vec<Entry>> {
    let text = fs::read(path).map_err(|source| Error::io(path, source))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut entries = parse_entries(&text, path)?;
    for entry in &mut entries {
        if !is_url(&entry.path) {
            entry.path = folder.join(&entry.path);
        }
    }
    Ok(entries)
}

/// The entries in `text`, with their paths unchanged; `path` is for errors.
///
/// # Errors
/// [`Error::ManifestLine`].
pub fn parse_entries(text: &[u8], path: &Path) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for (i, line) in text.split(|&byte| byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let entry: Entry = serde_json::from_slice(line).map_err(|source| Error::ManifestLine {
            path: path.into(),
            line: i + 1,
            source,
        })?;
        entries.push(entry);
    }
    Ok(entries)
}

/// `entries` as the lines of a manifest.
///
/// # Errors
/// [`Error::PathNotUtf8`].
pub fn format_entries(entries: &[Entry]) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for entry in entries {
        serde_json::to_writer(&mut text, entry).map_err(|_| Error::PathNotUtf8 {
            path: entry.path.clone(),
        })?;
        text.push(b'\n');
    }
    Ok(text)
}

/// Writes `entries`, whose paths are relative to its folder, to the manifest at `path` atomically.
///
/// # Errors
/// [`Error::PathNotUtf8`]; [`Error::Io`], [`Error::Pbin`].
pub fn write_manifest(path: &Path, entries: &[Entry], replace: Replace) -> Result<()> {
    Ok(publish_bytes(path, &format_entries(entries)?, replace)?)
}
