//! Converts SentencePiece's `.model` files to tokenizer.json.
//!
//! The file is a protobuf message (`sentencepiece_model.proto` of google/sentencepiece 0.2). These are the fields on
//! which ids and texts depend:
//!
//! ```text
//! 1 pieces*          1 piece, 2 score, 3 type (1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte)
//! 2 trainer_spec     3 model_type (1 unigram, 2 bpe, 3 word, 4 char), 24 treat_whitespace_as_suffix,
//!                    35 byte_fallback, 44 unk_surface, 47 eos_piece
//! 3 normalizer_spec  2 precompiled_charsmap, 3 add_dummy_prefix, 4 remove_extra_whitespaces, 5 escape_whitespaces
//! 5 denormalizer_spec  as 3: applied to decoded texts
//! ```
//!
//! The result has the form of a tokenizer.json: added tokens, a normalizer and a model. Their types are
//! SentencePiece's and known to packtok only, because no combination of the types of `tokenizers` gives the ids of the
//! `sentencepiece` library for all texts.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use prost::Message;
use serde_json::{Value, json};

use super::LoadError;
use super::sentencepiece_types::{Kind, ModelType, NORMALIZER};
use crate::error::{Error, Result};

#[derive(Clone, PartialEq, Message)]
struct ModelProto {
    #[prost(message, repeated, tag = "1")]
    pieces: Vec<PieceProto>,
    #[prost(message, optional, tag = "2")]
    trainer_spec: Option<TrainerSpec>,
    #[prost(message, optional, tag = "3")]
    normalizer_spec: Option<NormalizerSpec>,
    #[prost(message, optional, tag = "5")]
    denormalizer_spec: Option<NormalizerSpec>,
}

#[derive(Clone, PartialEq, Message)]
struct PieceProto {
    #[prost(string, optional, tag = "1")]
    piece: Option<String>,
    #[prost(float, optional, tag = "2")]
    score: Option<f32>,
    #[prost(int32, optional, tag = "3")]
    kind: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct TrainerSpec {
    #[prost(int32, optional, tag = "3")]
    model_type: Option<i32>,
    #[prost(bool, optional, tag = "24")]
    treat_whitespace_as_suffix: Option<bool>,
    #[prost(bool, optional, tag = "35")]
    byte_fallback: Option<bool>,
    #[prost(string, optional, tag = "44")]
    unk_surface: Option<String>,
    #[prost(string, optional, tag = "47")]
    eos_piece: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct NormalizerSpec {
    #[prost(bytes = "vec", optional, tag = "2")]
    precompiled_charsmap: Option<Vec<u8>>,
    #[prost(bool, optional, tag = "3")]
    add_dummy_prefix: Option<bool>,
    #[prost(bool, optional, tag = "4")]
    remove_extra_whitespaces: Option<bool>,
    #[prost(bool, optional, tag = "5")]
    escape_whitespaces: Option<bool>,
}

/// The text that the library decodes an unknown piece to.
const UNK_SURFACE: &str = " \u{2047} ";
const EOS_PIECE: &str = "</s>";

/// Converts the bytes of a `.model` file.
///
/// # Errors
/// `bytes` is not a valid model.
pub(crate) fn tokenizer_json(name: &str, bytes: &[u8]) -> Result<String> {
    let proto = ModelProto::decode(bytes).map_err(|error| error.to_string());
    let written = proto.and_then(|proto| written_out(&proto));
    written.map(|file| file.to_string()).map_err(|reason| {
        Error::Load(LoadError::SentencePiece {
            name: name.to_owned(),
            reason,
        })
    })
}

fn written_out(proto: &ModelProto) -> std::result::Result<Value, String> {
    if proto.pieces.is_empty() {
        return Err("it has no pieces".to_owned());
    }
    let trainer = proto.trainer_spec.clone().unwrap_or_default();
    let rules = proto.normalizer_spec.clone().unwrap_or_default();
    let (mut vocab, mut added_tokens, mut eos_token) = (Vec::new(), Vec::new(), None);
    let eos_piece = trainer.eos_piece.as_deref().unwrap_or(EOS_PIECE);
    for (id, piece) in proto.pieces.iter().enumerate() {
        let text = piece.piece.as_deref().unwrap_or_default();
        let kind = Kind::of_number(piece.kind.unwrap_or(1));
        let kind = kind.ok_or_else(|| {
            format!(
                "piece {id} has unknown type {}",
                piece.kind.unwrap_or_default()
            )
        })?;
        let score = piece.score.unwrap_or(0.0);
        if !score.is_finite() {
            return Err(format!(
                "piece {id} has score {score}, expected a finite number"
            ));
        }
        if matches!(kind, Kind::Control | Kind::UserDefined) {
            added_tokens.push(json!({
                "id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": kind == Kind::Control,
            }));
            if text == eos_piece {
                eos_token = Some(text);
            }
        }
        vocab.push(json!([text, score, kind.name()]));
    }
    let model_type = ModelType::of_number(trainer.model_type.unwrap_or(1));
    let model_type = model_type.ok_or_else(|| {
        format!(
            "unknown model_type {}",
            trainer.model_type.unwrap_or_default()
        )
    })?;
    // The library ignores a denormalizer without a map, whatever other settings it has.
    let denormalizer = proto.denormalizer_spec.as_ref().filter(|spec| {
        let charsmap = spec.precompiled_charsmap.as_ref();
        charsmap.is_some_and(|charsmap| !charsmap.is_empty())
    });
    let mut decoder = json!({
        "type": NORMALIZER,
        "unk_surface": trainer.unk_surface.as_deref().unwrap_or(UNK_SURFACE),
        "denormalizes": denormalizer.is_some(),
    });
    if let Some(denormalizer) = denormalizer {
        // The library does not pass the trainer's settings to the denormalizer.
        decoder["denormalizer"] = rules_written_out(denormalizer, false);
    }
    Ok(json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added_tokens,
        "normalizer":
            rules_written_out(&rules, trainer.treat_whitespace_as_suffix.unwrap_or(false)),
        "pre_tokenizer": null,
        "post_processor": null,
        "decoder": decoder,
        "model": {
            "type": model_type.name(),
            "byte_fallback": trainer.byte_fallback.unwrap_or(false),
            "vocab": vocab,
        },
        "eos_token": eos_token,
    }))
}

