//! Names of the formats that a file may have instead of the expected one, with the remedy for
//! each.

/// The actual format of a file, if it differs from the expected one. `Display` writes the name
/// with an article.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the names are self-explanatory")]
pub enum OtherFormat {
    #[error("a Parquet file")]
    Parquet,
    #[error("an Arrow (Feather) file")]
    Arrow,
    #[error("an Avro file")]
    Avro,
    #[error("an ORC file")]
    Orc,
    #[error("a NumPy file")]
    Numpy,
    #[error("an HDF5 file")]
    Hdf5,
    #[error("an SQLite database")]
    Sqlite,
    #[error("a PDF file")]
    Pdf,
    #[error("a pbin, a file of packed tokens")]
    Pbin,
    #[error("a file of tokens")]
    Tokens,
    #[error("an index of token files")]
    TokenIndex,
    #[error("a zip archive")]
    Zip,
    #[error("a 7z archive")]
    SevenZip,
    #[error("a tar archive")]
    Tar,
    #[error("compressed with xz")]
    Xz,
    #[error("compressed with bzip2")]
    Bzip2,
    #[error("compressed with lz4")]
    Lz4,
    #[error("compressed with Snappy")]
    Snappy,
    #[error("a gzip file within a compressed file")]
    TwiceGzip,
    #[error("a zstd file within a compressed file")]
    TwiceZstd,
    #[error("UTF-16 text (little-endian)")]
    Utf16Le,
    #[error("UTF-16 text (big-endian)")]
    Utf16Be,
    #[error("UTF-32 text")]
    Utf32,
    #[error("a JSON array")]
    JsonArray,
    #[error("JSON with objects that span several lines")]
    PrettyJson,
    #[error("a table of comma-separated values (CSV)")]
    Csv,
    #[error("a table of tab-separated values (TSV)")]
    Tsv,
    #[error("plain text")]
    PlainText,
}

impl OtherFormat {
    /// How the user can make packtok read such a file.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Parquet => "rename it to *.parquet, or set --format parquet (format: parquet)",
            Self::Arrow => "rename it to *.arrow, or set --format arrow (format: arrow)",
            Self::Orc => {
                "convert it: python -c \"import pandas; pandas.read_orc('FILE').to_json('FILE.jsonl', orient='records', lines=True)\""
            }
            Self::Avro => "convert it: avro-tools tojson FILE > FILE.jsonl",
            Self::Numpy | Self::Hdf5 | Self::Sqlite | Self::Pdf => {
                "write its texts to a .jsonl file, one JSON object per line, such as {\"text\": \"...\"}"
            }
            Self::Pbin | Self::Tokens | Self::TokenIndex => {
                "give the texts that the tokens were made from; packtok.TokenDataset reads token files"
            }
            Self::Zip => {
                "unpack it: unzip -p FILE | zstd > FILE.jsonl.zst, or unzip it and give the extracted files"
            }
            Self::SevenZip => "unpack it: 7z x FILE, and give the extracted files",
            Self::Tar => "unpack it: tar -xf FILE, and give the extracted files or their folder",
            Self::Xz => {
                "decompress it: xz -d FILE, or convert it to zstd: xz -dc FILE | zstd > FILE.jsonl.zst"
            }
            Self::Bzip2 => {
                "decompress it: bzip2 -d FILE, or convert it to zstd: bzip2 -dc FILE | zstd > FILE.jsonl.zst"
            }
            Self::Lz4 => {
                "decompress it: lz4 -d FILE, or convert it to zstd: lz4 -dc FILE | zstd > FILE.jsonl.zst"
            }
            Self::Snappy => "decompress it: snzip -d FILE",
            Self::TwiceGzip | Self::TwiceZstd => {
                "remove the outer compression: gzip -dc FILE (or zstd -dc FILE) into a new file"
            }
            Self::Utf16Le => "convert it: iconv -f UTF-16LE -t UTF-8 FILE > FILE.jsonl",
            Self::Utf16Be => "convert it: iconv -f UTF-16BE -t UTF-8 FILE > FILE.jsonl",
            Self::Utf32 => "convert it: iconv -f UTF-32 -t UTF-8 FILE > FILE.jsonl",
            Self::JsonArray => "write each element on its own line: jq -c '.[]' FILE > FILE.jsonl",
            Self::PrettyJson => "write each object on one line: jq -c . FILE > FILE.jsonl",
            Self::Csv => "rename it to *.csv, or set --format csv (format: csv)",
            Self::Tsv => "rename it to *.tsv, or set --format tsv (format: tsv)",
            Self::PlainText => {
                "set --format text (format: text) for one document per file, or with --text-separator (text_separator) for several; or, for one document per line, convert it: jq -Rc '{text: .}' FILE > FILE.jsonl"
            }
        }
    }
}
