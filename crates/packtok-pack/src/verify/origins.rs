//! Compares a pbin with the records that its documents came from.
//!
//! The file records the sources, the position of each record, the options, and the tokenizer. Only
//! the folder of the corpus must be known. So this also works for a shard, for a joined file, and
//! for a corpus that was moved or has lost other files.

use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};

use packtok_corpus::OnBadDocument;
use packtok_corpus::field::Fields;
use packtok_corpus::{Source, is_url, len_of};
use packtok_jobs::{Consume, Flow, Monitor, Progress, report_progress};
use packtok_pbin::{CorpusFormat, Metadata, Origin, Reader};
use packtok_tokenizer::{EngineChoice, Tokenizer};

use super::{CorpusReport, check_width, first_difference, sample};
use crate::error::{Error, Result};
use crate::pack::{DocBatch, Existing, PackOptions, PackSpec, UNSAMPLED, process};

/// The location of the corpus, and the options for reading it.
#[derive(Debug, Clone)]
pub struct OriginsOptions {
    /// The pbin.
    pub path: PathBuf,
    /// The common folder of the sources: a path or URL. The recorded paths are relative to it.
    pub folder: PathBuf,
    /// About which fraction of the documents is compared.
    pub fraction: f64,
    /// Number of threads.
    pub num_cpus: usize,
    /// Largest zstd window, as a power of two.
    pub zstd_window_log: u32,
}

/// Reads the record of every document again, tokenizes about `options.fraction` of them with the
/// reference engine, and compares the ids.
///
/// # Errors
/// The first document that has no record at its origin or has other ids; a source whose length has
/// changed since the file was packed; the file does not record origins.
pub fn verify_origins(
    options: &OriginsOptions,
    tokenizer: &Tokenizer,
    monitor: &mut Monitor<'_>,
) -> Result<CorpusReport> {
    let file = Reader::open(&options.path)?;
    let (true, Some(metadata)) = (file.has_origins(), file.metadata()?) else {
        return Err(Error::NoOrigins {
            path: options.path.clone(),
        });
    };
    check_width(&file, tokenizer)?;
    let used = used_sources(&file, options)?;
    let sources: Vec<Source> = used.iter().map(|used| used.source.clone()).collect();
    let pack_options = pack_options(options, metadata, &sources)?;
    let wanted = used.iter().map(|used| used.offsets.clone()).collect();
    let mut comparison = Comparison {
        file: &file,
        used: &used,
        report: CorpusReport {
            documents: 0,
            compared: 0,
        },
        tokens: 0,
        total_bytes: sources.iter().map(Source::span_bytes).sum(),
        monitor,
    };
    let reader = packtok_corpus::Reader::new(sources.clone(), pack_options.spec.read());
    let sample = sample(&pack_options, options.fraction).among(wanted);
    process(
        &pack_options,
        tokenizer,
        &sources,
        reader,
        sample,
        &mut comparison,
    )?;
    if comparison.report.documents < file.len() {
        Err(comparison.no_record())
    } else {
        Ok(comparison.report)
    }
}

/// A source of the file from which it has documents.
struct UsedSource {
    /// Index of the source among the sources of the file.
    number: u64,
    /// The offsets of its first and last document.
    offsets: RangeInclusive<u64>,
    source: Source,
}

/// The sources with documents, in order.
fn used_sources(file: &Reader, options: &OriginsOptions) -> Result<Vec<UsedSource>> {
    let recorded = file.sources()?;
    let mut used: Vec<UsedSource> = Vec::new();
    let mut last = None;
    file.for_each_origin(|document, origin| {
        if last.is_some_and(|last: Origin| {
            (last.source, last.offset) >= (origin.source, origin.offset)
        }) {
            return Err(Error::OriginsUnordered {
                path: options.path.clone(),
                document,
            });
        }
        last = Some(origin);
        match used.last_mut().filter(|used| used.number == origin.source) {
            Some(used) => used.offsets = *used.offsets.start()..=origin.offset,
            None => {
                let source = usize::try_from(origin.source).ok();
                let source = source
                    .and_then(|number| recorded.get(number))
                    .ok_or_else(|| packtok_pbin::Error::DamagedOrigin {
                        path: options.path.clone(),
                        document,
                    })?;
                used.push(UsedSource {
                    number: origin.source,
                    offsets: origin.offset..=origin.offset,
                    source: source_at(options, source, origin.offset)?,
                });
            }
        }
        Ok(())
    })?;
    Ok(used)
}

/// A recorded source as a source to read, from its first document on where that is possible.
fn source_at(
    options: &OriginsOptions,
    recorded: &packtok_pbin::Source,
    first_offset: u64,
) -> Result<Source> {
    let Some(format) = recorded
        .format
        .filter(|&format| format != CorpusFormat::Plugin)
    else {
        return Err(Error::OriginsOfPlugin {
            path: options.path.clone(),
            source_path: recorded.path.clone(),
        });
    };
    let is_below = |part| matches!(part, Component::Normal(_));
    let recorded_path = Path::new(&recorded.path);
    if recorded.path.is_empty() || !recorded_path.components().all(is_below) {
        return Err(Error::SourceOutside {
            path: options.path.clone(),
            source_path: recorded.path.clone(),
        });
    }
    let path = joined(&options.folder, &recorded.path);
    let bytes = len_of(&path)?;
    if bytes != recorded.bytes {
        return Err(Error::SourceLength {
            path,
            found: bytes,
            expected: recorded.bytes,
        });
    }
    let source = Source {
        path,
        label: recorded.path.clone(),
        bytes,
        format,
        input: usize::try_from(recorded.input.unwrap_or_default()).unwrap_or(usize::MAX),
        range: None,
        files: None,
    };
    let starts_at_a_line = format == CorpusFormat::Jsonl
        && packtok_corpus::compression(&source)? == packtok_corpus::Compression::None
        && (1..bytes).contains(&first_offset);
    Ok(Source {
        // The first record may start after a byte order mark of 3 bytes. Reading then starts at
        // byte 0.
        range: (starts_at_a_line && first_offset > 3).then_some(first_offset..bytes),
        ..source
    })
}

