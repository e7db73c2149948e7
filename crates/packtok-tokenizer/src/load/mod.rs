//! A tokenizer.json, read into what packtok needs to know of it before an engine sees it.
//!
//! Names, ids, the template around a document, the fingerprint and the choice of the engine come
//! from here, so that they are the same whichever engine serves the file.

pub(crate) mod builtin;
pub(crate) mod rank_file;
mod ranks;
pub(crate) mod sentencepiece_file;
mod tekken;
mod template;

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use self::template::Template;
use crate::engines::reference::{self, Normalizer};
use crate::engines::sentencepiece;
use crate::error::{Error, Result};

/// A token that was added to the model's vocabulary by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedToken {
    /// Its text.
    pub content: String,
    /// The id that `tokenizers` gives it.
    pub id: u32,
    /// Whether it is special: left out of the text when special tokens are read as text.
    pub is_special: bool,
}

/// Which engine serves a tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// packtok's own: the fastest, for the tokenizers of today's models.
    Fast,
    /// `tokenizers` 0.23: slower, for every file.
    Reference,
    /// What SentencePiece's library does, step by step.
    SentencePiece,
}

impl EngineKind {
    /// The name shown to users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fast => "packtok",
            Self::Reference => "tokenizers 0.23.2",
            Self::SentencePiece => "packtok's plain SentencePiece",
        }
    }
}

/// A tokenizer.json as understood.
#[derive(Debug, Clone)]
pub(crate) struct Description {
    pub(crate) fingerprint: String,
    /// Highest id + 1, added tokens included.
    pub(crate) vocab_size: u64,
    pub(crate) added_tokens: Vec<AddedToken>,
    pub(crate) template: Template,
    /// The end-of-sequence token that the file itself names.
    pub(crate) eos_token: Option<String>,
    /// Whether it is a SentencePiece model, to which its special tokens' names in a text are text.
    pub(crate) is_sentencepiece: bool,
    pub(crate) notes: Vec<String>,
}

impl Description {
    /// Reads the tokenizer.json, parsed, of the tokenizer called `name`.
    fn read(name: &str, file: &Value) -> Result<Self> {
        let mut notes = Vec::new();
        let is_sentencepiece = sentencepiece::is_one(file);
        let added_tokens = added_tokens(file, &mut notes);
        check_normalized_tokens(name, file, &added_tokens)?;
        let template = Template::of(name, &file["post_processor"])?;
        // A template may name ids that no token has.
        let ids_of_template = [&template.prefix[..], &template.suffix].concat();
        let above_template = ids_of_template.iter().map(|&id| u64::from(id) + 1);
        let of_tokens = vocab_size(&file["model"], &added_tokens);
        Ok(Self {
            fingerprint: fingerprint(file),
            vocab_size: above_template.fold(of_tokens, u64::max),
            template,
            eos_token: file["eos_token"].as_str().map(str::to_owned),
            is_sentencepiece,
            added_tokens,
            notes,
        })
    }
}

/// What a tokenizer.json says, as far as it tells tokenizers apart; and its text, if it had to be made of another
/// file.
pub(crate) fn parsed(name: &str, json: &str) -> Result<(Value, Option<String>)> {
    let mut file: Value = serde_json::from_str(json).map_err(|source| Error::NotJson {
        name: name.to_owned(),
        source,
    })?;
    let made = tekken::tokenizer_json(name, &file)?;
    let text = made.as_ref().map(Value::to_string);
    file = made.unwrap_or(file);
    check_shape(name, &file)?;
    Ok((file, text))
}

/// Takes away what is always off unless the user asks for it, and so does not belong to the identity.
fn remove_lengths(file: &mut Value) {
    for key in ["truncation", "padding"] {
        file.as_object_mut().map(|map| map.remove(key));
    }
}

/// A parsed file as it is understood: its description, and the file with a normalizer and a pre-tokenizer that say what
/// `tokenizers` takes them for.
///
/// # Errors
/// `tokenizers` refuses a part of the file, or [`Description::read`] does.
pub(crate) fn described(name: &str, mut file: Value) -> Result<(Description, Value)> {
    let understood = match sentencepiece::is_one(&file) {
        true => None,
        false => {
            let understood = reference::understood(&file, model_type(&file["model"]));
            Some(understood.map_err(|source| Error::Unloadable {
                name: name.to_owned(),
                source,
            })?)
        }
    };
    remove_lengths(&mut file);
    let description = Description::read(name, &file)?;
    if let Some(understood) = understood {
        file["normalizer"] = flattened(understood.normalizer);
        file["pre_tokenizer"] = understood.pre_tokenizer;
        if !understood.is_model_known {
            file["model"]["type"] = "of no type that it states".into();
        }
    }
    Ok((description, file))
}