fn rules_written_out(spec: &NormalizerSpec, treat_whitespace_as_suffix: bool) -> Value {
    let charsmap = spec.precompiled_charsmap.as_deref().unwrap_or_default();
    json!({
        "type": NORMALIZER,
        "precompiled_charsmap": BASE64_STANDARD.encode(charsmap),
        "add_dummy_prefix": spec.add_dummy_prefix.unwrap_or(true),
        "remove_extra_whitespaces": spec.remove_extra_whitespaces.unwrap_or(true),
        "escape_whitespaces": spec.escape_whitespaces.unwrap_or(true),
        "treat_whitespace_as_suffix": treat_whitespace_as_suffix,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(text: &str, score: f32, kind: i32) -> PieceProto {
        PieceProto {
            piece: Some(text.to_owned()),
            score: Some(score),
            kind: Some(kind),
        }
    }

    fn proto() -> ModelProto {
        ModelProto {
            pieces: vec![
                piece("<unk>", 0.0, 2),
                piece("</s>", 0.0, 3),
                piece("▁a", -0.1, 1),
            ],
            ..ModelProto::default()
        }
    }

    fn refused(bytes: &[u8]) -> String {
        tokenizer_json("t", bytes).unwrap_err().to_string()
    }

    #[test]
    fn what_a_file_does_not_say_is_as_the_library_has_it() {
        let file = tokenizer_json("t", &proto().encode_to_vec()).unwrap();
        let file: Value = serde_json::from_str(&file).unwrap();
        assert_eq!(file["model"]["type"], "SentencePieceUnigram");
        assert_eq!(file["normalizer"]["add_dummy_prefix"], true);
        assert_eq!(file["eos_token"], "</s>");
        assert_eq!(file["added_tokens"].as_array().unwrap().len(), 1);
        assert_eq!(file["model"]["vocab"][2], json!(["▁a", -0.1f32, "normal"]));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(
            refused(b""),
            "t: not a SentencePiece model: it has no pieces"
        );
        assert!(refused(b"hello").starts_with("t: not a SentencePiece model: failed to decode"));
        let mut wrong = proto();
        wrong.pieces[2].score = Some(f32::NAN);
        assert!(
            refused(&wrong.encode_to_vec())
                .ends_with("piece 2 has score NaN, expected a finite number")
        );
        wrong.pieces[2] = piece("a", 0.0, 7);
        assert!(refused(&wrong.encode_to_vec()).ends_with("piece 2 has unknown type 7"));
    }
}
