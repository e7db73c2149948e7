//! Classifies a file in a folder by its name: data to read, data that cannot be read, or not data.
//!
//! Every line of a corpus must be accounted for, so a folder with a file that looks like data but
//! cannot be read is an error. A name looks like data if it has the extension of a data format or
//! of a compression. All other names (`README.md`, `LICENSE`, scripts, images, token files) are
//! not data.

use crate::Format;
use crate::detect::format::{format_of_name, without_compression};
use crate::inputs::ignored::{IgnoredReason, Unread};

/// The class of a file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileName {
    /// Data of this format.
    Data(Format),
    /// Data that packtok does not read, and its format if the name implies one.
    Unread(Unread, Option<Format>),
    /// Not data, although the name has an extension of data.
    Ignored(NotData),
    /// A token file.
    Tokens,
    /// A name that does not look like data.
    Other,
}

/// The reason why a file with an extension of data is not data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotData {
    Metadata,
    Backup,
    Cache,
    Hidden,
}

impl From<NotData> for IgnoredReason {
    fn from(reason: NotData) -> Self {
        match reason {
            NotData::Metadata => Self::Metadata,
            NotData::Backup => Self::Backup,
            NotData::Cache => Self::Cache,
            NotData::Hidden => Self::Hidden,
        }
    }
}

/// Extensions of incomplete downloads, whatever the rest of the name is.
const DOWNLOADS: [&str; 3] = [".aria2", ".crdownload", ".incomplete"];
/// Extensions of incomplete files, if the rest of the name is a name of data.
const UNFINISHED: [&str; 9] = [
    ".part",
    ".partial",
    ".filepart",
    ".download",
    ".downloading",
    ".opdownload",
    ".tmp",
    ".temp",
    ".!qb",
];
/// Extensions of earlier versions of a file.
const BACKUPS: [&str; 7] = ["~", ".bak", ".old", ".orig", ".save", ".swp", ".swo"];
/// Extensions of compressions that packtok does not read.
const COMPRESSIONS: [&str; 13] = [
    ".xz", ".bz2", ".bzip2", ".lz4", ".lzma", ".lzo", ".lz", ".br", ".sz", ".snappy", ".z", ".zz",
    ".zlib",
];
const ARCHIVES: [&str; 9] = [
    ".tar", ".tgz", ".tbz", ".tbz2", ".txz", ".tzst", ".zip", ".7z", ".rar",
];
/// Extensions of formats of data that packtok does not read.
const OTHER_FORMATS: [&str; 19] = [
    ".avro",
    ".orc",
    ".tfrecord",
    ".tfrecords",
    ".mds",
    ".warc",
    ".wet",
    ".wat",
    ".msgpack",
    ".bson",
    ".ldjson",
    ".pq",
    ".parq",
    ".geoparquet",
    ".ipc",
    ".xlsx",
    ".xls",
    ".sqlite",
    ".sqlite3",
];
/// Extensions of token files and their indexes.
pub(crate) const TOKENS: [&str; 7] = [".pbin", ".bin", ".idx", ".npy", ".ds", ".mmap", ".dat"];
/// Extensions of data, also recognized in the middle of a name.
const DATA: [&str; 10] = [
    ".jsonl",
    ".json",
    ".ndjson",
    ".jsonlines",
    ".parquet",
    ".arrow",
    ".feather",
    ".csv",
    ".tsv",
    ".cbor",
];
/// Extensions of files that accompany a data file: checksums, signatures, locks, notes.
const COMPANIONS: [&str; 30] = [
    ".md5",
    ".sha1",
    ".sha256",
    ".sha512",
    ".sha",
    ".crc",
    ".crc32",
    ".sum",
    ".xxh",
    ".sig",
    ".asc",
    ".idx",
    ".index",
    ".lock",
    ".log",
    ".err",
    ".meta",
    ".metadata",
    ".url",
    ".torrent",
    ".done",
    ".ok",
    ".md",
    ".html",
    ".yaml",
    ".yml",
    ".toml",
    ".py",
    ".sh",
    ".png",
];
/// Tokenizer files, and the configuration of a model, which is stored next to them.
const OF_TOKENIZERS: [&str; 9] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "tekken.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "config.json",
];
/// Descriptions of datasets by Hugging Face `datasets` and packtok.
const DESCRIPTIONS: [&str; 3] = ["dataset_dict.json", "state.json", "croissant.json"];
/// End of the name of a file with the details of a dataset, stored next to its metadata file.
pub(crate) const DETAILS: &str = ".packtok.json";
/// Ends of the names of auxiliary files that packtok writes.
const OF_PACKTOK: [&str; 4] = [DETAILS, ".tokenizer.json", ".done.json", ".rejects.jsonl"];

