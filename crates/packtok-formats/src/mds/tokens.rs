//! Opens a shard file whose samples have token ids, as a file of documents.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use packtok_pbin::MappedFile;

use crate::copied::CopiedDocuments;
use crate::error::{Error, Result};
use crate::flat_file::FlatFile;
use crate::format::TokenFormat;
use crate::last_read::LastRead;
use crate::mds::check::verify;
use crate::mds::columns::{Columns, Pickles};
use crate::mds::encoding::{Dtype, Encoding, Value};
use crate::mds::entry::{FileEntry, ShardEntry};
use crate::mds::index::{INDEX_FILE, Index};
use crate::mds::read::Shard;
use crate::npy::Element;
use crate::open_options::OpenOptions;

/// The columns of ids, by the names that trainers use.
const IDS_COLUMNS: [&str; 2] = ["tokens", "input_ids"];
/// The type of ids in a column of bytes, as LLM Foundry's scripts write them.
const DTYPE_OF_BYTES: Dtype = Dtype::I64;

/// The index that was read last for a shard file.
static LAST: LastRead<ListedShards> = LastRead::new();

/// Whether the file at `path` is named as a shard file, compressed or not, and has an index beside it.
pub fn is_shard(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_named = name.ends_with(".mds") || name.contains(".mds.");
    is_named && path.with_file_name(INDEX_FILE).is_file()
}

/// Opens the shard file at `path`, each of whose samples is a document.
///
/// # Errors
/// An index beside it is damaged or does not list the file; the file is damaged; no column has ids; an
/// id is negative or does not fit in 32 bits; the copy cannot be written.
pub fn open_tokens(path: &Path, options: &OpenOptions) -> Result<FlatFile> {
    // Pickles are never loaded: they are columns that a conversion loses.
    let has_index = path.with_file_name(INDEX_FILE).exists();
    let listed = if has_index { listed(path)? } else { None };
    let is_known = options.format == Some(TokenFormat::Mds);
    let (entry, columns) = match listed {
        Some(listed) => listed,
        None if is_known || !has_index => {
            // A conversion that is killed leaves shards that no index lists.
            let (entry, columns) = Shard::own_entry(path, Pickles::AsBytes)?;
            (entry, Arc::new(columns))
        }
        None => {
            let reason = format!("{INDEX_FILE} beside the file does not list it");
            return Err(tokens_error(path, reason));
        }
    };
    let (entry, columns) = (&entry, &columns);
    let ids = ids_column(path, columns)?;
    let is_compressed = !is_named(path, &entry.raw_data);
    // Kept until the shard is read.
    let decompressed = if is_compressed {
        let file = tempfile::NamedTempFile::new().map_err(Error::io(&std::env::temp_dir()))?;
        let out = (file.path(), BufWriter::new(file.as_file()));
        Shard::decompress(path, path, entry, false, out)?;
        Some(file)
    } else {
        None
    };
    let content = decompressed.as_ref().map_or(path, |file| file.path());
    let shard = Shard::open_copy(content, path, entry, Arc::clone(columns))?;
    let mut documents = CopiedDocuments::new(path)?;
    for sample in 0..shard.num_samples() {
        let value = shard.sample(sample)?;
        let (dtype, bytes) = match value.value(ids)? {
            Value::Array(dtype, dims, bytes) if dims.len() == 1 => (dtype, bytes),
            Value::Bytes(bytes) => (dtype_of_bytes(options), bytes),
            _ => {
                let reason = format!(
                    "sample {sample} has an array of several dimensions; expected one dimension"
                );
                return Err(tokens_error(path, reason));
            }
        };
        let error = |reason| tokens_error(path, format!("sample {sample} {reason}"));
        let integer = integer_of(dtype, bytes, error)?;
        documents.push_integers(bytes, integer, |token, id| {
            error(format!(
                "has the id {id} as token {token}; expected a number in 0..=4294967295; if the ids are not {}, set --input-dtype (input_dtype)",
                dtype.name()
            ))
        })?;
    }
    let others = columns.all().iter().enumerate();
    let others = others.filter(|&(column, _)| column != ids);
    let others = others.map(|(_, column)| column.name.clone()).collect();
    let file_bytes = path.metadata().map_err(Error::io(path))?.len();
    let file = documents.finish(TokenFormat::Mds, file_bytes)?;
    Ok(file.with_extras(others))
}

