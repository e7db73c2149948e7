//! Which engine gives exactly the ids of Hugging Face `tokenizers` for a file.
//!
//! The reference engine carries newer Unicode tables than the Python package, so that it is exact
//! only where no table is consulted, or where every scalar value was tried and agreed. Whatever is
//! not on the list below is served by the second engine, which shares the Python package's code.
//! `docs/exactness.md` says how the list was made and which tests hold it.

use serde_json::Value;

/// The split patterns whose native implementation agreed on every scalar value.
///
/// In order: GPT-2; cl100k (also Llama 3); the same with single digits (Qwen); o200k.
const PROVEN_PATTERNS: [&str; 4] = [GPT2_PATTERN, CL100K_PATTERN, QWEN_PATTERN, O200K_PATTERN];
pub(crate) const GPT2_PATTERN: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
pub(crate) const CL100K_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub(crate) const QWEN_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub(crate) const O200K_PATTERN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Why the reference engine is not known to be exact for this tokenizer.json; `None` when it is.
pub(crate) fn doubt(json: &Value) -> Option<String> {
    let model = &json["model"];
    let kind = model_type(model);
    if kind != "BPE" {
        return Some(format!("its model is {kind}"));
    }
    for key in ["continuing_subword_prefix", "end_of_word_suffix"] {
        if !model[key].as_str().unwrap_or("").is_empty() {
            return Some(format!("its model sets {key}"));
        }
    }
    let single_word = |token: &Value| token["single_word"] == true;
    if json["added_tokens"]
        .as_array()
        .is_some_and(|tokens| tokens.iter().any(single_word))
    {
        return Some("it has added tokens that match whole words only".to_owned());
    }
    if has_added_tokens_that_meet_in_white_space(json) {
        return Some(
            "it has added tokens that take away white space which another one holds".to_owned(),
        );
    }
    doubt_in_normalizer(&json["normalizer"])
        .or_else(|| doubt_in_pre_tokenizer(&json["pre_tokenizer"]))
}

/// Where one added token strips white space that another begins or ends with, engines differ in
/// which of the two gets it.
fn has_added_tokens_that_meet_in_white_space(json: &Value) -> bool {
    let strips = |token: &Value| token["lstrip"] == true || token["rstrip"] == true;
    let holds_space = |token: &Value| {
        token["content"].as_str().is_some_and(|text| {
            text.starts_with(char::is_whitespace) || text.ends_with(char::is_whitespace)
        })
    };
    json["added_tokens"]
        .as_array()
        .is_some_and(|tokens| tokens.iter().any(strips) && tokens.iter().any(holds_space))
}

fn doubt_in_normalizer(normalizer: &Value) -> Option<String> {
    match type_of(normalizer) {
        "null" | "Prepend" => None,
        "Replace" if normalizer["pattern"]["String"].is_string() => None,
        "Sequence" => first_doubt(&normalizer["normalizers"], doubt_in_normalizer),
        other => Some(format!("of its normalizer {other}")),
    }
}

fn doubt_in_pre_tokenizer(pre_tokenizer: &Value) -> Option<String> {
    match type_of(pre_tokenizer) {
        "null" | "ByteLevel" => None,
        "Split" if is_proven_split(pre_tokenizer) => None,
        "Split" => Some("of the pattern that its pre-tokenizer splits by".to_owned()),
        "Sequence" => first_doubt(&pre_tokenizer["pretokenizers"], doubt_in_pre_tokenizer),
        other => Some(format!("of its pre-tokenizer {other}")),
    }
}

fn is_proven_split(split: &Value) -> bool {
    let is_proven = split["pattern"]["Regex"]
        .as_str()
        .is_some_and(|pattern| PROVEN_PATTERNS.contains(&pattern));
    is_proven && split["behavior"] == "Isolated" && split["invert"] != true
}

fn first_doubt(members: &Value, doubt_in: fn(&Value) -> Option<String>) -> Option<String> {
    members.as_array()?.iter().find_map(doubt_in)
}

pub(crate) fn type_of(component: &Value) -> &str {
    if component.is_null() {
        return "null";
    }
    component["type"].as_str().unwrap_or("without a type")
}

/// The model's type; files older than the `type` key are told apart by their other keys.
pub(crate) fn model_type(model: &Value) -> &str {
    match model["type"].as_str() {
        Some(kind) => kind,
        None if model["merges"].is_array() => "BPE",
        None if model["vocab"].is_array() => "Unigram",
        None if model.get("max_input_chars_per_word").is_some() => "WordPiece",
        None => "WordLevel",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pattern_that_only_looks_like_cl100k_is_doubted() {
        let split = |pattern: &str| {
            json!({"model": {"type": "BPE"}, "pre_tokenizer": {"type": "Split", "behavior": "Isolated",
                   "invert": false, "pattern": {"Regex": pattern}}})
        };
        assert_eq!(doubt(&split(CL100K_PATTERN)), None);
        // The reference engine takes the bound in `\p{N}{1,2}` for 3.
        assert_eq!(
            doubt(&split(&CL100K_PATTERN.replace("{1,3}", "{1,2}"))).unwrap(),
            "of the pattern that its pre-tokenizer splits by"
        );
    }

    #[test]
    fn a_normal_form_inside_a_sequence_is_doubted() {
        let file = json!({"model": {"type": "BPE"}, "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "_"}, {"type": "NFC"}]}});
        assert_eq!(doubt(&file).unwrap(), "of its normalizer NFC");
    }

    #[test]
    fn models_without_a_type_are_told_apart() {
        assert_eq!(model_type(&json!({"vocab": {}, "merges": []})), "BPE");
        assert_eq!(model_type(&json!({"vocab": []})), "Unigram");
        assert_eq!(
            model_type(&json!({"vocab": {}, "max_input_chars_per_word": 100})),
            "WordPiece"
        );
        assert_eq!(model_type(&json!({"vocab": {}})), "WordLevel");
    }
}
