//! Parses a pickled list of pairs of integers, and rejects all other pickles.
//!
//! Responsible for distinguishing such a list from all other pickles without execution or
//! recursion. Allocates only if the list contains a pair several times. The caller receives pairs
//! as they complete and interprets them.

use std::collections::HashMap;

use crate::fault::PickleFault;
use crate::opcode::{
    APPEND, APPENDS, BINGET, BININT, BININT1, BININT2, BINPUT, EMPTY_LIST, FRAME, LONG_BINGET,
    LONG_BINPUT, LONG1, MARK, MEMOIZE, PROTO, STOP, TUPLE, TUPLE2, name,
};

/// Parses the pickle at the start of `bytes`, calls `pair` with every pair and returns the length
/// of the pickle in bytes, including STOP.
///
/// Accepts protocols 2 to 5, any batching, framing and memoizing, and integers in `0..2**64`.
///
/// # Errors
/// The position and [`PickleFault`] of the first invalid opcode, mapped by `to_error`; or the error
/// of `pair`.
pub fn parse_pairs<E>(
    bytes: &[u8],
    to_error: impl Fn(u64, PickleFault) -> E,
    mut pair: impl FnMut(u64, u64) -> Result<(), E>,
) -> Result<u64, E> {
    let mut parser = Parser {
        bytes,
        ..Parser::default()
    };
    loop {
        let start = parser.position;
        match parser.step() {
            Ok(Step::Going) => {}
            Ok(Step::Pair(a, b)) => pair(a, b)?,
            Ok(Step::Stop) => return Ok(parser.position as u64),
            Err(fault) => return Err(to_error(start as u64, fault)),
        }
    }
}

enum Step {
    Going,
    Pair(u64, u64),
    Stop,
}

/// An object that the unpickler's memo can hold.
#[derive(Clone, Copy)]
enum Built {
    List,
    Pair(u64, u64),
}

/// The unpickler's stack, reduced to the objects that a list of pairs can leave on it: the list, a
/// mark, pairs, a second mark, integers.
#[derive(Default)]
struct Parser<'a> {
    bytes: &'a [u8],
    position: usize,
    /// Length of the open frame and the position of its end.
    frame: Option<(u64, usize)>,
    has_protocol: bool,
    has_list: bool,
    /// Number of pairs above the outer mark, if there is an outer mark.
    batch_pairs: Option<u64>,
    /// Whether a pair is on top of the list without an outer mark.
    has_loose_pair: bool,
    has_tuple_mark: bool,
    ints: [u64; 2],
    num_ints: usize,
    /// The list or pair on top of the stack, if it was just built.
    built: Option<Built>,
    /// The unpickler's memo. Only pickles with `BINGET` need it, so the first `BINGET` fills it by
    /// parsing the preceding opcodes again.
    memo: Option<HashMap<u32, Built>>,
}

