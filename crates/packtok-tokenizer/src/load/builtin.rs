//! Tokenizers that need neither a file nor a network: OpenAI's encodings, converted to tokenizer.json from the ranks
//! in the `tiktoken-rs` crate.
//!
//! `tests/it/builtin.rs` compares the ids with tiktoken's.

use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;

use super::LoadError;
use crate::engines::byte_bpe::{CL100K_PATTERN, O200K_PATTERN};
use crate::error::{Error, Result};
use crate::load::ranks::{Ranked, split_by};

/// Names of the built-in tokenizers; `gpt2` and `r50k_base` are the same.
pub const BUILTIN_NAMES: &[&str] = &["gpt2", "r50k_base", "cl100k_base", "o200k_base"];

/// The end-of-text token that every built-in tokenizer has.
pub const ENDOFTEXT: &str = "<|endoftext|>";

/// The properties that tiktoken publishes for an encoding, in addition to its ranks.
struct Encoding {
    bpe: CoreBPE,
    special_tokens: &'static [(&'static str, u32)],
    pre_tokenizer: Value,
}

/// The tokenizer.json of a built-in tokenizer, with the ids of tiktoken.
///
/// # Errors
/// No built-in tokenizer has this name.
pub fn builtin_json(name: &str) -> Result<String> {
    let (encoding, tokens) = load(name)?;
    Ok(written_out(&encoding, tokens))
}

/// The tokenizer.json of the built-in tokenizer with these ranks; `None` if no built-in tokenizer
/// has them.
///
/// # Errors
/// The ranks of a built-in tokenizer cannot be loaded.
pub(crate) fn builtin_json_of_ranks(ranks: &[Vec<u8>]) -> Result<Option<String>> {
    let as_many = |name: &&&str| num_ranks(name) as usize == ranks.len();
    for name in BUILTIN_NAMES.iter().filter(as_many) {
        let (encoding, tokens) = load(name)?;
        if tokens == ranks {
            return Ok(Some(written_out(&encoding, tokens)));
        }
    }
    Ok(None)
}

/// A built-in tokenizer, and the bytes of every rank, in order.
fn load(name: &str) -> Result<(Encoding, Vec<Vec<u8>>)> {
    let unknown = || {
        Error::Load(LoadError::UnknownBuiltin {
            name: name.to_owned(),
            known: BUILTIN_NAMES,
        })
    };
    let unloadable = |source| {
        Error::Load(LoadError::Unloadable {
            name: name.to_owned(),
            source,
        })
    };
    let encoding = encoding(name).ok_or_else(unknown)?.map_err(unloadable)?;
    let tokens = ranks(name, &encoding.bpe).map_err(unloadable)?;
    Ok((encoding, tokens))
}

fn written_out(encoding: &Encoding, tokens: Vec<Vec<u8>>) -> String {
    let special = encoding.special_tokens.iter();
    let ranked = Ranked {
        tokens,
        first_id: 0,
        special_tokens: special.map(|&(name, id)| (name.to_owned(), id)).collect(),
        pre_tokenizer: encoding.pre_tokenizer.clone(),
    };
    ranked.tokenizer_json()
}

/// The number of ranks of a built-in tokenizer.
fn num_ranks(name: &str) -> u32 {
    match name {
        "gpt2" | "r50k_base" => 50_256,
        "cl100k_base" => 100_256,
        "o200k_base" => 199_998,
        _ => 0,
    }
}

fn encoding(name: &str) -> Option<std::result::Result<Encoding, crate::Cause>> {
    let (bpe, special_tokens, pre_tokenizer): (_, &'static [_], _) = match name {
        "gpt2" | "r50k_base" => (
            tiktoken_rs::r50k_base(),
            &[(ENDOFTEXT, 50_256)],
            json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}),
        ),
        "cl100k_base" => (
            tiktoken_rs::cl100k_base(),
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
            &[(ENDOFTEXT, 199_999), ("<|endofprompt|>", 200_018)],
            split_by(O200K_PATTERN),
        ),
        _ => return None,
    };
    Some(bpe.map_err(Into::into).map(|bpe| Encoding {
        bpe,
        special_tokens,
        pre_tokenizer,
    }))
}

/// The bytes of every rank, in order.
fn ranks(name: &str, bpe: &CoreBPE) -> std::result::Result<Vec<Vec<u8>>, crate::Cause> {
    (0..num_ranks(name))
        .map(|rank| Ok(bpe.decode_bytes(&[rank])?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::ranks::merges;

    #[test]
    fn every_token_of_every_encoding_is_made_of_two() {
        for name in BUILTIN_NAMES {
            let (_, ranks) = load(name).unwrap();
            let num_long = ranks.iter().filter(|bytes| bytes.len() > 1).count();
            assert_eq!(merges(&ranks).len(), num_long, "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        assert_eq!(
            builtin_json("gpt3").unwrap_err().to_string(),
            "\"gpt3\" is not a built-in tokenizer, expected one of gpt2, r50k_base, cl100k_base, o200k_base"
        );
    }
}