/// NumPy's name of the type of the ids in the shard file at `path`, and its number of documents, as the file
/// itself says.
///
/// # Errors
/// The file is damaged, or has no column of ids.
pub fn describe_tokens(path: &Path) -> Result<(&'static str, u64)> {
    let (entry, columns) = Shard::own_entry(path, Pickles::AsBytes)?;
    let ids = ids_column(path, &columns)?;
    let dtype = match &columns.all()[ids].encoding {
        Encoding::Array {
            dtype: Some(dtype), ..
        } => dtype.name(),
        _ => DTYPE_OF_BYTES.name(),
    };
    Ok((dtype, entry.samples))
}

/// Verifies the hashes of the shard file at `path` that the index beside it has, as far as they are known.
///
/// # Errors
/// A hash differs; the index is damaged.
pub fn verify_hashes(path: &Path) -> Result<()> {
    if !path.with_file_name(INDEX_FILE).exists() {
        return Ok(());
    }
    let Some((entry, _)) = listed(path)? else {
        return Ok(());
    };
    let file = if is_named(path, &entry.raw_data) {
        &entry.raw_data
    } else {
        entry.stored()
    };
    match verify(path, MappedFile::open(path)?.bytes(), file, true) {
        Err(Error::MdsNoHash { .. }) => Ok(()),
        verified => verified,
    }
}

/// The entry and the columns of the shard file at `path` in the index beside it; `None` if that does not
/// list the file.
fn listed(path: &Path) -> Result<Option<(ShardEntry, Arc<Columns>)>> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let listed = LAST.get(&folder.join(INDEX_FILE), || ListedShards::open(folder))?;
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    Ok(listed.numbers.get(name).map(|&number| {
        let columns = Arc::clone(listed.index.columns(number));
        (listed.index.shards()[number].clone(), columns)
    }))
}

/// An index, and its shards by the names of their files, compressed or not.
struct ListedShards {
    index: Index,
    numbers: HashMap<String, usize>,
}

impl ListedShards {
    fn open(folder: &Path) -> Result<Self> {
        let index = Index::open(folder, Pickles::AsBytes)?;
        let mut numbers = HashMap::new();
        for (number, entry) in index.shards().iter().enumerate() {
            for file in [&entry.raw_data, entry.stored()] {
                numbers.entry(file.basename.clone()).or_insert(number);
            }
        }
        Ok(Self { index, numbers })
    }
}

fn is_named(path: &Path, entry: &FileEntry) -> bool {
    path.file_name().and_then(OsStr::to_str) == Some(&entry.basename)
}

