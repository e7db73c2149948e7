//! [`Tokenizer`], shared by all threads, and [`Encoder`], one for each.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::Value;

use crate::byte_decoder::ByteDecoder;
use crate::engines::byte_bpe;
use crate::engines::choose::{self, Own};
use crate::engines::reference::Reference;
use crate::engines::sentencepiece::Plain;
use crate::error::{Cause, Error, Result};
use crate::load::builtin::builtin_json;
use crate::load::{AddedToken, Description, EngineKind, described, parsed, vocab_id};
use crate::load::{rank_file, sentencepiece_file};

/// What becomes of a special token's text inside a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpecialTokensInText {
    /// It becomes the special token, as Hugging Face does.
    #[default]
    Parse,
    /// It is encoded like any other text.
    Text,
    /// The document is refused.
    Fail,
}

/// Which engine is asked for; the ids are the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineChoice {
    /// The fast one where it covers the file, else the one that knows all of it.
    #[default]
    Auto,
    /// The fast one, or an error.
    Fast,
    /// The one that knows all of the file, and that the fast one is held against.
    Reference,
}

/// How documents are encoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Whether the post-processor's tokens stand around every document.
    pub add_special_tokens: bool,
    /// What becomes of special-token text.
    pub special_tokens_in_text: SpecialTokensInText,
    /// Most tokens of a document, the post-processor's included; the rest is cut off on the right.
    pub truncate_to: Option<usize>,
    /// Which engine encodes.
    pub engine: EngineChoice,
    /// Most bytes that the fast engine's cache takes, for each encoder; 48 MiB if nothing is asked for.
    pub cache_bytes: Option<usize>,
}

/// The engine that knows all of a file.
#[derive(Clone)]
enum Whole {
    Reference(Reference),
    SentencePiece(Arc<Plain>),
}

impl Whole {
    fn load(json: &str, description: &Description) -> std::result::Result<Self, Cause> {
        if description.is_sentencepiece {
            let engine = Plain::load(&serde_json::from_str(json)?)?;
            return Ok(Self::SentencePiece(Arc::new(engine)));
        }
        Ok(Self::Reference(Reference::load(json)?))
    }

    fn kind(&self) -> EngineKind {
        match self {
            Self::Reference(_) => EngineKind::Reference,
            Self::SentencePiece(_) => EngineKind::SentencePiece,
        }
    }

    /// Appends the ids of `text`, without what a post-processor adds.
    fn encode_into(
        &self,
        text: &str,
        special_tokens_are_text: bool,
        ids: &mut Vec<u32>,
    ) -> std::result::Result<(), Cause> {
        match self {
            Self::Reference(engine) => engine.encode_into(text, special_tokens_are_text, ids),
            Self::SentencePiece(engine) => {
                engine.encode_into(text, ids);
                Ok(())
            }
        }
    }
}

/// A loaded tokenizer: what its ids mean, and the engine that gives them. Clones share both.
#[derive(Clone)]
pub struct Tokenizer {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    json: String,
    description: Description,
    /// Loaded when it is first needed, because that takes longer than all else; or why it cannot be.
    whole: OnceLock<std::result::Result<Whole, String>>,
    /// The fast engine, or why it does not cover the file.
    fast: std::result::Result<Own, String>,
    /// Why the fast engine is not to be used although it covers the file.
    distrust: OnceLock<String>,
    /// Made when ids are first decoded; none if only the engine that knows all of the file decodes them.
    byte_decoder: OnceLock<Option<ByteDecoder>>,
}

impl Shared {
    /// The fast engine, or why it is not used.
    fn fast(&self) -> std::result::Result<&Own, &str> {
        match self.distrust.get() {
            Some(reason) => Err(reason),
            None => self.fast.as_ref().map_err(String::as_str),
        }
    }

