//! The rest of a pbin: all bytes but its tokens, kept beside a converted dataset, so that converting
//! back gives the same pbin.
//!
//! The file `.packtok/FILE.pbin_rest` has the header of the pbin, then all bytes after its data:
//! index and trailer.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use packtok_formats::{LossMask, TokenFile, sidecar_path};
use packtok_jobs::{Monitor, remove_if_there};
use packtok_pbin::{HEADER_BYTES, Header, Reader, Replace, TempFile};

use super::parts::{Parts, convert_width};
use crate::error::{Error, Result};
use crate::loss_mask::append_loss_mask;

/// Tokens whose masks are compared at a time.
const CHECKED_TOKENS: u64 = 1 << 20;

/// The path of the rest of the pbin that the dataset with the tokens `data` was made from.
pub(super) fn rest_path(data: &Path) -> PathBuf {
    sidecar_path(data, ".pbin_rest")
}

/// An open rest, of which the header was read.
struct Rest {
    path: PathBuf,
    file: File,
    /// The bytes of the header.
    start: [u8; HEADER_BYTES as usize],
    header: Header,
}

impl Rest {
    /// The rest beside the tokens of `file`; `None` if there is none.
    ///
    /// # Errors
    /// It is damaged, or the pbin had another number of tokens.
    fn open(file: &TokenFile) -> Result<Option<Self>> {
        let path = rest_path(file.data_path());
        let Ok(mut rest) = File::open(&path) else {
            return Ok(None);
        };
        let mut start = [0; HEADER_BYTES as usize];
        rest.read_exact(&mut start).map_err(Error::io(&path))?;
        let header = Header::decode(&start, &path)?;
        if header.data_bytes != file.num_tokens() * header.width.bytes() {
            return Err(rest_differs(file, None));
        }
        Ok(Some(Self {
            path,
            file: rest,
            start,
            header,
        }))
    }
}

/// The error that `file` has other tokens than the pbin whose rest is beside it.
fn rest_differs(file: &TokenFile, source: Option<Box<packtok_pbin::Error>>) -> Error {
    Error::RestDiffers {
        path: file.path().into(),
        rest: rest_path(file.data_path()),
        source,
    }
}

/// The rest of the pbin that `file` is or was made from, under a temporary name, to be published beside
/// the dataset with the tokens `data`. `None` if there is none.
///
/// # Errors
/// As [`kept_reader`].
pub(super) fn of_file(file: &TokenFile, data: &Path) -> Result<Option<TempFile>> {
    if let TokenFile::Pbin(reader) = file {
        return of_pbin(reader, data).map(Some);
    }
    let Some(reader) = kept_reader(file)? else {
        return Ok(None);
    };
    if linked_pbin(file).is_some() {
        return of_pbin(&reader, data).map(Some);
    }
    let path = rest_path(file.data_path());
    let mut rest = File::open(&path).map_err(Error::io(&path))?;
    let mut out = TempFile::create(&rest_path(data))?;
    std::io::copy(&mut rest, &mut out).map_err(Error::io(&path))?;
    Ok(Some(out))
}

/// The rest of `pbin` under a temporary name, to be published beside the dataset with the tokens
/// `data`.
fn of_pbin(pbin: &Reader, data: &Path) -> Result<TempFile> {
    let path = pbin.path();
    let source = File::open(path).map_err(Error::io(path))?;
    let mut out = TempFile::create(&rest_path(data))?;
    out.append_from(&source, 0..HEADER_BYTES)?;
    out.append_from(&source, HEADER_BYTES + pbin.data_bytes()..pbin.file_bytes())?;
    Ok(out)
}

/// The pbin that `file` was made from, without its tokens: bytes of zero are in their place. `None` if
/// `file` has no rest of a pbin beside it.
///
/// # Errors
/// [`Error::RestDiffers`] if the documents have other lengths than those of the pbin.
pub(crate) fn kept_reader(file: &TokenFile) -> Result<Option<Reader>> {
    if let Some(reader) = linked_pbin(file) {
        return Ok(Some(reader));
    }
    let Some(mut rest) = Rest::open(file)? else {
        return Ok(None);
    };
    let differs = |source| rest_differs(file, source);
    let path = &rest.path;
    // The hole takes no space on disk.
    let mut sparse = tempfile::NamedTempFile::new().map_err(Error::io(path))?;
    sparse.write_all(&rest.start).map_err(Error::io(path))?;
    let hole = HEADER_BYTES + rest.header.data_bytes;
    sparse
        .seek(SeekFrom::Start(hole))
        .map_err(Error::io(path))?;
    std::io::copy(&mut rest.file, &mut sparse).map_err(Error::io(path))?;
    let reader = Reader::open(sparse.path()).map_err(|source| differs(Some(source.into())))?;
    if reader.len() != file.num_documents() {
        return Err(differs(None));
    }
    for document in 0..reader.len() {
        if reader.document_tokens(document)? != file.document_tokens(document)? {
            return Err(differs(None));
        }
    }
    check_loss_mask(file, &reader)?;
    Ok(Some(reader))
}

