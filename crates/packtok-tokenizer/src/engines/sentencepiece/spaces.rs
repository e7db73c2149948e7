//! Pieces with spaces in place of `▁`.

use super::model::Model;
use super::piece::SPACE;

/// A piece as it is found in a normalized text, where blanks are what the library writes as U+2581; `None` for one
/// with a blank of its own, which no text has.
pub(super) fn with_spaces(piece: &str) -> Option<Vec<u8>> {
    (!piece.contains(' ')).then(|| piece.replace(SPACE, " ").into_bytes())
}

/// [`Model::push_id`] for a piece with blanks.
#[inline]
pub(super) fn push_id(
    model: &Model,
    id: u32,
    text: &[u8],
    after_unknown: &mut bool,
    ids: &mut Vec<u32>,
) {
    let text = match text {
        b" " => SPACE.as_bytes(),
        other => other,
    };
    model.push_id(id, text, after_unknown, ids);
}
