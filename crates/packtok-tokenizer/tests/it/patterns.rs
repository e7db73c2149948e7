//! Pre-tokenizers of current models that are not built in, as files write them.

use serde_json::{Value, json};

pub(crate) const QWEN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub(crate) const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub(crate) const DEEPSEEK: [&str; 3] = [
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
];

/// Qwen's from version 3.5 on.
pub(crate) const QWEN_3_5: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// As tiktoken writes that of cl100k.
pub(crate) const CL100K_IN_TIKTOKEN: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s*[\r\n]|\s+(?!\S)|\s+";
pub(crate) const KIMI_K2: &str = r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// DeepSeek's before version 3.
pub(crate) fn deepseek_coder() -> Value {
    splits_and_digits(&["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+"])
}

/// DeepSeek-LLM's, with fewer letters.
pub(crate) fn deepseek_llm() -> Value {
    let letters = r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-Ⴥ]+";
    let signs = r"\s?[!-/:-~！-／：-～‘-‟　-。]+";
    splits_and_digits(&["[\r\n]", letters, signs, r"\s+$", "[一-龥ࠀ-一가-퟿]+"])
}

/// As [`splits`], then each digit.
fn splits_and_digits(patterns: &[&str]) -> Value {
    let mut all = splits(patterns);
    let digits = json!({"type": "Digits", "individual_digits": true});
    let steps = all["pretokenizers"].as_array_mut().unwrap();
    steps.insert(patterns.len(), digits);
    all
}

/// Falcon's, which splits the letters that stand for bytes, too.
pub(crate) fn falcon() -> Value {
    json!({"type": "Sequence", "pretokenizers": [
        {"type": "Punctuation", "behavior": "Contiguous"},
        byte_level(true),
        {"type": "Digits", "individual_digits": false},
        {"type": "Split", "pattern": {"Regex": "[0-9][0-9][0-9]"}, "behavior": "Isolated", "invert": false},
    ]})
}

/// A pre-tokenizer that splits by these one after the other.
pub(crate) fn splits(regexes: &[&str]) -> Value {
    let split = |regex: &&str| json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false});
    let mut all: Vec<Value> = regexes.iter().map(split).collect();
    all.push(byte_level(false));
    json!({"type": "Sequence", "pretokenizers": all})
}

/// StarCoder's, which splits off each number.
pub(crate) fn between_numbers() -> Value {
    let digits = json!({"type": "Digits", "individual_digits": true});
    json!({"type": "Sequence", "pretokenizers": [digits, byte_level(true)]})
}

/// GPT-2's, which writes a space before each text.
pub(crate) fn after_a_space() -> Value {
    let mut byte_level = byte_level(true);
    byte_level["add_prefix_space"] = true.into();
    byte_level
}

fn byte_level(use_regex: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex})
}
