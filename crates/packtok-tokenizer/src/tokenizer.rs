//! [`Tokenizer`], which all threads share.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::byte_decoder::ByteDecoder;
use crate::encoder::Encoder;
use crate::engines::byte_bpe::simd_name;
use crate::engines::choose::FastEngine;
use crate::engines::kind::EngineKind;
use crate::error::Result;
use crate::load::{
    AddedToken, MoreTokens, NewToken, Presence, builtin_json, json_of_bytes, json_of_file, vocab_id,
};
use crate::loaded::Loaded;
use crate::options::{EncodeOptions, EngineChoice, SpecialTokensInText};
use crate::vocabulary::Vocabulary;

/// A loaded tokenizer: the meaning of its ids, and the engines that compute them. Clones share
/// both.
#[derive(Clone)]
pub struct Tokenizer {
    shared: Arc<Loaded>,
    special_tokens_in_text: SpecialTokensInText,
}

impl Tokenizer {
    /// Loads a `tokenizer.json`, a `tekken.json`, a SentencePiece `.model` file or a known list of
    /// tiktoken's ranks. The tokenizer is called `name`, or by the path of the file.
    ///
    /// # Errors
    /// The file cannot be read, has none of these formats, or no engine serves it exactly.
    pub fn from_file(path: &Path, name: Option<&str>) -> Result<Self> {
        let path_name = path.display().to_string();
        let name = name.unwrap_or(&path_name);
        Self::from_json(name, json_of_file(path, name)?)
    }

    /// Loads the bytes of a tokenizer.json or tekken.json.
    ///
    /// # Errors
    /// As [`Tokenizer::from_file`].
    pub fn from_json_bytes(name: &str, bytes: Vec<u8>) -> Result<Self> {
        Self::from_json(name, json_of_bytes(name, bytes)?)
    }

    /// Loads a built-in tokenizer ([`crate::BUILTIN_NAMES`]), which needs neither a file nor a
    /// network.
    ///
    /// # Errors
    /// No built-in tokenizer has this name.
    pub fn builtin(name: &str) -> Result<Self> {
        Self::from_json(name, builtin_json(name)?)
    }

    /// Loads the text of a tokenizer.json, or of Mistral's tekken.json. Messages call the
    /// tokenizer `name`.
    ///
    /// # Errors
    /// As [`Tokenizer::from_file`].
    pub fn from_json(name: &str, json: String) -> Result<Self> {
        let (loaded, special_tokens_in_text) = Loaded::load(name, json)?;
        join_freed_memory();
        Ok(Self {
            shared: Arc::new(loaded),
            special_tokens_in_text,
        })
    }

    /// What the library that the file is for does with the text of a special token: Mistral's encodes it like any other
    /// text, others as the special token.
    pub fn special_tokens_in_text(&self) -> SpecialTokensInText {
        self.special_tokens_in_text
    }

    /// The same tokenizer as if its file were for a library that does this. A tokenizer.json that was converted from a
    /// tekken.json does not say what it was.
    pub fn with_special_tokens_in_text(self, special_tokens_in_text: SpecialTokensInText) -> Self {
        Self {
            special_tokens_in_text,
            ..self
        }
    }

    /// For each of `tokens`, whether and how the tokenizer contains it.
    ///
    /// # Errors
    /// As [`Tokenizer::from_file`].
    pub fn presence_of(&self, tokens: &[NewToken]) -> Result<Vec<Presence>> {
        let file = MoreTokens::read(self.name(), self.json(), self.added_tokens())?;
        Ok(tokens.iter().map(|token| file.presence(token)).collect())
    }

    /// The tokenizer with `tokens` added to its file, under the same name.
    ///
    /// # Errors
    /// A SentencePiece model cannot contain such a token; or as [`Tokenizer::from_file`].
    pub fn with_tokens(&self, tokens: &[NewToken]) -> Result<Self> {
        let file = MoreTokens::read(self.name(), self.json(), self.added_tokens())?;
        let more = Self::from_json(self.name(), file.written(self.json(), tokens)?)?;
        Ok(more.with_special_tokens_in_text(self.special_tokens_in_text))
    }

