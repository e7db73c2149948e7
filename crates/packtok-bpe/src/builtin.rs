//! Tokenizers that need neither a file nor a network: OpenAI's encodings, written out as
//! tokenizer.json from the ranks that come with the `tiktoken-rs` crate.
//!
//! tiktoken merges by rank alone and keeps no merge list. A list with the same effect follows from
//! the ranks: each token was once made of two others, and those are what its bytes merge to when
//! only lower ranks may be used. `tests/builtin.rs` compares ids with tiktoken's own.

use std::collections::HashMap;

use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;

use crate::error::{Error, Result};
use crate::exactness::{CL100K_PATTERN, O200K_PATTERN};

/// Names of the built-in tokenizers; `gpt2` and `r50k_base` are one.
pub const BUILTIN_NAMES: &[&str] = &["gpt2", "r50k_base", "cl100k_base", "o200k_base"];

const ENDOFTEXT: &str = "<|endoftext|>";

/// What tiktoken publishes of an encoding besides its ranks.
struct Encoding {
    bpe: CoreBPE,
    num_ranks: u32,
    special_tokens: &'static [(&'static str, u32)],
    pre_tokenizer: Value,
}

/// The text of a built-in tokenizer's tokenizer.json; its ids are tiktoken's.
///
/// # Errors
/// When there is none of that name.
pub fn builtin_json(name: &str) -> Result<String> {
    let unknown = || Error::UnknownBuiltin {
        name: name.to_owned(),
        known: BUILTIN_NAMES,
    };
    let unloadable = |source| Error::Unloadable {
        name: name.to_owned(),
        source,
    };
    let encoding = encoding(name).ok_or_else(unknown)?.map_err(unloadable)?;
    let ranks = ranks(&encoding).map_err(unloadable)?;
    Ok(tokenizer_json(&encoding, &ranks).to_string())
}

fn encoding(name: &str) -> Option<std::result::Result<Encoding, crate::Cause>> {
    let (bpe, num_ranks, special_tokens, pre_tokenizer): (_, _, &'static [_], _) = match name {
        "gpt2" | "r50k_base" => (
            tiktoken_rs::r50k_base(),
            50_256,
            &[(ENDOFTEXT, 50_256)],
            json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}),
        ),
        "cl100k_base" => (
            tiktoken_rs::cl100k_base(),
            100_256,
            &[
                (ENDOFTEXT, 100_257),
                ("<|fim_prefix|>", 100_258),
                ("<|fim_middle|>", 100_259),
                ("<|fim_suffix|>", 100_260),
                ("<|endofprompt|>", 100_276),
            ],
            split_by(CL100K_PATTERN),
        ),
        "o200k_base" => (
            tiktoken_rs::o200k_base(),
            199_998,
            &[(ENDOFTEXT, 199_999), ("<|endofprompt|>", 200_018)],
            split_by(O200K_PATTERN),
        ),
        _ => return None,
    };
    Some(bpe.map_err(Into::into).map(|bpe| Encoding {
        bpe,
        num_ranks,
        special_tokens,
        pre_tokenizer,
    }))
}

fn split_by(pattern: &str) -> Value {
    json!({"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
        {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
    ]})
}

/// The bytes of every rank, in order.
fn ranks(encoding: &Encoding) -> std::result::Result<Vec<Vec<u8>>, crate::Cause> {
    (0..encoding.num_ranks)
        .map(|rank| Ok(encoding.bpe.decode_bytes(&[rank])?))
        .collect()
}

