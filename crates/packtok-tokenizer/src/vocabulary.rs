//! Names and ids of all tokens, for callers that look up many tokens.
//!
//! All names are in one string, and two sorted lists of positions are searched by bisection. A map
//! of strings would take several times the memory.

use serde_json::Value;

use crate::load::AddedToken;

/// The tokens of a tokenizer by name and by id, including added tokens.
#[derive(Debug)]
pub struct Vocabulary {
    names: String,
    /// Sorted by id. If an added token and a token of the model have the same id, the added token
    /// comes first.
    entries: Vec<Entry>,
    /// Positions in `entries`, sorted by name. If entries have the same name, the added token
    /// comes first, then the model's tokens in descending order of ids.
    by_name: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    id: u32,
    is_added: bool,
    start: usize,
    stop: usize,
}

impl Vocabulary {
    /// Reads the tokens from a tokenizer.json with these added tokens.
    pub(crate) fn read(file: &Value, added_tokens: &[AddedToken]) -> Self {
        let mut this = Self {
            names: String::new(),
            entries: Vec::new(),
            by_name: Vec::new(),
        };
        // If several added tokens have the same id, the last one wins: it is pushed first, and the
        // sort is stable.
        for token in added_tokens.iter().rev() {
            this.push(token.id, &token.content, true);
        }
        match &file["model"]["vocab"] {
            Value::Object(map) => {
                for (name, id) in map {
                    if let Some(id) = id.as_u64().and_then(|id| id.try_into().ok()) {
                        this.push(id, name, false);
                    }
                }
            }
            Value::Array(pieces) => {
                for (id, piece) in (0u32..).zip(pieces) {
                    if let Some(name) = piece[0].as_str() {
                        this.push(id, name, false);
                    }
                }
            }
            _ => {}
        }
        this.sort();
        this
    }

    fn push(&mut self, id: u32, name: &str, is_added: bool) {
        let start = self.names.len();
        self.names.push_str(name);
        self.entries.push(Entry {
            id,
            is_added,
            start,
            stop: self.names.len(),
        });
    }

    fn sort(&mut self) {
        self.entries
            .sort_by_key(|entry| (entry.id, !entry.is_added));
        let (names, entries) = (&self.names, &self.entries);
        self.by_name = (0u32..).zip(entries).map(|(at, _)| at).collect();
        self.by_name.sort_by_key(|&at| {
            let entry = &entries[at as usize];
            // If two pieces have the same name, `tokenizers` returns the id of the last one.
            let latest_first = std::cmp::Reverse(entry.id);
            (
                &names[entry.start..entry.stop],
                !entry.is_added,
                latest_first,
            )
        });
    }

    /// Id and name of each token, and whether it was added, in order of id. If two tokens have the
    /// same id, the added token comes first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &str, bool)> {
        let entries = self.entries.iter();
        entries.map(|entry| (entry.id, self.name(entry), entry.is_added))
    }

    fn name(&self, entry: &Entry) -> &str {
        &self.names[entry.start..entry.stop]
    }

    /// The id of the token called `name`.
    pub fn id_of(&self, name: &str) -> Option<u32> {
        let entry = |at: u32| &self.entries[at as usize];
        let at = self
            .by_name
            .partition_point(|&at| self.name(entry(at)) < name);
        let candidate = entry(*self.by_name.get(at)?);
        (self.name(candidate) == name).then_some(candidate.id)
    }

    /// The name of the token with this id.
    pub fn name_of(&self, id: u32) -> Option<&str> {
        let at = self.entries.partition_point(|entry| entry.id < id);
        let candidate = self.entries.get(at)?;
        (candidate.id == id).then(|| self.name(candidate))
    }
}

/// The byte that a token such as `<0xE2>` represents.
pub(crate) fn byte_of_name(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    let is_byte = digits.len() == 2;
    (u8::from_str_radix(digits, 16).ok()).filter(|_| is_byte)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tokenizer::Tokenizer;

    fn tokenizer(vocab: Value, added: Value) -> Tokenizer {
        let file = json!({"model": {"type": "WordLevel", "unk_token": "a", "vocab": vocab},
                          "added_tokens": added});
        Tokenizer::from_json("t.json", file.to_string()).unwrap()
    }

    #[test]
    fn every_token_is_found_by_name_and_by_id_as_the_tokenizer_finds_it() {
        let token = |id: u32, content: &str| {
            json!({"id": id, "content": content, "special": true, "single_word": false,
                   "lstrip": false, "rstrip": false, "normalized": false})
        };
        let added = json!([token(1, "b"), token(3, "<x>")]);
        let tokenizer = tokenizer(json!({"a": 0, "b": 1, "\u{e9}": 2}), added);
        let vocabulary = Vocabulary::of(&tokenizer);
        for (id, name) in [(0, "a"), (1, "b"), (2, "\u{e9}"), (3, "<x>")] {
            assert_eq!(vocabulary.id_of(name), Some(id));
            assert_eq!(tokenizer.token_to_id(name), Some(id));
            assert_eq!(vocabulary.name_of(id), Some(name));
            assert_eq!(tokenizer.id_to_token(id).as_deref(), Some(name));
        }
        for name in ["", "c", "\u{ea}"] {
            assert_eq!(vocabulary.id_of(name), None);
        }
        assert_eq!(vocabulary.name_of(4), None);
    }
}
