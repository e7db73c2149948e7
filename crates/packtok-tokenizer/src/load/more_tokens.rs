//! Adds tokens to a tokenizer.json, as `add_tokens` of `tokenizers` does.
//!
//! Only the parts that change are written anew. Numbers such as scores keep their text, because reading and writing
//! them could change the last digit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::LoadError;
use super::added_tokens::AddedToken;
use super::parsed::parsed;
use super::sentencepiece_types::{Kind, is_sentencepiece};
use super::vocab::vocab_id;
use crate::error::{Error, Result};

/// The members of a JSON object, whose values keep their text.
type Parts = BTreeMap<String, Box<RawValue>>;

/// A token to add, or the properties that an added token is to have.
#[derive(Debug, Clone, Deserialize)]
pub struct NewToken {
    /// Text of the token.
    pub content: String,
    /// Whether it is to be special; an added token that is special stays it.
    #[serde(default)]
    pub special: bool,
    /// How the token is matched. With `None`, an added token keeps its properties, and any other
    /// token gets the default of a special token.
    #[serde(default)]
    pub matching: Option<Matching>,
}

/// The properties that control the matching of an added token in texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Matching {
    /// Whether the token does not match inside a word.
    pub single_word: bool,
    /// With the white space before it.
    pub lstrip: bool,
    /// With the white space after it.
    pub rstrip: bool,
    /// Whether the token is matched in the normalized text.
    pub normalized: bool,
}

/// Whether and how a tokenizer contains a [`NewToken`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    /// No token of this text.
    Absent,
    /// A token of the model, which is not matched before the other steps.
    Ordinary,
    /// An added token with other properties of matching.
    Differing,
    /// An added token with the same properties of matching.
    Same,
}

/// A tokenizer.json to which tokens are added.
pub(crate) struct MoreTokens<'a> {
    name: &'a str,
    file: Value,
    /// The id of each added token.
    added: &'a [AddedToken],
}

impl<'a> MoreTokens<'a> {
    /// Reads the text of a tokenizer.json that has these added tokens.
    pub(crate) fn read(name: &'a str, json: &str, added: &'a [AddedToken]) -> Result<Self> {
        let (file, _) = parsed(name, json)?;
        Ok(Self { name, file, added })
    }

    /// Whether and how the file contains a token.
    pub(crate) fn presence(&self, token: &NewToken) -> Presence {
        let vocab = &self.file["model"]["vocab"];
        if is_sentencepiece(&self.file) {
            return match vocab_id(vocab, &token.content).map(|id| kind_of(&vocab[id as usize])) {
                None => Presence::Absent,
                Some(Some(Kind::Normal)) => Presence::Ordinary,
                Some(_) => Presence::Same,
            };
        }
        let entries = self.file["added_tokens"].as_array().into_iter().flatten();
        let entry = entries
            .rev()
            .find(|entry| entry["content"] == token.content);
        match (entry, token.matching) {
            (Some(entry), Some(matching)) if !self.is_matched_so(entry, matching) => {
                Presence::Differing
            }
            (Some(_), _) => Presence::Same,
            (None, _) if vocab_id(vocab, &token.content).is_some() => Presence::Ordinary,
            (None, _) => Presence::Absent,
        }
    }

    fn is_matched_so(&self, entry: &Value, matching: Matching) -> bool {
        entry["single_word"] == matching.single_word
            && entry["lstrip"] == matching.lstrip
            && entry["rstrip"] == matching.rstrip
            // Without a normalizer, both kinds of matching are the same.
            && (self.file["normalizer"].is_null() || entry["normalized"] == matching.normalized)
    }

    /// The text of the file with `tokens` added. Tokens that the file already contains keep their
    /// position.
    ///
    /// # Errors
    /// A SentencePiece model cannot contain such a token.
    pub(crate) fn written(&self, json: &str, tokens: &[NewToken]) -> Result<String> {
        let mut parts: Parts = self.read_parts(json)?;
        let written = if is_sentencepiece(&self.file) {
            let (model, added) = self.symbols(&parts["model"], tokens)?;
            parts.insert("model".to_owned(), raw(&model));
            added
        } else {
            self.added_tokens(tokens)
        };
        parts.insert("added_tokens".to_owned(), raw(&written));
        Ok(raw(&parts).get().to_owned())
    }

    fn read_parts<'t, T: Deserialize<'t>>(&self, json: &'t str) -> Result<T> {
        serde_json::from_str(json).map_err(|source| {
            Error::Load(LoadError::NotJson {
                name: self.name.to_owned(),
                source,
            })
        })
    }

    /// The entries of the file, followed by an entry for each new token.
    fn added_tokens(&self, tokens: &[NewToken]) -> Vec<Value> {
        let vocab = &self.file["model"]["vocab"];
        let mut entries = self.entries();
        let num_entries = vocab.as_object().map_or_else(
            || vocab.as_array().map_or(0, Vec::len),
            serde_json::Map::len,
        );
        let above_added = self.added.iter().map(|token| u64::from(token.id) + 1);
        let mut next_id = above_added.fold(num_entries as u64, u64::max);
        for token in tokens.iter().filter(|token| !token.content.is_empty()) {
            let mut existing = entries.iter_mut().rev();
            if let Some(entry) = existing.find(|entry| entry["content"] == token.content) {
                if token.special {
                    entry["special"] = true.into();
                }
                if self.presence(token) == Presence::Differing {
                    token
                        .matching
                        .iter()
                        .for_each(|matching| matching.write_to(entry));
                }
                continue;
            }
            let id = vocab_id(vocab, &token.content).map_or_else(
                || {
                    next_id += 1;
                    next_id - 1
                },
                u64::from,
            );
            entries.push(entry_of(token, id));
        }
        entries
    }

