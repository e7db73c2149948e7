//! The bytes of each token, for the decoders that do without the reference engine.

use std::collections::HashSet;

use crate::load::AddedToken;
use crate::vocabulary::Vocabulary;

/// The bytes of each token of a vocabulary.
pub(crate) struct TokenTable {
    bytes: Vec<u8>,
    /// Sorted by id. The ids of most files have no gaps, so an id is its own position.
    entries: Vec<Entry>,
}

struct Entry {
    id: u32,
    is_special: bool,
    /// Whether the token stands for a byte, which may be a part of a character.
    is_byte: bool,
    start: usize,
    stop: usize,
}

/// A token of the table.
#[derive(Clone, Copy)]
pub(crate) struct Token<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) is_special: bool,
    pub(crate) is_byte: bool,
}

impl TokenTable {
    /// The tokens of a tokenizer.json. `append` appends the bytes of a name, and returns whether the token stands for
    /// a byte. `None` if only the reference engine knows what an id becomes.
    pub(crate) fn read(
        json: &str,
        added_tokens: &[AddedToken],
        mut append: impl FnMut(&str, &mut Vec<u8>) -> bool,
    ) -> Option<Self> {
        let vocabulary = Vocabulary::read(json, added_tokens);
        // The reference engine skips special tokens by name, and two ids may have the same name.
        let special: HashSet<&str> = added_tokens
            .iter()
            .filter(|token| token.is_special)
            .map(|token| token.content.as_str())
            .collect();
        let mut this = Self {
            bytes: Vec::new(),
            entries: Vec::new(),
        };
        let (mut last_of_model, mut last_added) = (None, None);
        for (id, name, is_added) in vocabulary.iter() {
            let last = if is_added {
                &mut last_added
            } else {
                &mut last_of_model
            };
            if last.replace(id) == Some(id) {
                // Two added tokens, or two tokens of the model, have the same id. Only the
                // reference engine knows which of two added tokens wins; of two tokens of the
                // model, either may win.
                return None;
            }
            if this.entries.last().is_some_and(|entry| entry.id == id) {
                // An added token replaces the model's token.
                continue;
            }
            let start = this.bytes.len();
            let is_byte = append(name, &mut this.bytes);
            this.entries.push(Entry {
                id,
                is_special: special.contains(name),
                is_byte,
                start,
                stop: this.bytes.len(),
            });
        }
        Some(this)
    }

    /// The token of an id; `None` if the id is unknown.
    #[inline]
    pub(crate) fn token(&self, id: u32) -> Option<Token<'_>> {
        let in_its_place = self.entries.get(id as usize).filter(|entry| entry.id == id);
        let entry = in_its_place.or_else(|| {
            let at = self.entries.binary_search_by_key(&id, |entry| entry.id);
            at.ok().map(|at| &self.entries[at])
        })?;
        Some(Token {
            bytes: &self.bytes[entry.start..entry.stop],
            is_special: entry.is_special,
            is_byte: entry.is_byte,
        })
    }

    /// A token that is one ASCII letter, and its id.
    pub(crate) fn first_letter(&self) -> Option<(u32, char)> {
        self.entries
            .iter()
            .find_map(|entry| match self.bytes[entry.start..entry.stop] {
                [letter] if !entry.is_byte && letter.is_ascii_alphabetic() => {
                    Some((entry.id, char::from(letter)))
                }
                _ => None,
            })
    }

    /// Gives a token another text.
    pub(crate) fn replace(&mut self, id: u32, text: &str, is_special: bool) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text.as_bytes());
        if let Ok(at) = self.entries.binary_search_by_key(&id, |entry| entry.id) {
            self.entries[at] = Entry {
                id,
                is_special,
                is_byte: false,
                start,
                stop: self.bytes.len(),
            };
        }
    }

    /// The tokens of `ids`. Unknown ids are skipped.
    pub(crate) fn tokens<'a>(
        &'a self,
        ids: &'a [u32],
        skip_special_tokens: bool,
    ) -> impl Iterator<Item = Token<'a>> {
        let known = ids.iter().filter_map(|&id| self.token(id));
        known.filter(move |token| !(skip_special_tokens && token.is_special))
    }
}
