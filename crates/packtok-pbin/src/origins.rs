//! The origin of each document: its source and its position there.
//!
//! Responsible for the bytes of the origins section: blocks of [`BLOCK_DOCUMENTS`] origins, after
//! a directory with the end of each block. An origin with the same source as the previous origin
//! and no smaller offset is stored as the distance between the two. Any other origin is stored
//! with its source and offset. So most documents take 1 to 3 bytes, finding an origin decodes at
//! most one block, and the bytes depend only on the origins.

use std::io::{self, Write};

/// Documents per block. More save little space, and finding an origin decodes half a block.
const BLOCK_DOCUMENTS: u64 = 64;
/// Bytes of a directory entry.
const ENTRY_BYTES: u64 = 8;
/// The longest encoding of a u64 in groups of 7 bits.
const MAX_VARINT_BYTES: usize = 10;
/// Marks an origin that is stored with its source and offset. All other origins start with twice a
/// distance, which is even.
const WITH_SOURCE: u64 = 1;

/// The origin of a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Origin {
    /// Index of its source among the sources of the file.
    pub source: u64,
    /// Offset of the document's record in the uncompressed source, in bytes. For a table of row
    /// groups and for a source plug-in, the index of the row or document, from 0.
    pub offset: u64,
}

/// Encodes origins in order, block by block.
#[derive(Debug, Default)]
struct Encoder {
    num_documents: u64,
    previous: Origin,
    /// Encoded bytes of all documents.
    num_bytes: u64,
}

impl Encoder {
    /// Appends the encoding of the next origin to `out`.
    fn push(&mut self, origin: Origin, out: &mut Vec<u8>) {
        let before = out.len();
        let is_first = self.num_documents.is_multiple_of(BLOCK_DOCUMENTS);
        let distance = (origin.offset)
            .checked_sub(self.previous.offset)
            .filter(|&distance| {
                !is_first && origin.source == self.previous.source && distance >> 63 == 0
            });
        match distance {
            Some(distance) => push_varint(distance << 1, out),
            None => [WITH_SOURCE, origin.source, origin.offset]
                .into_iter()
                .for_each(|number| push_varint(number, out)),
        }
        self.num_documents += 1;
        self.num_bytes += (out.len() - before) as u64;
        self.previous = origin;
    }

    /// Whether the last origin completes a block.
    fn is_at_block_end(&self) -> bool {
        self.num_documents.is_multiple_of(BLOCK_DOCUMENTS)
    }
}

/// Writes the section of the origins that `for_each` passes on, twice.
pub(crate) fn write_section(
    out: &mut impl Write,
    mut for_each: impl FnMut(&mut dyn FnMut(Origin) -> io::Result<()>) -> io::Result<()>,
) -> io::Result<()> {
    let mut encoder = Encoder::default();
    let mut encoded = Vec::new();
    for_each(&mut |origin| {
        encoder.push(origin, &mut encoded);
        encoded.clear();
        if encoder.is_at_block_end() {
            out.write_all(&encoder.num_bytes.to_le_bytes())
        } else {
            Ok(())
        }
    })?;
    if !encoder.is_at_block_end() {
        out.write_all(&encoder.num_bytes.to_le_bytes())?;
    }
    let mut encoder = Encoder::default();
    for_each(&mut |origin| {
        encoder.push(origin, &mut encoded);
        out.write_all(&encoded)?;
        encoded.clear();
        Ok(())
    })
}

/// The origins of a file, in the bytes of their section.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origins<'a> {
    section: &'a [u8],
    num_documents: u64,
}

impl<'a> Origins<'a> {
    /// The origins of `num_documents` documents.
    pub(crate) fn new(section: &'a [u8], num_documents: u64) -> Self {
        Self {
            section,
            num_documents,
        }
    }

    /// The smallest length of a section for `num_documents`.
    pub(crate) fn least_bytes(num_documents: u64) -> u64 {
        num_documents.div_ceil(BLOCK_DOCUMENTS) * ENTRY_BYTES + num_documents
    }

    /// The origin of document `i`; `None` if the bytes there are damaged.
    pub(crate) fn get(self, i: u64) -> Option<Origin> {
        let mut block = self.block(i / BLOCK_DOCUMENTS)?;
        let mut origin = Origin::default();
        for _ in 0..=i % BLOCK_DOCUMENTS {
            origin = next_origin(&mut block, origin)?;
        }
        Some(origin)
    }

    /// Calls `each` with all origins in order, after checking that they are encoded as a writer
    /// encodes them. Returns the number of the first document whose origin is not.
    pub(crate) fn for_each<E>(
        self,
        mut each: impl FnMut(u64, Origin) -> Result<(), E>,
    ) -> Result<Option<u64>, E> {
        let mut encoder = Encoder::default();
        let mut encoded = Vec::new();
        let mut rest: &[u8] = &[];
        let mut end = 0;
        for i in 0..self.num_documents {
            if i % BLOCK_DOCUMENTS == 0 {
                let Some(block) = self.block(i / BLOCK_DOCUMENTS).filter(|_| rest.is_empty())
                else {
                    return Ok(Some(i));
                };
                rest = block;
                end += block.len();
            }
            let before = rest;
            let Some(origin) = next_origin(&mut rest, encoder.previous) else {
                return Ok(Some(i));
            };
            encoded.clear();
            encoder.push(origin, &mut encoded);
            if before[..before.len() - rest.len()] != encoded {
                return Ok(Some(i));
            }
            each(i, origin)?;
        }
        let is_complete = rest.is_empty() && end + self.directory_bytes() == self.section.len();
        Ok((!is_complete).then(|| self.num_documents.saturating_sub(1)))
    }

