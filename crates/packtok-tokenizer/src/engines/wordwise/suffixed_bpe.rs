//! BPE with a suffix at the end of each part of a word, as in GPT, HerBERT and CLIP.
//!
//! ```text
//! word        Naïve!        as it is between white space
//! parts       naïve  !      normalized; the second is a part of its own, as punctuation
//! symbols     n a ï v e</w>    !</w>
//! ```
//!
//! A word does not depend on its surroundings, see `engine`. The last symbol of a part is written as one character
//! (`last_char` in `byte_bpe/model.rs`), so the merge rules need not know of the suffix.

use serde_json::Value;

use super::added_texts::AddedTexts;
use super::char_bpe::CharBpe;
use super::scratch::Scratch;
use super::word_normalizer::WordNormalizer;
use super::wordpiece::for_each_part;
use crate::engines::byte_bpe::{Steps, StepsProgress, is_byte_level, steps_between_white_space};
use crate::engines::word_key::hash_of_bytes;
use crate::letters::Letters;
use crate::load::{AddedToken, type_of};

/// Ends of parts that are found at once.
const ENDS_PER_CALL: usize = 16;

/// The loaded model and the steps before it.
pub(super) struct SuffixedBpe {
    normalizer: WordNormalizer,
    splits: Splits,
    model: CharBpe,
    added: AddedTexts,
}

/// How a normalized word is split into parts.
enum Splits {
    WhiteSpace,
    /// As BERT does: punctuation separately.
    Bert,
    /// At the matches of patterns. With letters, parts are spelled as bytes.
    Steps(Box<Steps>, Option<Box<Letters>>),
}

impl SuffixedBpe {
    /// The model of a tokenizer.json; `None` if the engine does not cover the configuration.
    pub(super) fn read(json: &Value, added_tokens: &[AddedToken]) -> Option<Self> {
        let pre_tokenizer = &json["pre_tokenizer"];
        let splits = match type_of(pre_tokenizer) {
            "WhitespaceSplit" => Splits::WhiteSpace,
            "BertPreTokenizer" => Splits::Bert,
            _ => {
                let steps = steps_between_white_space(pre_tokenizer).ok()?;
                // Those could split characters.
                if steps.iter().any(|step| step.is_on_bytes) {
                    return None;
                }
                let steps = Steps::new(&steps).ok()?;
                let letters = is_byte_level(pre_tokenizer).then(|| Box::new(Letters::new()));
                Splits::Steps(Box::new(steps), letters)
            }
        };
        let normalizer = WordNormalizer::read(&json["normalizer"])?;
        let added = AddedTexts::of(added_tokens, |content| normalizer.normalized(content))?;
        Some(Self {
            normalizer,
            splits,
            model: CharBpe::read(&json["model"])?,
            added,
        })
    }

    /// Appends the ids of a word. Returns `false`, with nothing appended, if the word falls back to the reference
    /// engine: it may contain an added token, or has a character without a symbol.
    pub(super) fn append(&self, word: &str, scratch: &mut Scratch<'_>, ids: &mut Vec<u32>) -> bool {
        let mut normalized = std::mem::take(&mut scratch.normalized);
        normalized.clear();
        let is_covered = self.normalizer.append(word, &mut normalized)
            && !self.added.may_occur_in(word, &normalized);
        let start = ids.len();
        let mut append = |part: &str, letters| self.append_part(part, letters, scratch, ids);
        let has_all = is_covered
            && match &self.splits {
                Splits::WhiteSpace => normalized.split_whitespace().all(|part| append(part, None)),
                Splits::Bert => for_each_part(&normalized, |part| append(part, None)),
                Splits::Steps(steps, letters) => {
                    for_each_match(steps, &normalized, |part| append(part, letters.as_deref()))
                }
            };
        if !has_all {
            ids.truncate(start);
        }
        scratch.normalized = normalized;
        has_all
    }

    /// Appends the ids of a part, cached or new; `false` if a character has no symbol.
    fn append_part(
        &self,
        part: &str,
        letters: Option<&Letters>,
        scratch: &mut Scratch<'_>,
        ids: &mut Vec<u32>,
    ) -> bool {
        if part.is_empty() {
            return true;
        }
        let hash = hash_of_bytes(part.as_bytes());
        if scratch.parts.append(hash, part.as_bytes(), ids) {
            return true;
        }
        let Scratch { sequence, heap, .. } = scratch;
        sequence.clear();
        match letters {
            Some(letters) => sequence.extend(part.bytes().map(|byte| letters.letter(byte))),
            None => sequence.push_str(part),
        }
        let start = ids.len();
        if !self.model.append(sequence, heap, ids) {
            return false;
        }
        scratch.parts.insert(hash, part.as_bytes(), &ids[start..]);
        true
    }
}

/// Calls `append` with each match of patterns that leave only white space between matches, until it returns `false`, or
/// returns `false` if finding them takes too long.
fn for_each_match(steps: &Steps, text: &str, mut append: impl FnMut(&str) -> bool) -> bool {
    let (mut progress, mut ends, mut start) = (StepsProgress::default(), [0; ENDS_PER_CALL], 0);
    loop {
        let num_ends = steps.fill(text.as_bytes(), &mut progress, &mut ends);
        if num_ends == 0 || progress.has_given_up() {
            return num_ends == 0 && !progress.has_given_up();
        }
        for end in ends[..num_ends].iter().map(|&end| end as usize) {
            let part = &text[start..end];
            start = end;
            if !part.starts_with(char::is_whitespace) && !append(part) {
                return false;
            }
        }
    }
}
