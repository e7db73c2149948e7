//! Unigram on words, as in T5, XLNet and XLM-RoBERTa.
//!
//! ```text
//! word        ﬁne!          as it is between white space
//! sequence    ▁fine!        normalized, with the mark of the space before it
//! tokens      ▁fine !       those whose scores have the greatest sum
//! ```
//!
//! A word does not depend on its surroundings, see `engine`. Sums are computed in the order and the precision of the
//! Python package, and of equal ones the first is kept, so the same tokens are chosen.

use serde_json::Value;

use super::added_texts::AddedTexts;
use super::coverage::mark_of;
use super::scratch::{Node, Paths, Scratch};
use super::word_normalizer::WordNormalizer;
use crate::engines::double_array::DoubleArray;
use crate::load::AddedToken;
use crate::load::{model_type, type_of};

/// The Python package subtracts this from the lowest score to get the score of an unknown
/// character.
const PENALTY: f64 = 10.0;

/// Bytes of a sequence with its mark fit into 32 bits.
const MAX_BYTES: usize = (u32::MAX - 8) as usize;

/// The loaded model.
pub(super) struct Unigram {
    /// All tokens with their ids.
    tokens: DoubleArray,
    scores: Vec<f64>,
    score_of_unknown: f64,
    unknown: u32,
    /// The tokens of bytes, if unknown characters are encoded as bytes.
    bytes: Option<Box<[u32; 256]>>,
    added: AddedTexts,
}

impl Unigram {
    /// The model of a tokenizer.json; `None` for any other model. `normalizer` is that of its words.
    pub(super) fn read(
        json: &Value,
        added_tokens: &[AddedToken],
        normalizer: &WordNormalizer,
    ) -> Option<Self> {
        let model = &json["model"];
        if model_type(model) != "Unigram" {
            return None;
        }
        let (mut entries, mut scores) = (Vec::new(), Vec::new());
        for (id, token) in (0..1 << 31).zip(model["vocab"].as_array()?) {
            let text = token[0].as_str()?;
            scores.push(token[1].as_f64()?);
            // No text is empty.
            if !text.is_empty() {
                entries.push((text.as_bytes().to_vec(), id));
            }
        }
        let tokens = DoubleArray::of(entries).ok()?;
        // Without an unknown token, `tokenizers` refuses even words that have another
        // segmentation.
        let unknown = u32::try_from(model["unk_id"].as_u64()?).ok()?;
        let added = AddedTexts::of(added_tokens, |content| normalizer.normalized(content))?;
        let bytes = if model["byte_fallback"] == true {
            Some(ids_of_bytes(&tokens)?)
        } else {
            None
        };
        Some(Self {
            score_of_unknown: scores.iter().copied().fold(f64::INFINITY, f64::min) - PENALTY,
            scores,
            unknown,
            bytes,
            tokens,
            added,
        })
    }

    /// Whether the reference engine must encode a word, because it may contain an added token or is
    /// too long.
    pub(super) fn needs_reference(&self, word: &str, normalized: &str) -> bool {
        normalized.len() > MAX_BYTES || self.added.may_occur_in(word, normalized)
    }

    /// Appends the ids of a normalized sequence with its mark.
    pub(super) fn append_sequence(&self, sequence: &str, paths: &mut Paths, ids: &mut Vec<u32>) {
        self.find_best_paths(sequence, &mut paths.nodes);
        self.append_best(sequence.as_bytes(), paths, ids);
    }

    /// The best segmentation up to each position of a sequence.
    fn find_best_paths(&self, sequence: &str, nodes: &mut Vec<Node>) {
        nodes.clear();
        nodes.extend((0..=sequence.len() as u32).map(|start| Node {
            score: 0.0,
            start,
            id: 0,
        }));
        for (start, char) in sequence.char_indices() {
            let so_far = nodes[start].score;
            let end_of_char = start + char.len_utf8();
            let mut is_token = false;
            let mut put = |end: usize, score: f64, id: u32| {
                let node = &mut nodes[end];
                let score = score + so_far;
                if node.start as usize == end || score > node.score {
                    *node = Node {
                        score,
                        start: start as u32,
                        id,
                    };
                }
            };
            let mut place = self.tokens.root();
            for (at, &byte) in (start..).zip(&sequence.as_bytes()[start..]) {
                let Some((next, id)) = self.tokens.step(place, byte) else {
                    break;
                };
                place = next;
                if let Some(id) = id {
                    put(at + 1, self.scores[id as usize], id);
                    is_token |= at + 1 == end_of_char;
                }
            }
            if !is_token {
                put(end_of_char, self.score_of_unknown, self.unknown);
            }
        }
    }