fn tokenizer_json(encoding: &Encoding, ranks: &[Vec<u8>]) -> Value {
    let names: Vec<String> = ranks.iter().map(|bytes| byte_level_name(bytes)).collect();
    let mut vocab: serde_json::Map<String, Value> = (0u32..)
        .zip(&names)
        .map(|(id, name)| (name.clone(), id.into()))
        .collect();
    // Special tokens and the ids that tiktoken leaves free stand in the vocabulary too, because
    // `tokenizers` would otherwise move special tokens down to the next free id. No text can
    // become one of them: the pre-tokenizer breaks every such name apart.
    let highest = encoding.special_tokens.iter().map(|&(_, id)| id).max();
    for id in encoding.num_ranks..=highest.unwrap_or(0) {
        let special = encoding
            .special_tokens
            .iter()
            .find(|special| special.1 == id);
        let name = special.map_or_else(
            || format!("<|unused_{id}|>"),
            |special| special.0.to_owned(),
        );
        vocab.insert(name, id.into());
    }
    let merges: Vec<Value> = merges(ranks)
        .into_iter()
        .map(|(left, right)| json!([names[left as usize], names[right as usize]]))
        .collect();
    let added_tokens: Vec<Value> = encoding
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
        "pre_tokenizer": encoding.pre_tokenizer,
        "post_processor": byte_level,
        "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            // tiktoken looks a whole word up before it merges anything.
            "ignore_merges": true,
            "vocab": vocab, "merges": merges,
        },
    })
}

/// The two ranks that each token of more than one byte was merged from, in order of rank.
fn merges(ranks: &[Vec<u8>]) -> Vec<(u32, u32)> {
    let rank_of: HashMap<&[u8], u32> = ranks.iter().map(Vec::as_slice).zip(0..).collect();
    (0u32..)
        .zip(ranks)
        .filter(|(_, bytes)| bytes.len() > 1)
        .filter_map(|(rank, bytes)| halves(bytes, rank, &rank_of))
        .collect()
}

/// What `bytes` merge to when only ranks below `limit` may be used, if that is two tokens.
fn halves(bytes: &[u8], limit: u32, rank_of: &HashMap<&[u8], u32>) -> Option<(u32, u32)> {
    let mut cuts: Vec<usize> = (0..=bytes.len()).collect();
    while cuts.len() > 3 {
        let pair = |at: usize| rank_of.get(&bytes[cuts[at]..cuts[at + 2]]).copied();
        let candidates = (0..cuts.len() - 2).filter_map(|at| Some((pair(at)?, at)));
        let (rank, at) = candidates.min()?;
        if rank >= limit {
            return None;
        }
        cuts.remove(at + 1);
    }
    let half = |at: usize| rank_of.get(&bytes[cuts[at]..cuts[at + 1]]).copied();
    Some((half(0)?, half(1)?))
}

/// The printable spelling of bytes in byte-level vocabularies (GPT-2's table): printable Latin-1
/// stands for itself, every other byte for the next free code point from U+0100 on.
fn byte_level_name(bytes: &[u8]) -> String {
    let is_printable = |byte: u8| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let spelling = |&byte: &u8| {
        if is_printable(byte) {
            return char::from(byte);
        }
        let num_before = (0..byte).filter(|&other| !is_printable(other)).count();
        char::from_u32(0x100 + num_before as u32).unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    bytes.iter().map(spelling).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_spelled_as_gpt2_spells_them() {
        assert_eq!(byte_level_name(b" a\n"), "\u{120}a\u{10a}");
        assert_eq!(
            byte_level_name(&[0, 0x7f, 0xad, 0xff]),
            "\u{100}\u{121}\u{143}\u{ff}"
        );
    }

    #[test]
    fn every_token_of_every_encoding_is_made_of_two() {
        for name in BUILTIN_NAMES {
            let encoding = encoding(name).unwrap().unwrap();
            let ranks = ranks(&encoding).unwrap();
            let num_long = ranks.iter().filter(|bytes| bytes.len() > 1).count();
            assert_eq!(merges(&ranks).len(), num_long, "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        assert_eq!(
            builtin_json("gpt3").unwrap_err().to_string(),
            "\"gpt3\" is not a built-in tokenizer; built-in are gpt2, r50k_base, cl100k_base, o200k_base"
        );
    }
}
