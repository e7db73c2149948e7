//! Makes the raw index of a file of JSON lines: where each line is, as Modalities writes it.
//!
//! The index counts bytes of the plain file, so that readers of it can map the file. It is checked
//! that each line is JSON, and nothing else about it.

use std::io::{BufWriter, Write};
use std::path::Path;

use packtok_pbin::{PairsWriter, Replace, TempFile};

use crate::corpus::{Compression, Line, ReadOptions, Reader, Source, compression};
use crate::error::{Error, Result};
use crate::field::{BadDocument, check_json};

/// What happens to a line that is no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadLine {
    /// It fails the run.
    Fail,
    /// It is left out of the index and counted.
    Skip,
}

/// How an index is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexOptions {
    /// How the source is read.
    pub read: ReadOptions,
    /// What happens to a line that is no JSON or too long.
    pub bad_line: BadLine,
    /// What happens to an existing index.
    pub replace: Replace,
}

/// What went into an index; `num_lines` is the sum of the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexReport {
    /// Lines of the source.
    pub num_lines: u64,
    /// Lines in the index.
    pub num_entries: u64,
    /// Lines left out because there is nothing in them.
    pub num_blank: u64,
    /// Lines left out because they are no JSON.
    pub num_rejected: u64,
}

/// Writes the raw index of `source` to `dst`, in one step and only if all went well.
///
/// `progress` is called now and then with the bytes read so far; when it returns `false`, the run
/// ends with [`Error::Cancelled`] and nothing is written.
///
/// # Errors
/// The source is compressed or cannot be read, the index cannot be written, or a line is no JSON
/// and `bad_line` says to fail.
pub fn create(
    source: &Source,
    dst: &Path,
    options: &IndexOptions,
    mut progress: impl FnMut(u64) -> bool,
) -> Result<IndexReport> {
    if compression(source)? != Compression::None {
        return Err(Error::IndexedCompressed {
            path: source.path.clone(),
        });
    }
    let mut reader = Reader::new(vec![source.clone()], options.read);
    let file = BufWriter::with_capacity(1 << 20, TempFile::create(dst)?);
    let io = |cause| Error::io(dst, cause);
    let mut pairs = PairsWriter::new(file).map_err(io)?;
    let mut report = IndexReport::default();
    let mut buffer = Vec::new();
    while let Some(chunk) = reader.next_chunk(buffer)? {
        for line in chunk.lines() {
            report.num_lines += 1;
            match judge(&line, options) {
                Ok(()) if line.is_blank() => report.num_blank += 1,
                Ok(()) => {
                    report.num_entries += 1;
                    pairs.push(line.offset_bytes, line.len_bytes).map_err(io)?;
                }
                Err(_) if options.bad_line == BadLine::Skip => report.num_rejected += 1,
                Err(reason) => {
                    return Err(Error::BadDocument {
                        path: source.path.clone(),
                        line: report.num_lines,
                        offset_bytes: line.offset_bytes,
                        reason,
                    });
                }
            }
        }
        if !progress(reader.bytes_read()) {
            return Err(Error::Cancelled);
        }
        buffer = chunk.into_buffer();
    }
    let mut file = pairs.finish().map_err(io)?;
    file.flush().map_err(io)?;
    let file = file.into_inner().map_err(|error| io(error.into_error()))?;
    file.publish(options.replace)?;
    Ok(report)
}

/// Checks that a line is blank or JSON.
fn judge(line: &Line, options: &IndexOptions) -> std::result::Result<(), BadDocument> {
    if line.is_oversize {
        return Err(BadDocument::Oversize {
            len_bytes: line.len_bytes,
            max_document_bytes: options.read.max_document_bytes,
        });
    }
    if line.is_blank() {
        return Ok(());
    }
    check_json(line.bytes).map(drop)
}
