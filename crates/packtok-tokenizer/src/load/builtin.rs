//! Tokenizers that need neither a file nor a network: OpenAI's encodings, converted to tokenizer.json from tables of
//! their tokens, which `build.rs` writes.
//!
//! `tests/it/builtin.rs` compares the ids with tiktoken's.

use serde_json::{Value, json};

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

/// The tables of `build.rs`.
const R50K: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/r50k_base"));
const P50K: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/p50k_base"));
const CL100K: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cl100k_base"));
const O200K: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k_base"));
/// Bytes of a rank in a table.
const RANK_BYTES: usize = 8;

/// An encoding as tiktoken publishes it.
struct Encoding {
    table: &'static [u8],
    special_tokens: Vec<(String, u32)>,
    pre_tokenizer: Value,
}

/// The tokenizer.json of a built-in tokenizer, with the ids of tiktoken.
///
/// # Errors
/// No built-in tokenizer has this name.
pub fn builtin_json(name: &str) -> Result<String> {
    let unknown = || {
        Error::Load(LoadError::UnknownBuiltin {
            name: name.to_owned(),
            known: BUILTIN_NAMES,
        })
    };
    Ok(encoding(name).ok_or_else(unknown)?.tokenizer_json())
}

/// The tokenizer.json of the built-in tokenizer with these ranks; `None` if no built-in tokenizer
/// has them.
pub(crate) fn builtin_json_of_ranks(ranks: &[Vec<u8>]) -> Option<String> {
    let encodings = BUILTIN_NAMES.iter().filter_map(|name| encoding(name));
    let mut same = encodings.filter(|encoding| {
        encoding.table.len() == RANK_BYTES * ranks.len() && encoding.tokens_and_merges().0 == ranks
    });
    Some(same.next()?.tokenizer_json())
}

impl Encoding {
    fn tokenizer_json(self) -> String {
        let (tokens, merges) = self.tokens_and_merges();
        let ranked = Ranked {
            tokens,
            merges,
            first_id: 0,
            special_tokens: self.special_tokens,
            pre_tokenizer: self.pre_tokenizer,
            is_nfc: false,
        };
        ranked.tokenizer_json()
    }

    /// The bytes of every rank, which a special token does not have; and the two ranks that each token of several bytes
    /// is merged from.
    fn tokens_and_merges(&self) -> (Vec<Vec<u8>>, Vec<(u32, u32)>) {
        let (numbers, _) = self.table.as_chunks();
        let (ranks, _) = numbers.as_chunks();
        let mut tokens: Vec<Vec<u8>> = Vec::with_capacity(ranks.len());
        let mut merges = Vec::with_capacity(ranks.len());
        for rank in ranks {
            let token = match rank.map(u32::from_le_bytes) {
                [u32::MAX, u32::MAX] => Vec::new(),
                [u32::MAX, byte] => vec![byte as u8],
                [left, right] => {
                    merges.push((left, right));
                    [&*tokens[left as usize], &*tokens[right as usize]].concat()
                }
            };
            tokens.push(token);
        }
        (tokens, merges)
    }
}

fn encoding(name: &str) -> Option<Encoding> {
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
    let (table, special_tokens, pre_tokenizer) = match name {
        "gpt2" | "r50k_base" => (R50K, named(&[(ENDOFTEXT, 50_256)]), gpt2),
        "p50k_base" => (P50K, named(&[(ENDOFTEXT, 50_256)]), gpt2),
        "p50k_edit" => (P50K, with_fim(named(&[(ENDOFTEXT, 50_256)]), 50_281), gpt2),
        "cl100k_base" => (
            CL100K,
            with_fim(
                named(&[(ENDOFTEXT, 100_257), ("<|endofprompt|>", 100_276)]),
                100_258,
            ),
            split_by(CL100K_PATTERN),
        ),
        "o200k_base" => (
            O200K,
            named(&[(ENDOFTEXT, 199_999), ("<|endofprompt|>", 200_018)]),
            split_by(O200K_PATTERN),
        ),
        "o200k_harmony" => (O200K, of_harmony(), split_by(O200K_PATTERN)),
        _ => return None,
    };
    Some(Encoding {
        table,
        special_tokens,
        pre_tokenizer,
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::merges::merges;

    #[test]
    fn tables_have_the_merges_of_their_ranks() {
        for name in ["p50k_base", "cl100k_base"] {
            let (tokens, stored) = encoding(name).unwrap().tokens_and_merges();
            assert_eq!(stored, merges(&tokens), "{name}");
            let num_long = tokens.iter().filter(|bytes| bytes.len() > 1).count();
            assert_eq!(stored.len(), num_long, "{name}");
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
