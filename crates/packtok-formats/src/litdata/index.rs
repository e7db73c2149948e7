//! `index.json`: the chunks of a folder, and the type of their ids.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use packtok_pbin::{Replace, TokenWidth, publish_bytes};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::last_read::LastRead;
use crate::npy::Element;

/// The name of the index in a folder.
pub const INDEX_FILE: &str = "index.json";
/// The largest index that is read. A million chunks need about 100 MB.
const MAX_INDEX_BYTES: u64 = 1 << 28;
/// The types of the ids of tensors, by their codes in the index: litdata's table of the types of
/// torch, without those that are no integers.
const TENSOR_ELEMENTS: [(u8, Element); 9] = [
    (11, Element::U8),
    (12, Element::I8),
    (13, Element::I16),
    (14, Element::I16),
    (15, Element::I32),
    (16, Element::I32),
    (17, Element::I64),
    (18, Element::I64),
    (20, Element::U16),
];
/// The same of NumPy's arrays.
const ARRAY_ELEMENTS: [(u8, Element); 8] = [
    (0, Element::I8),
    (1, Element::I16),
    (2, Element::I32),
    (3, Element::I64),
    (4, Element::U8),
    (5, Element::U16),
    (6, Element::U32),
    (7, Element::U64),
];
/// The loader of items that are ids and nothing else.
const TOKENS_LOADER: &str = "TokensLoader";
/// An item is a tensor and nothing more, as litdata's writer describes it.
const DATA_SPEC: &str = r#"[1, {"type": null, "context": null, "children_spec": []}]"#;

/// The index that was read last for a chunk.
static LAST: LastRead<Option<IndexedFolder>> = LastRead::new();

/// A chunk, as the index lists it. Fields are in the order in which litdata sorts them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkEntry {
    /// Bytes of the file.
    pub chunk_bytes: u64,
    /// Number of items.
    pub chunk_size: u64,
    /// Number of ids. `None` for items that are not tokens.
    pub dim: Option<u64>,
    /// Name of the file in the folder.
    pub filename: String,
}

/// The parts of the index that packtok reads.
#[derive(Deserialize)]
struct Content {
    chunks: Vec<ChunkEntry>,
    config: Config,
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    compression: Option<String>,
    data_format: Option<Vec<String>>,
    #[serde(default)]
    encryption: Option<serde_json::Value>,
    #[serde(default)]
    item_loader: Option<String>,
}

/// The index of a folder.
#[derive(Debug)]
pub struct IndexedFolder {
    path: PathBuf,
    chunks: Vec<ChunkEntry>,
    /// The numbers of the chunks by the names of their files.
    numbers: HashMap<String, usize>,
    element: Element,
    has_sizes: bool,
}

impl IndexedFolder {
    /// Reads the index of `folder`; `None` if there is no index, or one of another format.
    ///
    /// # Errors
    /// The index cannot be read, or describes chunks that packtok cannot read.
    pub fn open(folder: &Path) -> Result<Option<Self>> {
        Self::read(folder, false)
    }

