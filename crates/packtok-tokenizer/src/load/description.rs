//! The description of a tokenizer, read from its tokenizer.json before an engine loads it.
//!
//! Names, ids, the template, the fingerprint and the choice of the engine are determined here, so they do not depend
//! on the engine that serves the file.

use serde_json::{Value, json};

use super::LoadError;
use super::added_tokens::{AddedToken, added_tokens, check_normalized_tokens};
use super::component_type::model_type;
use super::fingerprint::fingerprint;
use super::parsed::parsed;
use super::sentencepiece_types::is_sentencepiece;
use super::template::Template;
use crate::engines::reference;
use crate::error::{Error, Result};

/// The content of a tokenizer.json that does not depend on the engine.
#[derive(Debug, Clone)]
pub(crate) struct Description {
    pub(crate) fingerprint: String,
    /// Highest id + 1, added tokens included.
    pub(crate) vocab_size: u64,
    pub(crate) added_tokens: Vec<AddedToken>,
    pub(crate) template: Template,
    /// The end-of-sequence token, if the file names it.
    pub(crate) eos_token: Option<String>,
    /// Whether the file is a SentencePiece model. In texts for such models, names of special
    /// tokens are plain text.
    pub(crate) is_sentencepiece: bool,
    pub(crate) notes: Vec<String>,
}

impl Description {
    /// Reads the parsed tokenizer.json of the tokenizer called `name`.
    fn read(name: &str, file: &Value) -> Result<Self> {
        let mut notes = Vec::new();
        let is_sentencepiece = is_sentencepiece(file);
        let added_tokens = added_tokens(file, &mut notes);
        check_normalized_tokens(name, file, &added_tokens)?;
        let template = Template::of(name, &file["post_processor"])?;
        // A template may contain ids of no token.
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

/// Removes truncation and padding. packtok always disables both, so they are not part of the
/// fingerprint.
fn remove_lengths(file: &mut Value) {
    for key in ["truncation", "padding"] {
        file.as_object_mut().map(|map| map.remove(key));
    }
}

/// The description of a parsed file, and the file with the normalizer and the pre-tokenizer as `tokenizers`
/// understands them.
///
/// # Errors
/// `tokenizers` refuses a part of the file, or [`Description::read`] does.
pub(crate) fn described(name: &str, mut file: Value) -> Result<(Description, Value)> {
    let understood = if is_sentencepiece(&file) {
        None
    } else {
        let understood = reference::understood(&file, model_type(&file["model"]));
        Some(understood.map_err(|source| {
            Error::Load(LoadError::Unloadable {
                name: name.to_owned(),
                source,
            })
        })?)
    };
    remove_lengths(&mut file);
    let description = Description::read(name, &file)?;
    if let Some(understood) = understood {
        file["normalizer"] = flattened(understood.normalizer);
        file["pre_tokenizer"] = understood.pre_tokenizer;
        if !understood.is_model_known {
            file["model"]["type"] = "of undeclared type".into();
        }
    }
    Ok((description, file))
}

/// A normalizer without nested sequences, and without a sequence of fewer than two steps. DeepSeek's files have a
/// sequence without steps, which changes nothing.
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

fn vocab_size(model: &Value, added_tokens: &[AddedToken]) -> u64 {
    let of_model = match &model["vocab"] {
        Value::Object(map) => map
            .values()
            .filter_map(Value::as_u64)
            // No engine loads a file with higher ids.
            .filter(|&id| id <= u64::from(u32::MAX))
            .max()
            .map_or(0, |highest| highest + 1),
        Value::Array(pieces) => pieces.len() as u64,
        _ => 0,
    };
    let of_added = added_tokens.iter().map(|token| u64::from(token.id) + 1);
    of_added.fold(of_model, u64::max)
}

/// The fingerprint of the tokenizer that a tokenizer.json describes, without loading an engine.
///
/// # Errors
/// The text is not a tokenizer.json. The error names the tokenizer `name`.
pub fn fingerprint_of(name: &str, json: &str) -> Result<String> {
    let (mut file, _) = parsed(name, json)?;
    remove_lengths(&mut file);
    Ok(fingerprint(&file))
}