/// The names of the shard files of a folder, in order; `None` if it has no index of this format.
///
/// # Errors
/// The index is damaged.
pub fn shard_names(folder: &Path) -> Result<Option<Vec<String>>> {
    match Index::open(folder, Pickles::AsBytes) {
        Ok(index) => {
            let shards = index.shards().iter();
            Ok(Some(
                shards
                    .map(|entry| entry.stored().basename.clone())
                    .collect(),
            ))
        }
        // Other formats have an index of this name.
        Err(Error::MdsJson { .. } | Error::Io { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The position of the column of ids.
fn ids_column(path: &Path, columns: &Columns) -> Result<usize> {
    let mut all = columns.all().iter();
    let column = all.position(|column| IDS_COLUMNS.contains(&column.name.as_str()));
    let refused = |has: Cow<'_, str>| {
        let names = IDS_COLUMNS.join(" or ");
        let reason = format!("the samples have {has}; expected a column {names} of integers");
        tokens_error(path, reason)
    };
    let Some(column) = column else {
        let names: Vec<_> = columns
            .all()
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        return Err(refused(format!("the columns {}", names.join(", ")).into()));
    };
    let has_ids = match &columns.all()[column].encoding {
        Encoding::Bytes | Encoding::Array { dtype: None, .. } => true,
        Encoding::Array {
            dtype: Some(dtype), ..
        } => id_bytes(*dtype).is_some(),
        _ => false,
    };
    if has_ids {
        return Ok(column);
    }
    let column = &columns.all()[column];
    Err(refused(
        format!("the column {} of {}", column.name, column.encoding_text).into(),
    ))
}

/// Bytes of an integer; `None` for a type of other numbers.
fn id_bytes(dtype: Dtype) -> Option<usize> {
    match dtype {
        Dtype::F16 | Dtype::F32 | Dtype::F64 => None,
        _ => Some(dtype.bytes() as usize),
    }
}

fn dtype_of_bytes(options: &OpenOptions) -> Dtype {
    let named = options.dtype.map(Element::name);
    named.and_then(Dtype::of_name).unwrap_or(DTYPE_OF_BYTES)
}

/// The bytes of an integer of this type, and whether it is signed.
///
/// # Errors
/// That of `error`, if `bytes` are no whole number of integers.
fn integer_of(
    dtype: Dtype,
    bytes: &[u8],
    error: impl Fn(String) -> Error,
) -> Result<(usize, bool)> {
    let width = id_bytes(dtype).filter(|&width| bytes.len().is_multiple_of(width));
    let width = width.ok_or_else(|| {
        error(format!(
            "has {} bytes, which are no whole number of ids of {}; set --input-dtype (input_dtype)",
            bytes.len(),
            dtype.name()
        ))
    })?;
    let is_signed = matches!(dtype, Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64);
    Ok((width, is_signed))
}

fn tokens_error(path: &Path, reason: String) -> Error {
    Error::MdsTokens {
        path: path.into(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use packtok_pbin::Replace;

    use super::*;
    use crate::TokenFile;
    use crate::mds::{Compression, Options, Writer, publish_index};
    use crate::test_support::documents;

    fn folder(
        encoding: &str,
        values: &[Value<'_>],
        compression: Option<&str>,
    ) -> (tempfile::TempDir, Vec<PathBuf>) {
        let folder = tempfile::tempdir().unwrap();
        let columns = Columns::new([("tokens", encoding), ("url", "str")]).unwrap();
        let options = Options {
            size_limit: Some(1000),
            compression: compression.map(|text| Compression::parse(text).unwrap()),
            ..Options::default()
        };
        let mut writer = Writer::create(folder.path(), columns, options).unwrap();
        for value in values {
            writer.write(&[value.clone(), Value::Str("u")]).unwrap();
        }
        writer.finish().unwrap().publish(None).unwrap();
        let names = shard_names(folder.path()).unwrap().unwrap();
        let paths = names.iter().map(|name| folder.path().join(name)).collect();
        (folder, paths)
    }

    #[test]
    fn samples_are_documents() {
        let ids = |width: usize| {
            [1u64, 40_000, 7]
                .map(|id| id.to_le_bytes()[..width].to_vec())
                .concat()
        };
        let (short, int, long) = (ids(2), ids(4), ids(8));
        for compression in [None, Some("zstd:3")] {
            for (encoding, value) in [
                ("ndarray:uint16", Value::row(Dtype::U16, &short)),
                ("ndarray:int32", Value::row(Dtype::I32, &int)),
                ("ndarray", Value::row(Dtype::I64, &long)),
                ("bytes", Value::Bytes(&long)),
            ] {
                let (_folder, paths) = folder(encoding, &vec![value.clone(); 60], compression);
                assert!(paths.len() > 1, "{encoding}");
                let mut read = Vec::new();
                for path in paths {
                    let file = TokenFile::open(&path).unwrap();
                    assert_eq!(file.format(), TokenFormat::Mds);
                    read.extend(documents(&file));
                }
                assert_eq!(read, vec![vec![1, 40_000, 7]; 60], "{encoding}");
            }
        }
    }

    #[test]
    fn other_samples_are_errors() {
        let negative = (-2i64).to_le_bytes();
        for (encoding, value, expected) in [
            (
                "ndarray:float32",
                Value::row(Dtype::F32, &[0; 8]),
                "the column tokens of ndarray:float32; expected",
            ),
            ("str", Value::Str("a"), "the column tokens of str; expected"),
            (
                "bytes",
                Value::Bytes(&[0; 6]),
                "sample 0 has 6 bytes, which are no whole number of ids of int64",
            ),
            (
                "ndarray:int64",
                Value::row(Dtype::I64, &negative),
                "sample 0 has the id -2 as token 0",
            ),
        ] {
            let (_folder, paths) = folder(encoding, &[value], None);
            let message = TokenFile::open(&paths[0]).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        let (folder, paths) = folder("bytes", &[Value::Bytes(&[1, 0, 2, 0])], None);
        let options = OpenOptions {
            dtype: Some(Element::U16),
            ..OpenOptions::default()
        };
        assert_eq!(
            documents(&TokenFile::open_with(&paths[0], &options).unwrap()),
            [[1, 2]]
        );
        // Without an index, the shard describes itself.
        fs::remove_file(folder.path().join(INDEX_FILE)).unwrap();
        let alone = OpenOptions {
            format: Some(TokenFormat::Mds),
            ..options
        };
        assert_eq!(
            documents(&TokenFile::open_with(&paths[0], &alone).unwrap()),
            [[1, 2]]
        );
        publish_index(folder.path(), &[], Replace::Existing).unwrap();
        let message = TokenFile::open(&paths[0]).unwrap_err().to_string();
        assert!(
            message.contains("index.json beside the file does not list it"),
            "{message}"
        );
        fs::write(folder.path().join(INDEX_FILE), r#"{"chunks": []}"#).unwrap();
        assert!(shard_names(folder.path()).unwrap().is_none());
    }
}
