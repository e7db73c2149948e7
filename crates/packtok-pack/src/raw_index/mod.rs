//! Builds the raw index of a file of JSON lines: the position of each line, in the format of
//! Modalities.
//!
//! The index counts bytes of the uncompressed file, so that its readers can map the file. Each line
//! is checked to be JSON; its content is not interpreted.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use packtok_corpus::Error as CorpusError;
use packtok_corpus::field::{BadDocument, check_json};
use packtok_corpus::rejects::{
    RejectRecord, Rejects, failed_rejects_path, first_reject, remove_rejects,
};
use packtok_corpus::{
    self, Body, Format, Location, OnBadDocument, ReadOptions, Reader, Record, RecordNumber,
    Selection, Source, check_plain, not_lines,
};
use packtok_jobs::with_suffix;
use packtok_jobs::{Monitor, Progress, report_progress};
use packtok_pbin::{PairsWriter, Replace, TempFile, remove_abandoned};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::pack::{Existing, output_exists};

/// Options of an index.
#[derive(Debug, Clone)]
pub struct RawIndexOptions {
    /// The file of JSON lines.
    pub src: PathBuf,
    /// The index to write.
    pub index_path: PathBuf,
    /// The action for a line that is not JSON or too long.
    pub on_bad_document: OnBadDocument,
    /// The action if the index already exists.
    pub existing: Existing,
    /// Options for reading the source.
    pub read: ReadOptions,
}

/// Counts of an index; `lines` is the sum of the other three.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct RawIndexReport {
    /// The index.
    pub index_path: PathBuf,
    /// Lines of the source.
    pub lines: u64,
    /// Lines in the index.
    pub entries: u64,
    /// Blank lines, which are skipped.
    pub blank: u64,
    /// Lines skipped because they are not JSON.
    pub rejected: u64,
    /// The file that lists the skipped lines.
    pub rejects_path: Option<PathBuf>,
    /// Whether the index already existed and was proven correct.
    pub skipped_existing: bool,
}

/// Writes the raw index of a file atomically.
///
/// # Errors
/// The source is compressed or cannot be read, the index cannot be written, or a line is not JSON
/// and `on_bad_document` is `Fail`.
pub fn write_raw_index(
    options: &RawIndexOptions,
    monitor: &mut Monitor<'_>,
) -> Result<RawIndexReport> {
    let exists = output_exists(&options.index_path)?;
    if exists && options.existing == Existing::Error {
        return Err(Error::OutputExists {
            path: options.index_path.clone(),
        });
    }
    remove_abandoned(&[&options.index_path])?;
    let source = source(&options.src)?;
    let mut rejects = Rejects::new(with_suffix(&options.index_path, ".rejects.jsonl"));
    let (file, mut report) = index(&source, options, &mut rejects, monitor)?;
    if report.entries == 0 && report.rejected > 0 {
        let path = if exists {
            failed_rejects_path(&options.index_path)
        } else {
            with_suffix(&options.index_path, ".rejects.jsonl")
        };
        rejects.publish_copy(&path)?;
        return Err(Error::NothingIndexed {
            path: options.src.clone(),
            rejected: report.rejected,
            first: first_reject(&path),
            rejects: path,
        });
    }
    if exists && options.existing == Existing::Skip {
        check_same(&file, &options.index_path)?;
        report.skipped_existing = true;
        return Ok(report);
    }
    report.rejects_path = rejects.publish()?;
    file.publish(match options.existing {
        Existing::Replace => Replace::Existing,
        Existing::Error | Existing::Skip => Replace::Never,
    })?;
    remove_rejects(&failed_rejects_path(&options.index_path))?;
    Ok(report)
}

/// The uncompressed file to index.
fn source(path: &Path) -> Result<Source> {
    let metadata = std::fs::metadata(path).map_err(|cause| Error::io(path, cause))?;
    if metadata.is_dir() {
        return Err(Error::Corpus(CorpusError::NotAFile {
            path: path.to_owned(),
            found: "folder",
        }));
    }
    let selection = Selection::of_format(Some(Format::Jsonl));
    let mut expansion = packtok_corpus::expand(&[path.display().to_string()], &selection)?;
    let source = expansion.sources.remove(0);
    check_plain(&source)?;
    Ok(source)
}