/// Checks that the loss mask of `file`, if its format has room for one, is that of the pbin that it was made
/// from.
///
/// # Errors
/// [`Error::RestDiffers`].
fn check_loss_mask(file: &TokenFile, pbin: &Reader) -> Result<()> {
    if !file.format().records_loss_masks() {
        return Ok(());
    }
    let (mut own, mut other) = (Vec::new(), Vec::new());
    let kept = pbin.loss_mask().map(LossMask::from);
    let mut start = 0;
    while start < file.num_tokens() {
        let tokens = start..file.num_tokens().min(start + CHECKED_TOKENS);
        start = tokens.end;
        own.clear();
        other.clear();
        append_loss_mask(file.loss_mask(), tokens.clone(), &mut own)?;
        append_loss_mask(kept, tokens, &mut other)?;
        if own != other {
            return Err(rest_differs(file, None));
        }
    }
    Ok(())
}

/// The pbin whose tokens and documents the index of a linked dataset names. `None` if it names others.
pub(super) fn linked_pbin(file: &TokenFile) -> Option<Reader> {
    let is_after_header = file.data_position() == Some(HEADER_BYTES);
    if matches!(file, TokenFile::Pbin(_)) || !is_after_header {
        return None;
    }
    let reader = Reader::open(file.data_path()).ok();
    reader.filter(|reader| {
        let is_same = |document| match (
            reader.document_tokens(document),
            file.document_tokens(document),
        ) {
            (Ok(tokens), Ok(others)) => tokens == others,
            _ => false,
        };
        reader.len() == file.num_documents()
            && reader.data_bytes() == file.data_bytes()
            && (0..reader.len()).all(is_same)
    })
}

/// Removes what an earlier conversion to the tokens `data` has kept.
pub(super) fn remove(data: &Path) -> Result<()> {
    let path = rest_path(data);
    remove_if_there(&path).map_err(Error::io(&path))
}

/// Writes the pbin that `file` was made from to `dst` and returns its length in bytes; `None` if
/// `file` has no rest of a pbin beside it.
///
/// # Errors
/// [`Error::RestDiffers`] if the tokens are others than those of the pbin.
pub(super) fn restore(
    file: &TokenFile,
    dst: &Path,
    replace: Replace,
    monitor: &mut Monitor<'_>,
) -> Result<Option<u64>> {
    let Some(rest) = Rest::open(file)? else {
        return Ok(None);
    };
    let differs = |source| rest_differs(file, source);
    let rest_bytes = rest.file.metadata().map_err(Error::io(&rest.path))?.len();
    let mut out = TempFile::create(dst)?;
    out.write_all(&rest.start).map_err(Error::io(dst))?;
    let mut converted = Vec::new();
    Parts::whole([file]).for_each_step(monitor, |file, tokens| {
        let bytes = file.tokens(tokens)?;
        if file.width().greatest_id(bytes) > rest.header.width.max_id() {
            return Err(differs(None));
        }
        converted.clear();
        convert_width(bytes, file.width(), rest.header.width, &mut converted);
        out.write_all(&converted).map_err(Error::io(dst))
    })?;
    out.append_from(&rest.file, HEADER_BYTES..rest_bytes)?;
    // The pbin checks itself: by the checksums of its data if it has a trailer, otherwise by its
    // index.
    let reader = Reader::open(out.path()).map_err(|source| differs(Some(source.into())))?;
    let verified = reader.verify(&mut |_| std::ops::ControlFlow::Continue(()));
    verified.map_err(|source| differs(Some(source.into())))?;
    check_loss_mask(file, &reader)?;
    let file_bytes = reader.file_bytes();
    drop(reader);
    out.publish(replace)?;
    Ok(Some(file_bytes))
}