impl FileName {
    /// Classifies the name of a file in a folder. Case does not matter.
    pub(crate) fn of(name: &[u8]) -> Self {
        let lower = String::from_utf8_lossy(name).to_ascii_lowercase();
        match lower.strip_prefix('.') {
            // Hidden data is reported as ignored, but does not end the run.
            Some(rest) => match Self::of_visible(rest) {
                Self::Data(_) | Self::Unread(..) => Self::Ignored(NotData::Hidden),
                _ => Self::Other,
            },
            None => Self::of_visible(&lower),
        }
    }

    fn of_visible(name: &str) -> Self {
        let format = format_of_name(name.as_bytes());
        if is_metadata(name) {
            return match format {
                Some(_) => Self::Ignored(NotData::Metadata),
                None => Self::Other,
            };
        }
        // Copies of mapped datasets, which `datasets` writes next to the files of a saved dataset.
        if name.starts_with("cache-") && name.ends_with(".arrow") {
            return Self::Ignored(NotData::Cache);
        }
        match format {
            Some(format) => Self::Data(format),
            None => Self::of_unread(name),
        }
    }

    /// Classifies a name that does not end with a format that packtok reads.
    fn of_unread(name: &str) -> Self {
        if let Some(rest) = stripped(name, &DOWNLOADS) {
            return if is_metadata(rest) {
                Self::Other
            } else {
                Self::Unread(Unread::Unfinished, format_within(rest))
            };
        }
        if let Some(rest) = stripped(name, &UNFINISHED) {
            return match Self::of_visible(rest) {
                Self::Data(format) => Self::Unread(Unread::Unfinished, Some(format)),
                Self::Unread(_, format) => Self::Unread(Unread::Unfinished, format),
                _ => Self::Other,
            };
        }
        if let Some(rest) = stripped(name, &BACKUPS) {
            return match Self::of_visible(rest) {
                Self::Data(_) | Self::Unread(..) => Self::Ignored(NotData::Backup),
                _ => Self::Other,
            };
        }
        let bare = without_compression(name.as_bytes());
        let inner = stripped(name, &COMPRESSIONS)
            .or_else(|| bare.map(|bare| &name[..bare.len()]))
            .unwrap_or(name);
        if stripped(inner, &ARCHIVES).is_some() {
            return Self::Unread(Unread::Archive, None);
        }
        if stripped(name, &COMPRESSIONS).is_some() {
            return Self::Unread(Unread::Compression, format_of_name(inner.as_bytes()));
        }
        if stripped(inner, &OTHER_FORMATS).is_some() {
            return Self::Unread(Unread::Format, None);
        }
        if bare.is_some() {
            return Self::Unread(Unread::Content, format_of_name(inner.as_bytes()));
        }
        Self::of_unknown(name)
    }

    /// Classifies a name that does not end with a known extension of data.
    fn of_unknown(name: &str) -> Self {
        if stripped(name, &COMPANIONS).is_none()
            && let Some(start) = data_within(name)
            && !is_metadata(start)
        {
            return Self::Unread(Unread::Extension, format_of_name(start.as_bytes()));
        }
        match stripped(name, &TOKENS) {
            Some(_) => Self::Tokens,
            None => Self::Other,
        }
    }
}

/// The name without its extension, if the extension is one of `extensions`.
fn stripped<'a>(name: &'a str, extensions: &[&str]) -> Option<&'a str> {
    extensions.iter().find_map(|end| name.strip_suffix(end))
}

/// Whether a file with this name describes data or a tokenizer.
fn is_metadata(name: &str) -> bool {
    let is_info = name.starts_with("dataset_info") && name.ends_with(".json");
    name.starts_with("metadata")
        || is_info
        || OF_TOKENIZERS.contains(&name)
        || DESCRIPTIONS.contains(&name)
        || stripped(name, &OF_PACKTOK).is_some()
}

/// The format of the data within a name.
fn format_within(name: &str) -> Option<Format> {
    let whole = format_of_name(name.as_bytes());
    whole.or_else(|| format_of_name(data_within(name)?.as_bytes()))
}