/// Writes the index to an unpublished file.
fn index(
    source: &Source,
    options: &RawIndexOptions,
    rejects: &mut Rejects,
    monitor: &mut Monitor<'_>,
) -> Result<(TempFile, RawIndexReport)> {
    let mut reader = Reader::new(vec![source.clone()], options.read.clone());
    let file = BufWriter::with_capacity(1 << 20, TempFile::create(&options.index_path)?);
    let io = |cause| Error::io(&options.index_path, cause);
    let mut pairs = PairsWriter::new(file).map_err(io)?;
    let mut report = RawIndexReport {
        index_path: options.index_path.clone(),
        ..RawIndexReport::default()
    };
    let mut buffer = Vec::new();
    while let Some(chunk) = reader.next_chunk(buffer)? {
        for record in chunk.records() {
            report.lines += 1;
            match check_record(&record, options) {
                Ok(()) if record.is_blank() => report.blank += 1,
                Ok(()) => {
                    report.entries += 1;
                    pairs.push(record.offset, record.len_bytes).map_err(io)?;
                }
                Err(reason) => {
                    report.rejected += 1;
                    reject(source, &record, report.lines, reason, options, rejects)?;
                }
            }
        }
        let progress = Progress {
            bytes_read: reader.bytes_read(),
            total_bytes: source.bytes,
            documents: report.entries,
            ..Progress::default()
        };
        report_progress(monitor, &progress)?;
        buffer = chunk.into_buffer();
    }
    let mut file = pairs.finish().map_err(io)?;
    file.flush().map_err(io)?;
    let file = file.into_inner().map_err(|error| io(error.into_error()))?;
    Ok((file, report))
}

/// Records a rejected line, or ends the run.
fn reject(
    source: &Source,
    record: &Record<'_>,
    number: u64,
    reason: BadDocument,
    options: &RawIndexOptions,
    rejects: &mut Rejects,
) -> Result<()> {
    match options.on_bad_document {
        OnBadDocument::Skip => Ok(rejects.write(&RejectRecord {
            source: source.label.as_str().into(),
            number: RecordNumber::Line(number),
            offset_bytes: Some(record.offset),
            len_bytes: record.len_bytes,
            reason: reason.to_string().into(),
        })?),
        OnBadDocument::Fail => {
            let error = Error::BadDocument {
                location: Location::of(source, number),
                offset_bytes: Some(record.offset),
                reason: Box::new(reason.into()),
            };
            Err(match crate::pack::explain(error, source) {
                Error::Corpus(error) => Error::Corpus(not_lines(error)),
                error => error,
            })
        }
    }
}

/// Checks that the existing index equals the new one.
fn check_same(new: &TempFile, existing: &Path) -> Result<()> {
    let read = |path: &Path| std::fs::read(path).map_err(|cause| Error::io(path, cause));
    let (found, expected) = (read(existing)?, read(new.path())?);
    if found == expected {
        return Ok(());
    }
    Err(Error::ExistingDiffers {
        path: existing.to_owned(),
        what: "its content".to_owned(),
        found: format!("{} bytes", found.len()),
        expected: format!("{} bytes, the index of the current file", expected.len()),
    })
}

