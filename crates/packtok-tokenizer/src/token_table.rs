//! The bytes of each token, for the decoders that do without the reference engine.

use std::collections::HashSet;

use serde_json::Value;

use crate::load::AddedToken;
use crate::vocabulary::Vocabulary;

/// Bytes of a token that fit into its entry. At least 98 % of the tokens of running text are not longer.
const ENTRY_BYTES: usize = 12;
/// Ids without a token that a table may hold for each id with a token.
const MAX_GAPS: usize = 2;
/// Ids that a table may hold even if most of them have no token.
const MIN_IDS: usize = 1 << 16;

/// The bytes of each token of a vocabulary.
pub(crate) struct TokenTable {
    /// By id; or, if most ids have no token, by the position of the id in `ids`.
    entries: Vec<Entry>,
    /// Sorted; empty if an id is its own position.
    ids: Vec<u32>,
    /// Bytes of the tokens that do not fit into their entries.
    long: Vec<u8>,
}

/// A token of the table. Four entries fill a cache line.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// The bytes of a short token, and zeros; or the start of a long token in `TokenTable::long`.
    bytes: [u8; ENTRY_BYTES],
    /// Bytes of the token, and the flags.
    length_and_flags: u32,
}

impl Entry {
    /// The token is special.
    const SPECIAL: u32 = 1 << 31;
    /// The token stands for a byte, which may be a part of a character.
    const BYTE: u32 = 1 << 30;
    /// The id has no token.
    const UNKNOWN: u32 = 1 << 29;
    const MAX_LENGTH: usize = (1 << 29) - 1;

    const GAP: Self = Self {
        bytes: [0; ENTRY_BYTES],
        length_and_flags: Self::UNKNOWN,
    };

    /// An entry for `token`; `None` if the token or all long tokens together are too long.
    fn new(token: &[u8], flags: u32, long: &mut Vec<u8>) -> Option<Self> {
        let mut bytes = [0; ENTRY_BYTES];
        if token.len() <= ENTRY_BYTES {
            bytes[..token.len()].copy_from_slice(token);
        } else {
            let start = u32::try_from(long.len()).ok()?;
            bytes[..4].copy_from_slice(&start.to_le_bytes());
            long.extend_from_slice(token);
        }
        (token.len() <= Self::MAX_LENGTH).then_some(Self {
            bytes,
            length_and_flags: token.len() as u32 | flags,
        })
    }

    fn length(&self) -> usize {
        self.length_and_flags as usize & Self::MAX_LENGTH
    }

    pub(crate) fn is_byte(&self) -> bool {
        self.length_and_flags & Self::BYTE != 0
    }

    /// The bytes of a token that is not long.
    fn short_bytes(&self) -> Option<&[u8]> {
        self.bytes.get(..self.length())
    }
}

