//! Text to token ids, exactly as Hugging Face `tokenizers`, and ids back to text.
//!
//! `load` turns a file of any supported format (`tokenizer.json`, `tekken.json`, SentencePiece's
//! `.model`, OpenAI's lists of ranks) into a checked description. `engines` computes the ids. The
//! crate is independent of corpora, threads and pbin files.
//!
//! All threads share a [`Tokenizer`]. Each thread encodes with its own [`Encoder`], which appends
//! the ids of one document to a buffer of the caller. An encoder owns the cache and the scratch
//! memory of its engine.
#![deny(unsafe_code)]

mod adversarial_texts;
mod byte_decoder;
mod cause;
mod code_points;
mod components;
mod encode_error;
mod encoder;
mod engines;
mod error;
mod kinds;
mod letters;
mod load;
mod loaded;
mod marked_decoder;
mod options;
mod pieces;
mod speed;
mod token_table;
mod tokenizer;
mod vocabulary;

pub use adversarial_texts::{TextExtent, adversarial_texts};
pub use cause::Cause;
pub use code_points::CodePoints;
pub use components::Component;
pub use encode_error::EncodeError;
pub use encoder::Encoder;
pub use engines::kind::EngineKind;
pub use engines::reference::{TOKENIZERS_VERSION, is_panic_contained};
pub use error::{Error, Result};
pub use kinds::TokenKind;
pub use load::{
    AddedToken, BUILTIN_NAMES, ENDOFTEXT, LoadError, Matching, NewToken, Presence, appended_id,
    builtin_json, fingerprint_of,
};
pub use options::{EncodeOptions, EngineChoice, SpecialTokensInText, TruncationSide};
pub use speed::Speed;
pub use tokenizer::Tokenizer;
pub use vocabulary::Vocabulary;
