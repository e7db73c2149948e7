//! Whole tokenizer.json files with texts and ids for them.

use serde_json::{Value, json};

use crate::added::Added;
use crate::ends;
use crate::model::{Family, Model};
use crate::source::Source;
use crate::steps;
use crate::texts;
use crate::words::Words;

/// Texts for each file.
pub(crate) const TEXTS: usize = 8;

/// What one input says.
pub(crate) struct Case {
    pub(crate) json: String,
    pub(crate) texts: Vec<String>,
    /// What is decoded beside the ids of the texts.
    pub(crate) ids: Vec<Vec<u32>>,
}

impl Case {
    pub(crate) fn of(input: &[u8]) -> Self {
        let source = &mut Source::new(input);
        let families = [
            Family::ByteLevel,
            Family::Chars,
            Family::WordPiece,
            Family::WordLevel,
            Family::Unigram,
        ];
        // Some files have components of several families.
        let family = source.pick(&families);
        let of_steps = if source.once_in(8) {
            source.pick(&families)
        } else {
            family
        };
        let of_decoder = if source.once_in(8) {
            source.pick(&families)
        } else {
            family
        };
        let words = Words::of(source);
        let model = Model::of(source, &words, family);
        let added = Added::of(source, &words, &model.tokens);
        let mut file = json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": added.json,
            "normalizer": steps::normalizer(source, &words, of_steps),
            "pre_tokenizer": steps::pre_tokenizer(source, &words, of_steps),
            "post_processor": ends::post_processor(source, &added.contents, 0),
            "decoder": ends::decoder(source, &words, of_decoder),
            "model": model.json,
        });
        if source.once_in(16) {
            limit(source, &mut file);
        }
        if source.once_in(12) {
            break_value(source, &mut file);
        }
        let mut json = file.to_string();
        if source.once_in(200) {
            json = break_text(source, json);
        }
        let tokens = &model.tokens;
        Self {
            json,
            texts: (0..TEXTS)
                .map(|_| texts::text(source, &words, tokens, &added.contents))
                .collect(),
            ids: (0..2).map(|_| texts::ids(source, tokens.len())).collect(),
        }
    }
}

/// Truncation and padding, which the file asks for in vain.
fn limit(source: &mut Source, file: &mut Value) {
    let max_length = source.below(6);
    if source.coin() {
        file["truncation"] = json!({"direction": "Right", "max_length": max_length, "strategy": "LongestFirst", "stride": source.below(2)});
    }
    if source.coin() {
        file["padding"] = json!({"strategy": {"Fixed": 20}, "direction": "Left", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "<pad>"});
    }
}

/// Changes something anywhere.
fn break_value(source: &mut Source, value: &mut Value) {
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
            *text = match source.coin() {
                true => source.part_of(text).to_owned(),
                false => source
                    .pick(&[
                        "BPE",
                        "WordPiece",
                        "Sequence",
                        "Bert",
                        "a",
                        "",
                        "Split",
                        "Replace",
                    ])
                    .to_owned(),
            }
        }
        _ => *value = json!(source.below(70_000)),
    }
}

/// Changes the text of a file, so that it is JSON no more, or has keys twice.
fn break_text(source: &mut Source, json: String) -> String {
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
