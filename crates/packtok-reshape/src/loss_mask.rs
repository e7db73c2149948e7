//! The loss masks of inputs: their own, or those of the pbins that they were made from.

use std::ops::Range;

use packtok_formats::{LossMask, TokenFile};
use packtok_pbin::Reader;

use crate::error::Result;

/// The name of loss masks, which callers accept to lose.
pub(crate) const LOSS_MASK: &str = "loss_mask";

/// The loss mask of `file`, which was made from the pbin `kept`; `None` if all tokens count.
pub(crate) fn loss_mask_of<'a>(
    file: &'a TokenFile,
    kept: Option<&'a Reader>,
) -> Option<LossMask<'a>> {
    if file.has_loss_mask() || file.format().records_loss_masks() {
        return file.loss_mask();
    }
    kept?.loss_mask().map(LossMask::from)
}

/// Appends whether each of `tokens` counts in the loss where it is a label.
///
/// # Errors
/// The mask is damaged.
pub(crate) fn append_loss_mask(
    mask: Option<LossMask<'_>>,
    tokens: Range<u64>,
    out: &mut Vec<bool>,
) -> Result<()> {
    if let Some(mask) = mask {
        return Ok(mask.append_to(tokens, out)?);
    }
    out.resize(out.len() + (tokens.end - tokens.start) as usize, true);
    Ok(())
}
