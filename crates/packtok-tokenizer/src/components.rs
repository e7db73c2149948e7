//! Describes in words how packtok handles each component of a tokenizer.json.

use serde::Serialize;
use serde_json::Value;

use crate::engines::kind::EngineKind;
use crate::load::{NOTHING, model_type, shape};
use crate::options::EngineChoice;
use crate::tokenizer::Tokenizer;

/// A component of a tokenizer.json and how packtok handles it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Component {
    /// Key of the component in the file.
    pub name: &'static str,
    /// The component in the file; members of a sequence are in parentheses.
    pub found: String,
    /// Whether ids or texts depend on it.
    pub is_used: bool,
    /// How packtok handles the component, as a phrase.
    pub became: String,
}

impl Tokenizer {
    /// All components of the file and how packtok handles each, in the order in which they apply.
    pub fn components(&self) -> Vec<Component> {
        // The file was parsed when the tokenizer was loaded, so parsing cannot fail.
        let file: Value = serde_json::from_str(self.json()).unwrap_or_default();
        let used = |name, found: String, became: String| Component {
            name,
            is_used: found != NOTHING,
            found,
            became,
        };
        let by_engine = |name| {
            let found = shape(&file[name]);
            let became = match found.as_str() {
                NOTHING => "nothing to do".to_owned(),
                _ => format!("applied by {}", self.engine().name()),
            };
            used(name, found, became)
        };
        let decoder = shape(&file["decoder"]);
        let (num_added, num_special) = (self.added_tokens().len(), self.special_tokens().count());
        vec![
            used(
                "added_tokens",
                match num_added {
                    0 => NOTHING.to_owned(),
                    _ => format!("{num_added}, of which {num_special} special"),
                },
                match num_added {
                    0 => "nothing to do".to_owned(),
                    _ if self.is_sentencepiece() => {
                        "matched in the text; the name of a special token is ordinary text"
                            .to_owned()
                    }
                    _ => "matched in the text before all other steps".to_owned(),
                },
            ),
            by_engine("normalizer"),
            by_engine("pre_tokenizer"),
            used(
                "model",
                model_facts(&file["model"]),
                format!("applied by {}", self.engine().name()),
            ),
            used(
                "post_processor",
                shape(&file["post_processor"]),
                self.template_facts(),
            ),
            used(
                "decoder",
                decoder,
                "used for decoding only; ids do not depend on it".to_owned(),
            ),
            switched_off(
                "truncation",
                &file,
                "texts are not truncated; set truncation and max_length in the config to truncate them",
            ),
            switched_off("padding", &file, "ids are stored without padding"),
        ]
    }

    /// Why this engine serves it, a phrase.
    pub fn engine_reason(&self) -> String {
        let not_fast = || self.not_fast().unwrap_or_default();
        match self.engine() {
            EngineKind::Fast => {
                if let Some(words) = self.fallback_words() {
                    return format!(
                        "it is the fastest engine, and this tokenizer splits text at whitespace; {words} fall back to {}",
                        self.engine_chosen(EngineChoice::Reference).name()
                    );
                }
                let tokens = self.fallback_tokens().iter();
                let bytes = self.fallback_bytes().iter();
                let tokens = first_three(tokens.map(|token| format!("{token:?}")));
                let bytes = first_three(bytes.map(|byte| format!("0x{byte:02X}")));
                let bytes = bytes.map(|bytes| format!("the bytes {bytes}, which have no token,"));
                let contained: Vec<String> = tokens.into_iter().chain(bytes).collect();
                let others = match &contained[..] {
                    [] => String::new(),
                    _ => format!(
                        "; texts that contain {} fall back to {}",
                        contained.join(" or "),
                        self.engine_chosen(EngineChoice::Reference).name()
                    ),
                };
                format!("it is the fastest engine and covers this tokenizer{others}")
            }
            EngineKind::Reference => format!(
                "it is the engine of the tokenizers library; packtok's fast engine does not cover this tokenizer, because {}",
                not_fast()
            ),
            EngineKind::SentencePiece => format!(
                "it gives the ids of the sentencepiece library; packtok's fast SentencePiece engine does not cover this tokenizer, because {}",
                not_fast()
            ),
        }
    }

