//! The reference engine: the `tokenizers` crate 0.23. Only this file and its folder name the crate.
//!
//! The crate is the code base of the Python package that ids are compared with, including its Unicode tables. It
//! serves the files that no fast engine covers, and fast engines are checked against it.
//!
//! The crate panics on some files and texts. No panic leaves this module: each becomes an error with one line of text.

mod charsmap;
mod limited;
mod unknown;

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokenizers::{
    Encoding, ModelWrapper, NormalizedString, Normalizer as _, PostProcessor as _,
    PostProcessorWrapper, Token, Tokenizer, TokenizerImpl,
};

use self::limited::{LimitedDecoder, LimitedNormalizer, LimitedPostProcessor, LimitedPreTokenizer};
use super::excess::{Excess, Room};
use crate::cause::{Cause, OutOfMemory};

/// A tokenizer of the crate whose steps are limited.
type LimitedTokenizer = TokenizerImpl<
    ModelWrapper,
    LimitedNormalizer,
    LimitedPreTokenizer,
    PostProcessorWrapper,
    LimitedDecoder,
>;

/// A loaded tokenizer; clones share it.
#[derive(Clone)]
pub(crate) struct Reference(Arc<Modes>);

/// In the crate, a tokenizer has a fixed setting of whether special tokens are text. So each mode
/// needs its own tokenizer; the second one is created on first use.
struct Modes {
    parsing: LimitedTokenizer,
    as_text: OnceLock<LimitedTokenizer>,
    /// Length of the name of the unknown token. A model copies the name for every unknown
    /// character.
    unk_bytes: usize,
}

impl Reference {
    /// Loads a tokenizer.json, with truncation and padding switched off.
    ///
    /// # Errors
    /// The crate refuses the file, or panics.
    pub(crate) fn load(json: &str) -> Result<Self, Cause> {
        let parsing = contained("fails on this file", || {
            let mut tokenizer = LimitedTokenizer::from_bytes(json)?;
            tokenizer.with_truncation(None)?;
            tokenizer.with_padding(None);
            Ok(tokenizer)
        });
        let parsing = parsing.map_err(|cause| match serde_json::from_str(json) {
            Ok(file) => explained(&file, cause),
            Err(_) => cause,
        })?;
        let unk_token = match parsing.get_model() {
            ModelWrapper::BPE(model) => model.get_unk_token().as_deref().unwrap_or_default(),
            ModelWrapper::WordPiece(model) => &model.unk_token,
            ModelWrapper::WordLevel(model) => &model.unk_token,
            ModelWrapper::Unigram(_) => "",
        };
        Ok(Self(Arc::new(Modes {
            unk_bytes: unk_token.len(),
            parsing,
            as_text: OnceLock::new(),
        })))
    }

    fn mode(&self, special_tokens_are_text: bool) -> &LimitedTokenizer {
        if !special_tokens_are_text {
            return &self.0.parsing;
        }
        self.0.as_text.get_or_init(|| {
            let mut tokenizer = self.0.parsing.clone();
            tokenizer.set_encode_special_tokens(true);
            tokenizer
        })
    }

    /// Appends the ids of `text`, without the special tokens that a post-processor adds.
    ///
    /// # Errors
    /// The crate refuses the text or panics, or a pattern of the file exceeds its limit of steps.
    pub(crate) fn encode_into(
        &self,
        text: &str,
        special_tokens_are_text: bool,
        ids: &mut Vec<u32>,
    ) -> Result<(), Cause> {
        let tokenizer = self.mode(special_tokens_are_text);
        let room = Room::of(text.len());
        if !room.has((text.len() as u64).saturating_mul(self.0.unk_bytes as u64)) {
            return Err(Box::new(room.excess("unk_token")));
        }
        limited::begin(text.len());
        let encoding = contained("fails on this text", || tokenizer.encode_fast(text, false))?;
        ids.extend_from_slice(encoding.get_ids());
        Ok(())
    }

    /// The id of a token by its name, added tokens first.
    pub(crate) fn token_to_id(&self, token: &str) -> Option<u32> {
        self.0.parsing.token_to_id(token)
    }

    /// The text of `ids`.
    ///
    /// # Errors
    /// The crate refuses the ids or panics.
    pub(crate) fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String, Cause> {
        contained("fails on these ids", || {
            self.0.parsing.decode(ids, skip_special_tokens)
        })
    }
}

