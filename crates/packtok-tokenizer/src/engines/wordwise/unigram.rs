//! Unigram on words between white space, as in T5 and XLNet.
//!
//! ```text
//! word        ﬁne!          as it is between white space
//! sequence    ▁fine!        normalized, with the replacement of the space before it
//! tokens      ▁fine !       those whose scores have the greatest sum
//! ```
//!
//! A word does not depend on its surroundings, see `engine`. Sums are computed in the order and the precision of the
//! Python package, and of equal ones the first is kept, so the same tokens are chosen.

use serde_json::Value;

use super::added_texts::AddedTexts;
use super::scratch::{Node, Scratch};
use crate::engines::double_array::DoubleArray;
use crate::engines::reference::Normalizer;
use crate::load::AddedToken;
use crate::load::{model_type, type_of};

/// The Python package subtracts this from the lowest score to get the score of an unknown
/// character.
const PENALTY: f64 = 10.0;

/// The loaded model and the steps before it.
pub(super) struct Unigram {
    normalizer: Normalizer,
    /// The normalized form of each ASCII character; `None` if it may depend on its neighbours.
    letters: [Option<u8>; 128],
    /// The replacement of a space.
    space_mark: char,
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
    /// The model of a tokenizer.json in which white space separates the words; `None` for any
    /// other configuration.
    pub(super) fn read(json: &Value, added_tokens: &[AddedToken]) -> Option<Self> {
        let model = &json["model"];
        if model_type(model) != "Unigram" {
            return None;
        }
        let space_mark = space_mark_of(&json["pre_tokenizer"])?;
        let normalizer = Normalizer::read(&json["normalizer"])?;
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
            letters: letters(&json["normalizer"], &normalizer),
            normalizer,
            space_mark,
            score_of_unknown: scores.iter().copied().fold(f64::INFINITY, f64::min) - PENALTY,
            scores,
            unknown,
            bytes,
            tokens,
            added,
        })
    }

    /// Appends the ids of a word. Returns `false`, with nothing appended, if the word falls back
    /// to the reference engine.
    pub(super) fn append(&self, word: &str, scratch: &mut Scratch, ids: &mut Vec<u32>) -> bool {
        let Scratch {
            normalized,
            sequence,
            nodes,
            path,
        } = scratch;
        normalized.clear();
        let letters = word
            .bytes()
            .map(|byte| self.letters.get(usize::from(byte)).copied().flatten());
        for letter in letters {
            match letter {
                Some(letter) => normalized.push(char::from(letter)),
                None => break,
            }
        }
        if normalized.len() < word.len() {
            match self.normalizer.normalized(word) {
                Some(whole) => *normalized = whole,
                None => return false,
            }
        }
        if normalized.contains(self.space_mark) || self.added.may_occur_in(word, normalized) {
            return false;
        }
        let parts = normalized.split(char::is_whitespace);
        for part in parts.filter(|part| !part.is_empty()) {
            sequence.clear();
            sequence.push(self.space_mark);
            sequence.push_str(part);
            self.find_best_paths(sequence, nodes);
            self.append_best(sequence.as_bytes(), nodes, path, ids);
        }
        true
    }

    /// The best segmentation up to each position of a sequence.
    fn find_best_paths(&self, sequence: &str, nodes: &mut Vec<Node>) {
        nodes.clear();
        nodes.extend((0..=sequence.len()).map(|start| Node {
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
                if node.start == end || score > node.score {
                    *node = Node { score, start, id };
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

    /// Appends the ids of the best segmentation of a sequence. `path` is scratch memory for the
    /// ends of the tokens.
    fn append_best(
        &self,
        sequence: &[u8],
        nodes: &[Node],
        path: &mut Vec<usize>,
        ids: &mut Vec<u32>,
    ) {
        let unknown = self.unknown;
        path.clear();
        let mut end = sequence.len();
        while end > 0 {
            path.push(end);
            let mut node = nodes[end];
            // Consecutive unknown tokens become one.
            while node.id == unknown && node.start > 0 && nodes[node.start].id == unknown {
                node = nodes[node.start];
            }
            end = node.start;
        }
        let mut start = 0;
        for &end in path.iter().rev() {
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

/// For each byte, the id of its token; `None` if a byte has no token.
fn ids_of_bytes(tokens: &DoubleArray) -> Option<Box<[u32; 256]>> {
    let id = |byte| tokens.value_of(format!("<0x{byte:02X}>").as_bytes());
    let ids: Option<Vec<u32>> = (0..256).map(id).collect();
    ids?.into_boxed_slice().try_into().ok()
}

/// The replacement of a space, if every word is prefixed with one and no other step splits words.
fn space_mark_of(pre_tokenizer: &Value) -> Option<char> {
    let steps = pre_tokenizer["pretokenizers"].as_array()?;
    let [split, metaspace] = &steps[..] else {
        return None;
    };
    let is_known = type_of(pre_tokenizer) == "Sequence"
        && type_of(split) == "WhitespaceSplit"
        && type_of(metaspace) == "Metaspace"
        && metaspace["prepend_scheme"] == "always";
    let mut space_mark = metaspace["replacement"].as_str()?.chars();
    space_mark
        .next()
        .filter(|_| is_known && space_mark.next().is_none())
}

/// The normalized form of each ASCII character, if it does not depend on its neighbours.
fn letters(json: &Value, normalizer: &Normalizer) -> [Option<u8>; 128] {
    let mut replaced = String::new();
    collect_replaced(json, &mut replaced);
    let mut letters = [None; 128];
    for letter in '!'..='~' {
        let made = normalizer.normalized(letter.encode_utf8(&mut [0; 4]));
        let mut made = made.iter().flat_map(|made| made.chars());
        if let (Some(made), None) = (made.next(), made.next())
            && ('!'..='~').contains(&made)
            && !replaced.contains([letter, made])
        {
            letters[letter as usize] = Some(made as u8);
        }
    }
    letters
}

/// Appends the texts that a normalizer replaces. They may be longer than one character.
fn collect_replaced(normalizer: &Value, replaced: &mut String) {
    if let Some(text) = normalizer["pattern"]["String"].as_str() {
        replaced.push_str(text);
    }
    let steps = normalizer["normalizers"].as_array();
    for step in steps.into_iter().flatten() {
        collect_replaced(step, replaced);
    }
}
