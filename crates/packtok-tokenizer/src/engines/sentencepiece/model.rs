//! A SentencePiece model, read from its tokenizer.json.

use serde_json::Value;

use super::normalization_rules::{NormalizationRules, normalization_rules_of};
use super::piece::{Piece, SPACE_MARK, byte_ids, byte_of, check_differ, piece};
use crate::load::{Kind, ModelType};

/// Everything that the ids and texts of a model depend on.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) model_type: ModelType,
    pub(super) pieces: Vec<Piece>,
    pub(super) rules: NormalizationRules,
    pub(super) unk_id: u32,
    /// The score of a character that is not a piece.
    pub(super) unk_score: f32,
    /// The id of each byte, if unknown characters are encoded as bytes.
    pub(super) byte_ids: Option<Box<[u32; 256]>>,
    pub(super) unk_surface: String,
    /// Applied to decoded texts.
    denormalizer: Option<NormalizationRules>,
}

/// A sum that exceeds this limit is subtracted from all open sums, so that rounding errors do not
/// grow.
pub(super) const MAX_SUM: f32 = 100_000.0;

/// Difference between the score of the worst piece and the score of an unknown character.
const UNK_PENALTY: f32 = 10.0;

impl Model {
    /// Reads the parsed tokenizer.json of a model.
    ///
    /// # Errors
    /// The fault of the model.
    pub(super) fn read(json: &Value) -> Result<Self, String> {
        let model = &json["model"];
        let model_type = model["type"].as_str().and_then(ModelType::of_name);
        let model_type = model_type.ok_or("its model is not a SentencePiece model")?;
        let vocab = model["vocab"].as_array().map_or(&[][..], Vec::as_slice);
        let pieces = vocab.iter().map(piece).collect::<Result<Vec<_>, _>>()?;
        check_differ(&pieces)?;
        let rules = normalization_rules_of(&json["normalizer"], &pieces)?;
        let ids = || (0u32..).zip(&pieces);
        let mut unknown = ids().filter(|(_, piece)| piece.kind == Kind::Unknown);
        let (unk_id, _) = unknown.next().ok_or("it has no unknown piece")?;
        if unknown.next().is_some() {
            return Err("it has more than one unknown piece".to_owned());
        }
        let byte_ids = if model["byte_fallback"] == true {
            Some(byte_ids(ids())?)
        } else {
            None
        };
        let unk_surface = json["decoder"]["unk_surface"].as_str().unwrap_or_default();
        let normal = || {
            let normal = pieces.iter().filter(|piece| piece.kind == Kind::Normal);
            normal.map(|piece| piece.score)
        };
        Ok(Self {
            model_type,
            rules,
            unk_id,
            unk_score: normal().fold(f32::MAX, f32::min) - UNK_PENALTY,
            byte_ids,
            unk_surface: unk_surface.to_owned(),
            denormalizer: match &json["decoder"]["denormalizer"] {
                Value::Null => None,
                // The library matches user-defined pieces only when it encodes.
                written => Some(normalization_rules_of(written, &[])?),
            },
            pieces,
        })
    }

    /// The score of a piece in sums. The score of a user-defined piece is so high that it always wins.
    pub(super) fn sum_score(&self, id: u32) -> f32 {
        let piece = &self.pieces[id as usize];
        match piece.kind {
            Kind::UserDefined => (0.1 * (piece.text.len() - 1) as f64) as f32,
            _ => piece.score,
        }
    }

    /// Appends the ids of a piece with this text. `after_unknown` states whether the previous piece was unknown, and
    /// is updated.
    pub(super) fn push_id(
        &self,
        id: u32,
        text: &[u8],
        after_unknown: &mut bool,
        ids: &mut Vec<u32>,
    ) {
        let is_unknown = id == self.unk_id;
        match &self.byte_ids {
            Some(byte_ids) if is_unknown => {
                ids.extend(text.iter().map(|&byte| byte_ids[usize::from(byte)]));
            }
            // Consecutive unknown pieces become one id.
            _ if is_unknown && *after_unknown => {}
            _ => ids.push(id),
        }
        *after_unknown = is_unknown;
    }

    /// The text of `ids`.
    ///
    /// # Errors
    /// An id is not the id of a piece.
    pub(super) fn decode(&self, ids: &[u32]) -> Result<String, String> {
        let mut text = String::new();
        let mut bytes = Vec::new();
        let (mut is_at_start, mut took_space) = (true, false);
        for &id in ids {
            let piece = self.pieces.get(id as usize);
            let piece = piece.ok_or_else(|| format!("there is no piece {id}"))?;
            if piece.kind == Kind::Byte {
                bytes.extend(byte_of(&piece.text));
                continue;
            }
            push_bytes(&mut bytes, &mut text);
            is_at_start &= !took_space && text.is_empty();
            took_space = false;
            match piece.kind {
                Kind::Control => {}
                Kind::Unknown => text.push_str(&self.unk_surface),
                _ => {
                    let mut with_spaces = piece.text.as_str();
                    if is_at_start
                        && (self.rules.add_dummy_prefix || self.rules.remove_extra_whitespaces)
                        && let Some(rest) = with_spaces.strip_prefix(SPACE_MARK)
                    {
                        with_spaces = rest;
                        // If normalization keeps extra white space, decoding hides only one
                        // leading space.
                        took_space = !self.rules.remove_extra_whitespaces;
                    }
                    text.push_str(&with_spaces.replace(SPACE_MARK, " "));
                }
            }
        }
        push_bytes(&mut bytes, &mut text);
        Ok(match &self.denormalizer {
            Some(rules) => {
                let growth = rules.check_growth(&text);
                growth.map_err(|excess| excess.to_string())?;
                String::from_utf8_lossy(&rules.normalized(text.as_bytes())).into_owned()
            }
            None => text,
        })
    }
}

/// Moves pending bytes to the text. Each invalid byte becomes one U+FFFD.
fn push_bytes(bytes: &mut Vec<u8>, text: &mut String) {
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    bytes.clear();
}
