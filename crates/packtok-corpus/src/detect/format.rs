//! File extensions and position units of each corpus format.

pub use packtok_pbin::CorpusFormat as Format;

/// Extensions of compressed files, which follow the extension of the format.
const COMPRESSIONS: [&str; 3] = [".gz", ".zst", ".zstd"];

/// All formats, in the order in which messages list them.
pub(crate) const FORMATS: [Format; 7] = [
    Format::Jsonl,
    Format::Parquet,
    Format::Arrow,
    Format::Csv,
    Format::Tsv,
    Format::Text,
    Format::Cbor,
];

/// The extensions that a folder scan accepts for this format.
pub(crate) fn extensions(format: Format) -> &'static [&'static str] {
    match format {
        Format::Jsonl => &[".jsonl", ".json", ".ndjson", ".jsonlines"],
        Format::Parquet => &[".parquet"],
        Format::Arrow => &[".arrow", ".feather"],
        Format::Csv => &[".csv"],
        Format::Tsv => &[".tsv"],
        Format::Text => &[".txt"],
        Format::Cbor => &[".cbor"],
        Format::Plugin => &[],
    }
}

/// The unit of an offset in a source of this format: `"byte"`, `"row"` or `"document"`.
pub fn offset_unit(format: Format) -> &'static str {
    match format {
        Format::Plugin => "document",
        _ if has_row_groups(format) => "row",
        _ => "byte",
    }
}

/// Whether the rows are in groups. If so, positions count rows instead of bytes, and the file is
/// never compressed as a whole, because the format compresses its columns.
pub(crate) fn has_row_groups(format: Format) -> bool {
    matches!(format, Format::Parquet | Format::Arrow)
}

/// Whether positions in a source count records instead of bytes.
pub fn counts_records(format: Format) -> bool {
    has_row_groups(format) || format == Format::Plugin
}

/// Whether a file with this name can only be a corpus file. `.json` is excluded: the file may be a
/// config.
pub fn is_corpus_name(name: &str) -> bool {
    let is_json = name.to_ascii_lowercase().ends_with(".json");
    !is_json && format_of_name(name.as_bytes()).is_some()
}

/// The format that the extension of a file name stands for; case does not matter.
pub fn format_of_name(name: &[u8]) -> Option<Format> {
    let bare = without_compression(name);
    let has_extension = |name: &[u8], format: &Format| {
        let mut extensions = extensions(*format).iter();
        extensions.any(|end| without_extension(name, end).is_some())
    };
    FORMATS.into_iter().find(|format| match bare {
        Some(bare) => !has_row_groups(*format) && has_extension(bare, format),
        None => has_extension(name, format),
    })
}

/// The name without the extension of a compression, if it has one.
pub(crate) fn without_compression(name: &[u8]) -> Option<&[u8]> {
    let mut ends = COMPRESSIONS.iter();
    ends.find_map(|end| without_extension(name, end))
}

/// The name without `extension`, if it ends with it; case does not matter.
fn without_extension<'a>(name: &'a [u8], extension: &str) -> Option<&'a [u8]> {
    let (stem, end) = name.split_at_checked(name.len().checked_sub(extension.len())?)?;
    end.eq_ignore_ascii_case(extension.as_bytes())
        .then_some(stem)
}
