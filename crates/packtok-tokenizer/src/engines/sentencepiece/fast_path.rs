//! SentencePiece at speed: the ids of [`super::Plain`], for the files that it covers.

use serde_json::Value;

use super::bpe::{self as merging, Merges};
use super::model::Model;
use super::normalizer::Normalizer;
use super::piece::SPACE;
use super::unigram::{self as sums, Sums};
use crate::engines::word_cache::{Remembered, Words};
use crate::error::Cause;
use crate::load::{Kind, ModelType};

/// A loaded model, shared by all threads.
pub(crate) struct Quick {
    model: Model,
    normalizer: Normalizer,
    chooser: Chooser,
}

enum Chooser {
    Sums(Sums),
    Merges(Merges),
}

/// What one thread needs, and the words that it has met.
pub(crate) struct Scratch {
    normalized: Vec<u8>,
    sums: sums::Scratch,
    merging: merging::Scratch,
    remembered: Remembered,
}

impl Scratch {
    /// Takes all memory that the words may have.
    pub(crate) fn take_memory(&mut self) {
        self.remembered.take_memory();
    }

    /// With a cache of at most so many bytes.
    pub(crate) fn new(cache_bytes: Option<usize>) -> Box<Self> {
        Box::new(Self {
            normalized: Vec::new(),
            sums: sums::Scratch::default(),
            merging: merging::Scratch::default(),
            remembered: Remembered::new(cache_bytes),
        })
    }
}

/// Bytes of a normalized text that are kept allocated.
const KEPT_BYTES: usize = 1 << 24;

impl Quick {
    /// Reads the tokenizer.json of a model, parsed.
    ///
    /// # Errors
    /// Why it does not cover the file.
    pub(crate) fn load(json: &Value) -> Result<Self, String> {
        let model = Model::read(json)?;
        if !model.rules.escape_whitespaces {
            return Err("its texts keep their blanks".to_owned());
        }
        let chooser = match model.model_type {
            ModelType::Unigram => Chooser::Sums(Sums::new(&model)?),
            ModelType::Bpe => {
                check_parts(&model)?;
                Chooser::Merges(Merges::new(&model)?)
            }
            other => return Err(format!("its model is {}", other.name())),
        };
        Ok(Self {
            normalizer: Normalizer::new(&model.rules),
            model,
            chooser,
        })
    }

    /// Appends the ids of a text; false, and nothing appended, if it is too long for the numbers used here.
    ///
    /// # Errors
    /// None, but whoever asks engines for ids has room for some.
    pub(crate) fn encode_into(
        &self,
        text: &str,
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) -> Result<bool, Cause> {
        let Scratch {
            normalized,
            sums,
            merging,
            remembered,
        } = scratch;
        self.normalizer
            .run(&self.model.rules, text.as_bytes(), normalized);
        let done = match &self.chooser {
            Chooser::Sums(chooser) => {
                chooser.append_ids(&self.model, normalized, sums, ids);
                Ok(true)
            }
            Chooser::Merges(merges) => {
                let mut words = Parts {
                    unknown_ones_are_apart: self.model.byte_ids.is_some(),
                    model: &self.model,
                    merges,
                    scratch: merging,
                };
                remembered.append_ids(normalized, &mut words, ids)
            }
        };
        normalized.clear();
        normalized.shrink_to(KEPT_BYTES);
        done
    }
}

/// Parts of a text that no piece reaches across.
struct Parts<'a> {
    /// Or only where white space is, which is known: unknown characters in a row become one.
    unknown_ones_are_apart: bool,
    model: &'a Model,
    merges: &'a Merges,
    scratch: &'a mut merging::Scratch,
}

impl Words for Parts<'_> {
    #[inline(always)]
    fn next(&self, text: &[u8], at: usize) -> (usize, usize) {
        let Some(&first) = text.get(at) else {
            return (at, at);
        };
        let (mut end, mut before) = (at + 1, first);
        while let Some(&byte) = text.get(end) {
            let may_part = self.unknown_ones_are_apart || before == b' ' || byte == b' ';
            // Characters are whole.
            if may_part && !self.merges.pairs.has(before, byte) && !(0x80..0xc0).contains(&byte) {
                break;
            }
            before = byte;
            end += 1;
        }
        (at, end)
    }

    fn encode(&mut self, word: &[u8], ids: &mut Vec<u32>) -> Result<bool, Cause> {
        if u32::try_from(word.len()).is_err() {
            return Ok(false);
        }
        self.merges.append_ids(self.model, word, self.scratch, ids);
        Ok(true)
    }
}

/// # Errors
/// Why no parts of its texts stand for themselves.
fn check_parts(model: &Model) -> Result<(), String> {
    let matched = || model.pieces.iter().filter(|piece| piece.kind.is_matched());
    if let Some(unused) = matched().find(|piece| piece.kind == Kind::Unused) {
        // It comes apart as it was last put together, which may be in another part.
        return Err(format!("its piece {:?} is not to be used", unused.text));
    }
    if model.byte_ids.is_none() && !matched().any(|piece| piece.text == SPACE) {
        return Err("white space is unknown to it".to_owned());
    }
    Ok(())
}
