//! A loaded tokenizer: the description of its file, and the engines that serve it.

use std::sync::OnceLock;

use serde_json::Value;

use crate::byte_decoder::ByteDecoder;
use crate::cause::Cause;
use crate::engines::choose::FastEngine;
use crate::engines::fallback::Fallback;
use crate::error::{Error, Result};
use crate::load::LoadError;
use crate::load::{AddedToken, Description, described, parsed};
use crate::marked_decoder::MarkedDecoder;
use crate::options::SpecialTokensInText;

/// The state that all clones of a tokenizer share.
pub(crate) struct Loaded {
    pub(crate) name: String,
    /// The text of the tokenizer.json.
    pub(crate) json: String,
    pub(crate) description: Description,
    /// The fallback engine, or the reason why it cannot be loaded. Loaded on first use, because
    /// loading takes longer than all other steps.
    fallback: OnceLock<std::result::Result<Fallback, String>>,
    /// The fast engine, or the reason why it does not cover the file.
    fast: std::result::Result<FastEngine, String>,
    /// The reason why the fast engine must not be used although it covers the file.
    distrust: OnceLock<String>,
    /// Created on the first decoding; `None` if only the fallback engine can decode the ids.
    decoder: OnceLock<Option<Decoder>>,
}

/// A decoder that does without the fallback engine.
enum Decoder {
    Bytes(ByteDecoder),
    Marks(MarkedDecoder),
}

impl Loaded {
    /// Loads the text of a tokenizer.json or tekken.json. Also returns what its library does with the text of special
    /// tokens.
    ///
    /// # Errors
    /// The text is neither, or no engine serves it exactly.
    pub(crate) fn load(name: &str, json: String) -> Result<(Self, SpecialTokensInText)> {
        let (file, made) = parsed(name, &json)?;
        let special_tokens_in_text = match made {
            Some(_) => SpecialTokensInText::Text,
            None => SpecialTokensInText::Parse,
        };
        let json = made.unwrap_or(json);
        let (mut description, file) = described(name, file)?;
        let mut fast = FastEngine::load(&file, &description.added_tokens);
        let fallback = OnceLock::new();
        if fast.as_ref().map_or(true, FastEngine::needs_fallback) {
            let engine = Fallback::load(&json, description.is_sentencepiece).map_err(|source| {
                Error::Load(LoadError::Unloadable {
                    name: name.to_owned(),
                    source,
                })
            })?;
            fast = fast.and_then(|fast| {
                fast.check(&mut |word, ids| engine.encode_into(word, false, ids))?;
                Ok(fast)
            });
            if let (Err(reason), Fallback::Reference(_)) = (&fast, &engine) {
                description.notes.push(format!(
                    "uses {}, which is exact but slower, because {reason}",
                    engine.kind().name()
                ));
            }
            let _ = fallback.set(Ok(engine));
        }
        let loaded = Self {
            name: name.to_owned(),
            json,
            description,
            fallback,
            fast,
            distrust: OnceLock::new(),
            decoder: OnceLock::new(),
        };
        if loaded.fast.is_err() {
            loaded.check_added_tokens()?;
        }
        Ok((loaded, special_tokens_in_text))
    }

    /// The same tokenizer without the fast engine; `None` if the tokenizer has no fast engine.
    ///
    /// # Errors
    /// The fallback engine cannot load the file, or assigns other ids to added tokens.
    pub(crate) fn without_fast(&self) -> Result<Option<Self>> {
        if self.fast().is_err() {
            return Ok(None);
        }
        self.check_added_tokens()?;
        let fallback = self.fallback()?.clone();
        Ok(Some(Self {
            name: self.name.clone(),
            json: self.json.clone(),
            description: self.description.clone(),
            fast: Err(format!("{} was requested", fallback.kind().name())),
            fallback: OnceLock::from(Ok(fallback)),
            distrust: OnceLock::new(),
            // The requested engine also decodes.
            decoder: OnceLock::from(None),
        }))
    }

    /// The fast engine, or the reason why it is not used.
    pub(crate) fn fast(&self) -> std::result::Result<&FastEngine, &str> {
        match self.distrust.get() {
            Some(reason) => Err(reason),
            None => self.fast.as_ref().map_err(String::as_str),
        }
    }

