//! Whether white space separates the effects of all components of a file.

use serde_json::{Value, json};

use crate::engines::byte_bpe::steps_between_white_space;
use crate::engines::reference::Normalizer;
use crate::load::{AddedToken, type_of};

/// The characters at which texts are split into words.
pub(super) const SEPARATORS: [u8; 4] = *b" \n\t\r";

/// Appends the steps of a normalizer, in order.
pub(super) fn collect_steps<'a>(normalizer: &'a Value, steps: &mut Vec<&'a Value>) {
    match normalizer["normalizers"].as_array() {
        _ if normalizer.is_null() => {}
        Some(parts) if type_of(normalizer) == "Sequence" => {
            for part in parts {
                collect_steps(part, steps);
            }
        }
        _ => steps.push(normalizer),
    }
}

/// The mark of a `Metaspace`.
pub(super) fn mark_of(metaspace: &Value) -> Option<char> {
    let mut chars = metaspace["replacement"].as_str()?.chars();
    chars.next().filter(|_| chars.next().is_none())
}

/// The steps before a SentencePiece map, if there is one. They must leave ASCII unchanged.
///
/// # Errors
/// There are several maps, or a step before the map may change ASCII.
pub(super) fn normalizer_before_map(steps: &[&Value]) -> Result<Option<Normalizer>, String> {
    let is_map = |step: &&Value| type_of(step) == "Precompiled";
    let Some(map) = steps.iter().position(is_map) else {
        return Ok(None);
    };
    let (before, after) = (&steps[..map], &steps[map + 1..]);
    if after.iter().any(is_map) {
        return Err("it has more than one Precompiled normalizer".to_owned());
    }
    // `Strip` would remove white space other than the separators from each word, although a map
    // may turn such white space into text.
    if before.iter().any(|step| type_of(step) == "Strip") {
        return Err("its Precompiled normalizer follows a Strip".to_owned());
    }
    // Steps other than `Replace` keep ASCII text ASCII.
    let replaces_by_others = |step: &&Value| {
        let content = step["content"].as_str();
        type_of(step) == "Replace" && !content.is_some_and(str::is_ascii)
    };
    if before.iter().any(replaces_by_others) {
        return Err(
            "its Precompiled normalizer follows a Replace with non-ASCII content".to_owned(),
        );
    }
    let before = match before {
        [] => Value::Null,
        before => json!({"type": "Sequence", "normalizers": before}),
    };
    let read = Normalizer::read(&before);
    read.map(Some)
        .ok_or_else(|| "its normalizer cannot be read".to_owned())
}

/// Checks that the normalizer keeps separators as white space.
///
/// # Errors
/// The normalizer turns a separator into something other than white space, as a SentencePiece map
/// can.
pub(super) fn check_separators(normalizer: &Value) -> Result<(), String> {
    let normalizer = Normalizer::read(normalizer).ok_or("its normalizer cannot be read")?;
    for separator in SEPARATORS.map(char::from) {
        let is_white_space = |text: String| {
            let between = text
                .strip_prefix('a')
                .and_then(|text| text.strip_suffix('a'));
            between.is_some_and(|text| !text.is_empty() && text.chars().all(char::is_whitespace))
        };
        let normalized = normalizer.normalized(&format!("a{separator}a"));
        if !normalized.is_some_and(is_white_space) {
            return Err(format!("its normalizer turns {separator:?} into text"));
        }
    }
    Ok(())
}

/// Checks that a step of the normalizer changes each word independently.
///
/// # Errors
/// The step may change more than one word.
pub(super) fn check_normalizer(step: &Value) -> Result<(), String> {
    let has_no_white_space = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    let is_local = match type_of(step) {
        "BertNormalizer" | "Lowercase" | "NFC" | "NFD" | "NFKC" | "NFKD" | "Nmt"
        | "Precompiled" | "Strip" | "StripAccents" => true,
        "Replace" => {
            let (string, regex) = (&step["pattern"]["String"], &step["pattern"]["Regex"]);
            string.as_str().is_some_and(has_no_white_space)
                || [" {2,}", r"\s+"].iter().any(|runs| regex == runs) && step["content"] == " "
        }
        _ => false,
    };
    if is_local {
        Ok(())
    } else {
        Err(format!(
            "its normalizer {} may change more than one word",
            type_of(step)
        ))
    }
}

/// Checks that every added token is found within a word.
///
/// # Errors
/// A token may match across words: it has white space or the mark of a space, as it is or normalized.
pub(super) fn check_added_tokens(
    normalizer: &Value,
    added_tokens: &[AddedToken],
    mark: Option<char>,
) -> Result<(), String> {
    let normalizer = Normalizer::read(normalizer).ok_or("its normalizer cannot be read")?;
    let is_space = |char: char| char.is_whitespace() || Some(char) == mark;
    for token in added_tokens {
        let normalized = normalizer.normalized(&token.content);
        let is_within = token.content.is_ascii()
            && !token.content.contains(is_space)
            && normalized.is_some_and(|content| !content.contains(is_space));
        if !is_within {
            return Err(format!(
                "the added token {:?} may match across words",
                token.content
            ));
        }
    }
    Ok(())
}

/// Checks that the pre-tokenizer removes white space and handles each word independently.
///
/// # Errors
/// The pre-tokenizer may keep white space, or depend on more than one word.
pub(super) fn check_pre_tokenizer(pre_tokenizer: &Value) -> Result<(), String> {
    match type_of(pre_tokenizer) {
        "BertPreTokenizer" | "Whitespace" | "WhitespaceSplit" => Ok(()),
        "Split" => steps_between_white_space(pre_tokenizer).map(|_| ()),
        "Sequence" => {
            let steps = pre_tokenizer["pretokenizers"]
                .as_array()
                .map_or(&[][..], Vec::as_slice);
            let (first, others) = steps
                .split_first()
                .ok_or("its pre-tokenizer has no steps")?;
            check_pre_tokenizer(first)?;
            others.iter().try_for_each(check_later_step)
        }
        other => Err(format!(
            "its pre-tokenizer {other} does not remove whitespace"
        )),
    }
}

/// Checks that a pre-tokenizer after the first handles each word independently.
///
/// # Errors
/// The step may depend on more than one word.
fn check_later_step(step: &Value) -> Result<(), String> {
    match type_of(step) {
        "BertPreTokenizer" | "ByteLevel" | "Digits" | "Punctuation" | "Split" | "Whitespace"
        | "WhitespaceSplit" => Ok(()),
        // Old files do not state the scheme; the default is `always`.
        "Metaspace" if step["prepend_scheme"] != "first" => Ok(()),
        other => Err(format!(
            "its pre-tokenizer {other} depends on where in the text a word is"
        )),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD as BASE64;
    use yada::builder::DoubleArrayBuilder;

    use super::*;

    #[test]
    fn a_map_must_leave_white_space_white_space() {
        let map_of_space = |text: &str| {
            let trie = DoubleArrayBuilder::build(&[(" ", 0)]).unwrap();
            let trie_bytes = u32::try_from(trie.len()).unwrap().to_le_bytes();
            let map = [&trie_bytes[..], &trie, text.as_bytes(), b"\0"].concat();
            json!({"type": "Precompiled", "precompiled_charsmap": BASE64.encode(map)})
        };
        assert_eq!(check_separators(&Value::Null), Ok(()));
        assert_eq!(check_separators(&map_of_space("\u{3000}")), Ok(()));
        for text in ["b", "", " b"] {
            let reason = "its normalizer turns ' ' into text".to_owned();
            assert_eq!(check_separators(&map_of_space(text)), Err(reason));
        }
    }
}