/// `path` below `folder`, which may be a URL.
fn joined(folder: &Path, path: &str) -> PathBuf {
    if is_url(folder) {
        format!(
            "{}/{path}",
            folder.display().to_string().trim_end_matches('/')
        )
        .into()
    } else {
        folder.join(path)
    }
}

/// The options of the run that wrote the file.
fn pack_options(
    options: &OriginsOptions,
    metadata: &Metadata,
    sources: &[Source],
) -> Result<PackOptions> {
    let recorded = metadata.options.clone();
    let eod = (metadata.eod.clone()).ok_or_else(|| Error::NoOrigins {
        path: options.path.clone(),
    })?;
    let patterns = if recorded.input_fields.is_empty() {
        std::slice::from_ref(&recorded.field)
    } else {
        &recorded.input_fields
    };
    Ok(PackOptions {
        fields: Fields::compile(patterns.iter().map(String::as_str))?,
        bos: metadata.bos.clone(),
        spec: PackSpec {
            input: sources.iter().map(|source| source.label.clone()).collect(),
            output: options.path.clone(),
            ignore: Vec::new(),
            split: None,
            root: None,
            index_path: None,
            eod: Some(eod.token.clone()),
            bos: metadata.bos.as_ref().map(|bos| bos.token.clone()),
            recorded,
            // Always the reference engine, whichever engine packed the file.
            engine: EngineChoice::Reference,
            cache_bytes: None,
            // Records that are not in the file may be bad.
            on_bad_document: OnBadDocument::Skip,
            max_rejects: None,
            num_cpus: options.num_cpus,
            zstd_window_log: options.zstd_window_log,
            existing: Existing::Error,
            span_bytes: u64::MAX,
            restart: false,
            redactions: Vec::new(),
            plugin: None,
            chunk_bytes: packtok_corpus::CHUNK_BYTES,
        },
        eod,
    })
}

struct Comparison<'a, 'm> {
    file: &'a Reader,
    used: &'a [UsedSource],
    report: CorpusReport,
    /// Tokens of the compared documents.
    tokens: u64,
    total_bytes: u64,
    monitor: &'a mut Monitor<'m>,
}

impl Comparison<'_, '_> {
    /// The origin of the next document.
    fn next_origin(&self) -> Result<Option<Origin>> {
        if self.report.documents < self.file.len() {
            Ok(self.file.origin(self.report.documents)?)
        } else {
            Ok(None)
        }
    }

    /// The error that the next document has no record at its origin.
    fn no_record(&self) -> Error {
        match self.next_origin() {
            Err(error) => error,
            Ok(origin) => Error::NoRecord {
                path: self.file.path().into(),
                document: self.report.documents,
                record: self.describe(origin.unwrap_or_default()),
            },
        }
    }

    fn describe(&self, origin: Origin) -> String {
        let used = self.used.iter().find(|used| used.number == origin.source);
        used.map_or_else(String::new, |used| {
            let place = used.source.offset_shown(origin.offset);
            format!("{}, {place}", used.source.path.display())
        })
    }

    fn compare(&mut self, expected: &[u8], origin: Origin) -> Result<()> {
        let document = self.report.documents;
        self.report.compared += 1;
        let bytes = self.file.document(document)?;
        self.tokens += self.file.width().tokens_in(bytes.len() as u64);
        match first_difference(bytes, expected, self.file.width()) {
            None => Ok(()),
            Some((token, found, expected)) => Err(Error::RecordDiffers {
                path: self.file.path().into(),
                document,
                token,
                found,
                expected,
                record: self.describe(origin),
            }),
        }
    }
}

impl Consume<DocBatch, Error> for Comparison<'_, '_> {
    fn consume(&mut self, batch: &mut DocBatch) -> Result<Flow> {
        let number = self.used[batch.source].number;
        let mut start = 0;
        for (&bytes, &offset) in batch.document_bytes.iter().zip(&batch.offsets) {
            let stop = start
                + if bytes == UNSAMPLED {
                    0
                } else {
                    bytes as usize
                };
            let Some(origin) = self.next_origin()? else {
                return Ok(Flow::Stop);
            };
            let place = (number, offset);
            if place > (origin.source, origin.offset) {
                return Err(self.no_record());
            }
            // Records before the next origin are not in this file.
            if place == (origin.source, origin.offset) {
                if bytes != UNSAMPLED {
                    self.compare(&batch.data[start..stop], origin)?;
                }
                self.report.documents += 1;
            }
            start = stop;
        }
        batch.shrink();
        Ok(Flow::Continue)
    }

    fn tick(&mut self, bytes_read: u64) -> Result<()> {
        let progress = Progress {
            bytes_read,
            total_bytes: self.total_bytes,
            documents: self.report.documents,
            tokens: self.tokens,
            ..Progress::default()
        };
        Ok(report_progress(self.monitor, &progress)?)
    }
}