    /// The ids that the post-processor adds, in words.
    fn template_facts(&self) -> String {
        let names = |ids: &[u32]| {
            let name = |&id: &u32| {
                self.id_to_token(id)
                    .map_or_else(|| id.to_string(), |name| format!("{name:?} = {id}"))
            };
            ids.iter().map(name).collect::<Vec<_>>().join(", ")
        };
        match (self.prefix(), self.suffix()) {
            ([], []) => "adds no tokens".to_owned(),
            (prefix, []) => format!("adds {} before each document", names(prefix)),
            ([], suffix) => format!("adds {} after each document", names(suffix)),
            (prefix, suffix) => format!(
                "adds {} before and {} after each document",
                names(prefix),
                names(suffix)
            ),
        }
    }
}

/// The first three names in a list; `None` if there are none.
fn first_three(mut names: impl Iterator<Item = String>) -> Option<String> {
    let mut listed: Vec<String> = names.by_ref().take(3).collect();
    listed.extend(names.next().map(|_| "...".to_owned()));
    (!listed.is_empty()).then(|| listed.join(", "))
}

fn switched_off(name: &'static str, file: &Value, instead: &str) -> Component {
    let is_there = !file[name].is_null();
    Component {
        name,
        found: if is_there {
            "set".to_owned()
        } else {
            NOTHING.to_owned()
        },
        is_used: false,
        became: if is_there {
            format!("ignored: {instead}")
        } else {
            "nothing to do".to_owned()
        },
    }
}

fn model_facts(model: &Value) -> String {
    let num_entries = model["vocab"]
        .as_object()
        .map(serde_json::Map::len)
        .or(model["vocab"].as_array().map(Vec::len))
        .unwrap_or(0);
    let mut facts = vec![
        model_type(model).to_owned(),
        format!("{num_entries} entries"),
    ];
    if let Some(merges) = model["merges"].as_array() {
        facts.push(format!("{} merges", merges.len()));
    }
    for key in ["byte_fallback", "ignore_merges", "fuse_unk"] {
        if model[key] == true {
            facts.push(key.to_owned());
        }
    }
    if let Some(token) = model["unk_token"].as_str() {
        facts.push(format!("unk_token {token:?}"));
    }
    facts.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named<'a>(components: &'a [Component], name: &str) -> &'a Component {
        components
            .iter()
            .find(|component| component.name == name)
            .unwrap()
    }

    #[test]
    fn components_say_what_they_became() {
        let file = json!({
            "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "<s>": 1}},
            "added_tokens": [{"id": 1, "content": "<s>", "special": true, "single_word": false,
                              "lstrip": false, "rstrip": false, "normalized": false}],
            "normalizer": {"type": "Sequence", "normalizers": [{"type": "Lowercase"}, {"type": "NFC"}]},
            "pre_tokenizer": {"type": "Whitespace"},
            "post_processor": {"type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
            "padding": null,
            "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
        });
        let tokenizer = Tokenizer::from_json("t.json", file.to_string()).unwrap();
        let components = tokenizer.components();
        assert_eq!(
            named(&components, "normalizer").found,
            "Sequence(Lowercase, NFC)"
        );
        assert_eq!(
            named(&components, "model").found,
            "WordLevel, 2 entries, unk_token \"a\""
        );
        assert_eq!(
            named(&components, "post_processor").became,
            "adds \"<s>\" = 1 before each document"
        );
        let truncation = named(&components, "truncation");
        assert_eq!(
            (truncation.is_used, truncation.found.as_str()),
            (false, "set")
        );
        assert!(!named(&components, "padding").is_used);
        assert!(!named(&components, "decoder").is_used);
        assert_eq!(
            tokenizer.engine_reason(),
            "it is the fastest engine, and this tokenizer splits text at whitespace; words not seen before fall back to tokenizers 0.23.2"
        );
    }
}
