//! The index of a Megatron dataset.

use std::path::Path;

use packtok_pbin::{MappedFile, TokenWidth};

use crate::error::{Error, Fault, Result};
use crate::flat_file::{DocumentIndex, StoredType};
use crate::narrowed::WideType;

/// The first bytes of an index.
pub const MAGIC: [u8; 9] = *b"MMIDIDX\0\0";

/// The name of documents of several sequences, or of sequences without tokens, among what an index records
/// besides documents.
pub const SEQUENCES: &str = "sequences";
/// The name of the modes of multimodal sequences there.
pub const MODES: &str = "modes";

pub(super) const VERSION: u64 = 1;
const VERSION_AT: u64 = 9;
const DTYPE_AT: u64 = 17;
const SEQUENCES_AT: u64 = 18;
const BOUNDARIES_AT: u64 = 26;
const HEADER_BYTES: u64 = 34;

/// The codes of signed types that are read as unsigned.
const SIGNED_CODES: [u8; 3] = [2, 3, 4];
/// Bytes of a sequence's length and of its position.
const LENGTH_BYTES: u64 = 4;
const POSITION_BYTES: u64 = 8;
const BOUNDARY_BYTES: u64 = 8;

/// A checked index: sequences follow each other in `.bin` without gaps.
#[derive(Debug)]
pub(super) struct Index {
    map: MappedFile,
    stored_type: StoredType,
    has_signed_ids: bool,
    num_sequences: u64,
    num_documents: u64,
    /// Position in `.bin` of the first token.
    first_byte: u64,
    num_tokens: u64,
    /// Whether a document has several sequences, or one without tokens.
    has_sequences: bool,
    has_modes: bool,
}

