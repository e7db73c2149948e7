//! NPY arrays that have only tokens, as NumPy saves them.

use std::path::Path;

use packtok_pbin::MappedFile;

use super::NpyHeader;
use crate::boundaries::open_without_index;
use crate::error::{Error, Result};
use crate::flat_file::{FlatFile, StoredType};
use crate::format::TokenFormat;
use crate::open_options::OpenOptions;

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
