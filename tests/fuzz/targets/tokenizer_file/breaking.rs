//! Turns a file into one that no program writes: two kinds of component in one, values of the wrong type, invalid JSON.

use serde_json::{Value, json};

use crate::source::Source;

/// Adds truncation and padding, which must have no effect.
pub(crate) fn limit(source: &mut Source, file: &mut Value) {
    let max_length = source.below(6);
    if source.coin() {
        file["truncation"] = json!({"direction": "Right", "max_length": max_length, "strategy": "LongestFirst", "stride": source.below(2)});
    }
    if source.coin() {
        file["padding"] = json!({"strategy": {"Fixed": 20}, "direction": "Left", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "<pad>"});
    }
}

/// Changes one value anywhere in the file.
pub(crate) fn break_value(source: &mut Source, value: &mut Value) {
    if source.once_in(5)
        || value.as_object().is_some_and(|map| map.is_empty())
        || value.as_array().is_some_and(Vec::is_empty)
    {
        *value = source.pick(&[
            Value::Null,
            json!(true),
            json!(false),
            json!(0),
            json!(1),
            json!(-1),
            json!(1.5),
            json!(u32::MAX),
            json!(1u64 << 32),
            json!(""),
            json!("a"),
            json!("NFC"),
            json!([]),
            json!({}),
            json!([["a", "b"]]),
        ]);
        return;
    }
    match value {
        Value::Array(items) => {
            let at = source.below(items.len());
            match source.below(6) {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                _ => break_value(source, &mut items[at]),
            }
        }
        Value::Object(map) => {
            let key = source.pick(&map.keys().cloned().collect::<Vec<_>>());
            match source.below(6) {
                0 => drop(map.remove(&key)),
                1 => {
                    let moved = map.remove(&key).unwrap_or_default();
                    map.insert(
                        source
                            .pick(&["id", "type", "a", "normalizers", "ids"])
                            .to_owned(),
                        moved,
                    );
                }
                _ => {
                    if let Some(inner) = map.get_mut(&key) {
                        break_value(source, inner);
                    }
                }
            }
        }
        Value::String(text) => {
            *text = if source.coin() {
                source.part_of(text).to_owned()
            } else {
                source
                    .pick(&[
                        "BPE",
                        "WordPiece",
                        "Sequence",
                        "Bert",
                        "BertNormalizer",
                        "CharDelimiterSplit",
                        "a",
                        "",
                        "Split",
                        "Replace",
                    ])
                    .to_owned()
            }
        }
        _ => *value = json!(source.below(70_000)),
    }
}

/// Changes the JSON text: most often it becomes invalid, or an object gets a duplicate key.
pub(crate) fn break_text(source: &mut Source, json: String) -> String {
    let bounds: Vec<usize> = json.char_indices().map(|(at, _)| at).collect();
    let at = source.pick(&bounds);
    let (before, after) = json.split_at(at);
    match source.below(5) {
        0 => before.to_owned(),
        1 => format!("{before}{}", after.chars().skip(1).collect::<String>()),
        2 => format!(
            "{before}{}{after}",
            source.pick(&["\"", ",", "}", "[", "\\", " ", "0", "\u{feff}", "null"])
        ),
        3 => json.replacen('{', "{\"version\":\"1.0\",", 1),
        _ => json.replacen("\"type\":", "\"type\":\"Nothing\",\"type\":", 1),
    }
}

/// Adds the keys of `other`; `type` stays, becomes another one, or is removed.
pub(crate) fn cross(source: &mut Source, component: &mut Value, other: &Value) {
    let (Some(component), Some(other)) = (component.as_object_mut(), other.as_object()) else {
        return;
    };
    for (key, value) in other {
        if !component.contains_key(key) || source.once_in(3) {
            component.insert(key.clone(), value.clone());
        }
    }
    match source.below(5) {
        0 => drop(component.remove("type")),
        1 => {
            let name = source.pick(&[
                "BertNormalizer",
                "Bert",
                "CharDelimiterSplit",
                "Nothing",
                "Sequence",
            ]);
            component.insert("type".to_owned(), name.into());
        }
        2 => {
            let name = other.get("type").cloned();
            component.insert("type".to_owned(), name.unwrap_or_default());
        }
        _ => {}
    }
}