/// The part of a name up to an extension of data, if another extension or a number follows.
fn data_within(name: &str) -> Option<&str> {
    let end_of = |extension: &&str| {
        let starts = name.match_indices(*extension);
        let mut ends = starts.map(|(start, _)| start + extension.len());
        ends.find(|&end| !name[end..].starts_with(|c: char| c.is_ascii_alphanumeric()))
    };
    DATA.iter().filter_map(end_of).min().map(|end| &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(expected: FileName, names: &[&str]) {
        for name in names {
            assert_eq!(FileName::of(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn names_of_the_formats_are_data_in_any_case() {
        all(
            FileName::Data(Format::Jsonl),
            &[
                "a.jsonl",
                "a.JSONL",
                "a.jsonl.GZ",
                "a.json",
                "a.json.gz",
                "a.json.zst",
                "a.ndjson",
                "a.jsonlines",
                "a.jsonl.zstd",
                "c4-train.00000-of-01024.json.gz",
                "my_metadata.jsonl",
                "config.jsonl",
            ],
        );
        all(FileName::Data(Format::Csv), &["a.csv", "A.CSV.ZSTD"]);
        all(
            FileName::Data(Format::Parquet),
            &["a.parquet", "a.b.PARQUET"],
        );
        all(FileName::Data(Format::Text), &["notes.txt", "a.txt.gz"]);
    }

    #[test]
    fn data_that_is_not_read_is_recognized() {
        let jsonl = Some(Format::Jsonl);
        all(
            FileName::Unread(Unread::Compression, jsonl),
            &["a.jsonl.xz", "a.json.bz2", "a.jsonl.LZ4", "a.ndjson.br"],
        );
        all(
            FileName::Unread(Unread::Compression, None),
            &["wiki.xml.bz2", "a.xz"],
        );
        all(
            FileName::Unread(Unread::Unfinished, jsonl),
            &[
                "a.jsonl.part",
                "a.jsonl.aria2",
                "a.jsonl.xz.part",
                "a.json.gz.tmp",
                "a.jsonl.gz.crdownload",
                "a.jsonl.incomplete",
            ],
        );
        all(
            FileName::Unread(Unread::Unfinished, None),
            &["Unconfirmed 12.crdownload", "a1b2.incomplete"],
        );
        all(
            FileName::Unread(Unread::Archive, None),
            &["a.tar", "a.tar.gz", "a.tgz", "a.zip", "a.tar.xz", "a.7z"],
        );
        all(
            FileName::Unread(Unread::Format, None),
            &["a.avro", "a.orc", "a.warc.gz", "a.pq"],
        );
        all(
            FileName::Unread(Unread::Content, None),
            &["a.gz", "a.log.zst"],
        );
        all(
            FileName::Unread(Unread::Content, Some(Format::Parquet)),
            &["a.parquet.gz"],
        );
        all(
            FileName::Unread(Unread::Extension, jsonl),
            &["a.jsonl.001", "a.jsonl-00000-of-00010", "a.jsonl.gpg"],
        );
    }

    #[test]
    fn descriptions_backups_and_hidden_files_are_no_data() {
        all(
            FileName::Ignored(NotData::Metadata),
            &[
                "metadata.json",
                "metadata.jsonl",
                "Metadata_v2.CSV",
                "train.packtok.json",
                "dataset_info.json",
                "dataset_infos.json",
                "dataset_dict.json",
                "state.json",
                "tokenizer.json",
                "train.pbin.tokenizer.json",
                "train.pbin.rejects.jsonl",
                "shard-00000-of-00002.done.json",
                "config.json",
                "merges.txt",
            ],
        );
        all(
            FileName::Ignored(NotData::Backup),
            &["a.jsonl.bak", "a.jsonl~", "a.json.old", "a.jsonl.xz.orig"],
        );
        all(
            FileName::Ignored(NotData::Cache),
            &["cache-0123456789abcdef.arrow"],
        );
        all(
            FileName::Ignored(NotData::Hidden),
            &[".a.jsonl", "._a.json.gz", ".a.jsonl.xz"],
        );
    }

    #[test]
    fn unknown_names_are_no_data() {
        all(
            FileName::Other,
            &[
                "README.md",
                "LICENSE",
                "script.py",
                "run.sh",
                "cover.png",
                "metadata.yaml",
                "a.jsonl.md5",
                "a.jsonl.idx.lock",
                "a.json5",
                "readme.md.part",
                "readme.md~",
                "requirements.txt.bak.py",
                ".gitattributes",
                "_SUCCESS",
                "tokenizer.json.incomplete",
                "tokenizer.model",
                "paper.pdf",
            ],
        );
        all(
            FileName::Tokens,
            &["train.pbin", "tokens.bin", "a.npy", "a.idx"],
        );
    }
}
