//! The folder `.packtok` beside a token file: what its format has no room for.
//!
//! A file of it has the name of the file of the tokens, and an ending: `a.bin.json`. The name of the
//! folder starts with a dot, and no reader of the formats looks into folders.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use packtok_jobs::with_suffix;
use serde::Deserialize;

use crate::error::{Error, Fault, Result};
use crate::format::TokenFormat;
use crate::npy::Element;

/// The name of the folder.
pub const SIDECAR_FOLDER: &str = ".packtok";

/// The path of a file about the tokens in `data`.
pub fn sidecar_path(data: &Path, ending: &str) -> PathBuf {
    let name = data.file_name().unwrap_or_default();
    let name = with_suffix(Path::new(name), ending);
    data.with_file_name(SIDECAR_FOLDER).join(name)
}

/// The path of the marker: the meaning of the ids and their type.
pub fn sidecar_marker_path(data: &Path) -> PathBuf {
    sidecar_path(data, ".json")
}

/// The path of the ends of documents, one u64 each.
pub fn sidecar_ends_path(data: &Path) -> PathBuf {
    sidecar_path(data, ".ends")
}

/// The part of a marker that says how to read the tokens.
#[derive(Deserialize)]
struct Marker {
    format: String,
    plan: Plan,
}

#[derive(Deserialize)]
struct Plan {
    dtype: String,
}

/// Whether packtok wrote the tokens in `data` in this format, as their marker says.
pub(crate) fn is_marked_as(data: &Path, format: TokenFormat) -> bool {
    let marker = fs::read(sidecar_marker_path(data)).ok();
    let marker = marker.and_then(|bytes| serde_json::from_slice::<Marker>(&bytes).ok());
    marker.is_some_and(|marker| marker.format == format.name())
}

/// The type of the ids in `data`, tokens without a header, that its marker records; `None` without a
/// marker, and if that is one of another format, whose other file is missing.
pub(crate) fn recorded_dtype(data: &Path) -> Result<Option<Element>> {
    let path = sidecar_marker_path(data);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(&path)(error)),
    };
    let fault = |found: String| {
        Error::fault(Fault {
            path: path.clone(),
            offset: 0,
            what: "the type of the ids in the marker",
            found,
            expected: "plan.dtype, the name of an integer type".to_owned(),
            remedy: "the marker is damaged, convert the file again, or delete the marker",
        })
    };
    let marker: Marker =
        serde_json::from_slice(&bytes).map_err(|error| fault(error.to_string()))?;
    if marker.format != TokenFormat::Raw.name() {
        return Ok(None);
    }
    let dtype = Element::of_name(&marker.plan.dtype);
    dtype.map(Some).ok_or_else(|| fault(marker.plan.dtype))
}
