//! The file format of a plan: JSON lines, the first one for the run, then one per source.
//!
//! Responsible for reading and writing the lines and for the fingerprint, the SHA-256 of all lines
//! with an empty fingerprint field. [`plan`](fn@super::plan) interprets the lines.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use packtok_corpus::Format;
use packtok_jobs::hex;
use packtok_pbin::{Options, Replace, SpecialToken, TempFile, TokenizerInfo, WriterInfo};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// Version of the format.
pub(super) const VERSION: u32 = 1;

const BUFFER_BYTES: usize = 1 << 20;

/// The first line: the options that change bytes, and totals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) packtok_plan: u32,
    pub(super) fingerprint: String,
    pub(super) num_shards: u64,
    pub(super) writer: WriterInfo,
    pub(super) tokenizer: Option<TokenizerInfo>,
    pub(super) eod: Option<SpecialToken>,
    pub(super) bos: Option<SpecialToken>,
    pub(super) options: Options,
    /// The inputs as absolute paths, otherwise as the user wrote them.
    pub(super) inputs: Vec<String>,
    /// The folder that all sources have in common.
    pub(super) root: String,
    pub(super) num_sources: u64,
    pub(super) total_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SourceLine<'a> {
    /// Path of the source relative to the root.
    #[serde(borrow)]
    pub(super) path: Cow<'a, str>,
    pub(super) bytes: u64,
    /// Format of the source, recorded so that shards need not detect it again; JSON lines if
    /// absent.
    #[serde(default = "json_lines", skip_serializing_if = "is_json_lines")]
    pub(super) format: Format,
    /// Index of the input that named the source, if the inputs have filters of their own or are
    /// corpora of a plug-in.
    #[serde(default, skip_serializing_if = "is_first")]
    pub(super) input: usize,
}

fn is_first(input: &usize) -> bool {
    *input == 0
}

fn json_lines() -> Format {
    Format::Jsonl
}

fn is_json_lines(format: &Format) -> bool {
    *format == Format::Jsonl
}

/// The fingerprint of a plan of these lines.
pub(super) fn fingerprint<'a>(
    header: &Header,
    sources: impl Iterator<Item = SourceLine<'a>>,
    path: &Path,
) -> Result<String> {
    let mut hash = Hash::start(header, path)?;
    let mut line = Vec::new();
    for source in sources {
        line.clear();
        write_line(&mut line, &source, path)?;
        hash.0.update(&line);
    }
    Ok(hash.finish())
}

/// Writes a plan without replacing an existing plan; returns [`packtok_pbin::Error::Exists`] if
/// there is one.
pub(super) fn publish<'a>(
    path: &Path,
    header: &Header,
    sources: impl Iterator<Item = SourceLine<'a>>,
) -> Result<()> {
    let mut file = BufWriter::with_capacity(BUFFER_BYTES, TempFile::create(path)?);
    write_line(&mut file, header, path)?;
    for source in sources {
        write_line(&mut file, &source, path)?;
    }
    let file = file
        .into_inner()
        .map_err(|failed| Error::io(path, failed.into_error()))?;
    Ok(file.publish(Replace::Never)?)
}

/// The first line of the plan at `path`.
pub(super) fn read_header(path: &Path) -> Result<Header> {
    Lines::open(path)?.header()
}

/// Calls `each` with every source of the plan at `path`, then checks that they match `header`.
pub(super) fn for_each_source(
    path: &Path,
    header: &Header,
    mut each: impl FnMut(SourceLine<'_>) -> Result<()>,
) -> Result<()> {
    let mut lines = Lines::open(path)?;
    lines.header()?;
    let mut hash = Hash::start(header, path)?;
    let (mut num_sources, mut total_bytes) = (0u64, 0u64);
    while lines.next()? {
        hash.0.update(&lines.line);
        let source: SourceLine<'_> = lines.parsed()?;
        num_sources += 1;
        total_bytes = total_bytes.saturating_add(source.bytes);
        each(source)?;
    }
    let check = |what, found: String, expected: String| {
        if found == expected {
            Ok(())
        } else {
            Err(Error::PlanDamaged {
                path: path.into(),
                what,
                found,
                expected,
            })
        }
    };
    let (sources, bytes) = (header.num_sources, header.total_bytes);
    check(
        "number of sources",
        num_sources.to_string(),
        sources.to_string(),
    )?;
    check(
        "bytes of all sources",
        total_bytes.to_string(),
        bytes.to_string(),
    )?;
    check("fingerprint", hash.finish(), header.fingerprint.clone())?;
    Ok(())
}

/// Reads a plan line by line.
struct Lines<'a> {
    path: &'a Path,
    file: BufReader<File>,
    line: Vec<u8>,
    number: u64,
}

impl<'a> Lines<'a> {
    fn open(path: &'a Path) -> Result<Self> {
        let file = File::open(path).map_err(|cause| Error::io(path, cause))?;
        Ok(Self {
            path,
            file: BufReader::with_capacity(BUFFER_BYTES, file),
            line: Vec::new(),
            number: 0,
        })
    }

    /// Moves to the next line; false at the end.
    fn next(&mut self) -> Result<bool> {
        self.line.clear();
        self.number += 1;
        let len = self.file.read_until(b'\n', &mut self.line);
        Ok(len.map_err(|cause| Error::io(self.path, cause))? > 0)
    }

    fn parsed<'b, T: Deserialize<'b>>(&'b self) -> Result<T> {
        let parsed = serde_json::from_slice(&self.line);
        parsed.map_err(|source| {
            let (path, line) = (self.path.into(), self.number);
            Error::PlanLine { path, line, source }
        })
    }

    fn header(&mut self) -> Result<Header> {
        self.next()?;
        // Check the version first: a later version may have other fields.
        let Version { packtok_plan } = self.parsed()?;
        if packtok_plan == VERSION {
            return self.parsed();
        }
        Err(Error::PlanDamaged {
            path: self.path.into(),
            what: "version",
            found: packtok_plan.to_string(),
            expected: VERSION.to_string(),
        })
    }
}

#[derive(Deserialize)]
struct Version {
    packtok_plan: u32,
}

struct Hash(Sha256);

impl Hash {
    fn start(header: &Header, path: &Path) -> Result<Self> {
        let anonymous = Header {
            fingerprint: String::new(),
            ..header.clone()
        };
        let mut line = Vec::new();
        write_line(&mut line, &anonymous, path)?;
        Ok(Self(Sha256::new_with_prefix(line)))
    }

    fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

fn write_line(out: &mut impl Write, line: &impl Serialize, path: &Path) -> Result<()> {
    let written = serde_json::to_writer(&mut *out, line).map_err(std::io::Error::from);
    written
        .and_then(|()| out.write_all(b"\n"))
        .map_err(|cause| Error::io(path, cause))
}