/// Prefix of the panic message of the crate `onig` for a search without an answer. The crate has
/// no other way to report that a pattern has tried ten million ways to match at one position.
const GAVE_UP: &str = "Onig: Regex search error: ";

/// The reason if it has no memory.
const ONIG_OUT_OF_MEMORY: &str = "fail to memory allocation";

/// Maximum length of a panic's message in an error; some messages quote a whole file.
const SHOWN_CHARS: usize = 160;

/// Version of the `tokenizers` crate.
pub const TOKENIZERS_VERSION: &str = "0.23.2";

thread_local! {
    static IS_CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic on this thread would currently be caught and become an error. Panic hooks need
/// not report such a panic.
pub fn is_panic_contained() -> bool {
    IS_CONTAINED.get()
}

/// Runs `call`. A panic becomes an error that starts with "the tokenizers library" and `fails`.
fn contained<T>(fails: &str, call: impl FnOnce() -> Result<T, Cause>) -> Result<T, Cause> {
    let was_contained = IS_CONTAINED.replace(true);
    // A panic leaves no broken state: encoding and decoding only change a cache, which the crate bypasses once its
    // lock is poisoned, and a tokenizer that is being loaded is dropped.
    let outcome = panic::catch_unwind(AssertUnwindSafe(call));
    IS_CONTAINED.set(was_contained);
    outcome.unwrap_or_else(|panicked| {
        let panicked = match panicked.downcast::<Excess>() {
            Ok(excess) => return Err(excess),
            Err(panicked) => panicked,
        };
        let message = message_of(&*panicked);
        if let Some(reason) = message.strip_prefix(GAVE_UP) {
            if reason.contains(ONIG_OUT_OF_MEMORY) {
                return Err(OutOfMemory.into());
            }
            return Err(
                format!("a pattern of the tokenizer stopped without a result ({reason})").into(),
            );
        }
        let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
        let excerpt: String = line.chars().take(SHOWN_CHARS).collect();
        Err(format!("the tokenizers library {fails}: {excerpt}").into())
    })
}

fn message_of(panicked: &(dyn Any + Send)) -> &str {
    let message = panicked.downcast_ref::<String>().map(String::as_str);
    message
        .or_else(|| panicked.downcast_ref::<&str>().copied())
        .unwrap_or("no reason given")
}

/// The crate's message for a component of unknown type. The message does not name the component.
const TRIED_ALL: &str = "did not match any variant of untagged enum";

/// `cause`, or an error that names the component of `file` if `cause` does not.
fn explained(file: &Value, cause: Cause) -> Cause {
    if !cause.to_string().contains(TRIED_ALL) {
        return cause;
    }
    let named = contained("fails on this file", || Ok(unknown::error_of(file)));
    named.ok().flatten().unwrap_or(cause)
}

/// Components of a tokenizer.json as the crate serializes them. Unknown types and keys of the
/// wrong type are no longer present.
pub(crate) struct Understood {
    pub(crate) normalizer: Value,
    pub(crate) pre_tokenizer: Value,
    /// Whether the model has the type that its keys suggest. For a model without a type, the crate
    /// tries its types in order and takes the first that fits.
    pub(crate) is_model_known: bool,
}

/// The components of a parsed tokenizer.json as the crate understands them. `model_type` is the
/// type of its model.
///
/// Loads the file without its vocabulary and merges, which the fast engines read themselves. The
/// other settings of a BPE model are loaded.
///
/// # Errors
/// The crate refuses the file.
pub(crate) fn understood(file: &Value, model_type: &str) -> Result<Understood, Cause> {
    charsmap::check_maps(&file["normalizer"])?;
    let without = |value: &Value, left_out: &[&str]| -> Map<String, Value> {
        let entries = value.as_object().into_iter().flatten();
        let kept = entries.filter(|(key, _)| !left_out.contains(&key.as_str()));
        kept.map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    let of_components = without(file, &["model"]);
    let load = |model: Value| {
        let mut shell = of_components.clone();
        shell.insert("model".to_owned(), model);
        let shell = Value::from(shell);
        let text = shell.to_string();
        contained("fails on this file", || Tokenizer::from_bytes(&text))
            .map_err(|cause| explained(&shell, cause))
    };
    let any_model = || json!({"type": "WordLevel", "vocab": {}, "unk_token": ""});
    let has_type = file["model"]["type"].is_string();
    let (tokenizer, is_model_known) = match model_type {
        "BPE" => {
            let mut model = Value::from(without(&file["model"], &["vocab", "merges"]));
            model["type"] = "BPE".into();
            model["vocab"] = json!({});
            model["merges"] = json!([]);
            match load(model) {
                Ok(tokenizer) => (tokenizer, true),
                Err(cause) if has_type => return Err(cause),
                Err(_) => (load(any_model())?, false),
            }
        }
        _ if has_type => (load(any_model())?, true),
        _ => {
            let mut model = Value::from(without(&file["model"], &["vocab"]));
            model["vocab"] = least_vocab(&file["model"]);
            match load(model) {
                Ok(tokenizer) if type_name(tokenizer.get_model()) == model_type => {
                    (tokenizer, true)
                }
                _ => (load(any_model())?, false),
            }
        }
    };
    Ok(Understood {
        normalizer: serde_json::to_value(tokenizer.get_normalizer())?,
        pre_tokenizer: serde_json::to_value(tokenizer.get_pre_tokenizer())?,
        is_model_known,
    })
}

/// A vocabulary with which the crate takes a model without a type for the same one as with all of it: which type fits
/// depends on the keys, and on whether the vocabulary is a map or a list. A list needs the unknown token.
fn least_vocab(model: &Value) -> Value {
    match &model["vocab"] {
        Value::Array(pieces) => {
            let unknown = model["unk_id"].as_u64().unwrap_or(0) as usize;
            pieces
                .iter()
                .take(unknown.saturating_add(1))
                .cloned()
                .collect()
        }
        _ => json!({}),
    }
}

/// The name of a model's type in files.
fn type_name(model: &ModelWrapper) -> &'static str {
    match model {
        ModelWrapper::BPE(_) => "BPE",
        ModelWrapper::WordPiece(_) => "WordPiece",
        ModelWrapper::WordLevel(_) => "WordLevel",
        ModelWrapper::Unigram(_) => "Unigram",
    }
}

/// The normalizer of a file.
pub(crate) struct Normalizer(Option<LimitedNormalizer>);

impl Normalizer {
    /// Reads the normalizer of a tokenizer.json; `None` if the crate does not know it.
    pub(crate) fn read(json: &Value) -> Option<Self> {
        let read = || Ok(Option::deserialize(json)?);
        contained("fails on this normalizer", read).ok().map(Self)
    }

    /// The normalized form of a text without added tokens; `None` if the crate refuses it.
    pub(crate) fn normalized(&self, text: &str) -> Option<String> {
        let Some(normalizer) = &self.0 else {
            return Some(text.to_owned());
        };
        let mut normalized = NormalizedString::from(text);
        limited::begin(text.len());
        contained("fails on this text", || {
            normalizer.normalize(&mut normalized)
        })
        .ok()?;
        Some(normalized.get().to_owned())
    }
}

/// The post-processor of a file.
pub(crate) struct PostProcessor(LimitedPostProcessor);

impl PostProcessor {
    /// Reads the post-processor of a tokenizer.json.
    ///
    /// # Errors
    /// The crate refuses it.
    pub(crate) fn read(json: &Value) -> Result<Self, Cause> {
        let read = || Ok(LimitedPostProcessor::deserialize(json)?);
        contained("fails on this post-processor", read).map(Self)
    }

    /// `ids` with the ids that the post-processor adds, with or without special tokens.
    ///
    /// # Errors
    /// The crate refuses the ids or panics.
    pub(crate) fn processed(
        &self,
        ids: &[u32],
        add_special_tokens: bool,
    ) -> Result<Vec<u32>, Cause> {
        let token = |&id| Token::new(id, String::new(), (0, 0));
        let encoding = Encoding::from_tokens(ids.iter().map(token).collect(), 0);
        let processed = contained("fails in its post-processor", || {
            self.0.process(encoding, None, add_special_tokens)
        })?;
        Ok(processed.get_ids().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_lock_file() {
        let lock = include_str!("../../../../Cargo.lock");
        let locked = format!("name = \"tokenizers\"\nversion = \"{TOKENIZERS_VERSION}\"\n");
        assert!(lock.contains(&locked));
    }
}