    /// The reason why the fast engine is not used although it covers the file.
    pub(crate) fn distrust(&self) -> Option<&str> {
        self.distrust.get().map(String::as_str)
    }

    /// Stops using the fast engine. Of several reasons, the first is kept.
    pub(crate) fn distrust_fast(&self, reason: &str) {
        let _ = self.distrust.set(reason.to_owned());
    }

    /// The engine that covers all of the file.
    pub(crate) fn fallback(&self) -> Result<&Fallback> {
        let load = || {
            let loaded = Fallback::load(&self.json, self.description.is_sentencepiece);
            loaded.map_err(|cause| cause.to_string())
        };
        let loaded = self.fallback.get_or_init(load);
        loaded.as_ref().map_err(|cause| {
            Error::Load(LoadError::Unloadable {
                name: self.name.clone(),
                source: cause.clone().into(),
            })
        })
    }

    pub(crate) fn special_tokens(&self) -> impl Iterator<Item = &AddedToken> {
        let tokens = self.description.added_tokens.iter();
        tokens.filter(|token| token.is_special)
    }

    /// Checks that the reference engine gives added tokens the ids that were read from the file.
    fn check_added_tokens(&self) -> Result<()> {
        let Fallback::Reference(engine) = self.fallback()? else {
            // Both SentencePiece engines use the ids that were read from the file.
            return Ok(());
        };
        for token in &self.description.added_tokens {
            let reference_id = engine.token_to_id(&token.content);
            if reference_id != Some(token.id) {
                return Err(Error::Load(LoadError::Disagreement {
                    name: self.name.clone(),
                    token: token.content.clone(),
                    expected: token.id,
                    found: reference_id,
                }));
            }
        }
        Ok(())
    }

    /// The bytes of each token, if the vocabulary is byte-level; read at the first call.
    pub(crate) fn byte_decoder(&self) -> Option<&ByteDecoder> {
        match self.decoder()? {
            Decoder::Bytes(decoder) => Some(decoder),
            Decoder::Marks(_) => None,
        }
    }

    /// The decoder of the vocabulary. The library of SentencePiece models decodes in its own way.
    fn decoder(&self) -> Option<&Decoder> {
        let read = || {
            if self.description.is_sentencepiece {
                return None;
            }
            let file: Value = serde_json::from_str(&self.json).ok()?;
            let added_tokens = &self.description.added_tokens;
            let reference_text = |ids: &[u32], skips| self.fallback_text(ids, skips).ok();
            let bytes = ByteDecoder::read(&file, added_tokens, reference_text);
            bytes.map(Decoder::Bytes).or_else(|| {
                MarkedDecoder::read(&file, added_tokens, reference_text).map(Decoder::Marks)
            })
        };
        self.decoder.get_or_init(read).as_ref()
    }

    /// The text of `ids`.
    ///
    /// # Errors
    /// The engine refuses the ids, or cannot be loaded.
    pub(crate) fn text_of(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String> {
        match self.decoder() {
            Some(Decoder::Bytes(decoder)) => Ok(decoder.text_of(ids, skip_special_tokens)),
            Some(Decoder::Marks(decoder)) => Ok(decoder.text_of(ids, skip_special_tokens)),
            None => self.fallback_text(ids, skip_special_tokens),
        }
    }

    /// The text of `ids` by the fallback engine.
    ///
    /// # Errors
    /// As [`Self::text_of`].
    pub(crate) fn fallback_text(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String> {
        let text = match self.fallback()? {
            Fallback::Reference(engine) => engine.decode(ids, skip_special_tokens),
            Fallback::SentencePiece(engine) if skip_special_tokens => {
                let is_special = |id: &u32| self.special_tokens().any(|token| token.id == *id);
                let ids: Vec<u32> = ids.iter().copied().filter(|id| !is_special(id)).collect();
                engine.decode(&ids).map_err(Cause::from)
            }
            Fallback::SentencePiece(engine) => engine.decode(ids).map_err(Cause::from),
        };
        text.map_err(|source| Error::Decode { source })
    }
}
