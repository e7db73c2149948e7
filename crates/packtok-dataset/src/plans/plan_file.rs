//! Files with results computed from a dataset: a header that identifies the input, and a
//! checksummed body.
//!
//! Responsible for the bytes of the header, for atomic publication, and for rejecting files with
//! other data, options or layout. `plan` and `split` define the body;
//! `docs/reference/packings_and_splits.md` specifies the layout.

use std::fmt;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use packtok_jobs::hex;
use packtok_pbin::{MappedFile, Replace, TempFile};

use crate::error::{Error, Result};
pub use crate::files::fingerprint::DataFingerprint;
use crate::plans::layout::VERSION;
pub use crate::plans::layout::{HEADER_BYTES, PlanFault};

const MAGIC: &[u8; 8] = b"\x89pktplan";
const BUFFER_BYTES: usize = 256 * 1024;
const NUM_COUNTS: usize = 5;

/// The content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Blocks of best-fit packing; option 0 is the number of tokens of a block.
    BestFit = 1,
    /// Blocks that start at documents; option 0 is the number of tokens of a block.
    WholeDocuments = 2,
    /// Sides of documents by hash; the options are the seed and the least hash of the train side.
    SplitByHash = 3,
    /// The first documents on one side, the rest on the other; option 0 is the first validation
    /// document.
    SplitAt = 4,
}

impl Kind {
    const ALL: [Self; 4] = [
        Self::BestFit,
        Self::WholeDocuments,
        Self::SplitByHash,
        Self::SplitAt,
    ];

    /// The name of the kind in file names and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::BestFit => "best_fit",
            Self::WholeDocuments => "megatron",
            Self::SplitByHash => "split_by_hash",
            Self::SplitAt => "split_at",
        }
    }

    fn decode(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u32 == number)
    }
}

/// The input of a computation: equal keys have equal bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The kind of result.
    pub kind: Kind,
    /// The options; see [`Kind`].
    pub options: [u64; 2],
    /// The fingerprint of the token stream.
    pub data: DataFingerprint,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.options;
        write!(
            f,
            "as {} with options {first} and {second} from data ",
            self.kind.name()
        )?;
        f.write_str(&hex(&self.data[..8]))
    }
}

/// A mapped plan file with a valid header.
#[derive(Debug)]
pub(crate) struct PlanFile {
    path: PathBuf,
    file: MappedFile,
    key: Key,
    counts: [u64; NUM_COUNTS],
    body_crc32c: u32,
}

