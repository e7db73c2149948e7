//! [`Encoder`], which appends the ids of documents on one thread.

use std::sync::Arc;

use crate::encode_error::EncodeError;
use crate::engines::choose::FastScratch;
use crate::error::{Error, Result};
use crate::loaded::Loaded;
use crate::options::{EncodeOptions, EngineChoice, SpecialTokensInText, TruncationSide};

/// Encodes documents on one thread. Owns the cache and the buffers that are reused between
/// documents.
pub struct Encoder {
    tokenizer: Arc<Loaded>,
    options: EncodeOptions,
    truncate_text_to: usize,
    /// Scratch memory of the fast engine, if the fast engine is used.
    fast: Option<FastScratch>,
    /// The ids of a document before they are narrowed to two bytes.
    wide_ids: Vec<u32>,
}

impl Encoder {
    /// An encoder of `tokenizer`.
    ///
    /// # Errors
    /// `truncate_to` leaves no room for the added tokens, or the requested engine does not cover
    /// the file.
    pub(crate) fn new(tokenizer: Arc<Loaded>, options: EncodeOptions) -> Result<Self> {
        let num_special = num_special(&tokenizer, &options);
        let truncate_text_to = match options.truncate_to {
            Some(max_length) if max_length < num_special => {
                return Err(Error::Encode(EncodeError::TruncationTooShort {
                    max_length,
                    num_special,
                }));
            }
            Some(max_length) => max_length - num_special,
            None => usize::MAX,
        };
        let fast = match (options.engine, tokenizer.fast()) {
            (EngineChoice::Reference, _) | (EngineChoice::Auto, Err(_)) => {
                tokenizer.fallback()?;
                None
            }
            (_, Ok(fast)) => Some(fast.scratch(options.cache_bytes)),
            (EngineChoice::Fast, Err(reason)) => {
                return Err(Error::Encode(EncodeError::NotFast {
                    name: tokenizer.name.clone(),
                    reason: reason.to_owned(),
                }));
            }
        };
        Ok(Self {
            tokenizer,
            options,
            truncate_text_to,
            fast,
            wide_ids: Vec::new(),
        })
    }

    /// The number of ids of special tokens that surround the ids of every text.
    pub fn num_special(&self) -> usize {
        num_special(&self.tokenizer, &self.options)
    }

    /// Appends the ids of one document to `ids`; on an error, `ids` is unchanged.
    ///
    /// Allocates nothing once the buffers have grown, unless the reference engine encodes.
    ///
    /// # Errors
    /// [`EncodeError::SpecialTokenInText`] if the options refuse special tokens; [`EncodeError::Engine`] if the engine refuses the
    /// text.
    pub fn encode_into(&mut self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        let start = ids.len();
        let template = &self.tokenizer.description.template;
        if self.options.add_special_tokens {
            ids.extend_from_slice(&template.prefix);
        }
        let text_start = ids.len();
        if let Err(error) = self.encode_text_into(text, text_start, ids) {
            ids.truncate(start);
            return Err(error);
        }
        self.truncate(text_start, ids);
        if self.options.add_special_tokens {
            ids.extend_from_slice(&self.tokenizer.description.template.suffix);
        }
        Ok(())
    }

    /// Truncates the ids of a text, which start at `text_start`, to the length that the options
    /// allow.
    fn truncate(&self, text_start: usize, ids: &mut Vec<u32>) {
        let num_cut = (ids.len() - text_start).saturating_sub(self.truncate_text_to);
        match self.options.truncation_side {
            TruncationSide::Left => drop(ids.drain(text_start..text_start + num_cut)),
            TruncationSide::Right => ids.truncate(ids.len() - num_cut),
        }
    }

    /// As [`Encoder::encode_into`], but appends ids of two bytes, which take half the memory.
    ///
    /// # Errors
    /// As [`Encoder::encode_into`]; [`EncodeError::WideIds`] if some id of the tokenizer needs
    /// more than two bytes, whatever the text.
    pub fn encode_u16_into(&mut self, text: &str, ids: &mut Vec<u16>) -> Result<()> {
        let vocab_size = self.tokenizer.description.vocab_size;
        if vocab_size > 1 << 16 {
            return Err(Error::Encode(EncodeError::WideIds {
                name: self.tokenizer.name.clone(),
                vocab_size,
            }));
        }
        let mut wide_ids = std::mem::take(&mut self.wide_ids);
        wide_ids.clear();
        let outcome = self.encode_into(text, &mut wide_ids);
        ids.extend(wide_ids.iter().map(|&id| id as u16));
        self.wide_ids = wide_ids;
        outcome
    }

    fn encode_text_into(&mut self, text: &str, start: usize, ids: &mut Vec<u32>) -> Result<()> {
        let is_text = self.options.special_tokens_in_text == SpecialTokensInText::Text;
        let tokenizer = &self.tokenizer;
        let refuses = self.options.special_tokens_in_text == SpecialTokensInText::Fail;
        if refuses && tokenizer.description.is_sentencepiece {
            // SentencePiece models never turn the name of a special token into its id, so a
            // special token in the text is not visible in the ids.
            let mut special = self.tokenizer.special_tokens();
            if let Some(token) = special.find(|token| text.contains(&token.content)) {
                return Err(Error::Encode(EncodeError::SpecialTokenInText {
                    token: token.content.clone(),
                }));
            }
        }
        let by_fallback =
            |text: &str, ids: &mut Vec<u32>| tokenizer.fallback()?.encode_into(text, is_text, ids);
        let done = match (tokenizer.fast(), &mut self.fast) {
            (Ok(fast), Some(scratch)) => {
                fast.encode_into(text, is_text, scratch, ids, &mut &by_fallback)
            }
            _ => Ok(false),
        };
        let done = done.and_then(|is_done| {
            if is_done {
                Ok(())
            } else {
                by_fallback(text, ids)
            }
        });
        done.map_err(|cause| Error::of_engine(&tokenizer.name, cause))?;
        if refuses {
            self.refuse_special_tokens(&ids[start..])?;
        }
        Ok(())
    }

    fn refuse_special_tokens(&self, ids: &[u32]) -> Result<()> {
        for token in self.tokenizer.special_tokens() {
            if ids.contains(&token.id) {
                return Err(Error::Encode(EncodeError::SpecialTokenInText {
                    token: token.content.clone(),
                }));
            }
        }
        Ok(())
    }
}

/// The number of ids of special tokens that surround the ids of every text.
fn num_special(tokenizer: &Loaded, options: &EncodeOptions) -> usize {
    if options.add_special_tokens {
        tokenizer.description.template.num_special()
    } else {
        0
    }
}
