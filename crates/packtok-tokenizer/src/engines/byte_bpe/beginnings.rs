//! The first two bytes of tokens that are searched for. With hundreds of tokens, looking for these first is faster
//! than an automaton.

use crate::engines::byte_pairs::Pairs;

pub(super) struct Beginnings(Pairs);

impl Beginnings {
    /// Of non-empty texts.
    pub(super) fn of<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Self {
        let mut pairs = Pairs::none();
        for text in texts {
            match text {
                [first, second, ..] => pairs.put(*first, *second),
                [only] => (0..=u8::MAX).for_each(|next| pairs.put(*only, next)),
                [] => {}
            }
        }
        Self(pairs)
    }

    /// The first position from `at` on where one of the texts may begin.
    #[inline]
    pub(super) fn find_from(&self, text: &[u8], at: usize) -> Option<usize> {
        let rest = &text[at..];
        let first = rest
            .windows(2)
            .position(|pair| self.0.has(pair[0], pair[1]));
        // A text of one byte may be last.
        let is_last = || rest.last().is_some_and(|&last| self.0.has(last, 0));
        let first = first.or_else(|| is_last().then(|| rest.len() - 1))?;
        Some(at + first)
    }
}
