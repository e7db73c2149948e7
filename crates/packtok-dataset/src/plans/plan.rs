//! Block plans: the token ranges of each block, written by a planner and read at random.
//!
//! Responsible for the body of a plan file, and for the guarantee that returned pieces are within
//! the stream and fit into a block. Planners choose the pieces of a block.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
pub use crate::plans::layout::MAX_BLOCK_TOKENS;
use crate::plans::plan_file::{
    DataFingerprint, Key, Kind, PlanFault, PlanFile, PlanFileWriter, u32_at, u64_at,
};

const PIECE_BYTES: usize = 12;
/// Number of bytes that are checksummed and written together. Writing single pieces would cost
/// more than planning.
const GROUP_BYTES: usize = 64 * 1024;

/// Consecutive tokens that are part of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenSpan {
    /// Position of its first token in the stream.
    pub start: u64,
    /// Number of its tokens.
    pub len_tokens: u32,
}

/// An open plan; cheap to share between threads.
#[derive(Debug)]
pub struct BlockPlan {
    file: PlanFile,
    num_blocks: u64,
    num_pieces: u64,
}

impl BlockPlan {
    /// Opens the plan at `path`, which must be for `data`, in constant time.
    ///
    /// # Errors
    /// [`Error::PlanFile`] if the file is damaged, of another kind or for other data;
    /// [`Error::Pbin`] if it cannot be read.
    pub fn open(path: &Path, data: &DataFingerprint) -> Result<Self> {
        let file = PlanFile::open(path)?;
        let key = *file.key();
        if !matches!(key.kind, Kind::BestFit | Kind::WholeDocuments) {
            return Err(file.fault(PlanFault::Kind {
                found: key.kind.name(),
                expected: "a plan of blocks",
            }));
        }
        file.require(&Key { data: *data, ..key })?;
        let [num_blocks, num_pieces, ..] = file.counts();
        let found = file.body().len() as u64;
        let expected = body_bytes(num_blocks, num_pieces);
        if expected != Some(found) {
            let expected = expected.unwrap_or(u64::MAX);
            return Err(file.fault(PlanFault::Length { found, expected }));
        }
        let plan = Self {
            file,
            num_blocks,
            num_pieces,
        };
        if !(1..=MAX_BLOCK_TOKENS).contains(&plan.block_len_tokens()) {
            let number = plan.block_len_tokens();
            let what = "block length";
            return Err(plan.file.fault(PlanFault::Entry { what, number }));
        }
        Ok(plan)
    }

    /// The planner that wrote it.
    pub fn kind(&self) -> Kind {
        self.file.key().kind
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Number of blocks.
    pub fn num_blocks(&self) -> u64 {
        self.num_blocks
    }

    /// Maximum number of tokens of a block: inputs for best fit, consecutive tokens for whole
    /// documents.
    pub fn block_len_tokens(&self) -> u64 {
        self.file.key().options[0]
    }

    /// Number of tokens of the stream that are in no block.
    pub fn num_dropped_tokens(&self) -> u64 {
        self.file.counts()[2]
    }

    /// Number of positions in all blocks without a token.
    pub fn num_padding_tokens(&self) -> u64 {
        self.file.counts()[3]
    }

    /// Number of tokens of the stream that the plan is for; no piece exceeds it.
    pub fn num_tokens(&self) -> u64 {
        self.file.counts()[4]
    }

    /// Reads the complete file and verifies its checksum.
    ///
    /// # Errors
    /// [`Error::PlanFile`] if it is damaged.
    pub fn verify(&self) -> Result<()> {
        self.file.verify()
    }

    /// The token ranges of `block`, in the order of the stream; none is empty.
    ///
    /// # Errors
    /// [`Error::NoSuchBlock`]; [`Error::PlanFile`] if the entries are damaged.
    pub fn pieces(
        &self,
        block: u64,
    ) -> Result<impl ExactSizeIterator<Item = Range<u64>> + Clone + '_> {
        if block >= self.num_blocks {
            return Err(Error::NoSuchBlock {
                path: self.path().into(),
                block,
                num_blocks: self.num_blocks,
            });
        }
        let pieces = self.checked_pieces(block).ok_or_else(|| {
            let (what, number) = ("block", block);
            self.file.fault(PlanFault::Entry { what, number })
        })?;
        Ok(pieces.chunks_exact(PIECE_BYTES).map(|piece| {
            let start = u64_at(piece, 0);
            start..start + u64::from(u32_at(piece, 8))
        }))
    }

    /// The entries of an existing block, if they are within the file, the stream and the block.
    fn checked_pieces(&self, block: u64) -> Option<&[u8]> {
        let (entries, first_pieces) = self
            .file
            .body()
            .split_at(self.num_pieces as usize * PIECE_BYTES);
        let at = block as usize * 8;
        let (first, stop) = (u64_at(first_pieces, at), u64_at(first_pieces, at + 8));
        if first >= stop || stop > self.num_pieces {
            return None;
        }
        let pieces = &entries[first as usize * PIECE_BYTES..stop as usize * PIECE_BYTES];
        let num_tokens = self.num_tokens();
        let mut len_tokens = 0;
        for piece in pieces.chunks_exact(PIECE_BYTES) {
            let len = u64::from(u32_at(piece, 8));
            let end = u64_at(piece, 0).checked_add(len)?;
            len_tokens += len;
            if len == 0 || end > num_tokens || len_tokens > self.block_len_tokens() {
                return None;
            }
        }
        Some(pieces)
    }
}