    /// The name that it was loaded under.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// `sha256:` and the hash of the parsed tokenizer.json; white space and the order of keys do not matter.
    pub fn fingerprint(&self) -> &str {
        &self.shared.description.fingerprint
    }

    /// Highest id + 1, added tokens included.
    pub fn vocab_size(&self) -> u64 {
        self.shared.description.vocab_size
    }

    /// The engine that serves it unless another is requested.
    pub fn engine(&self) -> EngineKind {
        match self.shared.fast() {
            Ok(_) => EngineKind::Fast,
            Err(_) => self.reference_kind(),
        }
    }

    /// The engine that the fast engine is compared with.
    pub fn reference_kind(&self) -> EngineKind {
        if self.shared.description.is_sentencepiece {
            EngineKind::SentencePiece
        } else {
            EngineKind::Reference
        }
    }

    /// The engine that serves it for this choice.
    pub fn engine_chosen(&self, choice: EngineChoice) -> EngineKind {
        match choice {
            EngineChoice::Auto | EngineChoice::Fast => self.engine(),
            EngineChoice::Reference => self.reference_kind(),
        }
    }

    /// The reason why the fast engine does not serve this tokenizer; `None` if it does.
    pub fn not_fast(&self) -> Option<&str> {
        self.shared.fast().err()
    }

    /// Whether the time for a text is known to be linear in its length, whatever its content.
    pub fn is_linear(&self) -> bool {
        self.shared.fast().is_ok_and(FastEngine::is_linear)
    }