impl Index {
    /// Opens and checks the index at `path`, in time that grows with the number of sequences.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let map = MappedFile::open(path)?;
        let bytes = map.bytes();
        let fault = |offset, what, found: String, expected: String| {
            Error::fault(Fault {
                path: path.into(),
                offset,
                what,
                found,
                expected,
                remedy: "the index is damaged, write it again",
            })
        };
        let num_bytes = bytes.len() as u64;
        if num_bytes < HEADER_BYTES {
            let expected = format!("at least {HEADER_BYTES}");
            return Err(fault(
                num_bytes,
                "the number of bytes",
                num_bytes.to_string(),
                expected,
            ));
        }
        if !bytes.starts_with(&MAGIC) {
            let start = String::from_utf8_lossy(&bytes[..MAGIC.len()]).into_owned();
            let expected = format!("{:?}", String::from_utf8_lossy(&MAGIC));
            return Err(fault(0, "the start", format!("{start:?}"), expected));
        }
        let version = u64_at(bytes, VERSION_AT);
        if version != VERSION {
            return Err(fault(
                VERSION_AT,
                "the version",
                version.to_string(),
                VERSION.to_string(),
            ));
        }
        let code = bytes[DTYPE_AT as usize];
        let stored_type = stored_type_of(code).ok_or_else(|| {
            let expected = "1, 2, 3, 4, 5 or 8, the codes of integers".to_owned();
            fault(
                DTYPE_AT,
                "the code of the token type",
                describe(code),
                expected,
            )
        })?;
        let num_sequences = u64_at(bytes, SEQUENCES_AT);
        let num_boundaries = u64_at(bytes, BOUNDARIES_AT);
        let has_modes =
            check_length(num_sequences, num_boundaries, num_bytes).map_err(|expected| {
                let what = "the number of bytes after the header and its counts";
                fault(
                    HEADER_BYTES,
                    what,
                    (num_bytes - HEADER_BYTES).to_string(),
                    expected,
                )
            })?;
        let mut index = Self {
            map,
            stored_type,
            has_signed_ids: SIGNED_CODES.contains(&code),
            num_sequences,
            num_documents: 0,
            first_byte: 0,
            num_tokens: 0,
            has_sequences: false,
            has_modes,
        };
        index.check_sequences(path)?;
        index.check_boundaries(num_boundaries, path)?;
        Ok(index)
    }

    /// The type of the ids in `.bin`.
    pub(super) fn stored_type(&self) -> StoredType {
        self.stored_type
    }

    /// Number of tokens of all sequences.
    pub(super) fn num_tokens(&self) -> u64 {
        self.num_tokens
    }

    /// Position in `.bin` of the first token.
    pub(super) fn first_byte(&self) -> u64 {
        self.first_byte
    }

    /// Checks that each sequence starts where the one before ends, and counts the tokens.
    fn check_sequences(&mut self, path: &Path) -> Result<()> {
        let bytes = self.map.bytes();
        let positions_at = HEADER_BYTES + self.num_sequences * LENGTH_BYTES;
        let fault = |offset, what, found: i64, expected: String| {
            Error::fault(Fault {
                path: path.into(),
                offset,
                what,
                found: found.to_string(),
                expected,
                remedy: "the index is damaged, write it again",
            })
        };
        let width = self.stored_type.bytes() as i64;
        let mut expected = 0;
        for sequence in 0..self.num_sequences {
            let length_at = HEADER_BYTES + sequence * LENGTH_BYTES;
            let position_at = positions_at + sequence * POSITION_BYTES;
            let (length, position) = (i32_at(bytes, length_at), i64_at(bytes, position_at));
            if length < 0 {
                let what = "the number of tokens of a sequence";
                return Err(fault(
                    length_at,
                    what,
                    length.into(),
                    "at least 0".to_owned(),
                ));
            }
            if sequence == 0 {
                let is_near = u16::try_from(position).is_ok();
                if !is_near {
                    let what = "the position of the first sequence";
                    let least = "0, or the few bytes of a header".to_owned();
                    return Err(fault(position_at, what, position, least));
                }
                self.first_byte = position as u64;
                expected = position;
            }
            if position != expected {
                let what = "the position of a sequence";
                let end = format!("{expected}, the end of the sequence before it");
                return Err(fault(position_at, what, position, end));
            }
            // Fewer than 2^61 sequences of fewer than 2^31 tokens could overflow, but a file of
            // 2^32 sequences would have 48 GiB, and the sum of its tokens would not fit in a file.
            expected = expected
                .checked_add(i64::from(length) * width)
                .ok_or_else(|| {
                    fault(
                        length_at,
                        "the number of tokens up to a sequence",
                        length.into(),
                        "fewer than 2^63 bytes".to_owned(),
                    )
                })?;
        }
        self.num_tokens = (expected as u64 - self.first_byte) / width as u64;
        Ok(())
    }

    /// Checks that the documents divide the sequences.
    fn check_boundaries(&mut self, num_boundaries: u64, path: &Path) -> Result<()> {
        let at = |i: u64| self.boundaries_at() + i * BOUNDARY_BYTES;
        let fault = |i, found: i64, expected: String| {
            Error::fault(Fault {
                path: path.into(),
                offset: at(i),
                what: "the first sequence of a document",
                found: found.to_string(),
                expected,
                remedy: "the index is damaged, write it again",
            })
        };
        let bytes = self.map.bytes();
        let (mut least, mut has_sequences) = (0, false);
        for i in 0..num_boundaries {
            let boundary = i64_at(bytes, at(i));
            let is_possible =
                u64::try_from(boundary).is_ok_and(|boundary| boundary <= self.num_sequences);
            if boundary < least || !is_possible || (i == 0 && boundary != 0) {
                let most = if i == 0 { 0 } else { self.num_sequences };
                return Err(fault(i, boundary, format!("a number in {least}..={most}")));
            }
            // A document of one sequence with tokens, or of none, is all that other formats have.
            let is_plain = match boundary - least {
                0 => true,
                1 => i32_at(bytes, HEADER_BYTES + least as u64 * LENGTH_BYTES) > 0,
                _ => false,
            };
            has_sequences |= !is_plain;
            least = boundary;
        }
        if least as u64 != self.num_sequences {
            let expected = format!("{}, the number of sequences", self.num_sequences);
            return Err(fault(num_boundaries - 1, least, expected));
        }
        self.num_documents = num_boundaries - 1;
        self.has_sequences = has_sequences;
        Ok(())
    }

    fn boundaries_at(&self) -> u64 {
        HEADER_BYTES + self.num_sequences * (LENGTH_BYTES + POSITION_BYTES)
    }

    /// What the index records besides documents.
    pub(super) fn extras(&self) -> Vec<String> {
        let extras = [(SEQUENCES, self.has_sequences), (MODES, self.has_modes)];
        let extras = extras.into_iter().filter(|&(_, is_there)| is_there);
        extras.map(|(name, _)| name.to_owned()).collect()
    }
}