    /// As [`open`](Self::open), for the folder of the file at `path`; read once for all chunks of a folder.
    /// If the file has the name of a chunk, the index must be JSON: other programs have an index of this
    /// name, but not beside chunks.
    ///
    /// # Errors
    /// As [`open`](Self::open); the index beside a chunk is not JSON.
    pub(super) fn open_beside(path: &Path) -> Result<Arc<Option<Self>>> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let index_path = folder.join(INDEX_FILE);
        if !index_path.exists() {
            return Ok(Arc::new(None));
        }
        let index = LAST.get(&index_path, || Self::read(folder, false))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if index.is_none() && name.starts_with("chunk-") {
            Self::read(folder, true)?;
        }
        Ok(index)
    }

    fn read(folder: &Path, must_be_json: bool) -> Result<Option<Self>> {
        let path = folder.join(INDEX_FILE);
        let Ok(file) = File::open(&path) else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        file.take(MAX_INDEX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(Error::io(&path))?;
        if bytes.len() as u64 > MAX_INDEX_BYTES {
            let reason = format!("has more than {MAX_INDEX_BYTES} bytes");
            return Err(Error::LitdataIndex { path, reason });
        }
        Self::parse(path, &bytes, must_be_json)
    }

    fn parse(path: PathBuf, bytes: &[u8], must_be_json: bool) -> Result<Option<Self>> {
        let error = |reason| Error::LitdataIndex {
            path: path.clone(),
            reason,
        };
        let value: serde_json::Value = match serde_json::from_slice(bytes) {
            Ok(value) => value,
            Err(source) if must_be_json => return Err(error(format!("is damaged: {source}"))),
            Err(_) => return Ok(None),
        };
        if value.get("chunks").is_none() || value.get("config").is_none() {
            return Ok(None);
        }
        let content: Content = serde_json::from_value(value)
            .map_err(|source| error(format!("is damaged: {source}")))?;
        let element = element(&content.config).map_err(error)?;
        let mut numbers = HashMap::new();
        for (number, entry) in content.chunks.iter().enumerate() {
            if numbers.insert(entry.filename.clone(), number).is_some() {
                let name = &entry.filename;
                return Err(error(format!("lists the file {name:?} twice")));
            }
            if !is_file_name(&entry.filename) {
                let name = &entry.filename;
                return Err(error(format!(
                    "has the file name {name:?}; expected the name of a file in the same folder"
                )));
            }
        }
        let has_sizes = match content.config.item_loader.as_deref() {
            Some(loader) => loader != TOKENS_LOADER,
            // Before the index named the loader, only chunks of tokens had their number.
            None => content.chunks.iter().any(|chunk| chunk.dim.is_none()),
        };
        Ok(Some(Self {
            chunks: content.chunks,
            numbers,
            path,
            element,
            has_sizes,
        }))
    }

    /// The path of the index.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The type of the ids.
    pub fn element(&self) -> Element {
        self.element
    }

    /// Whether each item starts with its number of bytes, as all do that are not written for
    /// `TokensLoader`.
    pub fn has_sizes(&self) -> bool {
        self.has_sizes
    }

    /// The chunk whose file has this name.
    pub fn chunk(&self, name: &str) -> Option<&ChunkEntry> {
        self.numbers.get(name).map(|&number| &self.chunks[number])
    }

    /// The names of all chunk files, in order.
    pub fn into_names(self) -> Vec<String> {
        let chunks = self.chunks.into_iter();
        chunks.map(|entry| entry.filename).collect()
    }
}

/// Whether a name in an index is that of a file in the same folder.
pub(crate) fn is_file_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none()
}

/// The type of the ids of chunks that the index describes so.
fn element(config: &Config) -> Result<Element, String> {
    if let Some(compression) = &config.compression {
        return Err(format!(
            "has chunks with the compression {compression:?}, which packtok does not read; write them without `compression`"
        ));
    }
    if config.encryption.is_some() {
        return Err(
            "has encrypted chunks, which packtok does not read; write them without `encryption`"
                .to_owned(),
        );
    }
    let format = config.data_format.as_deref().unwrap_or_default();
    let expected = "expected tokens, that is one no_header_tensor or no_header_numpy with integers";
    let refused = || format!("has items of the format {format:?}; {expected}");
    let [format_text] = format else {
        return Err(refused());
    };
    let (kind, code) = format_text.split_once(':').ok_or_else(refused)?;
    let elements = match kind {
        "no_header_tensor" => &TENSOR_ELEMENTS[..],
        "no_header_numpy" => &ARRAY_ELEMENTS[..],
        _ => return Err(refused()),
    };
    let mut elements = elements.iter();
    let named = elements.find(|(known, _)| code.parse() == Ok(*known));
    named.map(|(_, element)| *element).ok_or_else(refused)
}

#[derive(Serialize)]
struct Written<'a> {
    chunks: &'a [ChunkEntry],
    config: WrittenConfig,
    updated_at: &'a str,
}

