//! A tokenizer.json as JSON, with the checks that apply to every file.

use serde_json::Value;

use super::LoadError;
use super::tekken;
use crate::error::{Error, Result};

/// The parsed tokenizer.json; and its text, if it was converted from a tekken.json.
pub(crate) fn parsed(name: &str, json: &str) -> Result<(Value, Option<String>)> {
    let mut file: Value = serde_json::from_str(json).map_err(|source| {
        Error::Load(LoadError::NotJson {
            name: name.to_owned(),
            source,
        })
    })?;
    let made = tekken::tokenizer_json(name, &file)?;
    let text = made.as_ref().map(Value::to_string);
    file = made.unwrap_or(file);
    check_shape(name, &file)?;
    Ok((file, text))
}

fn check_shape(name: &str, file: &Value) -> Result<()> {
    let shape = |key, value: &Value, expected| {
        Error::Load(LoadError::Shape {
            name: name.to_owned(),
            key,
            found: json_type(value),
            expected,
        })
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
        Some(dropout) if dropout > 0.0 => Err(Error::Load(LoadError::Dropout {
            name: name.to_owned(),
            dropout,
        })),
        _ => Ok(()),
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
