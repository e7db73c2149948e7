//! Where a text can be cut so that its parts are split as texts of their own, by patterns that are applied one after
//! the other.
//!
//! ```text
//! steps   [\r\n], then \s?\p{L}+
//! text    The| cat|\nsat| © on      © and the space after it are between two matches: no word ends there
//! ```
//!
//! Between two characters, a step forgets what it has read if no match that it may be in continues there, and a match
//! that ends there also ends with the text. If all steps forget it, and a match certainly ends there, the text can be
//! cut.

use super::splitting::{Automaton, Between};

/// The white space before which texts are cut.
const BEFORE: [u8; 2] = *b" \n";

/// The characters after which a text can be cut if white space follows.
pub(super) struct Cuts {
    /// For each of [`BEFORE`] and each step, what the step knows after a character of each class.
    between: [Vec<Vec<Between>>; BEFORE.len()],
    /// For each ASCII character, a bit for each of [`BEFORE`].
    of_byte: [u8; 128],
}

impl Cuts {
    pub(super) fn of(automata: &[Automaton]) -> Self {
        let between = BEFORE.map(|next| {
            let of_step = automata.iter().map(|automaton| automaton.between(next));
            of_step.collect()
        });
        let mut cuts = Self {
            between,
            of_byte: [0; 128],
        };
        cuts.of_byte = std::array::from_fn(|byte| cuts.bits_of(automata, &[byte as u8], 0));
        cuts
    }

    /// The end of the part that starts at `start`, before the end of the text.
    #[inline]
    pub(super) fn end_of_part(&self, automata: &[Automaton], text: &[u8], start: usize) -> usize {
        let mut after = start + 1..text.len();
        after
            .find(|&at| self.is_cut(automata, text, at))
            .unwrap_or(text.len())
    }

    /// The start of the last part that starts before `at`, or `first`, where a part starts.
    pub(super) fn start_of_part(
        &self,
        automata: &[Automaton],
        text: &[u8],
        first: usize,
        at: usize,
    ) -> usize {
        let mut before = first + 1..at;
        before
            .rfind(|&at| self.is_cut(automata, text, at))
            .unwrap_or(first)
    }

    /// Whether a text can be cut there, after its first character.
    #[inline]
    fn is_cut(&self, automata: &[Automaton], text: &[u8], at: usize) -> bool {
        let bit = match text[at] {
            b' ' => 1,
            b'\n' => 1 << 1,
            _ => return false,
        };
        let bits = match self.of_byte.get(usize::from(text[at - 1])) {
            Some(&bits) => bits,
            None => {
                let first = text[..at].iter().rposition(|byte| byte & 0xc0 != 0x80);
                self.bits_of(automata, text, first.unwrap_or(at - 1))
            }
        };
        bits & bit != 0
    }

    /// The bits of the character at `at`.
    fn bits_of(&self, automata: &[Automaton], text: &[u8], at: usize) -> u8 {
        let bit = |number: usize| {
            let of_steps = automata.iter().zip(&self.between[number]);
            let mut of_steps = of_steps.map(|(step, between)| between[step.last_class(text, at)]);
            // After a step in which a match ends, later ones do not see the two characters together.
            let first = of_steps.find(|&between| between != Between::Forgets);
            u8::from(first == Some(Between::Ends)) << number
        };
        (0..BEFORE.len()).fold(0, |bits, number| bits | bit(number))
    }
}
