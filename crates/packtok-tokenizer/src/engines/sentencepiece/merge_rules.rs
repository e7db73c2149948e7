//! BPE models of SentencePiece as merge rules, for the engine of `byte_bpe`.
//!
//! A model lists pieces with scores, not rules. Two adjacent pieces merge as if there were a rule for them, ranked by
//! the score of the piece that they make:
//!
//! ```text
//! pieces, by score    ▁t   he   ▁the            rules, by rank    ▁+t   h+e   ▁t+he   ▁+the if `the` is a piece ...
//! ```
//!
//! Most models are covered. The conditions are:
//!
//! - Each symbol is a piece or a single byte: the characters of all pieces, and white space, are pieces, and all other
//!   characters become the ids of their bytes.
//! - Scores differ. If scores are equal, the first pair is merged, and rules have no such rank. Only runs of a
//!   character may have equal scores, see [`are_runs`].
//!
//! User-defined pieces are never merged, so they are found before, as added tokens are.

use ahash::AHashMap;

use super::model::Model;
use super::normalization_rules::MAX_USER_DEFINED_KEYS;
use super::spaces::with_spaces;
use crate::engines::byte_bpe::{ByteBpe, MAX_IDS, Model as RuleModel};
use crate::load::{AddedToken, Kind};

/// Pieces are divided into two in all ways. If that reads more bytes, it takes too long: some are hundreds of bytes long.
const MAX_DIVIDED_BYTES: usize = 1 << 30;

/// A piece as normalized texts contain it.
struct TextPiece {
    text: String,
    num_chars: usize,
    score: f32,
    id: u32,
}

/// The engine for normalized texts, with spaces for white space. `None` if the rules do not cover the model.
pub(super) fn byte_bpe_of(model: &Model) -> Option<ByteBpe> {
    let of_byte = **model.byte_ids.as_ref()?;
    if model.pieces.len() > MAX_IDS {
        return None;
    }
    let user_defined: Vec<AddedToken> = pieces_of(model, Kind::UserDefined)
        .map(|piece| AddedToken {
            content: piece.text,
            id: piece.id,
            is_special: false,
        })
        .collect();
    let normal: Vec<TextPiece> = pieces_of(model, Kind::Normal).collect();
    let ids: AHashMap<&str, u32> = normal
        .iter()
        .map(|piece| (&piece.text[..], piece.id))
        .collect();
    let has_all_chars = |text: &str| {
        let mut chars = text.chars();
        chars.all(|char| ids.contains_key(&*char.encode_utf8(&mut [0; 4])))
    };
    let mut merged: Vec<&TextPiece> = normal.iter().filter(|piece| piece.num_chars > 1).collect();
    merged.sort_unstable_by(|left, right| {
        right
            .score
            .total_cmp(&left.score)
            .then(right.num_chars.cmp(&left.num_chars))
    });
    let mut of_equal_score =
        merged.chunk_by(|before, after| before.score.total_cmp(&after.score).is_eq());
    let num_divided_bytes = merged
        .iter()
        .map(|piece| piece.text.len().pow(2))
        .sum::<usize>();
    if num_divided_bytes > MAX_DIVIDED_BYTES
        || !are_all_considered(&user_defined)
        || !has_all_chars(" ")
        || !merged.iter().all(|piece| has_all_chars(&piece.text))
        || !of_equal_score.all(|pieces| pieces.len() == 1 || are_runs(pieces, &merged))
    {
        return None;
    }
    let mut merges = Vec::new();
    for piece in &merged {
        for (at, _) in piece.text.char_indices().skip(1) {
            let (left, right) = piece.text.split_at(at);
            if let (Some(&left), Some(&right)) = (ids.get(left), ids.get(right)) {
                merges.push([left, right, piece.id]);
            }
        }
    }
    if merges.len() > MAX_IDS {
        return None;
    }
    let chars = normal.iter().filter(|piece| piece.num_chars == 1);
    let chars = chars.flat_map(|piece| Some((piece.text.chars().next()?, piece.id)));
    let tokens = merged.iter().map(|piece| (&piece.text[..], piece.id));
    let model = RuleModel::of_characters(of_byte, chars, merges, tokens);
    ByteBpe::of_characters(model, &user_defined).ok()
}

/// The pieces of a kind that normalized texts may contain.
fn pieces_of(model: &Model, kind: Kind) -> impl Iterator<Item = TextPiece> {
    let pieces = (0u32..).zip(&model.pieces);
    let of_kind = pieces.filter(move |(_, piece)| piece.kind == kind && piece.is_matched());
    of_kind.filter_map(|(id, piece)| {
        let text = String::from_utf8(with_spaces(&piece.text)?).ok()?;
        Some(TextPiece {
            num_chars: text.chars().count(),
            text,
            score: piece.score,
            id,
        })
    })
}

/// Whether pieces of equal score are all pieces that are runs of one character.
///
/// Then the longest is ranked first, and the order is the same: in a run of the character, everything before the last
/// merge is merged as far as possible, and everything after it is single characters. So of the merges that the last one
/// makes possible, that with the symbol before it is the first and gives the longest run, that with the character after
/// it is the second, and two characters are the last.
fn are_runs(pieces: &[&TextPiece], all: &[&TextPiece]) -> bool {
    let Some(char) = pieces.first().and_then(|piece| piece.text.chars().next()) else {
        return false;
    };
    let is_run = |piece: &&&TextPiece| piece.text.chars().all(|other| other == char);
    pieces.iter().all(|piece| is_run(&piece)) && all.iter().filter(is_run).count() == pieces.len()
}

/// Whether the library considers all user-defined pieces that begin at a position, not only the shortest.
fn are_all_considered(user_defined: &[AddedToken]) -> bool {
    let mut texts: Vec<&str> = user_defined
        .iter()
        .map(|token| &token.content[..])
        .collect();
    texts.sort_unstable();
    // A text follows those that it begins with.
    let mut beginnings: Vec<&str> = Vec::new();
    texts.into_iter().all(|text| {
        while beginnings
            .last()
            .is_some_and(|beginning| !text.starts_with(beginning))
        {
            beginnings.pop();
        }
        beginnings.push(text);
        beginnings.len() <= MAX_USER_DEFINED_KEYS
    })
}
