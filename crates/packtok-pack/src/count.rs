//! Counts documents, bytes and tokens of a corpus, by source, for several tokenizers at once.

use std::path::PathBuf;
use std::time::Instant;

use packtok_corpus::{Expansion, Format, Ignored};
use packtok_jobs::Monitor;
use packtok_tokenizer::{EncodeOptions, Encoder, Result as BpeResult, Tokenizer};
use serde::Serialize;

use crate::error::Result;
use crate::pack::KEPT_IDS;
use crate::scan::{Examine, LineCounts, Receive, ScanOptions, scan};

/// Counts of some documents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// Counts of the lines.
    #[serde(flatten)]
    pub lines: LineCounts,
    /// Length of the documents' texts in bytes of UTF-8.
    pub text_bytes: u64,
    /// Tokens of the texts, one number per tokenizer, without EOD.
    pub tokens: Vec<u64>,
}

/// Counts of one source.
#[derive(Debug, Serialize)]
pub struct SourceCount {
    /// The file.
    pub path: PathBuf,
    /// Length of the file on disk in bytes.
    pub source_bytes: u64,
    /// CRC32C of these bytes, unless `max_documents` ended the run.
    pub crc32c: Option<u32>,
    /// The format it is read as.
    pub format: Format,
    /// The counts.
    #[serde(flatten)]
    pub counted: Counted,
}

/// Counts of a corpus.
#[derive(Debug, Serialize)]
pub struct CountReport {
    /// The counts of each source, in corpus order.
    pub sources: Vec<SourceCount>,
    /// Files that were not read.
    pub ignored: Vec<Ignored>,
    /// The sum over all sources.
    pub total: Counted,
    /// Whether `max_documents` ended the run; the counts of sources after that are zero.
    pub stopped_early: bool,
    /// Wall-clock time in seconds.
    pub seconds: f64,
    /// Number of threads.
    pub num_cpus: usize,
}

/// Counts the documents of a corpus, and their tokens for each of `tokenizers`, which may be
/// empty.
///
/// # Errors
/// The first error in corpus order.
pub fn count(
    options: &ScanOptions,
    tokenizers: &[Tokenizer],
    encode: &EncodeOptions,
    monitor: &mut Monitor<'_>,
) -> Result<CountReport> {
    let started = Instant::now();
    let Expansion { sources, ignored } = options.expand()?;
    let examiners = (0..options.num_threads.max(1))
        .map(|_| Counter::new(tokenizers, encode))
        .collect::<Result<_>>()?;
    let nothing = Counted {
        tokens: vec![0; tokenizers.len()],
        ..Counted::default()
    };
    let mut counts = CountsBySource(vec![nothing.clone(); sources.len()]);
    let scanned = scan(options, &sources, examiners, &mut counts, monitor)?;
    let mut total = nothing;
    let digests = scanned.digests;
    for (counted, lines) in counts.0.iter_mut().zip(scanned.lines) {
        counted.lines = lines;
        total.lines.add(&lines);
        total.text_bytes += counted.text_bytes;
        add(&mut total.tokens, &counted.tokens);
    }
    let sources = sources.into_iter().zip(counts.0).zip(digests);
    Ok(CountReport {
        sources: sources
            .map(|((source, counted), crc32c)| SourceCount {
                path: source.path,
                source_bytes: source.bytes,
                crc32c,
                format: source.format,
                counted,
            })
            .collect(),
        ignored,
        total,
        stopped_early: scanned.stopped_early,
        seconds: started.elapsed().as_secs_f64(),
        num_cpus: options.num_threads,
    })
}

fn add(sums: &mut [u64], numbers: &[u64]) {
    for (sum, number) in sums.iter_mut().zip(numbers) {
        *sum += number;
    }
}

/// The encoders of one thread.
struct Counter {
    encoders: Vec<Encoder>,
    ids: Vec<u32>,
}

/// Length of a text in bytes, and its number of tokens for each tokenizer.
struct Numbers {
    text_bytes: u64,
    tokens: Box<[u64]>,
}

impl Counter {
    fn new(tokenizers: &[Tokenizer], encode: &EncodeOptions) -> Result<Self> {
        let encoders = tokenizers.iter().map(|tokenizer| tokenizer.encoder(encode));
        Ok(Self {
            encoders: encoders.collect::<BpeResult<_>>()?,
            ids: Vec::new(),
        })
    }
}

impl Examine for Counter {
    type Finding = Numbers;

    fn examine(&mut self, text: &str) -> BpeResult<Option<Numbers>> {
        let ids = &mut self.ids;
        let number = |encoder: &mut Encoder| {
            ids.clear();
            encoder.encode_into(text, ids)?;
            Ok(ids.len() as u64)
        };
        let tokens: Box<[u64]> = self
            .encoders
            .iter_mut()
            .map(number)
            .collect::<BpeResult<_>>()?;
        if self.ids.capacity() > KEPT_IDS {
            self.ids = Vec::new();
        }
        let is_empty = if tokens.is_empty() {
            text.is_empty()
        } else {
            tokens.iter().all(|&number| number == 0)
        };
        Ok((!is_empty).then_some(Numbers {
            text_bytes: text.len() as u64,
            tokens,
        }))
    }
}

struct CountsBySource(Vec<Counted>);

impl Receive<Numbers> for CountsBySource {
    fn receive(&mut self, source: usize, _line: u64, numbers: Numbers) -> Result<u64> {
        let counted = &mut self.0[source];
        counted.text_bytes += numbers.text_bytes;
        add(&mut counted.tokens, &numbers.tokens);
        Ok(numbers.tokens.first().copied().unwrap_or(0))
    }
}