impl DocumentIndex for Index {
    fn num_documents(&self) -> u64 {
        self.num_documents
    }

    fn start(&self, i: u64) -> u64 {
        let bytes = self.map.bytes();
        let sequence = u64_at(bytes, self.boundaries_at() + i * BOUNDARY_BYTES);
        if sequence >= self.num_sequences {
            return self.num_tokens;
        }
        let positions_at = HEADER_BYTES + self.num_sequences * LENGTH_BYTES;
        let position = u64_at(bytes, positions_at + sequence * POSITION_BYTES);
        // Opening has checked the positions. If another program changes the file, reading tokens
        // fails or gives others, within the file.
        position.saturating_sub(self.first_byte) / self.stored_type.bytes()
    }

    fn has_signed_ids(&self) -> bool {
        self.has_signed_ids
    }

    fn crc32c(&self) -> u32 {
        crc32c::crc32c(self.map.bytes())
    }

    fn file_bytes(&self) -> u64 {
        self.map.bytes().len() as u64
    }
}

/// Checks that the counts of the header fill the file, with or without a mode for each sequence.
/// Returns whether there are modes; the error is the expected number of bytes.
fn check_length(
    num_sequences: u64,
    num_boundaries: u64,
    num_bytes: u64,
) -> std::result::Result<bool, String> {
    let [sequences, boundaries] = [num_sequences, num_boundaries].map(u128::from);
    let without_modes = sequences * u128::from(LENGTH_BYTES + POSITION_BYTES)
        + boundaries * u128::from(BOUNDARY_BYTES);
    let after_header = u128::from(num_bytes - HEADER_BYTES);
    let is_filled = after_header == without_modes || after_header == without_modes + sequences;
    if is_filled && boundaries > 0 {
        return Ok(after_header > without_modes);
    }
    Err(format!(
        "{without_modes} for {num_sequences} sequences and {num_boundaries} boundaries of documents, or {} with modes",
        without_modes + sequences
    ))
}

/// The type of ids with this code; `None` for a type that is not an integer.
///
/// Signed ids of up to 32 bits are read as unsigned; readers of a file that `has_signed_ids` look for negative ones.
fn stored_type_of(code: u8) -> Option<StoredType> {
    Some(match code {
        1 | 2 => StoredType::Token(TokenWidth::U8),
        3 | 8 => StoredType::Token(TokenWidth::U16),
        4 => StoredType::Token(TokenWidth::U32),
        5 => StoredType::Wide(WideType::Bits64),
        _ => return None,
    })
}

fn describe(code: u8) -> String {
    match code {
        6 => "6 (float64)".to_owned(),
        7 => "7 (float32)".to_owned(),
        code => code.to_string(),
    }
}

fn u64_at(bytes: &[u8], offset: u64) -> u64 {
    number_at(bytes, offset).map_or(0, u64::from_le_bytes)
}

fn i64_at(bytes: &[u8], offset: u64) -> i64 {
    number_at(bytes, offset).map_or(0, i64::from_le_bytes)
}

fn i32_at(bytes: &[u8], offset: u64) -> i32 {
    number_at(bytes, offset).map_or(0, i32::from_le_bytes)
}

fn number_at<const N: usize>(bytes: &[u8], offset: u64) -> Option<[u8; N]> {
    let start = offset as usize;
    bytes.get(start..start.checked_add(N)?)?.try_into().ok()
}
