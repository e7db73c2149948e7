//! Converts vocabularies that have ranks instead of merges, such as tiktoken's and Mistral's, to
//! tokenizer.json.
//!
//! tiktoken merges by rank alone and has no list of merges; [`super::merges`] derives one.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::{Value, json};

use crate::letters::Letters;

/// A vocabulary by ranks.
pub(crate) struct Ranked {
    /// The bytes of every rank, in order; none for the rank of a special token.
    pub(crate) tokens: Vec<Vec<u8>>,
    /// The two ranks that each token of several bytes is merged from, in order of rank.
    pub(crate) merges: Vec<(u32, u32)>,
    /// The id of rank 0; the ids of the other ranks follow.
    pub(crate) first_id: u32,
    pub(crate) special_tokens: Vec<(String, u32)>,
    pub(crate) pre_tokenizer: Value,
    /// Whether texts are normalized to NFC.
    pub(crate) is_nfc: bool,
}

/// A pre-tokenizer that splits by a pattern and maps bytes to letters.
pub(crate) fn split_by(pattern: &str) -> Value {
    json!({"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
        {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
    ]})
}

impl Ranked {
    /// The tokenizer.json with these ids, in the text form of files.
    ///
    /// Written without a [`Value`], which would allocate for every token and every merge.
    pub(crate) fn tokenizer_json(&self) -> String {
        let text = self.with_file(|file| serde_json::to_string(file));
        text.expect("all keys are strings")
    }

    /// The tokenizer.json with these ids.
    pub(crate) fn tokenizer_value(&self) -> Value {
        let value = self.with_file(|file| serde_json::to_value(file));
        value.expect("all keys are strings")
    }

    fn with_file<T>(&self, use_it: impl FnOnce(&File<'_>) -> T) -> T {
        let letters = Letters::new();
        let tokens = self.tokens.iter();
        let names: Vec<String> = tokens.map(|bytes| letters.name(bytes)).collect();
        let unused = self.unused_names();
        let names_of_ids = (self.first_id..)
            .zip(&names)
            .filter(|(_, name)| !name.is_empty())
            .map(|(id, name)| (&**name, id));
        let mut vocab: BTreeMap<&str, u32> = names_of_ids.collect();
        vocab.extend(unused.iter().map(|(id, name)| (&**name, *id)));
        let pair = |(left, right): (u32, u32)| (&*names[left as usize], &*names[right as usize]);
        let added_tokens = self.special_tokens.iter().map(|(content, id)| {
            json!({"id": id, "content": content, "single_word": false, "lstrip": false,
                   "rstrip": false, "normalized": false, "special": true})
        });
        let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true});
        use_it(&File {
            added_tokens: added_tokens.collect(),
            decoder: &byte_level,
            model: Model {
                byte_fallback: false,
                continuing_subword_prefix: (),
                dropout: (),
                end_of_word_suffix: (),
                fuse_unk: false,
                // tiktoken looks up whole words before it merges.
                ignore_merges: true,
                merges: self.merges.iter().map(|&merge| pair(merge)).collect(),
                kind: "BPE",
                unk_token: (),
                vocab,
            },
            normalizer: self.is_nfc.then(|| json!({"type": "NFC"})),
            padding: (),
            post_processor: &byte_level,
            pre_tokenizer: &self.pre_tokenizer,
            truncation: (),
            version: "1.0",
        })
    }

    /// The names of the ids that have no rank.
    ///
    /// Special tokens and unused ids are part of the vocabulary too, because `tokenizers` would
    /// otherwise renumber special tokens to the next free id. No text is encoded to such an id:
    /// the pre-tokenizer splits every such name.
    fn unused_names(&self) -> Vec<(u32, String)> {
        let special = self.special_tokens.iter();
        let special: HashMap<u32, &str> = special.map(|(name, id)| (*id, name.as_str())).collect();
        let after_tokens = self.first_id + self.tokens.len() as u32;
        let last = special.keys().copied().max().unwrap_or(0);
        let name = |id| match special.get(&id) {
            Some(&name) => name.to_owned(),
            None => format!("<|unused_{id}|>"),
        };
        let without_bytes = (self.first_id..)
            .zip(&self.tokens)
            .filter(|(_, bytes)| bytes.is_empty());
        let ids = (0..self.first_id)
            .chain(without_bytes.map(|(id, _)| id))
            .chain(after_tokens..=last);
        ids.map(|id| (id, name(id))).collect()
    }
}

/// A tokenizer.json. Its keys are in the order in which a [`Value`] has them.
#[derive(Serialize)]
struct File<'a> {
    added_tokens: Vec<Value>,
    decoder: &'a Value,
    model: Model<'a>,
    normalizer: Option<Value>,
    padding: (),
    post_processor: &'a Value,
    pre_tokenizer: &'a Value,
    truncation: (),
    version: &'static str,
}

#[derive(Serialize)]
struct Model<'a> {
    byte_fallback: bool,
    continuing_subword_prefix: (),
    dropout: (),
    end_of_word_suffix: (),
    fuse_unk: bool,
    ignore_merges: bool,
    merges: Vec<(&'a str, &'a str)>,
    #[serde(rename = "type")]
    kind: &'static str,
    unk_token: (),
    vocab: BTreeMap<&'a str, u32>,
}
