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
pub const BUILTIN_NAMES: &[&str] = &[
    "gpt2",
    "r50k_base",
    "p50k_base",
    "p50k_edit",
    "cl100k_base",
    "o200k_base",
    "o200k_harmony",
];

/// The end-of-text token that every built-in tokenizer has.
pub const ENDOFTEXT: &str = "<|endoftext|>";

/// The properties that tiktoken publishes for an encoding, in addition to its ranks.
struct Encoding {
    bpe: CoreBPE,
    special_tokens: Vec<(String, u32)>,
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
    let tokens = ranks(name, &encoding).map_err(unloadable)?;
    Ok((encoding, tokens))
}

fn written_out(encoding: &Encoding, tokens: Vec<Vec<u8>>) -> String {
    let ranked = Ranked {
        tokens,
        first_id: 0,
        special_tokens: encoding.special_tokens.clone(),
        pre_tokenizer: encoding.pre_tokenizer.clone(),
        is_nfc: false,
    };
    ranked.tokenizer_json()
}

/// The number of ranks of a built-in tokenizer.
fn num_ranks(name: &str) -> u32 {
    match name {
        "gpt2" | "r50k_base" => 50_256,
        "p50k_base" | "p50k_edit" => 50_281,
        "cl100k_base" => 100_256,
        "o200k_base" | "o200k_harmony" => 199_998,
        _ => 0,
    }
}

fn encoding(name: &str) -> Option<std::result::Result<Encoding, crate::Cause>> {
    const FIM: [&str; 3] = ["<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"];
    let gpt2 = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    let named = |special: &[(&str, u32)]| -> Vec<(String, u32)> {
        special
            .iter()
            .map(|&(name, id)| (name.to_owned(), id))
            .collect()
    };
    let with_fim = |mut special: Vec<(String, u32)>, first: u32| {
        special.extend(FIM.into_iter().map(str::to_owned).zip(first..));
        special
    };
    let (bpe, special_tokens, pre_tokenizer) = match name {
        "gpt2" | "r50k_base" => (
            tiktoken_rs::r50k_base(),
            named(&[(ENDOFTEXT, 50_256)]),
            gpt2,
        ),
        "p50k_base" => (
            tiktoken_rs::p50k_base(),
            named(&[(ENDOFTEXT, 50_256)]),
            gpt2,
        ),
        "p50k_edit" => (
            tiktoken_rs::p50k_edit(),
            with_fim(named(&[(ENDOFTEXT, 50_256)]), 50_281),
            gpt2,
        ),
        "cl100k_base" => (
            tiktoken_rs::cl100k_base(),
            with_fim(
                named(&[(ENDOFTEXT, 100_257), ("<|endofprompt|>", 100_276)]),
                100_258,
            ),
            split_by(CL100K_PATTERN),
        ),
        "o200k_base" => (
            tiktoken_rs::o200k_base(),
            named(&[(ENDOFTEXT, 199_999), ("<|endofprompt|>", 200_018)]),
            split_by(O200K_PATTERN),
        ),
        "o200k_harmony" => (
            tiktoken_rs::o200k_harmony(),
            of_harmony(),
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

/// The special tokens of gpt-oss. tiktoken has a second name for 200018, `<|reserved_200018|>`; gpt-oss's own file has
/// not.
fn of_harmony() -> Vec<(String, u32)> {
    let name = |id: u32| match id {
        199_998 => "<|startoftext|>".to_owned(),
        199_999 => ENDOFTEXT.to_owned(),
        200_002 => "<|return|>".to_owned(),
        200_003 => "<|constrain|>".to_owned(),
        200_005 => "<|channel|>".to_owned(),
        200_006 => "<|start|>".to_owned(),
        200_007 => "<|end|>".to_owned(),
        200_008 => "<|message|>".to_owned(),
        200_012 => "<|call|>".to_owned(),
        200_018 => "<|endofprompt|>".to_owned(),
        _ => format!("<|reserved_{id}|>"),
    };
    (199_998..=201_087).map(|id| (name(id), id)).collect()
}

/// The bytes of every rank, in order; none for a special token.
fn ranks(name: &str, encoding: &Encoding) -> std::result::Result<Vec<Vec<u8>>, crate::Cause> {
    let is_special = |rank: u32| encoding.special_tokens.iter().any(|&(_, id)| id == rank);
    (0..num_ranks(name))
        .map(|rank| {
            if is_special(rank) {
                Ok(vec![])
            } else {
                Ok(encoding.bpe.decode_bytes(&[rank])?)
            }
        })
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
            "\"gpt3\" is not a built-in tokenizer, expected one of gpt2, r50k_base, p50k_base, p50k_edit, \
             cl100k_base, o200k_base, o200k_harmony"
        );
    }
}
