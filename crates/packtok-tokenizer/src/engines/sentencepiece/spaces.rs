//! Pieces with spaces in place of U+2581, as the fast path sees them.

use super::model::Model;
use super::piece::SPACE_MARK;

/// A piece as it occurs in a normalized text. `None` for a piece that contains a space, which no
/// normalized text contains.
pub(super) fn with_spaces(piece: &str) -> Option<Vec<u8>> {
    (!piece.contains(' ')).then(|| piece.replace(SPACE_MARK, " ").into_bytes())
}

/// [`Model::push_id`] for a piece of a text with spaces.
#[inline]
pub(super) fn push_id(
    model: &Model,
    id: u32,
    text: &[u8],
    after_unknown: &mut bool,
    ids: &mut Vec<u32>,
) {
    let text = match text {
        b" " => SPACE_MARK.as_bytes(),
        other => other,
    };
    model.push_id(id, text, after_unknown, ids);
}
