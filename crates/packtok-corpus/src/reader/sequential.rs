//! Reads all sources of a corpus in order.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::formats::open;
use crate::formats::source_reader::SourceReader;
use crate::reader::chunk::Chunk;
use crate::{ReadOptions, ResumePoint, Source};

/// Reads all sources in order.
pub(crate) struct Sequential {
    sources: Arc<[Source]>,
    options: ReadOptions,
    source: usize,
    open: Option<Box<dyn SourceReader>>,
    /// Raw bytes of the sources before the current one.
    bytes_before: u64,
    digests: Vec<Option<u32>>,
    /// Digests that no chunk has reported yet.
    closed: Vec<u32>,
}

impl Sequential {
    pub(crate) fn new(sources: Arc<[Source]>, options: ReadOptions) -> Self {
        Self {
            digests: vec![None; sources.len()],
            sources,
            options,
            source: 0,
            open: None,
            bytes_before: 0,
            closed: Vec::new(),
        }
    }

    /// A reader that resumes at `place`; the sources before it have the digests `closed`.
    pub(crate) fn at(
        sources: Arc<[Source]>,
        options: ReadOptions,
        place: ResumePoint,
        closed: &[u32],
    ) -> Result<Self> {
        let mut reader = Self::new(sources, options);
        for (digest, &known) in reader.digests.iter_mut().zip(closed) {
            *digest = Some(known);
        }
        reader.source = place.source;
        let before = reader.sources.iter().take(place.source);
        reader.bytes_before = before.map(|source| source.bytes).sum();
        if let Some(source) = reader.sources.get(place.source)
            && place.offset > 0
        {
            let mut open = open(source, &reader.options)?;
            if !open.skip(place, None)? {
                return Err(Error::SourceChanged {
                    path: source.path.clone(),
                    expected_bytes: place.offset,
                    found_bytes: source.bytes,
                });
            }
            reader.open = Some(open);
        }
        Ok(reader)
    }

    /// Reads up to `place` and returns whether the content before `place` has these checksums.
    pub(crate) fn pass(
        &mut self,
        place: ResumePoint,
        closed: &[u32],
        tick: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<bool> {
        for &expected in closed {
            if !self.pass_to(u64::MAX, tick)? || self.digests[self.source - 1] != Some(expected) {
                return Ok(false);
            }
        }
        if place.source != self.source {
            return Ok(false);
        }
        if place.offset == 0 {
            return Ok(true);
        }
        let has_source = self.pass_to(place.offset, tick)?;
        let open_at = self
            .open
            .as_ref()
            .and_then(|open| open.resume_point(self.source));
        Ok(has_source && open_at == Some(place))
    }

    /// Reads the current source up to `offset`, or closes the source if `offset` is beyond its
    /// end. Returns false if there is no current source.
    fn pass_to(&mut self, offset: u64, tick: &mut dyn FnMut(u64) -> Result<()>) -> Result<bool> {
        let Some(source) = self.sources.get(self.source) else {
            return Ok(false);
        };
        let open = match &mut self.open {
            Some(open) => open,
            closed => closed.insert(open(source, &self.options)?),
        };
        let bytes_before = self.bytes_before;
        if !open.pass_to(offset, &mut |raw_bytes| tick(bytes_before + raw_bytes))? {
            self.close();
            // Only chunks report closed sources.
            self.closed.clear();
            self.source += 1;
        }
        Ok(true)
    }

    pub(crate) fn next_chunk(&mut self, mut buffer: Vec<u8>) -> Result<Option<Chunk>> {
        if buffer.capacity() > 4 * self.options.chunk_bytes {
            // Frees the memory of a very long line, so that it is not kept for the rest of the
            // run.
            buffer = Vec::new();
        }
        while let Some(source) = self.sources.get(self.source) {
            let open = match &mut self.open {
                Some(open) => open,
                closed => closed.insert(open(source, &self.options)?),
            };
            let input = source.input;
            let content = open.next(&mut buffer)?;
            if open.is_at_end() {
                self.close();
                if content.is_none() {
                    self.source += 1;
                    continue;
                }
            }
            if let Some(content) = content {
                let chunk = Chunk {
                    source: self.source,
                    input,
                    buffer,
                    content,
                    max_document_bytes: self.options.max_document_bytes,
                    end: self.resume_point(),
                    closed: std::mem::take(&mut self.closed),
                };
                self.source += usize::from(self.open.is_none());
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.bytes_before += open.raw_bytes();
            let digest = open.digest();
            self.digests[self.source] = Some(digest);
            self.closed.push(digest);
        }
    }

    /// Start of the next chunk; `None` if reading cannot resume there.
    fn resume_point(&self) -> Option<ResumePoint> {
        match &self.open {
            None => Some(ResumePoint {
                source: self.source + 1,
                ..ResumePoint::default()
            }),
            Some(open) => open.resume_point(self.source),
        }
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        let open = self.open.as_ref();
        self.bytes_before + open.map_or(0, |open| open.raw_bytes())
    }

    pub(crate) fn digests(&self) -> &[Option<u32>] {
        &self.digests
    }
}