fn body_bytes(num_blocks: u64, num_pieces: u64) -> Option<u64> {
    let first_pieces = num_blocks.checked_add(1)?.checked_mul(8)?;
    num_pieces
        .checked_mul(PIECE_BYTES as u64)?
        .checked_add(first_pieces)
}

/// A plan in the process of being written to a temporary file.
#[derive(Debug)]
pub struct PlanWriter {
    file: PlanFileWriter,
    block_len_tokens: u64,
    group: Vec<u8>,
    first_pieces: FirstPieces,
    num_blocks: u64,
    num_pieces: u64,
    num_placed_tokens: u64,
}

impl PlanWriter {
    /// Starts a plan that can be published as `dst`. Option 0 of `key` is the number of tokens of
    /// a block.
    ///
    /// # Errors
    /// [`Error::BlockTokens`], [`Error::Io`], [`Error::Pbin`].
    pub fn create(dst: &Path, key: Key) -> Result<Self> {
        Ok(Self {
            file: PlanFileWriter::create(dst, key)?,
            block_len_tokens: check_block_tokens("block_size", key.options[0])?,
            group: Vec::with_capacity(GROUP_BYTES),
            first_pieces: FirstPieces::create(dst)?,
            num_blocks: 0,
            num_pieces: 0,
            num_placed_tokens: 0,
        })
    }

    /// Appends a block. Its pieces must fit into a block and must not be empty.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn push(&mut self, pieces: &[TokenSpan]) -> Result<()> {
        for piece in pieces {
            let mut bytes = [0; PIECE_BYTES];
            bytes[..8].copy_from_slice(&piece.start.to_le_bytes());
            bytes[8..].copy_from_slice(&piece.len_tokens.to_le_bytes());
            self.group.extend_from_slice(&bytes);
            self.num_placed_tokens += u64::from(piece.len_tokens);
        }
        self.num_blocks += 1;
        self.num_pieces += pieces.len() as u64;
        self.first_pieces.push(self.num_pieces)?;
        if self.group.len() >= GROUP_BYTES {
            self.hand_on()?;
        }
        Ok(())
    }

    /// Finishes and publishes the plan of a stream of `num_tokens` tokens, of which
    /// `num_dropped_tokens` belong to no block.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Pbin`]. In that case, no file exists under the final name.
    pub fn publish(mut self, num_tokens: u64, num_dropped_tokens: u64) -> Result<()> {
        self.hand_on()?;
        self.first_pieces.copy_to(&mut self.file)?;
        self.file.publish([
            self.num_blocks,
            self.num_pieces,
            num_dropped_tokens,
            self.num_blocks * self.block_len_tokens - self.num_placed_tokens,
            num_tokens,
        ])
    }

    fn hand_on(&mut self) -> Result<()> {
        self.file.append(&self.group)?;
        self.group.clear();
        Ok(())
    }
}

/// Checks the limits of planners; `name` is the name of the caller's option.
///
/// # Errors
/// [`Error::BlockTokens`].
pub(crate) fn check_block_tokens(name: &'static str, block_tokens: u64) -> Result<u64> {
    match block_tokens {
        1..=MAX_BLOCK_TOKENS => Ok(block_tokens),
        _ => Err(Error::BlockTokens {
            name,
            found: block_tokens,
        }),
    }
}

/// The second half of the body, in an unnamed file until the first half is complete.
#[derive(Debug)]
struct FirstPieces {
    out: BufWriter<File>,
    dst: PathBuf,
}

impl FirstPieces {
    fn create(dst: &Path) -> Result<Self> {
        let folder = dst
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let file = tempfile::tempfile_in(folder).map_err(|source| Error::io(folder, source))?;
        let mut this = Self {
            out: BufWriter::with_capacity(GROUP_BYTES, file),
            dst: dst.into(),
        };
        this.push(0)?;
        Ok(this)
    }

    fn push(&mut self, piece: u64) -> Result<()> {
        self.out
            .write_all(&piece.to_le_bytes())
            .map_err(|source| Error::io(&self.dst, source))
    }

    fn copy_to(self, file: &mut PlanFileWriter) -> Result<()> {
        let Self { out, dst } = self;
        let io = |source| Error::io(&dst, source);
        let mut spooled = out.into_inner().map_err(|failed| io(failed.into_error()))?;
        spooled.seek(SeekFrom::Start(0)).map_err(io)?;
        let mut spooled = BufReader::new(spooled);
        let mut buffer = vec![0; GROUP_BYTES];
        loop {
            match spooled.read(&mut buffer).map_err(io)? {
                0 => return Ok(()),
                bytes => file.append(&buffer[..bytes])?,
            }
        }
    }
}
