//! Converts Mistral's tekken.json to tokenizer.json.
//!
//! The file has tokens by rank, which are merged as in tiktoken, and special tokens, whose ids come first (see
//! `mistral_common/tokens/tokenizers/tekken.py` of mistral-common 1.13.1):
//!
//! ```text
//! config         pattern, default_vocab_size, default_num_special_tokens
//! vocab          [{rank, token_bytes in base64}, ...]         id = rank + default_num_special_tokens
//! special_tokens [{rank, token_str}, ...], or those below     id = rank; unlisted ids are <SPECIAL_id>
//! ```
//!
//! Mistral's own library reads the names of special tokens in texts as text, and so does a tokenizer that was loaded from
//! such a file unless [`crate::SpecialTokensInText`] says otherwise.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::LoadError;
use crate::error::{Error, Result};
use crate::load::merges::merges;
use crate::load::ranks::{Ranked, split_by};

/// The special tokens of files that do not list any.
const SPECIAL_TOKENS: [&str; 20] = [
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
];

/// Maximum number of tokens. The numbers in a file are not trusted.
const MAX_TOKENS: u64 = 1 << 24;

/// Converts a tekken.json; `None` if the file is not a tekken.json.
///
/// # Errors
/// The file is an invalid tekken.json.
pub(crate) fn tokenizer_json(name: &str, file: &Value) -> Result<Option<Value>> {
    if !file["vocab"].is_array() || !file["config"].is_object() {
        return Ok(None);
    }
    let ranked = ranked(file).map_err(|reason| {
        Error::Load(LoadError::Tekken {
            name: name.to_owned(),
            reason,
        })
    })?;
    Ok(Some(ranked.tokenizer_value()))
}

fn ranked(file: &Value) -> std::result::Result<Ranked, String> {
    let config = &file["config"];
    let number = |key: &str| {
        let num_tokens = config[key].as_u64().filter(|&number| number <= MAX_TOKENS);
        num_tokens.ok_or_else(|| {
            format!(
                "config.{key} is {}, expected a number of tokens",
                config[key]
            )
        })
    };
    let (num_ids, num_special) = (
        number("default_vocab_size")?,
        number("default_num_special_tokens")?,
    );
    let pattern = config["pattern"].as_str();
    let pattern = pattern
        .ok_or_else(|| format!("config.pattern is {}, expected a string", config["pattern"]))?;
    let vocab = file["vocab"].as_array().map_or(&[][..], Vec::as_slice);
    let tokens = num_ids
        .checked_sub(num_special)
        .and_then(|num_tokens| vocab.get(..num_tokens as usize));
    let tokens = tokens.ok_or_else(|| {
        let num_tokens = vocab.len();
        format!("default_vocab_size is {num_ids}, but the file has {num_tokens} tokens and {num_special} special tokens")
    })?;
    let tokens = (0u64..).zip(tokens).map(|(rank, entry)| {
        let bytes = entry["token_bytes"]
            .as_str()
            .and_then(|text| BASE64_STANDARD.decode(text).ok());
        let bytes = bytes.filter(|bytes| !bytes.is_empty() && entry["rank"] == rank);
        bytes.ok_or_else(|| {
            format!("vocab[{rank}] is {entry}, expected rank {rank} and its bytes in base64")
        })
    });
    let tokens: Vec<Vec<u8>> = tokens.collect::<std::result::Result<_, _>>()?;
    Ok(Ranked {
        merges: merges(&tokens),
        tokens,
        first_id: num_special as u32,
        special_tokens: special_tokens(&file["special_tokens"], num_special)?,
        pre_tokenizer: split_by(pattern),
        is_nfc: false,
    })
}

/// Names and ids of all special tokens.
fn special_tokens(
    listed: &Value,
    num_special: u64,
) -> std::result::Result<Vec<(String, u32)>, String> {
    let mut names: Vec<String> = (0..num_special)
        .map(|id| format!("<SPECIAL_{id}>"))
        .collect();
    let mut put = |id: u64, name: &str| {
        let place = names.get_mut(id as usize);
        let place = place.ok_or_else(|| {
            format!("special token {name:?} has id {id}, expected an id below {num_special}")
        })?;
        name.clone_into(place);
        Ok::<(), String>(())
    };
    match listed {
        Value::Null => (0..)
            .zip(SPECIAL_TOKENS)
            .try_for_each(|(id, name)| put(id, name))?,
        Value::Array(listed) => listed.iter().try_for_each(|entry| {
            let fields = entry["rank"].as_u64().zip(entry["token_str"].as_str());
            let (id, name) = fields
                .ok_or_else(|| format!("special token {entry} has no rank or no token_str"))?;
            put(id, name)
        })?,
        _ => return Err("special_tokens is not an array".to_owned()),
    }
    Ok(names.into_iter().zip(0..).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file() -> Value {
        let tokens = (0..=255u8)
            .map(|byte| vec![byte])
            .chain([b"ab".to_vec(), b"abc".to_vec()]);
        let vocab = (0u32..).zip(tokens).map(|(rank, bytes)| {
            json!({"rank": rank, "token_bytes": BASE64_STANDARD.encode(bytes), "token_str": null})
        });
        json!({"config": {"pattern": r"\p{L}+|\s+|.", "default_vocab_size": 280, "default_num_special_tokens": 22},
               "vocab": vocab.collect::<Vec<_>>()})
    }

    fn refused(file: &Value) -> String {
        tokenizer_json("t", file).unwrap_err().to_string()
    }

    #[test]
    fn special_tokens_come_first_and_ranks_behind_them() {
        let made = tokenizer_json("t", &file()).unwrap().unwrap();
        let vocab = &made["model"]["vocab"];
        assert_eq!(
            (&vocab["<s>"], &vocab["<SPECIAL_21>"]),
            (&json!(1), &json!(21))
        );
        assert_eq!((&vocab["!"], &vocab["abc"]), (&json!(22 + 33), &json!(279)));
        assert_eq!(made["model"]["merges"], json!([["a", "b"], ["ab", "c"]]));
        assert_eq!(made["added_tokens"].as_array().unwrap().len(), 22);
    }

    #[test]
    fn a_file_of_another_kind_is_left_alone() {
        assert!(
            tokenizer_json("t", &json!({"model": {"vocab": {}}}))
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut wrong = file();
        wrong["config"]["default_vocab_size"] = json!(5);
        assert!(refused(&wrong).ends_with(
            "default_vocab_size is 5, but the file has 258 tokens and 22 special tokens"
        ));
        let mut wrong = file();
        wrong["vocab"][7]["token_bytes"] = json!("?");
        assert!(refused(&wrong).contains("vocab[7] is {"));
        let mut wrong = file();
        wrong["special_tokens"] = json!([{"rank": 22, "token_str": "<x>"}]);
        assert!(
            refused(&wrong).ends_with("special token \"<x>\" has id 22, expected an id below 22")
        );
        let mut wrong = file();
        wrong["config"]["default_num_special_tokens"] = json!(u64::MAX);
        assert!(refused(&wrong).contains("expected a number of tokens"));
    }
}
