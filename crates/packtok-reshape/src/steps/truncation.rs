//! Shortens documents.

use packtok_pbin::TokenWidth;

/// What is kept of a document: its first tokens, and its EOD if that would be cut off.
pub(super) fn shortened(
    bytes: &[u8],
    width: TokenWidth,
    truncate_to: Option<u64>,
    eod: Option<u32>,
) -> (&[u8], &[u8]) {
    let token_bytes = width.bytes() as usize;
    let max_bytes = truncate_to.map_or(usize::MAX, |length| {
        usize::try_from(length).map_or(usize::MAX, |length| length.saturating_mul(token_bytes))
    });
    if bytes.len() <= max_bytes {
        return (bytes, &[]);
    }
    let last = &bytes[bytes.len() - token_bytes..];
    if eod.is_some() && width.ids(last).next() == eod {
        (&bytes[..max_bytes - token_bytes], last)
    } else {
        (&bytes[..max_bytes], &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortened_document_keeps_its_eod() {
        let shortened = |length, eod| shortened(&[1, 2, 3, 9], TokenWidth::U8, length, eod);
        assert_eq!(shortened(None, Some(9)), (&[1, 2, 3, 9][..], &[][..]));
        assert_eq!(shortened(Some(4), Some(9)), (&[1, 2, 3, 9][..], &[][..]));
        assert_eq!(shortened(Some(3), Some(9)), (&[1, 2][..], &[9][..]));
        assert_eq!(shortened(Some(1), Some(9)), (&[][..], &[9][..]));
        assert_eq!(shortened(Some(3), Some(8)), (&[1, 2, 3][..], &[][..]));
        assert_eq!(shortened(Some(3), None), (&[1, 2, 3][..], &[][..]));
    }
}
