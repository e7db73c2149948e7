//! The ids that a post-processor adds around a document.
//!
//! For one sequence, every post-processor of the format adds fixed ids before and after it. These
//! ids are determined once, when a file is loaded. So the engines do not run the post-processor,
//! which allocates for every document, and truncation only subtracts the number of added ids.

use serde_json::Value;

use super::LoadError;
use crate::engines::reference::PostProcessor;
use crate::error::{Error, Result};

/// Ids that come before and after the ids of every document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) prefix: Vec<u32>,
    pub(crate) suffix: Vec<u32>,
}

impl Template {
    /// The ids that the `post_processor` object of a tokenizer.json adds.
    ///
    /// # Errors
    /// `tokenizers` refuses the object, or it does not add fixed ids around one sequence.
    pub(crate) fn of(name: &str, processor: &Value) -> Result<Self> {
        if processor.is_null() {
            return Ok(Self::default());
        }
        let unloadable = |source| {
            Error::Load(LoadError::Unloadable {
                name: name.to_owned(),
                source,
            })
        };
        let processor = PostProcessor::read(processor).map_err(unloadable)?;
        // Two documents that differ in their only id: the results differ where the document is.
        let [first, second] = [0, 1].map(|id| processor.processed(&[id], true));
        // Without special tokens, the steps of a sequence may drop the document itself.
        let without = processor.processed(&[0], false).map_err(unloadable)?;
        let (first, second) = (first.map_err(unloadable)?, second.map_err(unloadable)?);
        let pairs = first.iter().zip(&second);
        let mut places = (0..)
            .zip(pairs)
            .filter(|(_, (first, second))| first != second);
        match (places.next(), places.next()) {
            (Some((place, _)), None) if first.len() == second.len() && without == [0] => Ok(Self {
                prefix: first[..place].to_vec(),
                suffix: first[place + 1..].to_vec(),
            }),
            _ => Err(Error::Load(LoadError::Shape {
                name: name.to_owned(),
                key: "post_processor",
                found: "something else",
                expected: "special tokens around exactly one sequence A",
            })),
        }
    }

    /// The number of ids that it adds to a document.
    pub(crate) fn num_special(&self) -> usize {
        self.prefix.len() + self.suffix.len()
    }
}

/// The id that the post-processor of a tokenizer.json appends last to a document, without loading
/// an engine.
///
/// # Errors
/// The text is not JSON, or `tokenizers` refuses its post-processor. The error names the tokenizer
/// `name`.
pub fn appended_id(name: &str, json: &str) -> Result<Option<u32>> {
    let file: Value = serde_json::from_str(json).map_err(|source| {
        Error::Load(LoadError::NotJson {
            name: name.to_owned(),
            source,
        })
    })?;
    if !file.is_object() {
        return Err(Error::Load(LoadError::Shape {
            name: name.to_owned(),
            key: "the file",
            found: "something else",
            expected: "an object",
        }));
    }
    let template = Template::of(name, &file["post_processor"])?;
    Ok(template.suffix.last().copied())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_processors_of_a_sequence_take_turns() {
        let sequence = |id: &str| json!({"Sequence": {"id": id, "type_id": 0}});
        let special = |id: &str| json!({"SpecialToken": {"id": id, "type_id": 0}});
        let processor = json!({"type": "Sequence", "processors": [
            {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true},
            {"type": "TemplateProcessing",
             "single": [special("x"), sequence("A"), special("y")],
             "pair": [sequence("A"), sequence("B")],
             "special_tokens": {"x": {"id": "x", "ids": [7, 8], "tokens": ["x", "x"]},
                                "y": {"id": "y", "ids": [u32::MAX], "tokens": ["y"]}}},
            {"type": "BertProcessing", "cls": ["a", 1], "sep": ["b", 2]},
        ]});
        let template = Template::of("t", &processor).unwrap();
        // The second processor sees three sequences in the result of the first and closes each of them.
        assert_eq!(template.prefix, [1, 7, 8, 2]);
        assert_eq!(template.suffix, [2, u32::MAX, 2]);
        assert_eq!(template.num_special(), 7);
    }

    #[test]
    fn a_processor_without_a_type_is_known_by_its_keys() {
        let processor = json!({"cls": ["a", 0], "sep": ["b", 1]});
        let template = Template::of("t", &processor).unwrap();
        assert_eq!((template.prefix, template.suffix), (vec![0], vec![1]));
    }

    #[test]
    fn a_template_that_has_not_one_sequence_is_refused() {
        let sequence = json!({"Sequence": {"id": "A", "type_id": 0}});
        for single in [json!([sequence, sequence]), json!([])] {
            let processor = json!({"type": "TemplateProcessing", "single": single,
                "pair": [sequence, {"Sequence": {"id": "B", "type_id": 0}}], "special_tokens": {}});
            assert_eq!(
                Template::of("t.json", &processor).unwrap_err().to_string(),
                "t.json: not a tokenizer.json: post_processor is something else, expected special tokens around exactly one sequence A"
            );
        }
    }
}
