//! The vocabulary of a tokenizer.json.

use serde_json::Value;

/// The id of a token in the model's own vocabulary.
pub(crate) fn vocab_id(vocab: &Value, token: &str) -> Option<u32> {
    match vocab {
        Value::Object(map) => map.get(token)?.as_u64()?.try_into().ok(),
        Value::Array(pieces) => pieces
            .iter()
            // If two pieces have the same name, the last one wins.
            .rposition(|piece| piece[0] == token)?
            .try_into()
            .ok(),
        _ => None,
    }
}
