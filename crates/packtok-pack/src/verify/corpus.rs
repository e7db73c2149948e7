//! Compares a pbin with its corpus by tokenizing documents again.

use packtok_corpus::{Location, Source};
use packtok_jobs::{Consume, Flow, Monitor, Progress, report_progress};
use packtok_pbin::Reader;
use packtok_tokenizer::{EngineChoice, Tokenizer};
use serde::Serialize;

use super::{check_width, first_difference, sample};
use crate::error::{Error, Result};
use crate::pack::{
    DocBatch, LineNumbers, Outcome, PackOptions, UNSAMPLED, explain, process, reader,
};

/// The extent of a comparison with the corpus.
#[derive(Debug, Serialize)]
pub struct CorpusReport {
    /// Documents of the file; the corpus accounts for all of them.
    pub documents: u64,
    /// Documents that were tokenized again and compared id by id.
    pub compared: u64,
}

/// Tokenizes about `fraction` of the corpus again with the reference engine, and compares the ids
/// with the pbin at `options.spec.output`.
///
/// # Errors
/// The first difference, with document, file and line.
pub fn verify_corpus(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    fraction: f64,
    monitor: &mut Monitor<'_>,
) -> Result<CorpusReport> {
    // Always the reference engine, whichever engine packed the file.
    let mut options = options.clone();
    options.spec.engine = EngineChoice::Reference;
    let file = Reader::open(&options.spec.output)?;
    check_width(&file, tokenizer)?;
    if let Some(metadata) = file.metadata()? {
        // Ids are compared as the bytes that the file has.
        options.spec.recorded.token_width = metadata.options.token_width;
    }
    let options = &options;
    let sources = options.spec.expand()?.sources;
    let sample = sample(options, fraction);
    let mut comparison = Comparison {
        options,
        sources: &sources,
        file: &file,
        limit: match file.metadata()? {
            Some(metadata) if metadata.stopped_early => file.len(),
            _ => u64::MAX,
        },
        report: CorpusReport {
            documents: 0,
            compared: 0,
        },
        lines: LineNumbers::new(options, &sources),
        position: (0, 0),
        tokens: 0,
        monitor,
    };
    let reader = reader(options, &sources)?;
    process(
        options,
        tokenizer,
        &sources,
        reader,
        sample,
        &mut comparison,
    )?;
    if comparison.report.documents != file.len() {
        return Err(Error::CorpusShorter {
            path: options.spec.output.clone(),
            found: file.len(),
            expected: comparison.report.documents,
        });
    }
    Ok(comparison.report)
}

struct Comparison<'a, 'm> {
    options: &'a PackOptions,
    sources: &'a [Source],
    file: &'a Reader,
    /// Number of documents at which the file's limit ended the run.
    limit: u64,
    report: CorpusReport,
    lines: LineNumbers,
    position: (usize, u64),
    /// Tokens of the compared documents.
    tokens: u64,
    monitor: &'a mut Monitor<'m>,
}

impl Comparison<'_, '_> {
    /// Compares the next document of the file with the expected bytes.
    fn compare(&mut self, expected: &[u8], line: u64, source: usize) -> Result<()> {
        let i = self.report.documents;
        let bytes = if i < self.file.len() {
            self.file.document(i)?
        } else {
            return Err(Error::CorpusLonger {
                path: self.options.spec.output.clone(),
                found: self.file.len(),
                location: Location::of(&self.sources[source], line),
            });
        };
        self.report.compared += 1;
        self.tokens += self.file.width().tokens_in(bytes.len() as u64);
        let Some((token, found, expected)) = first_difference(bytes, expected, self.file.width())
        else {
            return Ok(());
        };
        Err(Error::DocumentDiffers {
            path: self.options.spec.output.clone(),
            document: i,
            token,
            found,
            expected,
            location: Location::of(&self.sources[source], line),
        })
    }
}

impl Consume<DocBatch, Error> for Comparison<'_, '_> {
    fn consume(&mut self, batch: &mut DocBatch) -> Result<Flow> {
        if batch.source != self.position.0 {
            self.position = (batch.source, 0);
        }
        let mut lines = (self.position.1 + 1..).zip(&batch.outcomes);
        let mut start = 0;
        for &bytes in &batch.document_bytes {
            if self.report.documents == self.limit {
                return Ok(Flow::Stop);
            }
            let (line, _) = lines
                .find(|(_, outcome)| **outcome == Outcome::Packed)
                .expect("every document of a batch has its line");
            if bytes != UNSAMPLED {
                let stop = start + bytes as usize;
                self.compare(&batch.data[start..stop], line, batch.source)?;
                start = stop;
            }
            self.report.documents += 1;
        }
        if let Some(reject) = batch.rejects.pop_if(|_| batch.is_fatal) {
            let source = &self.sources[batch.source];
            let number = self.lines.of(source, self.position.1, &reject)?;
            let error = Error::BadDocument {
                location: Location::of(source, number),
                offset_bytes: source.offset_bytes(reject.offset),
                reason: Box::new(reject.reason),
            };
            return Err(explain(error, source));
        }
        self.position.1 += batch.outcomes.len() as u64;
        batch.shrink();
        Ok(Flow::Continue)
    }

    fn tick(&mut self, bytes_read: u64) -> Result<()> {
        let progress = Progress {
            bytes_read,
            total_bytes: self.sources.iter().map(|source| source.bytes).sum(),
            documents: self.report.documents,
            tokens: self.tokens,
            ..Progress::default()
        };
        Ok(report_progress(self.monitor, &progress)?)
    }
}