    /// The engine that knows all of the file.
    fn whole(&self) -> Result<&Whole> {
        let load = || Whole::load(&self.json, &self.description).map_err(|cause| cause.to_string());
        let loaded = self.whole.get_or_init(load);
        loaded.as_ref().map_err(|cause| Error::Unloadable {
            name: self.name.clone(),
            source: cause.clone().into(),
        })
    }
}

impl Tokenizer {
    /// Loads a `tokenizer.json`, a `tekken.json`, a SentencePiece `.model` file or a known list of tiktoken's ranks,
    /// under `name` or the name of the file.
    ///
    /// # Errors
    /// When the file cannot be read, is none of these, or no engine serves it exactly.
    pub fn from_file(path: &Path, name: Option<&str>) -> Result<Self> {
        let io = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let bytes = std::fs::read(path).map_err(io)?;
        let shown = path.display().to_string();
        let name = name.unwrap_or(&shown);
        let is_model = path
            .extension()
            .is_some_and(|extension| extension == "model");
        if is_model || bytes.trim_ascii_start().first() != Some(&b'{') {
            // Llama 3's, for one, has the name of a SentencePiece model.
            if rank_file::is_one(&bytes) {
                return Self::from_json(name, rank_file::tokenizer_json(name, &bytes)?);
            }
            match sentencepiece_file::tokenizer_json(name, &bytes) {
                // Whatever it was meant to be.
                Err(_) if !is_model => {}
                json => return Self::from_json(name, json?),
            }
        }
        Self::from_json_bytes(name, bytes)
    }

    /// Loads the bytes of a tokenizer.json or tekken.json.
    ///
    /// # Errors
    /// As [`Tokenizer::from_file`].
    pub fn from_json_bytes(name: &str, bytes: Vec<u8>) -> Result<Self> {
        match String::from_utf8(bytes) {
            Ok(json) => Self::from_json(name, json),
            Err(error) => Err(Error::NotUtf8 {
                name: name.to_owned(),
                source: error.utf8_error(),
            }),
        }
    }

    /// Loads one of the tokenizers that need neither file nor network ([`crate::BUILTIN_NAMES`]).
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn builtin(name: &str) -> Result<Self> {
        Self::from_json(name, builtin_json(name)?)
    }

    /// Loads the text of a tokenizer.json, or of Mistral's tekken.json, under the name that users know it by.
    ///
    /// # Errors
    /// As [`Tokenizer::from_file`].
    pub fn from_json(name: &str, json: String) -> Result<Self> {
        let (file, made) = parsed(name, &json)?;
        let json = made.unwrap_or(json);
        let (mut description, file) = described(name, file)?;
        let mut fast = Own::load(&file, &description.added_tokens);
        let whole = OnceLock::new();
        if fast.as_ref().map_or(true, Own::needs_whole) {
            let loaded = Whole::load(&json, &description).map_err(|source| Error::Unloadable {
                name: name.to_owned(),
                source,
            })?;
            fast = fast.and_then(|own| {
                own.check(&mut |word, ids| loaded.encode_into(word, false, ids))?;
                Ok(own)
            });
            if let (Err(reason), Whole::Reference(_)) = (&fast, &loaded) {
                description.notes.push(format!(
                    "served by {}, which is exact but slower, because {reason}",
                    loaded.kind().name()
                ));
            }
            let _ = whole.set(Ok(loaded));
        }
        let is_fast = fast.is_ok();
        let tokenizer = Self {
            shared: Arc::new(Shared {
                name: name.to_owned(),
                json,
                description,
                whole,
                fast,
                distrust: OnceLock::new(),
                byte_decoder: OnceLock::new(),
            }),
        };
        if !is_fast {
            tokenizer.check_against_engine()?;
        }
        Ok(tokenizer)
    }