    fn entries(&self) -> Vec<Value> {
        self.file["added_tokens"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    }

    /// The model of a SentencePiece model with the tokens as user-defined symbols, and its added tokens.
    fn symbols(&self, model: &RawValue, tokens: &[NewToken]) -> Result<(Parts, Vec<Value>)> {
        let mut model: Parts = self.read_parts(model.get())?;
        let mut pieces: Vec<Box<RawValue>> = self.read_parts(model["vocab"].get())?;
        let mut entries = self.entries();
        for token in tokens.iter().filter(|token| !token.content.is_empty()) {
            let strips = |matching: Matching| matching.lstrip || matching.rstrip;
            if token.matching.is_some_and(strips) && self.presence(token) != Presence::Same {
                return Err(Error::Load(LoadError::StripsInModel {
                    name: self.name.to_owned(),
                    token: token.content.clone(),
                }));
            }
            let is_new = !entries
                .iter()
                .any(|entry| entry["content"] == token.content);
            let id = match self.presence(token) {
                Presence::Absent if is_new => {
                    let symbol = json!([token.content, 0.0, Kind::UserDefined.name()]);
                    pieces.push(raw(&symbol));
                    pieces.len() - 1
                }
                Presence::Ordinary if is_new => {
                    let id = vocab_id(&self.file["model"]["vocab"], &token.content);
                    let id = id.unwrap_or_default() as usize;
                    let (text, score, _): (String, Box<RawValue>, String) =
                        self.read_parts(pieces[id].get())?;
                    pieces[id] = raw(&(text, score, Kind::UserDefined.name()));
                    id
                }
                _ => continue,
            };
            let mut entry = entry_of(token, id as u64);
            // As in the file of a model, control symbols are special and user-defined symbols are
            // not.
            entry["special"] = false.into();
            entries.push(entry);
        }
        model.insert("vocab".to_owned(), raw(&pieces));
        Ok((model, entries))
    }
}

impl Matching {
    fn write_to(self, entry: &mut Value) {
        entry["single_word"] = self.single_word.into();
        entry["lstrip"] = self.lstrip.into();
        entry["rstrip"] = self.rstrip.into();
        entry["normalized"] = self.normalized.into();
    }
}

fn entry_of(token: &NewToken, id: u64) -> Value {
    let mut entry = json!({"id": id, "content": token.content, "special": token.special});
    let default = Matching {
        single_word: false,
        lstrip: false,
        rstrip: false,
        normalized: !token.special,
    };
    token.matching.unwrap_or(default).write_to(&mut entry);
    entry
}

fn kind_of(piece: &Value) -> Option<Kind> {
    piece[2].as_str().and_then(Kind::of_name)
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("memory takes all that is written")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(content: &str) -> NewToken {
        serde_json::from_value(json!({"content": content, "special": true})).unwrap()
    }

    #[test]
    fn parts_that_do_not_change_keep_their_text() {
        let model = r#"{"type": "Unigram", "unk_id": 0, "vocab": [["a", -1.00000000000000000001e-5], ["b", -2]]}"#;
        let json = format!(r#"{{"version": "1.0", "model": {model}, "added_tokens": []}}"#);
        let file = MoreTokens::read("t", &json, &[]).unwrap();
        let written = file.written(&json, &[token("<x>"), token("b")]).unwrap();
        assert!(written.contains(model));
        let written: Value = serde_json::from_str(&written).unwrap();
        let entry = |id: u32, content: &str| {
            json!({"id": id, "content": content, "special": true, "single_word": false,
                "lstrip": false, "rstrip": false, "normalized": false})
        };
        assert_eq!(
            written["added_tokens"],
            json!([entry(2, "<x>"), entry(1, "b")])
        );
    }

    #[test]
    fn presence_tells_what_would_change() {
        let added = json!({"id": 1, "content": "<x>", "special": true, "single_word": false,
            "lstrip": true, "rstrip": false, "normalized": true});
        let mut json = json!({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "added_tokens": [added]});
        let presence = |json: &Value, token: &NewToken| {
            let file = MoreTokens::read("t", &json.to_string(), &[]).unwrap();
            file.presence(token)
        };
        let presences = ["b", "a", "<x>"].map(|content| presence(&json, &token(content)));
        assert_eq!(
            presences,
            [Presence::Absent, Presence::Ordinary, Presence::Same]
        );
        let mut differing = token("<x>");
        differing.matching = Some(Matching {
            single_word: false,
            lstrip: true,
            rstrip: false,
            normalized: false,
        });
        assert_eq!(presence(&json, &differing), Presence::Same);
        json["normalizer"] = json!({"type": "Lowercase"});
        assert_eq!(presence(&json, &differing), Presence::Differing);
    }
}
