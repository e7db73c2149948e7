//! The steps of a tokenizer.json before its model, if this engine implements them.

use serde_json::Value;

use super::model::{SPACE_MARK, Spelling};
use super::split::Pattern;

/// When a space is prepended to a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefix {
    None,
    Always,
    /// Unless the text begins with a space.
    UnlessThere,
    /// As `UnlessThere`, but not after an added token.
    FirstUnlessThere,
    /// As `UnlessThere`, before a pattern splits the text, which may split the space off.
    BeforeSplit,
}

/// The steps before the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Preprocessing {
    pub(super) pattern: Pattern,
    pub(super) spelling: Spelling,
    pub(super) prefix: Prefix,
    /// Whether texts are normalized to NFC.
    pub(super) is_nfc: bool,
}

impl Preprocessing {
    /// Reads the steps before the model.
    ///
    /// # Errors
    /// The file has a step that this engine does not implement.
    pub(super) fn read(json: &Value) -> Result<Self, String> {
        let (normalizer, pre_tokenizer) = (&json["normalizer"], &json["pre_tokenizer"]);
        let is_nfc = normalizer["type"] == "NFC";
        if (normalizer.is_null() || is_nfc)
            && let Some((pattern, prefix)) = byte_level(pre_tokenizer)
        {
            return Ok(Self {
                pattern,
                spelling: Spelling::Bytes,
                prefix,
                is_nfc,
            });
        }
        let text = |prefix, each_space| Self {
            pattern: Pattern::Pieces { each_space },
            spelling: Spelling::Text,
            prefix,
            is_nfc: false,
        };
        if normalizer.is_null() {
            let (prefix, each_space) =
                metaspace(pre_tokenizer).ok_or("its pre-tokenizer is not supported")?;
            return Ok(text(prefix, each_space));
        }
        let prefix = spaces_replaced(normalizer).ok_or("its normalizer is not supported")?;
        // Has no effect, because no spaces are left.
        let splits_at_spaces = pre_tokenizer["type"] == "Split"
            && pre_tokenizer["pattern"]["String"] == " "
            && pre_tokenizer["behavior"] == "MergedWithPrevious"
            && pre_tokenizer["invert"] != true;
        if !pre_tokenizer.is_null() && !splits_at_spaces {
            return Err("its pre-tokenizer is not supported".to_owned());
        }
        Ok(text(prefix, false))
    }
}

/// The pattern of a pre-tokenizer that splits by a pattern and then maps bytes to letters, and the prefix of texts.
fn byte_level(pre_tokenizer: &Value) -> Option<(Pattern, Prefix)> {
    let uses_regex = |part: &Value| {
        (part["type"] == "ByteLevel").then(|| part["use_regex"].as_bool().unwrap_or(true))
    };
    // After another step, each of its words would get a space.
    if uses_regex(pre_tokenizer) == Some(true) {
        let prefix = if pre_tokenizer["add_prefix_space"].as_bool()? {
            Prefix::BeforeSplit
        } else {
            Prefix::None
        };
        return Some((Pattern::Gpt2, prefix));
    }
    let is_byte_level = |part: &Value, use_regex: bool| {
        uses_regex(part) == Some(use_regex) && part["add_prefix_space"] == false
    };
    let [splits @ .., last] = &pre_tokenizer["pretokenizers"].as_array()?[..] else {
        return None;
    };
    if let [digits] = splits
        && digits["type"] == "Digits"
        && digits["individual_digits"] == true
        && is_byte_level(last, true)
    {
        return Some((Pattern::Gpt2BetweenNumbers, Prefix::None));
    }
    let is_alone = splits.len() == 1;
    let regexes = splits.iter().map(|split| regex(split, is_alone));
    let regexes: Vec<&str> = regexes.collect::<Option<_>>()?;
    let pattern = is_byte_level(last, false).then(|| Pattern::of_several(&regexes));
    Some((pattern.flatten()?, Prefix::None))
}

/// The pattern of a `Split` step, if every match is a word, and so is the text between matches. Inverted `Removed`
/// removes that text, but each pattern that stands alone matches all of every text.
fn regex(split: &Value, is_alone: bool) -> Option<&str> {
    let keeps_matches = match split["behavior"].as_str()? {
        "Isolated" => split["invert"] != true,
        "Removed" => split["invert"] == true && is_alone,
        _ => false,
    };
    (split["type"] == "Split" && keeps_matches)
        .then(|| split["pattern"]["Regex"].as_str())
        .flatten()
}

/// The prefix of a normalizer that only writes spaces as SentencePiece does.
fn spaces_replaced(normalizer: &Value) -> Option<Prefix> {
    let replaces = |part: &Value| {
        part["type"] == "Replace"
            && part["pattern"]["String"] == " "
            && part["content"] == SPACE_MARK
    };
    let prepends = |part: &Value| part["type"] == "Prepend" && part["prepend"] == SPACE_MARK;
    if replaces(normalizer) {
        return Some(Prefix::None);
    }
    match &normalizer["normalizers"].as_array()?[..] {
        [only] if replaces(only) => Some(Prefix::None),
        [first, second] if prepends(first) && replaces(second) => Some(Prefix::Always),
        _ => None,
    }
}

/// The prefix of a pre-tokenizer that writes spaces as SentencePiece does, and whether it splits
/// before each space.
fn metaspace(pre_tokenizer: &Value) -> Option<(Prefix, bool)> {
    if pre_tokenizer["type"] != "Metaspace" || pre_tokenizer["replacement"] != SPACE_MARK {
        return None;
    }
    let prefix = match pre_tokenizer["prepend_scheme"].as_str()? {
        "always" => Prefix::UnlessThere,
        "first" => Prefix::FirstUnlessThere,
        "never" => Prefix::None,
        _ => return None,
    };
    Some((prefix, pre_tokenizer["split"].as_bool().unwrap_or(true)))
}