    /// Compares the ids of added tokens, as read from the file, with those that the reference engine gives them.
    fn check_against_engine(&self) -> Result<()> {
        let Whole::Reference(engine) = self.shared.whole()? else {
            // What is read from a SentencePiece model is what both of its engines work with.
            return Ok(());
        };
        for token in self.added_tokens() {
            let found = engine.token_to_id(&token.content);
            if found != Some(token.id) {
                return Err(Error::Disagreement {
                    name: self.name().to_owned(),
                    token: token.content.clone(),
                    expected: token.id,
                    found,
                });
            }
        }
        Ok(())
    }

    /// The name it was loaded under.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// `sha256:` and the hash of the parsed tokenizer.json; white space and key order do not count.
    pub fn fingerprint(&self) -> &str {
        &self.shared.description.fingerprint
    }

    /// Highest id + 1, added tokens included.
    pub fn vocab_size(&self) -> u64 {
        self.shared.description.vocab_size
    }

    /// The engine that serves it, unless another is asked for.
    pub fn engine(&self) -> EngineKind {
        match self.shared.fast() {
            Ok(_) => EngineKind::Fast,
            Err(_) => self.reference_kind(),
        }
    }

    /// The engine that the fast one is compared with.
    pub fn reference_kind(&self) -> EngineKind {
        match self.shared.description.is_sentencepiece {
            true => EngineKind::SentencePiece,
            false => EngineKind::Reference,
        }
    }

    /// The engine that serves it where this one is requested.
    pub fn engine_chosen(&self, choice: EngineChoice) -> EngineKind {
        match choice {
            EngineChoice::Auto | EngineChoice::Fast => self.engine(),
            EngineChoice::Reference => self.reference_kind(),
        }
    }

    /// Why the fast engine does not serve it; `None` if it does.
    pub fn not_fast(&self) -> Option<&str> {
        self.shared.fast().err()
    }

    /// Whether the time that a text takes is known to grow with its length and no faster, whatever it is made of.
    pub fn is_linear(&self) -> bool {
        self.shared.fast().is_ok_and(Own::is_linear)
    }

