//! The types of SentencePiece models and of their pieces, as files write them.

use serde_json::Value;

use super::component_type::model_type;

/// The type of the normalizer and of the decoder in a model's tokenizer.json.
pub(crate) const NORMALIZER: &str = "SentencePiece";

/// Whether a parsed tokenizer.json was converted from a SentencePiece model.
pub(crate) fn is_sentencepiece(json: &Value) -> bool {
    ModelType::of_name(model_type(&json["model"])).is_some()
}

/// The type of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

const KINDS: [(Kind, &str); 6] = [
    (Kind::Normal, "normal"),
    (Kind::Unknown, "unknown"),
    (Kind::Control, "control"),
    (Kind::UserDefined, "user_defined"),
    (Kind::Unused, "unused"),
    (Kind::Byte, "byte"),
];

impl Kind {
    /// The type that a `.model` file writes as this number.
    pub(crate) fn of_number(number: i32) -> Option<Self> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        KINDS.get(at).map(|&(kind, _)| kind)
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let mut kinds = KINDS.iter();
        kinds
            .find(|(_, known)| *known == name)
            .map(|&(kind, _)| kind)
    }

    pub(crate) fn name(self) -> &'static str {
        let entry = KINDS.iter().find(|(kind, _)| *kind == self);
        entry.map_or("", |(_, name)| name)
    }

    /// Whether texts are matched with pieces of this type.
    pub(crate) fn is_matched(self) -> bool {
        matches!(self, Self::Normal | Self::UserDefined | Self::Unused)
    }
}

/// The algorithm that segments a text into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelType {
    /// Chooses the pieces with the greatest sum of scores.
    Unigram,
    /// Repeatedly merges the pair whose piece has the best score, until no pair is a piece.
    Bpe,
    /// The words between white space.
    Word,
    /// The characters.
    Char,
}

const MODEL_TYPES: [(ModelType, &str); 4] = [
    (ModelType::Unigram, "SentencePieceUnigram"),
    (ModelType::Bpe, "SentencePieceBPE"),
    (ModelType::Word, "SentencePieceWord"),
    (ModelType::Char, "SentencePieceChar"),
];

impl ModelType {
    /// The type that a `.model` file writes as this number.
    pub(crate) fn of_number(number: i32) -> Option<Self> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        MODEL_TYPES.get(at).map(|&(model_type, _)| model_type)
    }

    /// The type that a tokenizer.json calls `name`.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let mut types = MODEL_TYPES.iter();
        types
            .find(|(_, known)| *known == name)
            .map(|&(model_type, _)| model_type)
    }

    pub(crate) fn name(self) -> &'static str {
        let entry = MODEL_TYPES
            .iter()
            .find(|(model_type, _)| *model_type == self);
        entry.map_or("", |(_, name)| name)
    }
}
