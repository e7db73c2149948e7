//! `state.json`: the files of a folder.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::litdata::is_file_name;

/// The name of the list in a folder.
const STATE_FILE: &str = "state.json";
/// The largest list that is read.
const MAX_STATE_BYTES: u64 = 1 << 26;

#[derive(Deserialize)]
struct State {
    #[serde(rename = "_data_files")]
    data_files: Vec<DataFile>,
    #[serde(rename = "_indices_data_files", default)]
    indices: Option<Vec<DataFile>>,
}

#[derive(Deserialize)]
struct DataFile {
    filename: String,
}

/// The names of the files of `folder`, in order; `None` if it has no list of this kind.
///
/// # Errors
/// The list cannot be read, or has names of files elsewhere; the rows have another order than in the
/// files.
pub fn listed_names(folder: &Path) -> Result<Option<Vec<String>>> {
    let path = folder.join(STATE_FILE);
    let Ok(file) = File::open(&path) else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    file.take(MAX_STATE_BYTES)
        .read_to_end(&mut bytes)
        .map_err(Error::io(&path))?;
    // Other tools, too, name a file so.
    let Ok(state) = serde_json::from_slice::<State>(&bytes) else {
        return Ok(None);
    };
    let error = |reason| Error::TableRows {
        path: path.clone(),
        reason,
    };
    if state.indices.is_some_and(|files| !files.is_empty()) {
        return Err(error(
            "the rows of the files are selected or reordered by a file of indices; call `flatten_indices()` before `save_to_disk`".to_owned(),
        ));
    }
    for file in &state.data_files {
        if !is_file_name(&file.filename) {
            return Err(error(format!(
                "has the file name {:?}; expected the name of a file in the same folder",
                file.filename
            )));
        }
    }
    let files = state.data_files.into_iter();
    Ok(Some(files.map(|file| file.filename).collect()))
}
