//! The types of components. Some files leave them out.

use serde_json::Value;

pub(crate) fn type_of(component: &Value) -> &str {
    if component.is_null() {
        return "null";
    }
    component["type"].as_str().unwrap_or("of unknown type")
}

/// The model's type. Files older than the `type` key are recognized by their other keys.
pub(crate) fn model_type(model: &Value) -> &str {
    match model["type"].as_str() {
        Some(kind) => kind,
        None if model.get("type").is_some() => "of unknown type",
        None if model["merges"].is_array() => "BPE",
        None if model["vocab"].is_array() => "Unigram",
        None if model.get("max_input_chars_per_word").is_some() => "WordPiece",
        None => "WordLevel",
    }
}

/// The shape of a component that a file does not have.
pub(crate) const NOTHING: &str = "none";

/// The types of a component and its members.
pub(crate) fn shape(component: &Value) -> String {
    let Some(kind) = component["type"].as_str() else {
        return NOTHING.to_owned();
    };
    let members = ["normalizers", "pretokenizers", "processors", "decoders"]
        .iter()
        .find_map(|key| component[key].as_array());
    match members {
        Some(members) => {
            let shapes: Vec<String> = members.iter().map(shape).collect();
            format!("{kind}({})", shapes.join(", "))
        }
        None => kind.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        assert_eq!(model_type(&no_type), "of unknown type");
    }
}