    fn directory_bytes(self) -> usize {
        (self.num_documents.div_ceil(BLOCK_DOCUMENTS) * ENTRY_BYTES) as usize
    }

    /// The bytes of block `i`, which must exist.
    fn block(self, i: u64) -> Option<&'a [u8]> {
        let (directory, blocks) = self.section.split_at_checked(self.directory_bytes())?;
        let ends = directory.as_chunks().0;
        let end_of = |i: usize| ends.get(i).map(|&end| u64::from_le_bytes(end));
        let i = usize::try_from(i).ok()?;
        let start = match i.checked_sub(1) {
            Some(before) => end_of(before)?,
            None => 0,
        };
        let start = usize::try_from(start).ok()?;
        blocks.get(start..usize::try_from(end_of(i)?).ok()?)
    }
}

/// Decodes the origin at the start of `block` and advances `block` beyond it.
fn next_origin(block: &mut &[u8], previous: Origin) -> Option<Origin> {
    match next_varint(block)? {
        WITH_SOURCE => Some(Origin {
            source: next_varint(block)?,
            offset: next_varint(block)?,
        }),
        distance if distance % 2 == 0 => Some(Origin {
            source: previous.source,
            offset: previous.offset.checked_add(distance / 2)?,
        }),
        _ => None,
    }
}

/// Appends `number` in groups of 7 bits, lowest first. All groups but the last have the highest
/// bit set.
fn push_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Decodes the number at the start of `bytes` and advances `bytes` beyond it.
fn next_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for i in 0..MAX_VARINT_BYTES {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let group = u64::from(byte & 0x7f);
        // The last group has room for one bit only.
        if i == MAX_VARINT_BYTES - 1 && group > 1 {
            return None;
        }
        number |= group << (7 * i);
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn section(origins: &[Origin]) -> Vec<u8> {
        let mut out = Vec::new();
        write_section(&mut out, |each| {
            origins.iter().try_for_each(|&origin| each(origin))
        })
        .unwrap();
        out
    }

    fn lines(source: u64, offsets: &[u64]) -> Vec<Origin> {
        let origin = |&offset| Origin { source, offset };
        offsets.iter().map(origin).collect()
    }

    #[test]
    fn the_bytes_are_those_of_the_specification() {
        let mut origins = lines(0, &[0, 30, 230]);
        origins.extend(lines(2, &[5, 4]));
        let expected = [
            &12u64.to_le_bytes()[..],
            &[1, 0, 0, 60, 0x90, 3, 1, 2, 5, 1, 2, 4],
        ];
        assert_eq!(section(&origins), expected.concat());
    }

    #[test]
    fn every_block_can_be_read_by_itself() {
        let origins: Vec<Origin> = (0..1000)
            .map(|i| Origin {
                source: i / 300,
                offset: (i % 300) * 2_000,
            })
            .collect();
        let section = section(&origins);
        let read = Origins::new(&section, 1000);
        for (i, &origin) in origins.iter().enumerate() {
            assert_eq!(read.get(i as u64), Some(origin));
        }
        assert!(section.len() < 3 * origins.len());
        assert!(section.len() as u64 >= Origins::least_bytes(1000));
    }

    #[test]
    fn no_documents_take_no_bytes() {
        assert!(section(&[]).is_empty());
        let none = Origins::new(&[], 0).for_each(|_, _| Ok::<_, ()>(()));
        assert_eq!(none, Ok(None));
    }

    proptest! {
        #[test]
        fn writing_and_reading_is_the_identity(
            pairs in prop::collection::vec((0u64..3, prop_oneof![0u64..500, any::<u64>()]), 0..300)
        ) {
            let origins: Vec<Origin> = pairs
                .iter()
                .map(|&(source, offset)| Origin { source, offset })
                .collect();
            let section = section(&origins);
            let mut read_back = Vec::new();
            let fault = Origins::new(&section, origins.len() as u64)
                .for_each(|_, origin| { read_back.push(origin); Ok::<_, ()>(()) });
            prop_assert_eq!(fault, Ok(None));
            prop_assert_eq!(read_back, origins);
        }

        #[test]
        fn any_bytes_give_an_origin_or_none(
            section in prop::collection::vec(any::<u8>(), 0..200), num_documents in 0u64..300, i in 0u64..300
        ) {
            let read = Origins::new(&section, num_documents);
            if i < num_documents {
                let _ = read.get(i);
            }
            let fault = read.for_each(|_, _| Ok::<_, ()>(()));
            // Only the encoding of the writer is accepted as complete.
            if fault == Ok(None) {
                let mut origins = Vec::new();
                let _ = read.for_each(|_, origin| { origins.push(origin); Ok::<_, ()>(()) });
                prop_assert_eq!(self::section(&origins), section);
            }
        }
    }
}
