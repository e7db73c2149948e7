//! BPE on the characters of a part of a word, for vocabularies without tokens for bytes.

use serde_json::Value;

use crate::engines::byte_bpe::{MergeHeap, MergeRules, Model, Spelling, is_inside, last_char};
use crate::load::model_type;

/// The symbols of a model and its merges.
pub(super) struct CharBpe(MergeRules);

impl CharBpe {
    /// The `model` of a tokenizer.json; `None` if the engine does not cover it.
    pub(super) fn read(model: &Value) -> Option<Self> {
        let drops_out = model["dropout"]
            .as_f64()
            .is_some_and(|dropout| dropout > 0.0);
        if model_type(model) != "BPE" || drops_out {
            return None;
        }
        let Model {
            alphabet, merges, ..
        } = Model::read(model, Spelling::Suffixed).ok()?;
        Some(Self(MergeRules::new(alphabet, &merges).ok()?))
    }

    /// Appends the ids of a part, whose last character is replaced by that at the end of a word. Returns
    /// `false`, with nothing appended, if a character has no symbol.
    pub(super) fn append(
        &self,
        part: &mut String,
        heap: &mut MergeHeap,
        ids: &mut Vec<u32>,
    ) -> bool {
        let Some(last) = part.pop() else {
            return true;
        };
        let Some(last) = last_char(last) else {
            return false;
        };
        let has_inside = |char| is_inside(char) && self.0.has(char);
        let has_all = self.0.has(last) && part.chars().all(has_inside);
        if has_all {
            part.push(last);
            self.0.encode(part.as_bytes(), heap, ids);
        }
        has_all
    }
}
