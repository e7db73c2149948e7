//! Writes the trailer after the index: the sections, then the section table and the tail.

use std::io::{self, Write};

use crate::header::Header;
use crate::trailer::{
    ALIGNMENT, CHECKED_TAIL_BYTES, START_MAGIC, Section, TAIL_BYTES, TAIL_MAGIC, VERSION,
};

/// Writes a trailer to `out`, section by section.
pub(crate) struct TrailerWriter<W> {
    out: W,
    start: u64,
    position: u64,
    sections: Vec<Section>,
}

impl<W: Write> TrailerWriter<W> {
    /// Starts a trailer after an index that ends at file offset `index_end`.
    pub(crate) fn start(out: W, index_end: u64) -> io::Result<Self> {
        let mut writer = Self {
            out,
            start: 0,
            position: index_end,
            sections: Vec::new(),
        };
        writer.pad()?;
        writer.start = writer.position;
        writer.write_all(&START_MAGIC)?;
        Ok(writer)
    }

    /// Adds a section with the bytes that `fill` writes. Sections must come in ascending order of
    /// `kind`.
    pub(crate) fn section<E: From<io::Error>>(
        &mut self,
        kind: u32,
        flags: u32,
        fill: impl FnOnce(&mut SectionOut<'_, W>) -> Result<(), E>,
    ) -> Result<(), E> {
        let offset = self.position;
        let mut out = SectionOut {
            out: &mut self.out,
            bytes: 0,
            crc32c: 0,
        };
        fill(&mut out)?;
        let SectionOut { bytes, crc32c, .. } = out;
        self.position += bytes;
        self.sections.push(Section {
            kind,
            flags,
            offset,
            bytes,
            crc32c,
        });
        Ok(self.pad()?)
    }

    /// Writes table and tail; returns the output and the length of the file.
    pub(crate) fn finish(mut self, header: Header) -> io::Result<(W, u64)> {
        let table_offset = self.position;
        let table: Vec<u8> = self.sections.iter().flat_map(Section::encode).collect();
        self.write_all(&table)?;
        let trailer_bytes = self.position + TAIL_BYTES - self.start;
        let mut tail = Vec::with_capacity(TAIL_BYTES as usize);
        tail.extend(table_offset.to_le_bytes());
        tail.extend(trailer_bytes.to_le_bytes());
        tail.extend(header.encode());
        tail.extend(VERSION.to_le_bytes());
        tail.extend(crc32c::crc32c(&table).to_le_bytes());
        tail.extend(crc32c::crc32c(&tail[..CHECKED_TAIL_BYTES]).to_le_bytes());
        tail.extend(TAIL_MAGIC);
        self.write_all(&tail)?;
        Ok((self.out, self.position))
    }

    fn pad(&mut self) -> io::Result<()> {
        let padding = self.position.next_multiple_of(ALIGNMENT) - self.position;
        self.write_all(&[0; ALIGNMENT as usize][..padding as usize])
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.position += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}

/// Counts and checksums the bytes of one section on their way to the output.
pub(crate) struct SectionOut<'a, W> {
    out: &'a mut W,
    bytes: u64,
    crc32c: u32,
}

impl<W: Write> Write for SectionOut<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        self.crc32c = crc32c::crc32c_append(self.crc32c, &bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