/// A normalizer without nested sequences, and without a sequence of fewer than two steps. DeepSeek's files, for one, have
/// a sequence of no steps, which changes nothing.
fn flattened(normalizer: Value) -> Value {
    fn collect(normalizer: Value, steps: &mut Vec<Value>) {
        match normalizer {
            Value::Null => {}
            Value::Object(mut entries)
                if entries.get("type").is_some_and(|kind| kind == "Sequence") =>
            {
                let parts = entries.remove("normalizers");
                let parts = parts.and_then(|parts| parts.as_array().cloned());
                for part in parts.unwrap_or_default() {
                    collect(part, steps);
                }
            }
            step => steps.push(step),
        }
    }
    let mut steps = Vec::new();
    collect(normalizer, &mut steps);
    match steps.len() {
        0 | 1 => steps.pop().unwrap_or_default(),
        _ => json!({"type": "Sequence", "normalizers": steps}),
    }
}

/// The fingerprint of the tokenizer that a tokenizer.json describes, without loading it.
///
/// # Errors
/// The text, called `name` in the error, is no tokenizer.json.
pub fn fingerprint_of(name: &str, json: &str) -> Result<String> {
    let (mut file, _) = parsed(name, json)?;
    remove_lengths(&mut file);
    Ok(fingerprint(&file))
}