impl Parser<'_> {
    fn step(&mut self) -> Result<Step, PickleFault> {
        if self.frame.is_some_and(|(_, end)| end == self.position) {
            self.frame = None;
        }
        let opcode = self.byte()?;
        let step = self.apply(opcode)?;
        match self.frame {
            Some((bytes, end))
                if self.position > end || (self.position < end && matches!(step, Step::Stop)) =>
            {
                Err(PickleFault::Frame { bytes })
            }
            _ => Ok(step),
        }
    }

    fn apply(&mut self, opcode: u8) -> Result<Step, PickleFault> {
        let misplaced = || PickleFault::Misplaced {
            name: name(opcode).unwrap_or("?"),
        };
        if !self.has_protocol && opcode != PROTO {
            return Err(if name(opcode).is_some() {
                misplaced()
            } else {
                PickleFault::NoOpcode { byte: opcode }
            });
        }
        let built = self.built.take();
        let can_memoize = built.is_some();
        let is_allowed = match opcode {
            PROTO => !self.has_protocol,
            FRAME => true,
            EMPTY_LIST => !self.has_list,
            MEMOIZE | BINPUT | LONG_BINPUT => can_memoize,
            MARK => {
                self.has_list && self.num_ints == 0 && !self.has_tuple_mark && !self.has_loose_pair
            }
            BININT1 | BININT2 | BININT | LONG1 => {
                self.has_list && self.num_ints < 2 && !self.has_loose_pair
            }
            BINGET | LONG_BINGET => {
                self.has_list && self.num_ints == 0 && !self.has_tuple_mark && !self.has_loose_pair
            }
            TUPLE2 => self.num_ints == 2 && !self.has_tuple_mark,
            TUPLE => self.num_ints == 2 && (self.has_tuple_mark || self.batch_pairs == Some(0)),
            APPENDS => self.batch_pairs.is_some() && self.num_ints == 0 && !self.has_tuple_mark,
            APPEND => self.has_loose_pair,
            STOP => self.has_list && self.is_list_alone(),
            _ => {
                return Err(match name(opcode) {
                    Some(name) => PickleFault::Refused { name },
                    None => PickleFault::NoOpcode { byte: opcode },
                });
            }
        };
        if !is_allowed {
            return Err(misplaced());
        }
        match opcode {
            PROTO => self.protocol()?,
            FRAME => {
                self.open_frame()?;
                self.built = built;
            }
            EMPTY_LIST => (self.has_list, self.built) = (true, Some(Built::List)),
            MEMOIZE => self.memoize(None, built),
            BINPUT => {
                let at = self.byte()?.into();
                self.memoize(Some(at), built);
            }
            LONG_BINPUT => {
                let at = u32::from_le_bytes(self.take()?);
                self.memoize(Some(at), built);
            }
            BINGET | LONG_BINGET => return self.shared_pair(opcode),
            MARK if self.batch_pairs.is_none() => self.batch_pairs = Some(0),
            MARK => self.has_tuple_mark = true,
            BININT1 | BININT2 | BININT | LONG1 => {
                self.ints[self.num_ints] = self.int(opcode)?;
                self.num_ints += 1;
            }
            TUPLE | TUPLE2 => return self.pair(opcode),
            APPENDS => self.batch_pairs = None,
            APPEND => self.has_loose_pair = false,
            STOP => return Ok(Step::Stop),
            _ => {}
        }
        Ok(Step::Going)
    }

    fn is_list_alone(&self) -> bool {
        self.batch_pairs.is_none() && !self.has_loose_pair && self.num_ints == 0
    }

    fn pair(&mut self, opcode: u8) -> Result<Step, PickleFault> {
        // If there is only one mark, it opened this tuple instead of a batch.
        if opcode == TUPLE && !self.has_tuple_mark {
            self.batch_pairs = None;
        }
        self.has_tuple_mark = false;
        self.num_ints = 0;
        self.built = Some(Built::Pair(self.ints[0], self.ints[1]));
        Ok(self.push_pair(self.ints))
    }

    fn push_pair(&mut self, [a, b]: [u64; 2]) -> Step {
        match &mut self.batch_pairs {
            Some(pairs) => *pairs += 1,
            None => self.has_loose_pair = true,
        }
        Step::Pair(a, b)
    }

    /// Stores the last built object in the memo, at `at` or else at the next index.
    fn memoize(&mut self, at: Option<u32>, built: Option<Built>) {
        if let (Some(memo), Some(built)) = (&mut self.memo, built) {
            let at = at.unwrap_or(memo.len() as u32);
            memo.insert(at, built);
        }
    }

    /// A pair that the list already contains. `pickle` writes a reference to the earlier tuple.
    fn shared_pair(&mut self, opcode: u8) -> Result<Step, PickleFault> {
        let stop = self.position - 1;
        let at = if opcode == BINGET {
            self.byte()?.into()
        } else {
            u32::from_le_bytes(self.take()?)
        };
        if self.memo.is_none() {
            self.memo = Some(self.memo_before(stop)?);
        }
        match self.memo.as_ref().and_then(|memo| memo.get(&at)) {
            Some(&Built::Pair(a, b)) => Ok(self.push_pair([a, b])),
            Some(Built::List) | None => Err(PickleFault::Misplaced {
                name: name(opcode).unwrap_or("?"),
            }),
        }
    }

    /// The memo after the opcodes before `stop`. None of these opcodes is `BINGET`.
    fn memo_before(&self, stop: usize) -> Result<HashMap<u32, Built>, PickleFault> {
        let mut parser = Parser {
            bytes: self.bytes,
            memo: Some(HashMap::new()),
            ..Parser::default()
        };
        while parser.position < stop {
            parser.step()?;
        }
        Ok(parser.memo.unwrap_or_default())
    }

    fn protocol(&mut self) -> Result<(), PickleFault> {
        match self.byte()? {
            2..=5 => self.has_protocol = true,
            found => return Err(PickleFault::Protocol { found }),
        }
        Ok(())
    }

    fn open_frame(&mut self) -> Result<(), PickleFault> {
        let bytes = u64::from_le_bytes(self.take()?);
        if self.frame.is_some() {
            return Err(PickleFault::Frame { bytes });
        }
        let remaining = (self.bytes.len() - self.position) as u64;
        if bytes > remaining {
            return Err(PickleFault::Truncated);
        }
        self.frame = Some((bytes, self.position + bytes as usize));
        Ok(())
    }

    fn int(&mut self, opcode: u8) -> Result<u64, PickleFault> {
        Ok(match opcode {
            BININT1 => self.byte()?.into(),
            BININT2 => u16::from_le_bytes(self.take()?).into(),
            BININT => u64::try_from(i32::from_le_bytes(self.take()?))
                .map_err(|_| PickleFault::Negative)?,
            _ => self.long1()?,
        })
    }

    fn long1(&mut self) -> Result<u64, PickleFault> {
        let len = usize::from(self.byte()?);
        let bytes = self
            .bytes
            .get(self.position..self.position + len)
            .ok_or(PickleFault::Truncated)?;
        self.position += len;
        if bytes.last().is_some_and(|last| last & 0x80 != 0) {
            return Err(PickleFault::Negative);
        }
        let (low, high) = bytes.split_at(len.min(8));
        if high.iter().any(|&byte| byte != 0) {
            return Err(PickleFault::TooLarge);
        }
        Ok(low
            .iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    fn byte(&mut self) -> Result<u8, PickleFault> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], PickleFault> {
        let bytes = self.bytes[self.position..]
            .first_chunk::<N>()
            .ok_or(PickleFault::Truncated)?;
        self.position += N;
        Ok(*bytes)
    }
}
