//! Converts vocabularies that have ranks instead of merges, such as tiktoken's and Mistral's, to tokenizer.json.
//!
//! tiktoken merges by rank alone and has no list of merges. An equivalent list follows from the ranks: each token was
//! made from two others, which are what its bytes merge to if only lower ranks are allowed.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::letters::Letters;

/// A vocabulary by ranks.
pub(crate) struct Ranked {
    /// The bytes of every rank, in order.
    pub(crate) tokens: Vec<Vec<u8>>,
    /// The id of rank 0; the ids of the other ranks follow.
    pub(crate) first_id: u32,
    pub(crate) special_tokens: Vec<(String, u32)>,
    pub(crate) pre_tokenizer: Value,
}

/// A pre-tokenizer that splits by a pattern and maps bytes to letters.
pub(crate) fn split_by(pattern: &str) -> Value {
    json!({"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
        {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
    ]})
}

impl Ranked {
    /// The tokenizer.json with these ids.
    pub(crate) fn tokenizer_json(&self) -> Value {
        let letters = Letters::new();
        let names: Vec<String> = self
            .tokens
            .iter()
            .map(|bytes| letters.name(bytes))
            .collect();
        let mut vocab: serde_json::Map<String, Value> = (self.first_id..)
            .zip(&names)
            .map(|(id, name)| (name.clone(), id.into()))
            .collect();
        // Special tokens and unused ids are part of the vocabulary too, because `tokenizers` would otherwise renumber
        // special tokens to the next free id. No text can become one of them: the pre-tokenizer splits every such
        // name.
        let special: HashMap<u32, &str> = self
            .special_tokens
            .iter()
            .map(|(name, id)| (*id, name.as_str()))
            .collect();
        let after_tokens = self.first_id + self.tokens.len() as u32;
        let last = special.keys().copied().max().unwrap_or(0);
        for id in (0..self.first_id).chain(after_tokens..=last) {
            let name = special
                .get(&id)
                .map_or_else(|| format!("<|unused_{id}|>"), |&name| name.to_owned());
            vocab.insert(name, id.into());
        }
        let merges: Vec<Value> = merges(&self.tokens)
            .into_iter()
            .map(|(left, right)| json!([names[left as usize], names[right as usize]]))
            .collect();
        let added_tokens: Vec<Value> = self
            .special_tokens
            .iter()
            .map(|(content, id)| {
                json!({"id": id, "content": content, "single_word": false, "lstrip": false,
                       "rstrip": false, "normalized": false, "special": true})
            })
            .collect();
        let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true});
        json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": added_tokens,
            "normalizer": null,
            "pre_tokenizer": self.pre_tokenizer,
            "post_processor": byte_level,
            "decoder": byte_level,
            "model": {
                "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
                // tiktoken looks up whole words before it merges.
                "ignore_merges": true,
                "vocab": vocab, "merges": merges,
            },
        })
    }
}

/// The two ranks that each token of several bytes was merged from, in order of rank.
pub(crate) fn merges(ranks: &[Vec<u8>]) -> Vec<(u32, u32)> {
    let rank_of: HashMap<&[u8], u32> = ranks.iter().map(Vec::as_slice).zip(0..).collect();
    (0u32..)
        .zip(ranks)
        .filter(|(_, bytes)| bytes.len() > 1)
        .filter_map(|(rank, bytes)| halves(bytes, rank, &rank_of))
        .collect()
}

/// What `bytes` merge to if only ranks below `limit` are allowed; `None` unless that is two tokens.
fn halves(bytes: &[u8], limit: u32, rank_of: &HashMap<&[u8], u32>) -> Option<(u32, u32)> {
    let mut bounds: Vec<usize> = (0..=bytes.len()).collect();
    while bounds.len() > 3 {
        let pair = |at: usize| rank_of.get(&bytes[bounds[at]..bounds[at + 2]]).copied();
        let candidates = (0..bounds.len() - 2).filter_map(|at| Some((pair(at)?, at)));
        let (rank, at) = candidates.min()?;
        if rank >= limit {
            return None;
        }
        bounds.remove(at + 1);
    }
    let half = |at: usize| rank_of.get(&bytes[bounds[at]..bounds[at + 1]]).copied();
    Some((half(0)?, half(1)?))
}