/// As litdata's writer orders it.
#[derive(Serialize)]
struct WrittenConfig {
    chunk_bytes: u64,
    chunk_size: Option<u64>,
    compression: Option<&'static str>,
    compression_batch_size: Option<u64>,
    compression_level: Option<&'static str>,
    data_format: [String; 1],
    data_spec: &'static str,
    encryption: Option<&'static str>,
    ipc_compression: Option<&'static str>,
    item_loader: &'static str,
    types: &'static str,
}

/// Writes the index of `folder` atomically: `chunks` have tensors of ids of this width, at most
/// `chunk_bytes` bytes each.
///
/// # Errors
/// The index cannot be written.
pub fn publish_index(
    folder: &Path,
    chunks: &[ChunkEntry],
    width: TokenWidth,
    chunk_bytes: u64,
    replace: Replace,
) -> Result<()> {
    let code = match width {
        TokenWidth::U8 => 11,
        TokenWidth::U16 => 20,
        // torch has no uint32.
        TokenWidth::U32 => 16,
    };
    let index = Written {
        chunks,
        config: WrittenConfig {
            chunk_bytes,
            chunk_size: None,
            compression: None,
            compression_batch_size: None,
            compression_level: None,
            data_format: [format!("no_header_tensor:{code}")],
            data_spec: DATA_SPEC,
            encryption: None,
            ipc_compression: None,
            item_loader: TOKENS_LOADER,
            types: "tensor",
        },
        // litdata writes the time, and reads it for nothing but its cache of remote folders. The same
        // input gives the same bytes here.
        updated_at: "0",
    };
    let path = folder.join(INDEX_FILE);
    let bytes = serde_json::to_vec(&index).map_err(|source| Error::LitdataIndex {
        path: path.clone(),
        reason: source.to_string(),
    })?;
    Ok(publish_bytes(&path, &bytes, replace)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(config: &str, name: &str) -> Result<Option<IndexedFolder>> {
        let chunk =
            format!(r#"{{"chunk_bytes": 12, "chunk_size": 1, "dim": 0, "filename": {name:?}}}"#);
        let json = format!(r#"{{"chunks": [{chunk}], "config": {{{config}}}}}"#);
        IndexedFolder::parse("i".into(), json.as_bytes(), false)
    }

    #[test]
    fn the_type_of_ids_is_that_of_tensors_or_arrays() {
        for (format, expected) in [
            ("no_header_tensor:16", Element::I32),
            ("no_header_tensor:20", Element::U16),
            ("no_header_numpy:6", Element::U32),
        ] {
            let config = format!(r#""data_format": [{format:?}]"#);
            let folder = parsed(&config, "chunk-0-0.bin").unwrap().unwrap();
            assert_eq!(folder.element(), expected);
            assert_eq!(folder.chunk("chunk-0-0.bin").unwrap().chunk_size, 1);
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let tokens = r#""data_format": ["no_header_tensor:16"]"#;
        for (config, name, expected) in [
            (
                r#""data_format": ["no_header_tensor:0"]"#,
                "a",
                "[\"no_header_tensor:0\"]; expected tokens",
            ),
            (
                r#""data_format": ["jpeg", "int"]"#,
                "a",
                "has items of the format [\"jpeg\", \"int\"]",
            ),
            (r#""data_format": null"#, "a", "has items of the format []"),
            (
                &format!(r#"{tokens}, "compression": "zstd""#),
                "a",
                "the compression \"zstd\", which",
            ),
            (
                &format!(r#"{tokens}, "encryption": {{}}"#),
                "a",
                "has encrypted chunks",
            ),
            (
                tokens,
                "../a",
                "has the file name \"../a\"; expected the name of a file",
            ),
            (tokens, "/a", "has the file name \"/a\""),
            (r#""data_format": 1"#, "a", "is damaged: "),
        ] {
            let message = parsed(config, name).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        let other = IndexedFolder::parse("i".into(), br#"{"shards": []}"#, false);
        assert!(other.unwrap().is_none());
    }
}
