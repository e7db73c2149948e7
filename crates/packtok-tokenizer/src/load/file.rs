//! Recognizes the format of a file by its first bytes and its name.

use std::path::Path;

use super::LoadError;
use super::{rank_file, sentencepiece_file};
use crate::error::{Error, Result};

/// The content of a file as tokenizer.json or tekken.json, converted if it has another format.
///
/// # Errors
/// The file cannot be read, or is invalid.
pub(crate) fn json_of_file(path: &Path, name: &str) -> Result<String> {
    let io = |source| {
        Error::Load(LoadError::Io {
            path: path.to_owned(),
            source,
        })
    };
    let bytes = std::fs::read(path).map_err(io)?;
    let is_model = path
        .extension()
        .is_some_and(|extension| extension == "model");
    if is_model || bytes.trim_ascii_start().first() != Some(&b'{') {
        // Lists of ranks may be named `.model`, as Llama 3's is.
        if rank_file::is_one(&bytes) {
            return rank_file::tokenizer_json(name, &bytes);
        }
        match sentencepiece_file::tokenizer_json(name, &bytes) {
            // A file that is neither a model nor named like one. Report below that it is not JSON.
            Err(_) if !is_model => {}
            json => return json,
        }
    }
    json_of_bytes(name, bytes)
}

/// The text of a tokenizer.json or tekken.json.
///
/// # Errors
/// The bytes are not UTF-8.
pub(crate) fn json_of_bytes(name: &str, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        Error::Load(LoadError::NotUtf8 {
            name: name.to_owned(),
            source: error.utf8_error(),
        })
    })
}
