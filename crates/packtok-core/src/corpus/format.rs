//! What packtok knows of each format of a corpus: file extensions, and how positions are counted.

pub use packtok_pbin::CorpusFormat as Format;

/// The extensions that a compression adds to that of a format.
const COMPRESSIONS: [&str; 2] = [".gz", ".zst"];

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

/// The extensions of the files that a folder of this format stands for.
pub(crate) fn extensions(format: Format) -> &'static [&'static str] {
    match format {
        Format::Jsonl => &[".jsonl"],
        Format::Parquet => &[".parquet"],
        Format::Arrow => &[".arrow", ".feather"],
        Format::Csv => &[".csv"],
        Format::Tsv => &[".tsv"],
        Format::Text => &[".txt"],
        Format::Cbor => &[".cbor"],
        Format::Plugin => &[],
    }
}

/// What an offset in a source of this format counts: `"byte"`, `"row"` or `"document"`.
pub fn offset_unit(format: Format) -> &'static str {
    match format {
        Format::Plugin => "document",
        _ if has_row_groups(format) => "row",
        _ => "byte",
    }
}

/// Whether the rows are in groups. Positions are then counted in rows rather than in bytes, and a
/// file is not compressed as a whole, because its columns are.
pub(crate) fn has_row_groups(format: Format) -> bool {
    matches!(format, Format::Parquet | Format::Arrow)
}

/// Whether positions in a source count its records and not its bytes.
pub(crate) fn counts_records(format: Format) -> bool {
    has_row_groups(format) || format == Format::Plugin
}

/// Whether a file name is that of a corpus.
pub fn is_corpus_name(name: &str) -> bool {
    format_of_name(name.as_bytes()).is_some()
}

/// The format that a file name stands for.
pub(crate) fn format_of_name(name: &[u8]) -> Option<Format> {
    let bare = COMPRESSIONS
        .iter()
        .find_map(|end| name.strip_suffix(end.as_bytes()));
    let has_extension = |name: &[u8], format: &Format| {
        let mut extensions = extensions(*format).iter();
        extensions.any(|end| name.ends_with(end.as_bytes()))
    };
    FORMATS.into_iter().find(|format| match bare {
        Some(bare) => !has_row_groups(*format) && has_extension(bare, format),
        None => has_extension(name, format),
    })
}
