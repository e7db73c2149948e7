//! The engine: text to token ids, exactly as Hugging Face `tokenizers`, and ids back to text.
//!
//! It knows `tokenizer.json`, what can be written as one (`tekken.json`, SentencePiece's `.model`, OpenAI's lists of ranks), and nothing of corpora, threads or pbin files.
//! [`Tokenizer`] is shared by all threads; each thread encodes through an [`Encoder`] of its own,
//! which appends the ids of one document to a buffer that the caller owns. That pair is the line
//! behind which engines are exchanged: an encoder is where an engine keeps caches and scratch.
#![deny(unsafe_code)]

mod byte_decoder;
mod components;
mod encoder;
mod engines;
mod error;
mod letters;
mod load;
mod loaded;
mod nasty;
mod options;
mod tokenizer;
mod vocabulary;

pub use components::Component;
pub use encoder::Encoder;
pub use engines::kind::EngineKind;
pub use engines::reference::is_panic_contained;
pub use error::{Cause, Error, Result};
pub use load::{AddedToken, BUILTIN_NAMES, builtin_json, fingerprint_of};
pub use nasty::nasty_texts;
pub use options::{EncodeOptions, EngineChoice, SpecialTokensInText};
pub use tokenizer::Tokenizer;
pub use vocabulary::Vocabulary;