    /// The name of the vector instructions that the fast engine uses on this machine; `None` if the fast engine does
    /// not serve.
    pub fn fast_back_end(&self) -> Option<&'static str> {
        self.shared.fast().ok().map(|_| simd_name())
    }

    /// The words that fall back to the reference engine, as a phrase, if the fast engine serves
    /// this tokenizer and encodes texts word by word.
    pub(crate) fn fallback_words(&self) -> Option<&'static str> {
        self.shared.fast().ok().and_then(FastEngine::fallback_words)
    }

    /// Texts that contain any of these bytes fall back to the reference engine, even if the fast
    /// engine serves the tokenizer.
    pub(crate) fn fallback_bytes(&self) -> &[u8] {
        self.shared.fast().map_or(&[], FastEngine::fallback_bytes)
    }

    /// The same for texts that contain any of these tokens.
    pub(crate) fn fallback_tokens(&self) -> &[String] {
        self.shared.fast().map_or(&[], FastEngine::fallback_tokens)
    }

    /// Whether it is a SentencePiece model.
    pub(crate) fn is_sentencepiece(&self) -> bool {
        self.shared.description.is_sentencepiece
    }

    /// The reason passed to [`Tokenizer::distrust_fast`], if the fast engine would otherwise
    /// serve.
    pub fn distrust(&self) -> Option<&str> {
        self.shared.distrust()
    }

    /// Makes the reference engine serve this tokenizer and all its clones from now on, for `reason`.
    pub fn distrust_fast(&self, reason: &str) {
        self.shared.distrust_fast(reason);
    }

    /// Deviations that users should know about, one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.shared.description.notes
    }

    /// The text of its tokenizer.json.
    pub fn json(&self) -> &str {
        &self.shared.json
    }

    /// All added tokens, in the order of the file.
    pub fn added_tokens(&self) -> &[AddedToken] {
        &self.shared.description.added_tokens
    }

    /// The added tokens that are special.
    pub fn special_tokens(&self) -> impl Iterator<Item = &AddedToken> {
        self.shared.special_tokens()
    }

    /// The end-of-sequence token, if the file itself names it.
    pub fn eos_token(&self) -> Option<&str> {
        self.shared.description.eos_token.as_deref()
    }

    /// Ids that come before the ids of every document when special tokens are added.
    pub fn prefix(&self) -> &[u32] {
        &self.shared.description.template.prefix
    }

    /// Ids that come after the ids of every document when special tokens are added.
    pub fn suffix(&self) -> &[u32] {
        &self.shared.description.template.suffix
    }

    /// The id of a token by its name in the file. Parses the file again, so do not call it on hot
    /// paths.
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        let added = self
            .added_tokens()
            .iter()
            .find(|added| added.content == token);
        added.map(|added| added.id).or_else(|| {
            let file: Value = serde_json::from_str(&self.shared.json).ok()?;
            vocab_id(&file["model"]["vocab"], token)
        })
    }

    /// The name of an id in the file. Parses the file again, so do not call it on hot paths.
    pub fn id_to_token(&self, id: u32) -> Option<String> {
        // If several added tokens have the same id, the last one wins.
        let mut added = self.added_tokens().iter().rev();
        let added = added.find(|added| added.id == id);
        added.map(|added| added.content.clone()).or_else(|| {
            let file: Value = serde_json::from_str(&self.shared.json).ok()?;
            match &file["model"]["vocab"] {
                Value::Object(map) => {
                    let mut entries = map.iter();
                    Some(
                        entries
                            .find(|(_, value)| value.as_u64() == Some(id.into()))?
                            .0
                            .clone(),
                    )
                }
                Value::Array(pieces) => Some(pieces.get(id as usize)?[0].as_str()?.to_owned()),
                _ => None,
            }
        })
    }

    /// An encoder for one thread.
    ///
    /// # Errors
    /// `truncate_to` leaves no room for the added tokens, or the requested engine does not cover
    /// the file.
    pub fn encoder(&self, options: &EncodeOptions) -> Result<Encoder> {
        let mut options = options.clone();
        if options.special_tokens_in_text == SpecialTokensInText::OfFile {
            options.special_tokens_in_text = self.special_tokens_in_text;
        }
        Encoder::new(Arc::clone(&self.shared), options)
    }

    /// The ids of one text. For hot paths, use an [`Encoder`].
    ///
    /// # Errors
    /// As [`Encoder::encode_into`].
    pub fn encode(&self, text: &str, options: &EncodeOptions) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        self.encoder(options)?.encode_into(text, &mut ids)?;
        Ok(ids)
    }

    /// The text of `ids`, including special tokens.
    ///
    /// # Errors
    /// The engine refuses the ids, or cannot be loaded.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        self.shared.text_of(ids, false)
    }

    /// The text of `ids` without special tokens.
    ///
    /// # Errors
    /// As [`Tokenizer::decode`].
    pub fn decode_without_special_tokens(&self, ids: &[u32]) -> Result<String> {
        self.shared.text_of(ids, true)
    }

    /// As [`Loaded::fallback_text`].
    #[cfg(test)]
    pub(crate) fn fallback_text(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String> {
        self.shared.fallback_text(ids, skip_special_tokens)
    }

    /// As [`Loaded::byte_decoder`].
    pub(crate) fn byte_decoder(&self) -> Option<&ByteDecoder> {
        self.shared.byte_decoder()
    }

    /// The same tokenizer without its fast engine; `None` if it has no fast engine.
    ///
    /// # Errors
    /// The fallback engine cannot load the file, or assigns other ids to added tokens.
    pub fn without_fast(&self) -> Result<Option<Self>> {
        let without = self.shared.without_fast()?.map(Arc::new);
        Ok(without.map(|shared| Self {
            shared,
            special_tokens_in_text: self.special_tokens_in_text,
        }))
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer")
            .field("name", &self.name())
            .field("vocab_size", &self.vocab_size())
            .field("engine", &self.engine())
            .finish_non_exhaustive()
    }
}

impl Vocabulary {
    /// The tokens of `tokenizer`.
    pub fn of(tokenizer: &Tokenizer) -> Self {
        // The file was parsed when the tokenizer was loaded, so parsing cannot fail.
        let file = serde_json::from_str(tokenizer.json()).unwrap_or_default();
        Self::read(&file, tokenizer.added_tokens())
    }
}

/// Makes glibc's allocator join the small blocks that the parsed file has left. It does this at the next allocation of
/// more than a kilobyte, which would otherwise be that of the first text, and takes 10 to 20 ms.
fn join_freed_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(100_000)));
}
