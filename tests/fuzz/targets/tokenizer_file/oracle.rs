//! `tokenizers` itself. Its panics count as refusals.

use packtok_tokenizer::{EncodeOptions, SpecialTokensInText};
use tokenizers::{PostProcessor, TruncationParams};

use crate::panics::catch;

/// The result of a call, or why it was refused.
pub(crate) type Outcome<T> = Result<T, String>;

/// A file loaded by `tokenizers`.
pub(crate) struct Oracle {
    pub(crate) parsing: tokenizers::Tokenizer,
    as_text: tokenizers::Tokenizer,
    /// `parsing` and `as_text` with truncation.
    truncating: Option<[tokenizers::Tokenizer; 2]>,
}

impl Oracle {
    pub(crate) fn load(json: &str) -> Outcome<Self> {
        let load = || {
            let mut parsing = tokenizers::Tokenizer::from_bytes(json)?;
            parsing.with_truncation(None)?;
            parsing.with_padding(None);
            let mut as_text = parsing.clone();
            as_text.set_encode_special_tokens(true);
            Ok(Self {
                parsing,
                as_text,
                truncating: None,
            })
        };
        flat(catch(load), |error: tokenizers::Error| error.to_string())
    }

    /// Number of special tokens that truncation reserves room for.
    pub(crate) fn num_special(&self) -> usize {
        let processor = self.parsing.get_post_processor();
        processor.map_or(0, |processor| processor.added_tokens(false))
    }

    pub(crate) fn truncate_to(&mut self, max_length: usize) {
        let truncating = [&self.parsing, &self.as_text].map(|tokenizer| {
            let mut tokenizer = tokenizer.clone();
            let truncation = TruncationParams {
                max_length,
                ..TruncationParams::default()
            };
            // If it refuses the limit, so does packtok.
            let _ = tokenizer.with_truncation(Some(truncation));
            tokenizer
        });
        self.truncating = Some(truncating);
    }

    /// Whether encoding terminates and is deterministic. If a normalized added token is empty, and is not the only one,
    /// `tokenizers` loops forever; if two are equal, it finds either of them, which changes from run to run.
    pub(crate) fn has_ids_of_texts(&self) -> bool {
        let vocabulary = self.parsing.get_added_vocabulary();
        let tokens = vocabulary.get_added_tokens_decoder().iter();
        let ids = tokens
            .filter(|(_, token)| token.normalized)
            .map(|(&id, _)| id);
        // The text that it is found by, which may be an older one that had the same id.
        let mut all: Vec<String> = ids
            .filter_map(|id| vocabulary.simple_id_to_token(id))
            .collect();
        all.sort_unstable();
        let is_empty = all.len() > 1 && all[0].is_empty();
        !is_empty && all.windows(2).all(|two| two[0] != two[1])
    }

    pub(crate) fn encode(&self, text: &str, options: &EncodeOptions) -> Outcome<Vec<u32>> {
        let is_text = options.special_tokens_in_text == SpecialTokensInText::Text;
        let tokenizer = match &self.truncating {
            Some(truncating) if options.truncate_to.is_some() => &truncating[usize::from(is_text)],
            _ if is_text => &self.as_text,
            _ => &self.parsing,
        };
        let encode = || {
            let encoding = tokenizer.encode_fast(text, options.add_special_tokens)?;
            Ok(encoding.get_ids().to_vec())
        };
        flat(catch(encode), |error: tokenizers::Error| error.to_string())
    }

    pub(crate) fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Outcome<String> {
        let decode = || self.parsing.decode(ids, skip_special_tokens);
        flat(catch(decode), |error: tokenizers::Error| error.to_string())
    }
}

fn flat<T, E>(caught: Result<Result<T, E>, String>, message: impl Fn(E) -> String) -> Outcome<T> {
    caught?.map_err(message)
}
