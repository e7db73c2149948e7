//! Generates models of every kind.

use serde_json::{Value, json};

use crate::bpe;
use crate::source::Source;
use crate::unigram::unigram;
use crate::vocab::numbered;
use crate::words::Words;

/// The kind of tokenizer that a file starts from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// Byte-level BPE.
    ByteLevel,
    /// BPE on characters with byte fallback.
    Chars,
    WordPiece,
    WordLevel,
    Unigram,
}

/// A model and the names of its tokens.
pub(crate) struct Model {
    pub(crate) json: Value,
    pub(crate) tokens: Vec<String>,
}

impl Model {
    pub(crate) fn of(source: &mut Source, words: &Words, family: Family) -> Self {
        let mut model = match family {
            Family::ByteLevel => bpe::byte_level(source, words),
            Family::Chars => bpe::chars(source, words),
            Family::WordPiece => word_piece(source, words),
            Family::WordLevel => word_level(source, words),
            Family::Unigram => unigram(source, words),
        };
        if source.once_in(16) {
            model.json.as_object_mut().map(|model| model.remove("type"));
        }
        model
    }
}

fn word_piece(source: &mut Source, words: &Words) -> Model {
    let prefix = source.pick(&["##", "##", "##", "##", "", "@@", "▁", "a", "語"]);
    let mut tokens = vec!["[UNK]".to_owned()];
    for atom in words.atoms() {
        if !source.once_in(6) {
            tokens.push(atom.clone());
        }
        if !source.once_in(6) {
            tokens.push(format!("{prefix}{atom}"));
        }
    }
    for _ in 0..source.below(24) {
        let word = words.word(source);
        tokens.push(if source.coin() {
            word
        } else {
            format!("{prefix}{word}")
        });
    }
    if source.once_in(4) {
        tokens.extend(["", prefix, "-", "'"].map(str::to_owned));
    }
    let unk_token = source.pick(&[
        "[UNK]", "[UNK]", "[UNK]", "[UNK]", "[UNK]", "[UNK]", "a", "absent", "",
    ]);
    // `tokenizers` takes cubic time for a word, minutes for thousands of characters.
    let most = source.pick(&[100, 100, 100, 20, 7, 3, 1, 0, 500]);
    let mut model = json!({"type": "WordPiece", "unk_token": unk_token, "continuing_subword_prefix": prefix,
        "max_input_chars_per_word": most, "vocab": numbered(source, &tokens)});
    let keys = [
        "unk_token",
        "continuing_subword_prefix",
        "max_input_chars_per_word",
    ];
    leave_out(source, &mut model, &keys, 60);
    Model {
        json: model,
        tokens,
    }
}

fn word_level(source: &mut Source, words: &Words) -> Model {
    let mut tokens = vec!["[UNK]".to_owned()];
    tokens.extend(words.atoms().iter().cloned());
    tokens.extend((0..source.below(24)).map(|_| words.word(source)));
    let unk_token = source.pick(&["[UNK]", "[UNK]", "[UNK]", "[UNK]", "a", "absent", ""]);
    let mut model =
        json!({"type": "WordLevel", "unk_token": unk_token, "vocab": numbered(source, &tokens)});
    leave_out(source, &mut model, &["unk_token"], 30);
    Model {
        json: model,
        tokens,
    }
}

/// Removes each of these keys with a chance of one in `times`.
pub(crate) fn leave_out(source: &mut Source, model: &mut Value, keys: &[&str], times: usize) {
    for key in keys {
        if source.once_in(times) {
            model.as_object_mut().map(|model| model.remove(*key));
        }
    }
}
