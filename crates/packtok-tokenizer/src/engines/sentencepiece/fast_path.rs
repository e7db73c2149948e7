//! The fast path for SentencePiece models. Returns the ids of [`super::SlowPath`] for the files
//! that it covers.

use serde_json::Value;

use super::bpe::{self, Bpe};
use super::merge_rules::byte_bpe_of;
use super::model::Model;
use super::normalizer::Normalizer;
use super::piece::SPACE_MARK;
use super::unigram::{self, Unigram};
use crate::cause::Cause;
use crate::engines::byte_bpe::{self, ByteBpe};
use crate::engines::word_cache::{CachedEncoder, WordEncoder};
use crate::load::{Kind, ModelType};

/// A loaded model. All threads share it.
pub(crate) struct FastPath {
    model: Model,
    normalizer: Normalizer,
    segmenter: Segmenter,
}

enum Segmenter {
    Unigram(Unigram),
    /// BPE models that merge rules cover.
    MergeRules(Box<ByteBpe>),
    Bpe(Bpe),
}

/// Scratch memory of one thread, including its word cache.
pub(crate) struct Scratch {
    normalized: Vec<u8>,
    unigram: unigram::Scratch,
    bpe: bpe::Scratch,
    byte_bpe: Option<Box<byte_bpe::Scratch>>,
    encoder: CachedEncoder,
    cache_bytes: Option<usize>,
}

impl Scratch {
    /// With a cache of at most this many bytes.
    pub(crate) fn new(cache_bytes: Option<usize>) -> Box<Self> {
        Box::new(Self {
            normalized: Vec::new(),
            unigram: unigram::Scratch::default(),
            bpe: bpe::Scratch::default(),
            byte_bpe: None,
            cache_bytes,
            encoder: CachedEncoder::new(cache_bytes),
        })
    }
}

/// Maximum bytes of a normalized text that are kept allocated.
const MAX_RETAINED_BYTES: usize = 1 << 24;

impl FastPath {
    /// Reads the parsed tokenizer.json of a model.
    ///
    /// # Errors
    /// The reason why the fast path does not cover the file.
    pub(crate) fn load(json: &Value) -> Result<Self, String> {
        let model = Model::read(json)?;
        if !model.rules.escape_whitespaces {
            return Err("its normalizer does not set escape_whitespaces".to_owned());
        }
        let segmenter = match model.model_type {
            ModelType::Unigram => Segmenter::Unigram(Unigram::new(&model)?),
            ModelType::Bpe => {
                check_parts(&model)?;
                match byte_bpe_of(&model) {
                    Some(byte_bpe) => Segmenter::MergeRules(Box::new(byte_bpe)),
                    None => Segmenter::Bpe(Bpe::new(&model)?),
                }
            }
            other => return Err(format!("its model is {}", other.name())),
        };
        Ok(Self {
            normalizer: Normalizer::new(&model.rules),
            model,
            segmenter,
        })
    }

    /// Appends the ids of a text. Returns `false`, with nothing appended, if the text falls back to the slow path: it is
    /// longer than 2 GiB, or rules of a hostile file write bytes that are not UTF-8.
    ///
    /// # Errors
    /// The normalizer would exceed the limit on the length of its result.
    pub(crate) fn encode_into(
        &self,
        text: &str,
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) -> Result<bool, Cause> {
        let Scratch {
            normalized,
            unigram,
            bpe,
            byte_bpe,
            encoder,
            cache_bytes,
        } = scratch;
        self.model.rules.check_growth(text)?;
        self.normalizer
            .run(&self.model.rules, text.as_bytes(), normalized);
        let done = match &self.segmenter {
            Segmenter::Unigram(segmenter) => segmenter
                .append_ids(&self.model, normalized, unigram, encoder, ids)
                .map(|()| true),
            Segmenter::MergeRules(engine) => {
                let scratch = byte_bpe.get_or_insert_with(|| byte_bpe::Scratch::new(*cache_bytes));
                let text = std::str::from_utf8(normalized);
                Ok(text.is_ok_and(|text| engine.encode_into(text, false, scratch, ids)))
            }
            Segmenter::Bpe(bpe_model) => {
                let mut words = TextParts {
                    unknown_characters_are_separate: self.model.byte_ids.is_some(),
                    model: &self.model,
                    bpe_model,
                    scratch: bpe,
                };
                encoder.append_ids(normalized, &mut words, ids)
            }
        };
        normalized.clear();
        normalized.shrink_to(MAX_RETAINED_BYTES);
        done
    }
}

/// Splits a text into parts that no piece crosses.
struct TextParts<'a> {
    /// Whether each unknown character becomes an id of its own. If consecutive unknown characters
    /// become one id, a text can be split only next to white space, which is never unknown.
    unknown_characters_are_separate: bool,
    model: &'a Model,
    bpe_model: &'a Bpe,
    scratch: &'a mut bpe::Scratch,
}

impl WordEncoder for TextParts<'_> {
    #[inline(always)]
    fn next_word(&self, text: &[u8], at: usize) -> (usize, usize) {
        let Some(&first) = text.get(at) else {
            return (at, at);
        };
        let (mut end, mut before) = (at + 1, first);
        while let Some(&byte) = text.get(end) {
            let may_part = self.unknown_characters_are_separate || before == b' ' || byte == b' ';
            // Positions inside a character are not considered.
            if may_part && !self.bpe_model.pairs.has(before, byte) && !(0x80..0xc0).contains(&byte)
            {
                break;
            }
            before = byte;
            end += 1;
        }
        (at, end)
    }

    fn encode_word(&mut self, word: &[u8], ids: &mut Vec<u32>) -> Result<bool, Cause> {
        if u32::try_from(word.len()).is_err() {
            return Ok(false);
        }
        self.bpe_model
            .append_ids(self.model, word, self.scratch, ids);
        Ok(true)
    }
}

/// Checks that the parts of a text can be encoded independently.
///
/// # Errors
/// The reason why parts cannot be encoded independently.
fn check_parts(model: &Model) -> Result<(), String> {
    let matched = || model.pieces.iter().filter(|piece| piece.is_matched());
    if let Some(unused) = matched().find(|piece| piece.kind == Kind::Unused) {
        // An unused piece is split as in its most recent merge, which may be in another part of
        // the text.
        return Err(format!("its piece {:?} is marked unused", unused.text));
    }
    if model.byte_ids.is_none() && !matched().any(|piece| piece.text == SPACE_MARK) {
        return Err("it has no piece for whitespace".to_owned());
    }
    Ok(())
}
