//! Start and end offsets of documents. All offset arithmetic is here.
//!
//! Responsible for the origin of offsets (documents are measured from the start of the data
//! segment), for the dialects of the index, and for raw indexes. `pickle_parse` and `pickle_write`
//! decode and encode the pairs.

use std::path::Path;

use crate::error::{Error, Result};
use crate::fault::PickleFault;
use crate::header::{HEADER_BYTES, Header};
use crate::map::map_file;
use crate::pickle_parse::parse_pairs;

/// The program that wrote a pbin, as far as the index shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// A pbin with a trailer, written by packtok.
    Packtok,
    /// A pbin without a trailer.
    Modalities,
    /// A pbin without a trailer whose offsets count from the start of the file.
    ModalitiesLegacy,
}

/// The `n + 1` document offsets of a file without a trailer.
pub(crate) struct ParsedIndex {
    /// Offsets from the start of the data; document `i` is `offsets[i]..offsets[i + 1]`.
    pub(crate) offsets: Vec<u64>,
    pub(crate) dialect: Dialect,
    /// Bytes of the pickle.
    pub(crate) bytes: u64,
}

impl ParsedIndex {
    /// Parses the pickle at the start of `index`, the bytes after the data segment of `header`.
    pub(crate) fn parse(index: &[u8], header: Header, path: &Path) -> Result<Self> {
        let origin = HEADER_BYTES.saturating_add(header.data_bytes);
        let mut offsets = vec![0];
        let mut first = None;
        let bytes = parse_pairs(index, pickle_error(path, origin), |start, len| {
            // The first offset decides the dialect. `DocumentsEnd` below catches a wrong guess.
            let base = *first.get_or_insert(if start == HEADER_BYTES {
                HEADER_BYTES
            } else {
                0
            });
            let expected = offsets.last().copied().unwrap_or(0);
            let document = offsets.len() as u64 - 1;
            let position = start.wrapping_sub(base);
            if start < base || position != expected {
                return Err(Error::DocumentStart {
                    path: path.into(),
                    document,
                    found: start,
                    expected: expected + base,
                });
            }
            offsets.push(checked_stop(header, path, document, position, len)?);
            Ok(())
        })?;
        let found = offsets.last().copied().unwrap_or(0);
        if found != header.data_bytes {
            return Err(Error::DocumentsEnd {
                path: path.into(),
                found,
                expected: header.data_bytes,
            });
        }
        let dialect = if first == Some(HEADER_BYTES) {
            Dialect::ModalitiesLegacy
        } else {
            Dialect::Modalities
        };
        Ok(Self {
            offsets,
            dialect,
            bytes,
        })
    }
}

/// The end of a document of `len` bytes at `start`. Checks that the document consists of complete
/// tokens within the data.
fn checked_stop(header: Header, path: &Path, document: u64, start: u64, len: u64) -> Result<u64> {
    let stop = start.saturating_add(len);
    check_span(header, path, document, start, stop)?;
    Ok(stop)
}

/// Checks that data bytes `start..stop` can be a document of a file with this header.
pub(crate) fn check_span(
    header: Header,
    path: &Path,
    document: u64,
    start: u64,
    stop: u64,
) -> Result<()> {
    let Header { data_bytes, width } = header;
    if start <= stop && stop <= data_bytes && width.divides(start) && width.divides(stop) {
        return Ok(());
    }
    Err(Error::DocumentSpan {
        path: path.into(),
        document,
        start,
        stop,
        width: width.bytes(),
        data_bytes,
    })
}

/// Returns a function that builds errors for a pickle at file offset `origin`.
pub(crate) fn pickle_error(path: &Path, origin: u64) -> impl Fn(u64, PickleFault) -> Error + '_ {
    move |position, fault| Error::Pickle {
        path: path.into(),
        offset: origin.saturating_add(position),
        fault,
    }
}

/// The `(byte offset, byte length)` pairs of the raw index at `path`. The pickle is parsed, never
/// executed.
///
/// # Errors
/// [`Error::Io`], [`Error::NotAFile`], [`Error::Pickle`], [`Error::BytesAfterIndex`].
pub fn read_raw_index(path: &Path) -> Result<Vec<(u64, u64)>> {
    let file = map_file(path)?;
    let mut pairs = Vec::new();
    let to_error = pickle_error(path, 0);
    let stop = parse_pairs(&file, &to_error, |offset, len| {
        if offset.checked_add(len).is_none() {
            return Err(to_error(0, PickleFault::SpanTooLarge { offset, len }));
        }
        pairs.push((offset, len));
        Ok(())
    })?;
    match file.len() as u64 - stop {
        0 => Ok(pairs),
        bytes => Err(Error::BytesAfterIndex {
            path: path.into(),
            offset: stop,
            bytes,
        }),
    }
}
