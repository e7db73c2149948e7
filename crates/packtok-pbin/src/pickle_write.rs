//! Encodes a list of pairs exactly as CPython 3.11's C pickler does at protocol 4.
//!
//! Responsible for opcodes, memo, batches and frames. Takes one pair at a time; memory is bounded
//! by one frame. The caller decides which pairs make up an index.

use std::io::{self, Write};

use crate::opcode::{
    APPEND, APPENDS, BININT, BININT1, BININT2, EMPTY_LIST, FRAME, LONG1, MARK, MEMOIZE, PROTO,
    STOP, TUPLE2,
};

/// A frame of at least this many bytes is closed before the next object.
const FRAME_TARGET_BYTES: usize = 64 * 1024;
/// A frame of fewer bytes is written without its header.
const FRAME_MIN_BYTES: usize = 4;
/// Items between `MARK` and `APPENDS`.
const BATCH_PAIRS: u32 = 1000;

/// Encodes pairs one by one; the result equals `pickle.dumps([(a, b), …])`.
#[derive(Debug)]
pub struct PairsWriter<W> {
    out: W,
    frame: Vec<u8>,
    /// The first pair, buffered because a list with one pair is written without a batch.
    first: Option<(u64, u64)>,
    /// Pairs since the open `MARK`; `None` before the second pair.
    batch_pairs: Option<u32>,
}

impl<W: Write> PairsWriter<W> {
    /// Starts a list on `out`.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&[PROTO, 4])?;
        let mut frame = Vec::with_capacity(FRAME_TARGET_BYTES + 64);
        frame.extend([EMPTY_LIST, MEMOIZE]);
        Ok(Self {
            out,
            frame,
            first: None,
            batch_pairs: None,
        })
    }

    /// Appends the pair `(a, b)` to the list.
    ///
    /// # Errors
    /// The errors of the output.
    pub fn push(&mut self, a: u64, b: u64) -> io::Result<()> {
        match (self.batch_pairs, self.first.take()) {
            (None, None) => {
                self.first = Some((a, b));
                Ok(())
            }
            (None, Some(first)) => {
                self.push_in_batch(first)?;
                self.push_in_batch((a, b))
            }
            (Some(_), _) => self.push_in_batch((a, b)),
        }
    }

    /// Ends the list and returns the output.
    ///
    /// # Errors
    /// The errors of the output.
    pub fn finish(mut self) -> io::Result<W> {
        if let Some(only) = self.first.take() {
            self.save_pair(only)?;
            self.frame.push(APPEND);
        } else if self.batch_pairs.is_some_and(|pairs| pairs > 0) {
            self.frame.push(APPENDS);
        }
        self.frame.push(STOP);
        self.close_frame()?;
        Ok(self.out)
    }

    fn push_in_batch(&mut self, pair: (u64, u64)) -> io::Result<()> {
        let pairs = self.batch_pairs.unwrap_or(0);
        if pairs == 0 {
            self.frame.push(MARK);
        }
        self.save_pair(pair)?;
        if pairs + 1 == BATCH_PAIRS {
            self.frame.push(APPENDS);
            self.batch_pairs = Some(0);
        } else {
            self.batch_pairs = Some(pairs + 1);
        }
        Ok(())
    }

    fn save_pair(&mut self, (a, b): (u64, u64)) -> io::Result<()> {
        self.object_boundary()?;
        self.save_int(a)?;
        self.save_int(b)?;
        self.frame.extend([TUPLE2, MEMOIZE]);
        Ok(())
    }

    fn save_int(&mut self, value: u64) -> io::Result<()> {
        self.object_boundary()?;
        if let Ok(byte) = u8::try_from(value) {
            self.frame.extend([BININT1, byte]);
        } else if let Ok(short) = u16::try_from(value) {
            self.frame.push(BININT2);
            self.frame.extend(short.to_le_bytes());
        } else if let Ok(int) = i32::try_from(value) {
            self.frame.push(BININT);
            self.frame.extend(int.to_le_bytes());
        } else {
            // Two's complement needs one more bit than the value, for the sign.
            let bytes = (u64::BITS - value.leading_zeros()) as usize / 8 + 1;
            self.frame.extend([LONG1, bytes as u8]);
            self.frame.extend(&u128::from(value).to_le_bytes()[..bytes]);
        }
        Ok(())
    }

    /// Closes the frame if it is long enough. CPython checks before every object, including
    /// integers.
    fn object_boundary(&mut self) -> io::Result<()> {
        if self.frame.len() >= FRAME_TARGET_BYTES {
            self.close_frame()
        } else {
            Ok(())
        }
    }

    fn close_frame(&mut self) -> io::Result<()> {
        if self.frame.len() >= FRAME_MIN_BYTES {
            self.out.write_all(&[FRAME])?;
            self.out
                .write_all(&(self.frame.len() as u64).to_le_bytes())?;
        }
        self.out.write_all(&self.frame)?;
        self.frame.clear();
        Ok(())
    }
}

/// Writes `pairs` to `out` as `pickle.dumps(list(pairs))` of CPython 3.11 would, and returns `out`.
///
/// # Errors
/// The errors of `out`.
pub fn write_pairs<W: Write>(out: W, pairs: impl Iterator<Item = (u64, u64)>) -> io::Result<W> {
    let mut writer = PairsWriter::new(out)?;
    for (a, b) in pairs {
        writer.push(a, b)?;
    }
    writer.finish()
}