impl TokenTable {
    /// The tokens of a tokenizer.json. `append` appends the bytes of a name, and returns whether the token stands for
    /// a byte. `None` if only the reference engine knows what an id becomes.
    pub(crate) fn read(
        file: &Value,
        added_tokens: &[AddedToken],
        mut append: impl FnMut(&str, &mut Vec<u8>) -> bool,
    ) -> Option<Self> {
        let vocabulary = Vocabulary::read(file, added_tokens);
        // The reference engine skips special tokens by name, and two ids may have the same name.
        let special: HashSet<&str> = added_tokens
            .iter()
            .filter(|token| token.is_special)
            .map(|token| token.content.as_str())
            .collect();
        let mut this = Self {
            entries: Vec::new(),
            ids: Vec::new(),
            long: Vec::new(),
        };
        let (mut last_of_model, mut last_added) = (None, None);
        let mut token = Vec::new();
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
            if this.ids.last() == Some(&id) {
                // An added token replaces the model's token.
                continue;
            }
            token.clear();
            let is_byte = append(name, &mut token);
            let mut flags = if is_byte { Entry::BYTE } else { 0 };
            if special.contains(name) {
                flags |= Entry::SPECIAL;
            }
            this.ids.push(id);
            this.entries
                .push(Entry::new(&token, flags, &mut this.long)?);
        }
        this.fill_gaps();
        Some(this)
    }

    /// Makes each id its own position, unless most ids have no token.
    fn fill_gaps(&mut self) {
        let num_ids = self.ids.last().map_or(0, |&id| id as usize + 1);
        if num_ids > MIN_IDS.max((1 + MAX_GAPS) * self.ids.len()) {
            return;
        }
        let mut entries = vec![Entry::GAP; num_ids];
        for (&id, &entry) in self.ids.iter().zip(&self.entries) {
            entries[id as usize] = entry;
        }
        self.entries = entries;
        self.ids = Vec::new();
    }

    #[inline]
    fn position(&self, id: u32) -> Option<usize> {
        if self.ids.is_empty() {
            return Some(id as usize);
        }
        self.ids.binary_search(&id).ok()
    }

    /// The bytes of an id; empty if the id is unknown.
    pub(crate) fn bytes_of(&self, id: u32) -> &[u8] {
        let entry = self.position(id).and_then(|at| self.entries.get(at));
        entry.map_or(&[], |entry| self.bytes(entry))
    }

    /// The bytes of a token.
    #[inline]
    pub(crate) fn bytes<'a>(&'a self, entry: &'a Entry) -> &'a [u8] {
        entry
            .short_bytes()
            .unwrap_or_else(|| self.long_bytes(entry))
    }

    #[cold]
    fn long_bytes(&self, entry: &Entry) -> &[u8] {
        let [a, b, c, d, ..] = entry.bytes;
        let start = u32::from_le_bytes([a, b, c, d]) as usize;
        &self.long[start..start + entry.length()]
    }

    /// A token that is one ASCII letter, and its id.
    fn first_letter(&self) -> Option<(u32, char)> {
        self.entries
            .iter()
            .enumerate()
            .find_map(|(at, entry)| match entry.short_bytes() {
                Some(&[letter]) if !entry.is_byte() && letter.is_ascii_alphabetic() => {
                    let id = self.ids.get(at).copied().unwrap_or(at as u32);
                    Some((id, char::from(letter)))
                }
                _ => None,
            })
    }

    /// Gives the added tokens the texts that the reference engine gives them. It may decode such a token to its
    /// normalized name, which only that engine knows, and does not treat it as special then.
    ///
    /// `normalized` are the names of [`names_decoded_as_normalized`]. `text_of` and `reference_text` return the text of
    /// ids, with or without special tokens, by this table and by that engine. Each added token is decoded between two
    /// letters. `None` if a text cannot be the same.
    pub(crate) fn correct(
        &mut self,
        normalized: &HashSet<&str>,
        added_tokens: &[AddedToken],
        text_of: impl Fn(&Self, &[u32], bool) -> String,
        reference_text: impl Fn(&[u32], bool) -> Option<String>,
    ) -> Option<()> {
        let (other, letter) = self.first_letter()?;
        for token in added_tokens {
            let ids = [other, token.id, other];
            let [whole, without] = [false, true].map(|skips| reference_text(&ids, skips));
            let (whole, without) = (whole?, without?);
            if whole.contains('\u{fffd}') && normalized.contains(&*token.content) {
                // The text does not show the bytes of the name, which may become a character together with those of
                // its neighbours.
                return None;
            }
            let is_same = |this: &Self| {
                text_of(this, &ids, false) == whole && text_of(this, &ids, true) == without
            };
            if is_same(self) {
                continue;
            }
            let name = whole.strip_prefix(letter)?.strip_suffix(letter)?;
            self.replace(token.id, name, without.len() == 2 * letter.len_utf8())?;
            if !is_same(self) {
                return None;
            }
        }
        Some(())
    }

    /// Gives the token of an id another text; `None` if the id has no token or the text is too long.
    fn replace(&mut self, id: u32, text: &str, is_special: bool) -> Option<()> {
        let at = self.position(id)?;
        let flags = if is_special { Entry::SPECIAL } else { 0 };
        *self.entries.get_mut(at)? = Entry::new(text.as_bytes(), flags, &mut self.long)?;
        Some(())
    }

    /// The tokens of `ids`. Unknown ids are skipped.
    #[inline]
    pub(crate) fn tokens<'a>(
        &'a self,
        ids: &'a [u32],
        skip_special_tokens: bool,
    ) -> impl Iterator<Item = &'a Entry> {
        let mut skipped = Entry::UNKNOWN;
        if skip_special_tokens {
            skipped |= Entry::SPECIAL;
        }
        let entries = ids.iter().filter_map(|&id| {
            let at = self.position(id)?;
            self.entries.get(at)
        });
        entries.filter(move |entry| entry.length_and_flags & skipped == 0)
    }
}

/// The names of the added tokens that the reference engine may decode to their normalized names.
pub(crate) fn names_decoded_as_normalized(file: &Value) -> HashSet<&str> {
    if file["normalizer"].is_null() {
        return HashSet::new();
    }
    let tokens = file["added_tokens"].as_array().into_iter().flatten();
    let normalized = tokens.filter(|token| token["normalized"] != false);
    normalized
        .filter_map(|token| token["content"].as_str())
        .collect()
}

/// A text to which tokens are appended.
///
/// A copy of a few bytes whose number is not known to the compiler takes several times as long as a copy of
/// [`ENTRY_BYTES`]. So the entry of a token is copied whole, and the next token overwrites the zeros after it.
pub(crate) struct TextBuffer<'a> {
    table: &'a TokenTable,
    bytes: Vec<u8>,
    length: usize,
}

impl<'a> TextBuffer<'a> {
    /// An empty text for about `num_tokens` tokens.
    pub(crate) fn new(table: &'a TokenTable, num_tokens: usize) -> Self {
        Self {
            table,
            bytes: vec![0; 4 * num_tokens + ENTRY_BYTES],
            length: 0,
        }
    }

    /// Appends a token.
    #[inline]
    pub(crate) fn push(&mut self, entry: &Entry) {
        let length = entry.length();
        if length > ENTRY_BYTES {
            self.extend(self.table.long_bytes(entry));
            return;
        }
        let stop = self.length + ENTRY_BYTES;
        if stop > self.bytes.len() {
            self.grow(ENTRY_BYTES);
        }
        self.bytes[self.length..stop].copy_from_slice(&entry.bytes);
        self.length += length;
    }

    /// Appends bytes.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        if self.length + bytes.len() > self.bytes.len() {
            self.grow(bytes.len());
        }
        self.bytes[self.length..][..bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    #[cold]
    fn grow(&mut self, num_bytes: usize) {
        self.bytes.resize(2 * (self.length + num_bytes), 0);
    }

    /// The bytes of the text.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.truncate(self.length);
        self.bytes
    }
}