impl PlanFile {
    /// Opens the file at `path` in O(1): verifies the header, and the length of the body.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = MappedFile::open(path)?;
        let fault = |fault| fault_at(path, fault);
        let header = Header::decode(file.bytes()).map_err(fault)?;
        let (found, expected) = (file.bytes().len() as u64, header.file_bytes());
        if Some(found) != expected {
            let expected = expected.unwrap_or(u64::MAX);
            return Err(fault(PlanFault::Length { found, expected }));
        }
        Ok(Self {
            path: path.into(),
            file,
            key: header.key,
            counts: header.counts,
            body_crc32c: header.body_crc32c,
        })
    }

    /// Verifies the checksum of the complete body.
    pub(crate) fn verify(&self) -> Result<()> {
        let found = crc32c::crc32c(self.body());
        let expected = self.body_crc32c;
        if found != expected {
            return Err(self.fault(PlanFault::BodyChecksum { found, expected }));
        }
        Ok(())
    }

    /// Rejects a file whose key is not `expected`.
    pub(crate) fn require(&self, expected: &Key) -> Result<()> {
        if self.key != *expected {
            let (found, expected) = (self.key.to_string(), expected.to_string());
            return Err(self.fault(PlanFault::Key {
                found: found.into(),
                expected: expected.into(),
            }));
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    pub(crate) fn counts(&self) -> [u64; NUM_COUNTS] {
        self.counts
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.file.bytes()[HEADER_BYTES..]
    }

    pub(crate) fn fault(&self, fault: PlanFault) -> Error {
        fault_at(&self.path, fault)
    }
}

fn fault_at(path: &Path, fault: PlanFault) -> Error {
    Error::PlanFile {
        path: path.into(),
        fault,
    }
}

/// A plan file in the process of being written to a temporary file.
#[derive(Debug)]
pub(crate) struct PlanFileWriter {
    out: BufWriter<TempFile>,
    dst: PathBuf,
    key: Key,
    body_bytes: u64,
    body_crc32c: u32,
}

impl PlanFileWriter {
    /// Starts a file that can be published as `dst`.
    pub(crate) fn create(dst: &Path, key: Key) -> Result<Self> {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, TempFile::create(dst)?);
        out.write_all(&[0; HEADER_BYTES])
            .map_err(|source| Error::io(dst, source))?;
        Ok(Self {
            out,
            dst: dst.into(),
            key,
            body_bytes: 0,
            body_crc32c: 0,
        })
    }

    /// Appends bytes to the body.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.body_crc32c = crc32c::crc32c_append(self.body_crc32c, bytes);
        self.body_bytes += bytes.len() as u64;
        self.out
            .write_all(bytes)
            .map_err(|source| Error::io(&self.dst, source))
    }

    /// Writes the header and publishes the file, replacing any existing file.
    pub(crate) fn publish(mut self, counts: [u64; NUM_COUNTS]) -> Result<()> {
        let header = Header {
            key: self.key,
            counts,
            body_bytes: self.body_bytes,
            body_crc32c: self.body_crc32c,
        };
        let written = self
            .out
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.out.write_all(&header.encode()));
        written.map_err(|source| Error::io(&self.dst, source))?;
        let file = self
            .out
            .into_inner()
            .map_err(|failed| Error::io(&self.dst, failed.into_error()))?;
        Ok(file.publish(Replace::Existing)?)
    }
}

/// The first bytes of a file.
struct Header {
    key: Key,
    counts: [u64; NUM_COUNTS],
    body_bytes: u64,
    body_crc32c: u32,
}

impl Header {
    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(self.key.kind as u32).to_le_bytes());
        bytes.extend(
            self.key
                .options
                .iter()
                .flat_map(|option| option.to_le_bytes()),
        );
        bytes.extend_from_slice(&self.key.data);
        bytes.extend(self.counts.iter().flat_map(|count| count.to_le_bytes()));
        bytes.extend_from_slice(&self.body_bytes.to_le_bytes());
        bytes.extend_from_slice(&self.body_crc32c.to_le_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes.try_into().expect("the fields fill the header")
    }

    fn decode(file: &[u8]) -> std::result::Result<Self, PlanFault> {
        let Some(bytes) = file.first_chunk::<HEADER_BYTES>() else {
            let found = file.len() as u64;
            return Err(PlanFault::TooShort { found });
        };
        if !bytes.starts_with(MAGIC) {
            return Err(PlanFault::Magic);
        }
        if u32_at(bytes, 8) != VERSION {
            let found = u32_at(bytes, 8);
            return Err(PlanFault::Version { found });
        }
        let (found, expected) = (crc32c::crc32c(&bytes[..124]), u32_at(bytes, 124));
        if found != expected {
            return Err(PlanFault::HeaderChecksum { found, expected });
        }
        let number = u32_at(bytes, 12);
        let kind = Kind::decode(number).ok_or(PlanFault::UnknownKind { found: number })?;
        let mut data = DataFingerprint::default();
        data.copy_from_slice(&bytes[32..64]);
        Ok(Self {
            key: Key {
                kind,
                options: [u64_at(bytes, 16), u64_at(bytes, 24)],
                data,
            },
            counts: std::array::from_fn(|i| u64_at(bytes, 64 + 8 * i)),
            body_bytes: u64_at(bytes, 104),
            body_crc32c: u32_at(bytes, 112),
        })
    }

    /// The length of the file according to the header, or `None` if it overflows.
    fn file_bytes(&self) -> Option<u64> {
        self.body_bytes.checked_add(HEADER_BYTES as u64)
    }
}

/// The u64 at byte `at`, which must be in range.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

/// The u32 at byte `at`, which must be in range.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}
