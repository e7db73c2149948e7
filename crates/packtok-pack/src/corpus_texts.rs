//! Reads the texts of a corpus one after the other, with the same extraction as packing.

use packtok_corpus::Reason;
use packtok_corpus::field::Extractors;
use packtok_corpus::{Location, Reader, Source};
use packtok_corpus::{OnBadDocument, text_of};

use crate::error::{Error, Result};
use crate::pack::explain;
use crate::scan::ScanOptions;

/// The texts of a corpus, in order.
pub struct CorpusTexts {
    reader: Reader,
    sources: Vec<Source>,
    extractors: Extractors,
    on_bad_document: OnBadDocument,
    max_document_bytes: u64,
    /// Index of the source that was read last, and its records so far.
    place: (usize, u64),
    buffer: Vec<u8>,
    /// The error that follows the texts returned last.
    failed: Option<Error>,
}

impl CorpusTexts {
    /// Expands the inputs of `options` into sources, without reading any source.
    ///
    /// # Errors
    /// As [`packtok_corpus::expand`].
    pub fn open(options: &ScanOptions) -> Result<Self> {
        let sources = options.expand()?.sources;
        Ok(Self {
            reader: Reader::new(sources.clone(), options.read.clone()),
            sources,
            extractors: options.fields.extractors(),
            on_bad_document: options.on_bad_document,
            max_document_bytes: options.read.max_document_bytes,
            place: (0, 0),
            buffer: Vec::new(),
            failed: None,
        })
    }

    /// The next texts, at least one; `None` after the last text.
    ///
    /// # Errors
    /// A source cannot be read; or a document is bad, after all texts before it were returned.
    /// After an error, the iterator is exhausted.
    pub fn next_batch(&mut self) -> Result<Option<Vec<String>>> {
        let mut texts = Vec::new();
        while texts.is_empty() {
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            let Some(chunk) = self.reader.next_chunk(std::mem::take(&mut self.buffer))? else {
                return Ok(None);
            };
            if chunk.source() != self.place.0 {
                self.place = (chunk.source(), 0);
            }
            let extractor = self.extractors.of_input(chunk.input());
            for record in chunk.records() {
                self.place.1 += 1;
                match text_of(extractor, &record, self.max_document_bytes) {
                    Ok(Some(text)) => texts.push(text.to_owned()),
                    Ok(None) => {}
                    Err(_) if self.on_bad_document == OnBadDocument::Skip => {}
                    Err(reason) => {
                        let source = &self.sources[chunk.source()];
                        let error = Error::BadDocument {
                            location: Location::of(source, self.place.1),
                            offset_bytes: source.offset_bytes(record.offset),
                            reason: Box::new(Reason::from(reason)),
                        };
                        self.failed = Some(explain(error, source));
                        break;
                    }
                }
            }
            self.buffer = chunk.into_buffer();
        }
        Ok(Some(texts))
    }
}