    /// Appends the ids of the best segmentation of a sequence.
    fn append_best(&self, sequence: &[u8], paths: &mut Paths, ids: &mut Vec<u32>) {
        let Paths { nodes, ends } = paths;
        let unknown = self.unknown;
        ends.clear();
        let mut end = sequence.len();
        while end > 0 {
            ends.push(end);
            let mut node = nodes[end];
            // Consecutive unknown tokens become one.
            while node.id == unknown && node.start > 0 && nodes[node.start as usize].id == unknown {
                node = nodes[node.start as usize];
            }
            end = node.start as usize;
        }
        let mut start = 0;
        for &end in ends.iter().rev() {
            let (text, id) = (&sequence[start..end], nodes[end].id);
            start = end;
            if id != unknown {
                ids.push(id);
                continue;
            }
            match (self.tokens.value_of(text), &self.bytes) {
                (Some(id), _) => ids.push(id),
                (None, Some(bytes)) => {
                    ids.extend(text.iter().map(|&byte| bytes[usize::from(byte)]));
                }
                (None, None) => ids.push(unknown),
            }
        }
    }
}

/// Unigram on words between white space. A mark is put before each.
pub(super) struct UnigramOfSeparateWords {
    normalizer: WordNormalizer,
    mark: char,
    unigram: Unigram,
}

impl UnigramOfSeparateWords {
    /// The model of a tokenizer.json in which white space separates the words; `None` for any
    /// other configuration.
    pub(super) fn read(json: &Value, added_tokens: &[AddedToken]) -> Option<Self> {
        let normalizer = WordNormalizer::read(&json["normalizer"])?;
        Some(Self {
            mark: mark_of_separate_words(&json["pre_tokenizer"])?,
            unigram: Unigram::read(json, added_tokens, &normalizer)?,
            normalizer,
        })
    }

    /// Appends the ids of a word. Returns `false`, with nothing appended, if the word falls back
    /// to the reference engine.
    pub(super) fn append(&self, word: &str, scratch: &mut Scratch<'_>, ids: &mut Vec<u32>) -> bool {
        let Scratch {
            normalized,
            sequence,
            paths,
            ..
        } = scratch;
        normalized.clear();
        if !self.normalizer.append(word, normalized)
            || normalized.contains(self.mark)
            || self.unigram.needs_reference(word, normalized)
        {
            return false;
        }
        let parts = normalized.split(char::is_whitespace);
        for part in parts.filter(|part| !part.is_empty()) {
            sequence.clear();
            sequence.push(self.mark);
            sequence.push_str(part);
            self.unigram.append_sequence(sequence, paths, ids);
        }
        true
    }
}

/// For each byte, the id of its token; `None` if a byte has no token.
fn ids_of_bytes(tokens: &DoubleArray) -> Option<Box<[u32; 256]>> {
    let id = |byte| tokens.value_of(format!("<0x{byte:02X}>").as_bytes());
    let ids: Option<Vec<u32>> = (0..256).map(id).collect();
    ids?.into_boxed_slice().try_into().ok()
}

/// The mark that is put before every word between white space, if no other step splits words.
fn mark_of_separate_words(pre_tokenizer: &Value) -> Option<char> {
    let steps = pre_tokenizer["pretokenizers"].as_array()?;
    let [split, metaspace] = &steps[..] else {
        return None;
    };
    let is_known = type_of(pre_tokenizer) == "Sequence"
        && type_of(split) == "WhitespaceSplit"
        && type_of(metaspace) == "Metaspace"
        && metaspace["prepend_scheme"] == "always";
    mark_of(metaspace).filter(|_| is_known)
}