fn check_shape(name: &str, file: &Value) -> Result<()> {
    let shape = |key, value: &Value, expected| Error::Shape {
        name: name.to_owned(),
        key,
        found: json_type(value),
        expected,
    };
    if !file["model"].is_object() {
        return Err(shape("model", &file["model"], "an object"));
    }
    let vocab = &file["model"]["vocab"];
    if !vocab.is_object() && !vocab.is_array() {
        return Err(shape("model.vocab", vocab, "an object or an array"));
    }
    let added = &file["added_tokens"];
    if !added.is_null() && !added.is_array() {
        return Err(shape("added_tokens", added, "an array"));
    }
    match file["model"]["dropout"].as_f64() {
        Some(dropout) if dropout > 0.0 => Err(Error::Dropout {
            name: name.to_owned(),
            dropout,
        }),
        _ => Ok(()),
    }
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
        None if model.get("type").is_some() => "of no known type",
        None if model["merges"].is_array() => "BPE",
        None if model["vocab"].is_array() => "Unigram",
        None if model.get("max_input_chars_per_word").is_some() => "WordPiece",
        None => "WordLevel",
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "missing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The added tokens with the ids that `tokenizers` gives them, in the order of the file.
///
/// The ids written in the file do not count there: a token that the model knows keeps the model's
/// id, any other takes the next free one after the vocabulary. Files whose declared ids leave a
/// gap are therefore renumbered, by Python's package too; `notes` says so.
fn added_tokens(file: &Value, notes: &mut Vec<String>) -> Vec<AddedToken> {
    let vocab = &file["model"]["vocab"];
    let mut next_id = vocab.as_object().map_or_else(
        || vocab.as_array().map_or(0, Vec::len),
        serde_json::Map::len,
    );
    let pieces_differ = sentencepiece::is_one(file);
    let mut tokens: Vec<AddedToken> = Vec::new();
    for entry in file["added_tokens"].as_array().into_iter().flatten() {
        let content = entry["content"].as_str().unwrap_or("");
        let is_special = entry["special"] == true;
        if content.is_empty() {
            continue;
        }
        if let Some(token) = tokens.iter_mut().find(|token| token.content == content) {
            // Listed again, it stays special if it was once.
            token.is_special |= is_special;
            continue;
        }
        let declared = entry["id"].as_u64();
        // Where pieces are there once, looking through all of them for each token is spared.
        let is_there = |&id: &u64| pieces_differ && vocab[id as usize][0] == content;
        let found = declared.filter(is_there).map(|id| id as u32);
        let found = found.or_else(|| vocab_id(vocab, content));
        let id = found.unwrap_or_else(|| {
            next_id += 1;
            (next_id - 1) as u32
        });
        if let Some(declared) = declared.filter(|&declared| declared != u64::from(id)) {
            notes.push(format!(
                "added token {content:?} is declared with id {declared}, but tokenizers gives it {id}, and so does packtok"
            ));
        }
        tokens.push(AddedToken {
            content: content.to_owned(),
            id,
            is_special,
        });
    }
    tokens
}

/// # Errors
/// Two added tokens are found by the same text once they are normalized: `tokenizers` takes the one that a hash map of
/// random order has last. Or one of several is found by the empty text: `tokenizers` never ends on some texts then.
fn check_normalized_tokens(name: &str, file: &Value, added_tokens: &[AddedToken]) -> Result<()> {
    let ids: HashMap<&str, u32> = added_tokens
        .iter()
        .map(|token| (token.content.as_str(), token.id))
        .collect();
    // Of several listings with one id, the last one counts.
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
            return Err(Error::SameAddedTokens {
                name: name.to_owned(),
                first: first.to_owned(),
                second: content.to_owned(),
            });
        }
    }
    match first_with.get("") {
        Some(&token) if first_with.len() > 1 => Err(Error::EmptyAddedToken {
            name: name.to_owned(),
            token: token.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// The id of a token of the model's own vocabulary.
pub(crate) fn vocab_id(vocab: &Value, token: &str) -> Option<u32> {
    match vocab {
        Value::Object(map) => map.get(token)?.as_u64()?.try_into().ok(),
        Value::Array(pieces) => pieces
            .iter()
            // Of two pieces of one name, the last one counts.
            .rposition(|piece| piece[0] == token)?
            .try_into()
            .ok(),
        _ => None,
    }
}

fn vocab_size(model: &Value, added_tokens: &[AddedToken]) -> u64 {
    let of_model = match &model["vocab"] {
        Value::Object(map) => map
            .values()
            .filter_map(Value::as_u64)
            // No engine loads a file with greater ones.
            .filter(|&id| id <= u64::from(u32::MAX))
            .max()
            .map_or(0, |highest| highest + 1),
        Value::Array(pieces) => pieces.len() as u64,
        _ => 0,
    };
    let of_added = added_tokens.iter().map(|token| u64::from(token.id) + 1);
    of_added.fold(of_model, u64::max)
}

/// SHA-256 of the parsed file: white space and the order of keys do not count.
fn fingerprint(file: &Value) -> String {
    let mut canonical = Canonical {
        hasher: Sha256::new(),
        text: Vec::with_capacity(2 * HASHED_BYTES),
    };
    canonical.push(file);
    canonical.hasher.update(&canonical.text);
    let digest = canonical.hasher.finalize();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Bytes that are hashed at once, or more: the hasher is slow for a few bytes each time.
const HASHED_BYTES: usize = 1 << 16;

/// The one spelling of a value, and the hash of its beginning.
struct Canonical {
    hasher: Sha256,
    text: Vec<u8>,
}

impl Canonical {
    fn push(&mut self, value: &Value) {
        match value {
            Value::Array(items) => {
                self.text.push(b'[');
                for item in items {
                    self.push(item);
                    self.text.push(b',');
                }
                self.text.push(b']');
            }
            Value::Object(map) => {
                let mut entries: Vec<(&String, &Value)> = map.iter().collect();
                entries.sort_unstable_by_key(|&(key, _)| key);
                self.text.push(b'{');
                for (key, value) in entries {
                    self.push_scalar(key);
                    self.text.push(b':');
                    self.push(value);
                    self.text.push(b',');
                }
                self.text.push(b'}');
            }
            scalar => self.push_scalar(scalar),
        }
    }

    fn push_scalar(&mut self, scalar: &impl Serialize) {
        serde_json::to_writer(&mut self.text, scalar).expect("memory takes all that is written");
        if self.text.len() >= HASHED_BYTES {
            self.hasher.update(&self.text);
            self.text.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_without_a_type_are_told_apart() {
        assert_eq!(model_type(&json!({"vocab": {}, "merges": []})), "BPE");
        assert_eq!(model_type(&json!({"vocab": []})), "Unigram");
        assert_eq!(
            model_type(&json!({"vocab": {}, "max_input_chars_per_word": 100})),
            "WordPiece"
        );
        assert_eq!(model_type(&json!({"vocab": {}})), "WordLevel");
        let no_type = json!({"type": null, "vocab": {}, "merges": []});
        assert_eq!(model_type(&no_type), "of no known type");
    }
}
