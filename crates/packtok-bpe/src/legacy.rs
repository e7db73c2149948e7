//! The second engine: the `tokenizers` crate 0.23, in the one file that names it.
//!
//! Slower by an order of magnitude, but it is the code base of the Python package that ids are
//! compared with. It serves the files whose ids hang on Unicode tables (case, normal forms,
//! punctuation, `\w`), in which the reference engine's newer tables differ.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::Value;
use tokenizers_0_23::{NormalizedString, Normalizer as _, NormalizerWrapper, Tokenizer};

use crate::error::Cause;

/// The loaded tokenizer; clones share it.
#[derive(Clone)]
pub(crate) struct Legacy(Arc<Modes>);

/// Whether special tokens are text is a property of the whole tokenizer in this crate, so each
/// mode has its own; the second is made when it is first asked for.
struct Modes {
    parsing: Tokenizer,
    as_text: OnceLock<Tokenizer>,
}

impl Legacy {
    /// Loads a tokenizer.json; truncation and padding are switched off.
    pub(crate) fn load(json: &str) -> Result<Self, Cause> {
        let mut parsing = Tokenizer::from_bytes(json)?;
        parsing.with_truncation(None)?;
        parsing.with_padding(None);
        Ok(Self(Arc::new(Modes {
            parsing,
            as_text: OnceLock::new(),
        })))
    }

    fn mode(&self, special_tokens_are_text: bool) -> &Tokenizer {
        if !special_tokens_are_text {
            return &self.0.parsing;
        }
        self.0.as_text.get_or_init(|| {
            let mut tokenizer = self.0.parsing.clone();
            tokenizer.set_encode_special_tokens(true);
            tokenizer
        })
    }

    /// Appends the ids of `text`, without what a post-processor adds.
    ///
    /// # Errors
    /// The crate refuses the text, or a pattern of the file gives up on it.
    pub(crate) fn encode_into(
        &self,
        text: &str,
        special_tokens_are_text: bool,
        ids: &mut Vec<u32>,
    ) -> Result<(), Cause> {
        let tokenizer = self.mode(special_tokens_are_text);
        // Nothing is changed by what unwinds: a pattern gives up before anything is made of its matches.
        let encode = AssertUnwindSafe(|| tokenizer.encode_fast(text, false));
        let encoding = match panic::catch_unwind(encode) {
            Ok(encoding) => encoding?,
            Err(panicked) => return Err(why_pattern_gave_up(panicked)),
        };
        ids.extend_from_slice(encoding.get_ids());
        Ok(())
    }

    /// The ids of `text` as the crate itself post-processes them; to check the template with.
    pub(crate) fn encode_with_special_tokens(&self, text: &str) -> Result<Vec<u32>, Cause> {
        Ok(self.0.parsing.encode_fast(text, true)?.get_ids().to_vec())
    }

    /// The text of `ids`, special tokens included.
    pub(crate) fn decode(&self, ids: &[u32]) -> Result<String, Cause> {
        self.0.parsing.decode(ids, false)
    }
}

/// What a panic of the crate `onig` begins with where a search ends without an answer: the crate has no other way to say
/// that a pattern has tried ten million ways to match at one place.
const GAVE_UP: &str = "Onig: Regex search error: ";

/// Whether a panic with this message becomes an error of the text that was encoded.
pub fn is_pattern_giving_up(message: &str) -> bool {
    message.starts_with(GAVE_UP)
}

/// Unwinds further if that is not what happened.
fn why_pattern_gave_up(panicked: Box<dyn Any + Send>) -> Cause {
    let message = panicked.downcast_ref::<String>();
    match message.and_then(|message| message.strip_prefix(GAVE_UP)) {
        Some(reason) => format!("a pattern of the tokenizer gives up on it ({reason})").into(),
        None => panic::resume_unwind(panicked),
    }
}

/// The normalizer of a file by itself.
pub(crate) struct Normalizer(Option<NormalizerWrapper>);

impl Normalizer {
    /// What a tokenizer.json has for it; none if the crate does not know it.
    pub(crate) fn read(json: &Value) -> Option<Self> {
        Option::deserialize(json).ok().map(Self)
    }

    /// What it makes of a text that has no added tokens; none if it refuses.
    pub(crate) fn normalized(&self, text: &str) -> Option<String> {
        let Some(normalizer) = &self.0 else {
            return Some(text.to_owned());
        };
        let mut normalized = NormalizedString::from(text);
        normalizer.normalize(&mut normalized).ok()?;
        Some(normalized.get().to_owned())
    }
}
