//! Models of every kind.

use serde_json::{Map, Value, json};

use crate::source::Source;
use crate::words::{self, Words};

/// What a file is meant to be, at first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// BPE on the letters of bytes.
    ByteLevel,
    /// BPE on characters, with tokens for bytes.
    Chars,
    WordPiece,
    WordLevel,
    Unigram,
}

/// A model and the texts of its tokens.
pub(crate) struct Model {
    pub(crate) json: Value,
    pub(crate) tokens: Vec<String>,
}

impl Model {
    pub(crate) fn of(source: &mut Source, words: &Words, family: Family) -> Self {
        let mut model = match family {
            Family::ByteLevel => byte_level(source, words),
            Family::Chars => chars(source, words),
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

/// The letters that stand for bytes.
pub(crate) fn letters() -> [char; 256] {
    let mut next = 0x100;
    std::array::from_fn(|byte| match byte as u8 {
        byte @ (b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff) => char::from(byte),
        _ => {
            next += 1;
            char::from_u32(next - 1).expect("a letter")
        }
    })
}

pub(crate) fn in_letters(text: &str) -> String {
    let letters = letters();
    text.bytes()
        .map(|byte| letters[usize::from(byte)])
        .collect()
}

fn byte_level(source: &mut Source, words: &Words) -> Model {
    let mut tokens: Vec<String> = letters().map(String::from).into();
    if source.once_in(24) {
        tokens.remove(source.below(256));
    }
    if source.once_in(24) {
        tokens.extend(words.atoms().iter().cloned());
    }
    let seeds = (0..6 + source.below(24)).map(|_| {
        let mut text = words.word(source);
        if source.coin() {
            text.insert_str(0, words::space(source));
        }
        in_letters(&text)
    });
    let seeds = seeds.collect();
    bpe(source, words, tokens, seeds, &[])
}

fn chars(source: &mut Source, words: &Words) -> Model {
    let mut tokens = bytes(source);
    let mut seeds = Vec::new();
    for _ in 0..6 + source.below(24) {
        let mut text = words.word(source);
        if source.coin() {
            let before = source.pick(&["▁", "▁", "▁", "▁▁", " ", "\n", "_"]);
            text.insert_str(0, before);
        }
        seeds.push(text);
    }
    // Characters without a token, too.
    let chars = seeds.iter().flat_map(|text| text.chars());
    tokens.extend(chars.filter(|_| !source.once_in(30)).map(String::from));
    tokens.extend(["▁", "<unk>"].map(str::to_owned));
    let prefix = source.pick(&["", "", "", "", "", "##", "▁"]);
    let suffix = source.pick(&["", "", "", "", "", "</w>", "▁"]);
    let of_model = [
        ("byte_fallback", json!(!source.once_in(4))),
        ("continuing_subword_prefix", or_null(prefix)),
        ("end_of_word_suffix", or_null(suffix)),
    ];
    bpe(source, words, tokens, seeds, &of_model)
}

fn or_null(text: &str) -> Value {
    if text.is_empty() {
        Value::Null
    } else {
        text.into()
    }
}

/// Tokens of bytes: most often all.
fn bytes(source: &mut Source) -> Vec<String> {
    let mut tokens: Vec<String> = (0..=255u8).map(|byte| format!("<0x{byte:02X}>")).collect();
    match source.below(16) {
        0 => tokens.clear(),
        1 => tokens.truncate(source.below(256)),
        2 => {
            tokens.remove(source.below(256));
        }
        _ => {}
    }
    tokens
}

/// Merges learned from `seeds`, the least of what each needs in the vocabulary.
fn bpe(
    source: &mut Source,
    words: &Words,
    mut tokens: Vec<String>,
    seeds: Vec<String>,
    of_model: &[(&str, Value)],
) -> Model {
    let mut model = json!({"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
        "end_of_word_suffix": null, "fuse_unk": source.coin(), "byte_fallback": source.once_in(8),
        "ignore_merges": source.once_in(5)});
    for (key, value) in of_model {
        model[*key] = value.clone();
    }
    let affix = |key: &str| model[key].as_str().unwrap_or("").to_owned();
    let (prefix, suffix) = (
        affix("continuing_subword_prefix"),
        affix("end_of_word_suffix"),
    );
    let mut merges = Vec::new();
    for seed in &seeds {
        let last = seed.chars().count().saturating_sub(1);
        let symbols = seed.char_indices().enumerate().map(|(place, (at, char))| {
            let before = if at > 0 { &prefix[..] } else { "" };
            let after = if place == last { &suffix[..] } else { "" };
            format!("{before}{char}{after}")
        });
        let mut symbols: Vec<String> = symbols.collect();
        if !(prefix.is_empty() && suffix.is_empty()) {
            tokens.extend(symbols.iter().cloned());
        }
        while symbols.len() > 1 && !source.once_in(6) {
            let at = source.below(symbols.len() - 1);
            let right = symbols.remove(at + 1);
            let merged = format!(
                "{}{}",
                symbols[at],
                right.strip_prefix(&prefix).unwrap_or(&right)
            );
            merges.push([std::mem::replace(&mut symbols[at], merged.clone()), right]);
            tokens.push(merged);
        }
    }
    if source.once_in(8) {
        source.shuffle(&mut merges);
    }
    if source.once_in(40) {
        merges.push([words.atom(source), words.atom(source)]);
    }
    // Tokens that no merge gives.
    if source.once_in(3) {
        tokens.extend((0..4).map(|_| words.word(source)));
        tokens.extend(seeds.iter().take(4).cloned());
    }
    if source.once_in(6) {
        model["unk_token"] = source.pick(&["<unk>", "a", "<unk>", "absent", ""]).into();
    }
    if source.once_in(40) {
        model["dropout"] = source.pick(&[
            json!(0),
            json!(0.0),
            json!(0.5),
            json!(1.5),
            json!(-0.0),
            json!("0"),
        ]);
    }
    for key in [
        "dropout",
        "unk_token",
        "continuing_subword_prefix",
        "end_of_word_suffix",
        "fuse_unk",
        "byte_fallback",
        "ignore_merges",
    ] {
        if source.once_in(24) {
            model.as_object_mut().map(|model| model.remove(key));
        }
    }
    model["vocab"] = numbered(source, &tokens);
    let has_spaces = merges.iter().flatten().any(|part| part.contains(' '));
    model["merges"] = match source.below(4) {
        0 if !has_spaces || source.once_in(8) => {
            merges.iter().map(|merge| json!(merge.join(" "))).collect()
        }
        _ => json!(merges),
    };
    Model {
        json: model,
        tokens,
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
        tokens.push(match source.coin() {
            true => word,
            false => format!("{prefix}{word}"),
        });
    }
    if source.once_in(4) {
        tokens.extend(["", prefix, "-", "'"].map(str::to_owned));
    }
    let unk_token = source.pick(&[
        "[UNK]", "[UNK]", "[UNK]", "[UNK]", "[UNK]", "[UNK]", "a", "absent", "",
    ]);
    // Words of thousands of characters take the package minutes.
    let most = source.pick(&[100, 100, 100, 20, 7, 3, 1, 0, 500]);
    let mut model = json!({"type": "WordPiece", "unk_token": unk_token, "continuing_subword_prefix": prefix,
        "max_input_chars_per_word": most, "vocab": numbered(source, &tokens)});
    for key in [
        "unk_token",
        "continuing_subword_prefix",
        "max_input_chars_per_word",
    ] {
        if source.once_in(60) {
            model.as_object_mut().map(|model| model.remove(key));
        }
    }
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
    if source.once_in(30) {
        model.as_object_mut().map(|model| model.remove("unk_token"));
    }
    Model {
        json: model,
        tokens,
    }
}

fn unigram(source: &mut Source, words: &Words) -> Model {
    let mut tokens = vec!["<unk>".to_owned(), "▁".to_owned()];
    tokens.extend(words.atoms().iter().filter(|_| !source.once_in(5)).cloned());
    for _ in 0..4 + source.below(40) {
        let word = words.word(source);
        let blank = source.pick(&["▁", "▁", "", "", "▁▁", " "]);
        tokens.push(format!("{blank}{word}"));
    }
    let byte_fallback = source.once_in(4);
    if byte_fallback || source.once_in(10) {
        tokens.extend(bytes(source));
    }
    if !source.once_in(8) {
        let mut met = std::collections::HashSet::new();
        tokens.retain(|token| met.insert(token.clone()));
    }
    if source.once_in(12) {
        tokens.push(String::new());
    }
    let is_odd = source.once_in(6);
    let scores = [-1.0, -1.5, -2.25, -3.1, 0.0, -0.5, -7.75];
    let odd_scores = [
        -0.0,
        1.0,
        5.5,
        1e308,
        -1e308,
        -1e-308,
        f64::MIN_POSITIVE,
        1e16,
        -1e16,
        0.1,
        0.2,
        -0.3,
    ];
    let pieces = tokens.iter().map(|token| {
        let score = match is_odd && source.once_in(4) {
            true => source.pick(&odd_scores),
            false => source.pick(&scores),
        };
        match source.once_in(30) {
            true => json!([token, score.trunc() as i64]),
            false => json!([token, score]),
        }
    });
    let pieces: Vec<Value> = pieces.collect();
    let unk_id = match source.below(16) {
        0 => Value::Null,
        1 => source.below(tokens.len()).into(),
        2 => source.pick(&[
            json!(tokens.len()),
            json!(tokens.len() - 1),
            json!(1),
            json!(u32::MAX),
            json!(1u64 << 32),
            json!(-1),
        ]),
        _ => 0.into(),
    };
    let mut model = json!({"type": "Unigram", "unk_id": unk_id, "byte_fallback": byte_fallback, "vocab": pieces});
    for key in ["unk_id", "byte_fallback"] {
        if source.once_in(24) {
            model.as_object_mut().map(|model| model.remove(key));
        }
    }
    Model {
        json: model,
        tokens,
    }
}

/// A vocabulary of names and ids: in order most often.
fn numbered(source: &mut Source, tokens: &[String]) -> Value {
    let mut vocab = Map::new();
    for token in tokens {
        let id = vocab.len();
        vocab.entry(token.clone()).or_insert(id.into());
    }
    let last = vocab.len();
    let mut ids: Vec<Value> = (0..last).map(Value::from).collect();
    let way = source.below(24);
    match way {
        0 => source.shuffle(&mut ids),
        1 => ids = (0..last).map(|id| (3 * id + 7).into()).collect(),
        // Each id twice.
        3 => ids = (0..last).map(|id| (id / 2).into()).collect(),
        2 => {
            // Gaps here and there.
            let start = source.below(last);
            let gap = 1 + source.below(5);
            for (id, value) in ids.iter_mut().enumerate().skip(start) {
                *value = (id + gap).into();
            }
        }
        _ => {}
    }
    let odd = [
        json!(0),
        json!(1),
        json!(last),
        json!(last + 1),
        json!(1 << 16),
        json!((1 << 21) - 1),
        json!(1 << 21),
        json!((1 << 24) - 1),
        json!(1 << 24),
        json!(1_000_000_000),
        json!((1u64 << 31) - 1),
        json!(1u64 << 31),
        json!(u32::MAX - 1),
        json!(u32::MAX),
    ];
    let broken = [
        json!(1u64 << 32),
        json!(u64::MAX),
        json!(-1),
        json!(1.0),
        json!("1"),
        Value::Null,
    ];
    for _ in 0..if way < 6 { source.below(4) } else { 0 } {
        let at = source.below(last);
        ids[at] = match source.below(20) {
            0 => source.pick(&broken),
            _ => source.pick(&odd),
        };
    }
    // The first by their place in the vocabulary, not by their names.
    let mut by_place: Vec<(String, u64)> = vocab
        .into_iter()
        .map(|(name, id)| (name, id.as_u64().unwrap_or(0)))
        .collect();
    by_place.sort_by_key(|&(_, id)| id);
    by_place
        .into_iter()
        .map(|(name, _)| name)
        .zip(ids)
        .collect::<Map<String, Value>>()
        .into()
}