    /// What the vector instructions are called that the fast engine uses on this machine; `None` where the
    /// fast engine does not serve.
    pub fn fast_lane(&self) -> Option<&'static str> {
        self.shared.fast().ok().map(|_| byte_bpe::lane_name())
    }

    /// Where the fast engine serves and takes texts word by word: which words are for the one that knows all of the
    /// file, a phrase.
    pub(crate) fn words_for_others(&self) -> Option<&'static str> {
        self.shared.fast().ok().and_then(Own::words_for_others)
    }

    /// Texts that hold any of these are not for the fast engine although it serves.
    pub(crate) fn foreign_to_fast(&self) -> &[String] {
        self.shared.fast().map_or(&[], Own::foreign)
    }

    /// Whether it is a SentencePiece model.
    pub(crate) fn is_sentencepiece(&self) -> bool {
        self.shared.description.is_sentencepiece
    }

    /// Why the fast engine does not serve although it covers the file, if it was distrusted.
    pub fn distrust(&self) -> Option<&str> {
        self.shared.distrust.get().map(String::as_str)
    }

    /// Has the reference engine serve this tokenizer and all its clones from now on, for `reason`.
    pub fn distrust_fast(&self, reason: &str) {
        // Whoever was first has said why.
        let _ = self.shared.distrust.set(reason.to_owned());
    }

    /// What users should know of its exactness, a sentence each.
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

    /// The special ones among the added tokens.
    pub fn special_tokens(&self) -> impl Iterator<Item = &AddedToken> {
        self.added_tokens().iter().filter(|token| token.is_special)
    }

    /// The end-of-sequence token, where the file itself names it.
    pub fn eos_token(&self) -> Option<&str> {
        self.shared.description.eos_token.as_deref()
    }

    /// Ids that stand before every document's own when special tokens are added.
    pub fn prefix(&self) -> &[u32] {
        &self.shared.description.template.prefix
    }

    /// Ids that stand after every document's own when special tokens are added.
    pub fn suffix(&self) -> &[u32] {
        &self.shared.description.template.suffix
    }

    /// The id of a token by its name in the file; reads the file again, so not for hot paths.
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

    /// The name of an id in the file; reads the file again, so not for hot paths.
    pub fn id_to_token(&self, id: u32) -> Option<String> {
        // Of several added tokens with one id, the last one counts.
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
    /// When `truncate_to` leaves no room for the tokens that are added, or the engine asked for does not
    /// cover the file.
    pub fn encoder(&self, options: &EncodeOptions) -> Result<Encoder> {
        let num_special = match options.add_special_tokens {
            true => self.shared.description.template.num_special(),
            false => 0,
        };
        let truncate_text_to = match options.truncate_to {
            Some(max_length) if max_length < num_special => {
                return Err(Error::TruncationTooShort {
                    max_length,
                    num_special,
                });
            }
            Some(max_length) => max_length - num_special,
            None => usize::MAX,
        };
        let fast = match (options.engine, self.shared.fast()) {
            (EngineChoice::Reference, _) | (EngineChoice::Auto, Err(_)) => {
                self.shared.whole()?;
                None
            }
            (_, Ok(fast)) => Some(fast.scratch(options.cache_bytes)),
            (EngineChoice::Fast, Err(reason)) => {
                return Err(Error::NotFast {
                    name: self.name().to_owned(),
                    reason: reason.to_owned(),
                });
            }
        };
        Ok(Encoder {
            tokenizer: self.clone(),
            options: options.clone(),
            truncate_text_to,
            fast,
            wide_ids: Vec::new(),
        })
    }

    /// The ids of one text, for everything that is not a hot path.
    ///
    /// # Errors
    /// As [`Encoder::encode_into`].
    pub fn encode(&self, text: &str, options: &EncodeOptions) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        self.encoder(options)?.encode_into(text, &mut ids)?;
        Ok(ids)
    }

    /// The text of `ids`, special tokens included.
    ///
    /// # Errors
    /// When the engine refuses the ids, or cannot be loaded.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        self.text_of(ids, false)
    }

    /// The text of `ids` without special tokens.
    ///
    /// # Errors
    /// As [`Tokenizer::decode`].
    pub fn decode_without_special_tokens(&self, ids: &[u32]) -> Result<String> {
        self.text_of(ids, true)
    }

    fn text_of(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String> {
        let decoder = &self.shared.byte_decoder;
        if let Some(decoder) = decoder.get_or_init(|| ByteDecoder::read(self)) {
            return Ok(decoder.text_of(ids, skip_special_tokens));
        }
        let text = match self.shared.whole()? {
            Whole::Reference(engine) => engine.decode(ids, skip_special_tokens),
            Whole::SentencePiece(engine) if skip_special_tokens => {
                let is_special = |id: &u32| self.special_tokens().any(|token| token.id == *id);
                let ids: Vec<u32> = ids.iter().copied().filter(|id| !is_special(id)).collect();
                engine.decode(&ids).map_err(Cause::from)
            }
            Whole::SentencePiece(engine) => engine.decode(ids).map_err(Cause::from),
        };
        text.map_err(|source| Error::Decode { source })
    }

    /// The same tokenizer, served by the engine that the fast one is held against; `None` if it is.
    ///
    /// # Errors
    /// When that engine cannot load the file, or gives other special tokens.
    pub fn without_fast(&self) -> Result<Option<Self>> {
        if self.shared.fast().is_err() {
            return Ok(None);
        }
        self.check_against_engine()?;
        Ok(Some(self.served_by(self.shared.whole()?.clone())))
    }

    fn served_by(&self, whole: Whole) -> Self {
        Self {
            shared: Arc::new(Shared {
                name: self.name().to_owned(),
                json: self.json().to_owned(),
                description: self.shared.description.clone(),
                fast: Err(format!("{} was asked for", whole.kind().name())),
                whole: OnceLock::from(Ok(whole)),
                distrust: OnceLock::new(),
                // The engine that was asked for decodes, too.
                byte_decoder: OnceLock::from(None),
            }),
        }
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

/// Encodes documents for one thread; holds the scratch that is reused from document to document.
pub struct Encoder {
    tokenizer: Tokenizer,
    options: EncodeOptions,
    truncate_text_to: usize,
    /// The words that the fast engine has met, if it is to be asked.
    fast: Option<choose::Scratch>,
    /// Ids of a document that are to be narrowed.
    wide_ids: Vec<u32>,
}

impl Encoder {
    /// Does beforehand what a first text else takes longer for: takes all memory that the cache may have, and puts
    /// the words into it that are tokens. That takes 20 to 80 ms, which a text of some megabytes makes up for, and
    /// changes no ids.
    pub fn warm_up(&mut self) {
        if let (Ok(fast), Some(scratch)) = (self.tokenizer.shared.fast(), &mut self.fast) {
            fast.warm_up(scratch);
        }
    }

    /// Appends the ids of one document to `ids`; on an error `ids` is as it was.
    ///
    /// Allocates nothing once the buffers have grown (the reference engine excepted).
    ///
    /// # Errors
    /// [`Error::SpecialTokenInText`] where that was asked for; [`Error::Encode`] when the engine
    /// refuses the text.
    pub fn encode_into(&mut self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        let start = ids.len();
        let template = &self.tokenizer.shared.description.template;
        if self.options.add_special_tokens {
            ids.extend_from_slice(&template.prefix);
        }
        let text_start = ids.len();
        if let Err(error) = self.encode_text_into(text, text_start, ids) {
            ids.truncate(start);
            return Err(error);
        }
        ids.truncate(text_start.saturating_add(self.truncate_text_to));
        if self.options.add_special_tokens {
            ids.extend_from_slice(&self.tokenizer.shared.description.template.suffix);
        }
        Ok(())
    }

    /// As [`Encoder::encode_into`] for ids of two bytes, which are half as much to keep.
    ///
    /// # Errors
    /// Those of [`Encoder::encode_into`]; [`Error::WideIds`] where the tokenizer has ids that need more, whatever the
    /// text.
    pub fn encode_u16_into(&mut self, text: &str, ids: &mut Vec<u16>) -> Result<()> {
        let vocab_size = self.tokenizer.vocab_size();
        if vocab_size > 1 << 16 {
            return Err(Error::WideIds {
                name: self.tokenizer.name().to_owned(),
                vocab_size,
            });
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
        let shared = &self.tokenizer.shared;
        let refuses = self.options.special_tokens_in_text == SpecialTokensInText::Fail;
        if refuses && shared.description.is_sentencepiece {
            // Their names never become their ids.
            let mut special = self.tokenizer.special_tokens();
            if let Some(token) = special.find(|token| text.contains(&token.content)) {
                return Err(Error::SpecialTokenInText {
                    token: token.content.clone(),
                });
            }
        }
        let by_whole =
            |text: &str, ids: &mut Vec<u32>| shared.whole()?.encode_into(text, is_text, ids);
        let done = match (shared.fast(), &mut self.fast) {
            (Ok(fast), Some(scratch)) => {
                fast.encode_into(text, is_text, scratch, ids, &mut &by_whole)
            }
            _ => Ok(false),
        };
        let done = done.and_then(|is_done| match is_done {
            true => Ok(()),
            false => by_whole(text, ids),
        });
        done.map_err(|source| Error::Encode { source })?;
        if refuses {
            self.refuse_special_tokens(&ids[start..])?;
        }
        Ok(())
    }

    fn refuse_special_tokens(&self, ids: &[u32]) -> Result<()> {
        for token in self.tokenizer.special_tokens() {
            if ids.contains(&token.id) {
                return Err(Error::SpecialTokenInText {
                    token: token.content.clone(),
                });
            }
        }
        Ok(())
    }
}
