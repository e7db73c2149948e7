//! Turns files of all formats into a checked description.
//!
//! ```text
//! file ──file──▶ bytes ──rank_file, sentencepiece_file──▶ tokenizer.json ──parsed, description──▶ Description
//!                 └──────tekken (in parsed)─────────────────▲
//! ```
//!
//! Other formats are converted to tokenizer.json, so that there is one description, one fingerprint and one file to
//! store next to an output. Engines read the same JSON.

mod added_tokens;
mod builtin;
mod component_type;
mod description;
mod error;
mod file;
mod fingerprint;
mod merges;
mod more_tokens;
mod parsed;
mod published;
mod rank_file;
mod ranks;
mod sentencepiece_file;
mod sentencepiece_types;
mod tekken;
mod template;
mod vocab;

pub use self::added_tokens::AddedToken;
pub use self::builtin::{BUILTIN_NAMES, ENDOFTEXT, builtin_json};
pub(crate) use self::component_type::{NOTHING, model_type, shape, type_of};
pub use self::description::fingerprint_of;
pub(crate) use self::description::{Description, described};
pub use self::error::LoadError;
pub(crate) use self::file::{json_of_bytes, json_of_file};
pub(crate) use self::more_tokens::MoreTokens;
pub use self::more_tokens::{Matching, NewToken, Presence};
pub(crate) use self::parsed::parsed;
pub(crate) use self::sentencepiece_types::{Kind, ModelType, is_sentencepiece};
pub use self::template::appended_id;
pub(crate) use self::vocab::vocab_id;
