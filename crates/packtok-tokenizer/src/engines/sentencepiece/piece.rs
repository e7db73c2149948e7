//! The pieces of a model's vocabulary.

use std::collections::HashSet;

use serde_json::Value;

use crate::load::Kind;

/// A piece of the vocabulary.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) score: f32,
    pub(super) kind: Kind,
}

impl Piece {
    /// Whether the piece is searched for in texts.
    pub(super) fn is_matched(&self) -> bool {
        self.kind.is_matched() && self.text != NUL
    }
}

/// InternLM's files have this unused piece. The library accepts it, but no piece with a NUL of another kind.
const NUL: &str = "\0";

/// The character that the library writes for white space.
pub(super) const SPACE_MARK: &str = "\u{2581}";

/// Longer pieces are refused.
const MAX_PIECE_BYTES: usize = 8000;

pub(super) fn piece(entry: &Value) -> Result<Piece, String> {
    let read = || {
        let [text, score, kind] = &entry.as_array()?[..] else {
            return None;
        };
        Some(Piece {
            text: text.as_str()?.to_owned(),
            score: score.as_f64()? as f32,
            kind: Kind::of_name(kind.as_str()?)?,
        })
    };
    let piece = read().ok_or_else(|| format!("{entry} is not a piece"))?;
    let is_unused_nul = piece.kind == Kind::Unused && piece.text == NUL;
    if piece.text.is_empty() || piece.text.contains(NUL) && !is_unused_nul {
        return Err(format!(
            "the piece {:?} is empty or contains a NUL",
            piece.text
        ));
    }
    match piece.text.len() {
        ..MAX_PIECE_BYTES => Ok(piece),
        num_bytes => Err(format!("a piece of {num_bytes} bytes is too long")),
    }
}

/// Checks that no two pieces with the same text can match.
///
/// # Errors
/// Two pieces have the same text, and texts are matched with both or with neither.
pub(super) fn check_differ(pieces: &[Piece]) -> Result<(), String> {
    let mut seen = HashSet::with_capacity(pieces.len());
    for piece in pieces {
        if !seen.insert((piece.is_matched(), piece.text.as_str())) {
            return Err(format!("it has the piece {:?} twice", piece.text));
        }
    }
    Ok(())
}

/// The byte of a piece such as `<0x0A>`.
pub(super) fn byte_of(piece: &str) -> Option<u8> {
    let hex = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    let byte = u8::from_str_radix(hex, 16).ok()?;
    (format!("{byte:02X}") == hex).then_some(byte)
}

pub(super) fn byte_ids<'a>(
    pieces: impl Iterator<Item = (u32, &'a Piece)>,
) -> Result<Box<[u32; 256]>, String> {
    let mut ids = Box::new([None; 256]);
    for (id, piece) in pieces.filter(|(_, piece)| piece.kind == Kind::Byte) {
        let byte = byte_of(&piece.text);
        let byte = byte.ok_or_else(|| format!("{:?} is not a byte piece", piece.text))?;
        ids[usize::from(byte)] = Some(id);
    }
    if let Some(missing) = ids.iter().position(Option::is_none) {
        return Err(format!("it has no piece for byte {missing}"));
    }
    Ok(Box::new(ids.map(Option::unwrap_or_default)))
}

/// Bytes of the first character of `text`.
#[inline]
pub(super) fn num_bytes_of_char(text: &[u8]) -> usize {
    let len = match text.first() {
        None => 0,
        Some(0..0xc0) => 1,
        Some(0xc0..0xe0) => 2,
        Some(0xe0..0xf0) => 3,
        Some(_) => 4,
    };
    len.min(text.len())
}
