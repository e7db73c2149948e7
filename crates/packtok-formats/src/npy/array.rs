//! NPY arrays that have only tokens, as NumPy saves them.

use std::path::Path;

use packtok_jobs::with_suffix;
use packtok_pbin::MappedFile;

use super::{Element, NpyHeader};
use crate::boundaries::open_without_index;
use crate::error::{Error, Result};
use crate::flat_file::{FlatFile, StoredType};
use crate::format::TokenFormat;
use crate::open_options::OpenOptions;
use crate::sidecar::sidecar_ends_path;
use crate::token_write::{OutputPaths, TokenWrite, TokensToWrite, without_ending};

/// How KempnerForge's shards are written.
pub(crate) struct Npy;

impl TokenWrite for Npy {
    fn paths(output: &Path) -> OutputPaths {
        let data = with_suffix(&without_ending(output, &["npy"]), ".npy");
        let ends = sidecar_ends_path(&data);
        OutputPaths::of_data(data, vec![ends])
    }

    fn header(_: &Path, tokens: &impl TokensToWrite) -> Result<Vec<u8>> {
        let element = Element::of_width(tokens.width());
        Ok(NpyHeader::encode(element, tokens.num_tokens()))
    }
}

/// Opens the array at `path`.
///
/// # Errors
/// The file cannot be mapped, is not a plain array of integers, or is shorter or longer than its
/// header says; the ends that `options` names are damaged or belong to another file.
pub(crate) fn open_array(path: &Path, options: &OpenOptions) -> Result<FlatFile> {
    let map = MappedFile::open(path)?;
    let header = NpyHeader::parse(map.bytes(), path)?;
    let stored_type = StoredType::of(header.element).ok_or_else(|| Error::NpyElementType {
        path: path.into(),
        descr: header.element.descr().to_owned(),
    })?;
    let place = (
        header.first_byte(path)?.into(),
        stored_type,
        header.elements,
    );
    open_without_index(TokenFormat::Npy, path, map, place, options)
}