/// Checks that a record is blank or JSON.
fn check_record(
    record: &Record<'_>,
    options: &RawIndexOptions,
) -> std::result::Result<(), BadDocument> {
    match record.body {
        Body::Oversize => Err(BadDocument::Oversize {
            len_bytes: record.len_bytes,
            max_document_bytes: options.read.max_document_bytes,
        }),
        Body::JsonLine(line) if !record.is_blank() => check_json(line).map(drop),
        Body::JsonLine(_) | Body::Text(_) | Body::NoText(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::ops::ControlFlow;

    use packtok_pbin::read_raw_index;
    use tempfile::TempDir;

    use super::*;

    fn options(src: &Path, index_path: &Path) -> RawIndexOptions {
        RawIndexOptions {
            src: src.to_owned(),
            index_path: index_path.to_owned(),
            on_bad_document: OnBadDocument::Fail,
            existing: Existing::Error,
            read: ReadOptions::for_json_lines(1 << 30),
        }
    }

    fn run(options: &RawIndexOptions) -> Result<RawIndexReport> {
        write_raw_index(options, &mut |_| ControlFlow::Continue(()))
    }

    fn folder_with(text: &[u8]) -> (TempDir, RawIndexOptions) {
        let folder = TempDir::new().unwrap();
        let (path, dst) = (folder.path().join("a.jsonl"), folder.path().join("a.idx"));
        fs::write(&path, text).unwrap();
        (folder, options(&path, &dst))
    }

    fn shared() -> PathBuf {
        match std::env::var_os("PACKTOK_SHARED") {
            Some(shared) => shared.into(),
            None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        }
    }

    #[test]
    fn clean_files_have_the_bytes_of_modalities() {
        let data = shared().join("data");
        for (text, golden) in [
            ("redpajama/train.jsonl", "redpajama/train.idx"),
            ("modalities/lorem_long.jsonl", "modalities/lorem_long.idx"),
        ] {
            if !data.join(text).exists() {
                eprintln!("skipped: {} is not there", data.join(text).display());
                continue;
            }
            let folder = TempDir::new().unwrap();
            let dst = folder.path().join("a.idx");
            let report = run(&options(&data.join(text), &dst)).unwrap();
            assert_eq!(report.lines, report.entries);
            let is_same = fs::read(&dst).unwrap() == fs::read(data.join(golden)).unwrap();
            assert!(is_same, "{text}");
        }
    }

    #[test]
    fn blank_lines_are_skipped_and_counted() {
        let (_folder, options) = folder_with(b"{}\r\n\n \t\r\n[1]\n\"\\ud800\"");
        let report = run(&options).unwrap();
        let entries = read_raw_index(&options.index_path).unwrap();
        assert_eq!(entries, [(0, 3), (9, 3), (13, 8)]);
        let expected = RawIndexReport {
            index_path: options.index_path,
            lines: 5,
            entries: 3,
            blank: 2,
            ..RawIndexReport::default()
        };
        assert_eq!(report, expected);
    }

    #[test]
    fn a_bad_line_fails_or_is_listed_in_the_rejects() {
        let (_folder, mut options) = folder_with(b"{}\n{\"a\":NaN}\n[]\n");
        assert_eq!(
            run(&options).unwrap_err().to_string(),
            format!(
                "{}:2: byte 3: malformed JSON at byte 6 of the line: expected value; repair the line, or skip such lines with --on-bad-document skip (on_bad_document: skip)",
                options.src.display()
            )
        );
        assert!(!options.index_path.exists());
        options.on_bad_document = OnBadDocument::Skip;
        let report = run(&options).unwrap();
        let entries = read_raw_index(&options.index_path).unwrap();
        assert_eq!(entries, [(0, 2), (13, 2)]);
        assert_eq!((report.lines, report.rejected), (3, 1));
        assert_eq!(
            fs::read_to_string(report.rejects_path.unwrap()).unwrap(),
            "{\"source\":\"a.jsonl\",\"line\":2,\"offset_bytes\":3,\"len_bytes\":9,\"reason\":\"malformed JSON at byte 6 of the line: expected value\"}\n"
        );
    }

    #[test]
    fn an_existing_index_is_kept_only_if_it_is_the_same() {
        let (_folder, mut options) = folder_with(b"{}\n");
        run(&options).unwrap();
        assert!(matches!(run(&options), Err(Error::OutputExists { .. })));
        options.existing = Existing::Skip;
        assert!(run(&options).unwrap().skipped_existing);
        fs::write(&options.src, b"{}\n{}\n").unwrap();
        assert!(matches!(run(&options), Err(Error::ExistingDiffers { .. })));
        options.existing = Existing::Replace;
        assert_eq!(run(&options).unwrap().entries, 2);
    }

    #[test]
    fn compressed_sources_have_no_index() {
        let (_folder, options) = folder_with(b"\x1f\x8b");
        assert!(matches!(
            run(&options),
            Err(Error::Corpus(CorpusError::IndexedCompressed { .. }))
        ));
        assert!(!options.index_path.exists());
    }

    #[test]
    fn an_empty_file_has_an_empty_index() {
        let (_folder, options) = folder_with(b"");
        assert_eq!(run(&options).unwrap().lines, 0);
        assert_eq!(read_raw_index(&options.index_path).unwrap(), []);
    }

    #[test]
    fn an_interrupted_run_writes_nothing() {
        let (folder, options) = folder_with(b"{}\n");
        let error = write_raw_index(&options, &mut |_| ControlFlow::Break(())).unwrap_err();
        assert!(matches!(error, Error::Cancelled));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
