//! Reads one part of a plug-in's corpus.

use crate::bytes::frames::Frame;
use crate::error::{Error, Result};
use crate::formats::plugin::{Document, DocumentBatch, Documents, PluginCorpora};
use crate::formats::source_reader::SourceReader;
use crate::reader::chunk::{Content, Span, SpanContent};
use crate::{ReadOptions, ResumePoint, Source};

/// Stands in the checksum for the length of a document that is no text.
const NO_TEXT: u64 = u64::MAX;

/// Reads the documents of a source that is a part of a plug-in's corpus.
pub(crate) struct PluginReader {
    corpora: PluginCorpora,
    source: Source,
    max_document_bytes: u64,
    /// `None` until the first document is needed.
    documents: Option<Box<dyn Documents>>,
    batch: Pending,
    /// Number of the next document, from 0.
    number: u64,
    crc: u32,
    raw_bytes: u64,
    at_end: bool,
}

/// The current batch. Its first documents may already have been taken.
#[derive(Default)]
struct Pending {
    batch: DocumentBatch,
    /// Index of the next document.
    next: usize,
    /// Start of its text.
    start: usize,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.next == self.batch.documents.len()
    }
}

impl PluginReader {
    pub(crate) fn open(corpora: &PluginCorpora, source: &Source, options: &ReadOptions) -> Self {
        Self {
            corpora: corpora.clone(),
            source: source.clone(),
            max_document_bytes: options.max_document_bytes,
            documents: None,
            batch: Pending::default(),
            number: 0,
            crc: 0,
            raw_bytes: 0,
            at_end: false,
        }
    }

    /// Fetches a batch with at least one document, unless the part has ended.
    fn fill(&mut self) -> Result<()> {
        if !self.batch.is_empty() || self.at_end {
            return Ok(());
        }
        let documents = match &mut self.documents {
            Some(documents) => documents,
            closed => {
                let part = self.corpora.part_of(&self.source);
                let plugin = self.corpora.plugin();
                closed.insert(plugin.open(part, self.number, self.max_document_bytes)?)
            }
        };
        match documents.next()? {
            Some(batch) => {
                self.batch = Pending {
                    batch,
                    ..Pending::default()
                };
            }
            None => {
                self.at_end = true;
                // Drops the documents, so that the plug-in releases its resources.
                self.documents = None;
            }
        }
        Ok(())
    }

    /// Takes the next document of the batch and adds it to the checksum. Returns the document and
    /// the start of its text.
    fn pass_one(&mut self) -> Option<(Document, usize)> {
        let pending = &mut self.batch;
        let document = *pending.batch.documents.get(pending.next)?;
        let start = pending.start;
        let append_len = |crc, len: u64| crc32c::crc32c_append(crc, &len.to_le_bytes());
        match document {
            Document::Text(len_bytes) => {
                let text = &pending.batch.bytes[start..start + len_bytes];
                pending.start += len_bytes;
                self.crc = crc32c::crc32c_append(append_len(self.crc, len_bytes as u64), text);
                self.raw_bytes += len_bytes as u64;
            }
            Document::Oversize { len_bytes, crc32c } => {
                let before = append_len(self.crc, len_bytes);
                self.crc = crc32c::crc32c_combine(before, crc32c, len_bytes as usize);
                self.raw_bytes += len_bytes;
            }
            Document::NoText(_) => self.crc = append_len(self.crc, NO_TEXT),
        }
        pending.next += 1;
        self.number += 1;
        Some((document, start))
    }
}

impl SourceReader for PluginReader {
    fn next(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Content>> {
        buffer.clear();
        self.fill()?;
        let first = self.batch.start;
        buffer.extend_from_slice(&self.batch.batch.bytes[first..]);
        let mut spans = Vec::with_capacity(self.batch.batch.documents.len() - self.batch.next);
        while let Some((document, start)) = self.pass_one() {
            let (len_bytes, content) = match document {
                Document::Text(len) => (len as u64, SpanContent::Text(start - first)),
                Document::Oversize { len_bytes, .. } => (len_bytes, SpanContent::Oversize),
                Document::NoText(reason) => (0, SpanContent::NoText(reason)),
            };
            spans.push(Span {
                offset: self.number - 1,
                len_bytes,
                content,
            });
        }
        Ok((!spans.is_empty()).then_some(Content::Spans(spans)))
    }

    fn is_at_end(&self) -> bool {
        self.at_end && self.batch.is_empty()
    }

    fn resume_point(&self, source: usize) -> Option<ResumePoint> {
        Some(ResumePoint {
            source,
            offset: self.number,
            crc32c: self.crc,
        })
    }

    fn skip(&mut self, place: ResumePoint, _: Option<Frame>) -> Result<bool> {
        if self.corpora.plugin().is_resumable() {
            (self.number, self.crc) = (place.offset, place.crc32c);
            return Ok(true);
        }
        if self.pass_to(place.offset, &mut |_| Ok(()))? && self.crc == place.crc32c {
            Ok(true)
        } else {
            Err(Error::OtherDocuments {
                plugin: self.corpora.plugin().name().to_owned(),
                path: self.source.path.clone(),
            })
        }
    }

    fn pass_to(&mut self, offset: u64, tick: &mut dyn FnMut(u64) -> Result<()>) -> Result<bool> {
        while self.number < offset {
            if self.pass_one().is_none() {
                tick(self.raw_bytes)?;
                self.fill()?;
                if self.is_at_end() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn raw_bytes(&self) -> u64 {
        self.raw_bytes
    }

    fn digest(&self) -> u32 {
        self.crc
    }
}
