//! The added tokens of a tokenizer.json, and which id each has.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::LoadError;
use super::sentencepiece_types::is_sentencepiece;
use super::vocab::vocab_id;
use crate::engines::reference::Normalizer;
use crate::error::{Error, Result};

/// A token that was added to the model's vocabulary by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedToken {
    /// Text of the token.
    pub content: String,
    /// The id that `tokenizers` gives it.
    pub id: u32,
    /// Whether it is a special token: plain text if special tokens are read as text.
    pub is_special: bool,
}

/// Maximum number of renumbered added tokens that have a note of their own.
const NUM_NOTES: usize = 10;

/// The added tokens with the ids that `tokenizers` assigns to them, in the order of the file.
///
/// The ids in the file are not used: a token that the model contains keeps the model's id, and any
/// other token gets the next free id after the vocabulary. Files whose declared ids leave a gap
/// are therefore renumbered, as in the Python package; `notes` reports this.
pub(super) fn added_tokens(file: &Value, notes: &mut Vec<String>) -> Vec<AddedToken> {
    let vocab = &file["model"]["vocab"];
    let mut next_id = vocab.as_object().map_or_else(
        || vocab.as_array().map_or(0, Vec::len),
        serde_json::Map::len,
    );
    let pieces_differ = is_sentencepiece(file);
    let mut tokens: Vec<AddedToken> = Vec::new();
    let mut num_renumbered = 0;
    for entry in file["added_tokens"].as_array().into_iter().flatten() {
        let content = entry["content"].as_str().unwrap_or("");
        let is_special = entry["special"] == true;
        if content.is_empty() {
            continue;
        }
        if let Some(token) = tokens.iter_mut().find(|token| token.content == content) {
            // A token that is listed twice is special if either entry is.
            token.is_special |= is_special;
            continue;
        }
        let declared = entry["id"].as_u64();
        // If all pieces of a model differ, this check avoids a search of all pieces for each
        // token.
        let is_there = |&id: &u64| pieces_differ && vocab[id as usize][0] == content;
        let declared_id = declared.filter(is_there).map(|id| id as u32);
        let known_id = declared_id.or_else(|| vocab_id(vocab, content));
        let id = known_id.unwrap_or_else(|| {
            next_id += 1;
            (next_id - 1) as u32
        });
        if let Some(declared) = declared.filter(|&declared| declared != u64::from(id)) {
            num_renumbered += 1;
            if num_renumbered <= NUM_NOTES {
                notes.push(format!(
                    "added token {content:?} is declared with id {declared}, but the tokenizers library and packtok assign id {id}"
                ));
            }
        }
        tokens.push(AddedToken {
            content: content.to_owned(),
            id,
            is_special,
        });
    }
    if num_renumbered > NUM_NOTES {
        let more = num_renumbered - NUM_NOTES;
        notes.push(format!(
            "{more} more added tokens are declared with ids that the tokenizers library and packtok do not assign"
        ));
    }
    tokens
}

/// Checks that the result does not depend on the hash map in `tokenizers`.
///
/// # Errors
/// Two added tokens have the same normalized text: `tokenizers` uses the token that comes last in
/// a hash map of random order. Or one of several added tokens has an empty normalized text: on
/// some texts, `tokenizers` never returns.
pub(super) fn check_normalized_tokens(
    name: &str,
    file: &Value,
    added_tokens: &[AddedToken],
) -> Result<()> {
    let ids: HashMap<&str, u32> = added_tokens
        .iter()
        .map(|token| (token.content.as_str(), token.id))
        .collect();
    // If several entries have the same id, the last one wins.
    let mut counting: BTreeMap<u32, &Value> = BTreeMap::new();
    for entry in file["added_tokens"].as_array().into_iter().flatten() {
        if let Some(&id) = entry["content"]
            .as_str()
            .and_then(|content| ids.get(content))
        {
            counting.insert(id, entry);
        }
    }
    let contents = counting
        .values()
        .filter(|entry| entry["normalized"] == true)
        .filter_map(|entry| entry["content"].as_str());
    let mut first_with: HashMap<String, &str> = HashMap::new();
    let Some(normalizer) = Normalizer::read(&file["normalizer"]) else {
        return Ok(());
    };
    for content in contents {
        let Some(normalized) = normalizer.normalized(content) else {
            continue;
        };
        let first = *first_with.entry(normalized).or_insert(content);
        if first != content {
            return Err(Error::Load(LoadError::SameAddedTokens {
                name: name.to_owned(),
                first: first.to_owned(),
                second: content.to_owned(),
            }));
        }
    }
    match first_with.get("") {
        Some(&token) if first_with.len() > 1 => Err(Error::Load(LoadError::EmptyAddedToken {
            name: name.to_owned(),
            token: token.to_owned(),
        })),
        _ => Ok(()),
    }
}
