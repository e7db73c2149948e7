//! What a post-processor puts around the ids of a document.
//!
//! For one sequence every post-processor of the format comes down to fixed ids before and after
//! it. Reading them from the file once keeps that step out of the engines, where it costs
//! allocations per document, and makes truncation (which has to leave room for them) one line.

use serde_json::Value;

use crate::error::{Error, Result};

/// Ids that stand before and after every document's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) prefix: Vec<u32>,
    pub(crate) suffix: Vec<u32>,
}

impl Template {
    /// Reads the `post_processor` object of a tokenizer.json.
    pub(crate) fn from_json(name: &str, processor: &Value) -> Result<Self> {
        let shape = |key, found, expected| Error::Shape {
            name: name.to_owned(),
            key,
            found,
            expected,
        };
        if processor.is_null() {
            return Ok(Self::default());
        }
        match processor["type"].as_str() {
            // Moves offsets only.
            Some("ByteLevel") => Ok(Self::default()),
            Some("BertProcessing" | "RobertaProcessing") => {
                let id = |key: &str| processor[key][1].as_u64().and_then(|id| id.try_into().ok());
                match (id("cls"), id("sep")) {
                    (Some(cls), Some(sep)) => Ok(Self {
                        prefix: vec![cls],
                        suffix: vec![sep],
                    }),
                    _ => Err(shape("post_processor.cls/sep", "incomplete", "[token, id]")),
                }
            }
            Some("TemplateProcessing") => Self::from_template(processor).ok_or_else(|| {
                shape(
                    "post_processor.single",
                    "not understood",
                    "special tokens around exactly one sequence A",
                )
            }),
            Some("Sequence") => {
                let members = processor["processors"].as_array().ok_or_else(|| {
                    shape("post_processor.processors", "not an array", "an array")
                })?;
                members.iter().try_fold(Self::default(), |inner, member| {
                    Ok(Self::from_json(name, member)?.around(inner))
                })
            }
            _ => Err(shape(
                "post_processor.type",
                "unknown",
                "ByteLevel, BertProcessing, RobertaProcessing, TemplateProcessing or Sequence",
            )),
        }
    }

    fn from_template(processor: &Value) -> Option<Self> {
        let mut template = Self::default();
        let mut is_after_sequence = false;
        for piece in processor["single"].as_array()? {
            if let Some(special) = piece.get("SpecialToken") {
                let entry = &processor["special_tokens"][special["id"].as_str()?];
                let side = if is_after_sequence {
                    &mut template.suffix
                } else {
                    &mut template.prefix
                };
                for id in entry["ids"].as_array()? {
                    side.push(id.as_u64()?.try_into().ok()?);
                }
            } else if piece["Sequence"]["id"] == "A" && !is_after_sequence {
                is_after_sequence = true;
            } else {
                return None;
            }
        }
        is_after_sequence.then_some(template)
    }

    /// This template applied to what `inner` has made of a document.
    fn around(mut self, inner: Self) -> Self {
        self.prefix.extend(inner.prefix);
        let suffix = [inner.suffix, self.suffix].concat();
        Self {
            prefix: self.prefix,
            suffix,
        }
    }

    /// Number of ids that it adds to a document.
    pub(crate) fn num_special(&self) -> usize {
        self.prefix.len() + self.suffix.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sequences_nest_from_the_inside_out() {
        let processor = json!({"type": "Sequence", "processors": [
            {"type": "ByteLevel"},
            {"type": "BertProcessing", "cls": ["a", 1], "sep": ["b", 2]},
            {"type": "TemplateProcessing",
             "single": [{"SpecialToken": {"id": "x"}}, {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "y"}}],
             "special_tokens": {"x": {"ids": [7, 8]}, "y": {"ids": [9]}}},
        ]});
        let template = Template::from_json("t", &processor).unwrap();
        assert_eq!(template.prefix, [7, 8, 1]);
        assert_eq!(template.suffix, [2, 9]);
        assert_eq!(template.num_special(), 5);
    }

    #[test]
    fn a_template_that_repeats_the_sequence_is_refused() {
        let processor = json!({"type": "TemplateProcessing",
            "single": [{"Sequence": {"id": "A"}}, {"Sequence": {"id": "A"}}], "special_tokens": {}});
        assert_eq!(
            Template::from_json("t.json", &processor)
                .unwrap_err()
                .to_string(),
            "t.json: not a tokenizer.json: post_processor.single is not understood, expected special tokens around exactly one sequence A"
        );
    }
}
