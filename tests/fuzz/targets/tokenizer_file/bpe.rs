//! Generates BPE models, byte-level and on characters.

use serde_json::{Value, json};

use crate::model::{Model, leave_out};
use crate::source::Source;
use crate::vocab::numbered;
use crate::words::{self, Words};

/// The letters by which byte-level vocabularies write bytes.
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

pub(crate) fn byte_level(source: &mut Source, words: &Words) -> Model {
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

pub(crate) fn chars(source: &mut Source, words: &Words) -> Model {
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
    // Some characters get no token.
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

/// Byte tokens (`<0x00>` ...), in most files all 256.
pub(crate) fn bytes(source: &mut Source) -> Vec<String> {
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

/// A model whose merges come from `seeds`.
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
    let affixes = ["continuing_subword_prefix", "end_of_word_suffix"].map(affix);
    let mut merges = Vec::new();
    for seed in &seeds {
        learn(source, seed, &affixes, &mut tokens, &mut merges);
    }
    if source.once_in(8) {
        source.shuffle(&mut merges);
    }
    if source.once_in(40) {
        merges.push([words.atom(source), words.atom(source)]);
    }
    // Tokens that no merge produces.
    if source.once_in(3) {
        tokens.extend((0..4).map(|_| words.word(source)));
        tokens.extend(seeds.iter().take(4).cloned());
    }
    if source.once_in(6) {
        model["unk_token"] = source.pick(&["<unk>", "a", "<unk>", "absent", ""]).into();
    }
    if source.once_in(40) {
        let all = [
            json!(0),
            json!(0.0),
            json!(0.5),
            json!(1.5),
            json!(-0.0),
            json!("0"),
        ];
        model["dropout"] = source.pick(&all);
    }
    let mut keys: Vec<String> = model
        .as_object()
        .into_iter()
        .flat_map(|model| model.keys().cloned())
        .collect();
    keys.retain(|key| key != "type");
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    leave_out(source, &mut model, &keys, 24);
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

/// Merges random neighbours of a text, and adds the merges and the tokens that they need.
fn learn(
    source: &mut Source,
    seed: &str,
    [prefix, suffix]: &[String; 2],
    tokens: &mut Vec<String>,
    merges: &mut Vec<[String; 2]>,
) {
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
            right.strip_prefix(&prefix[..]).unwrap_or(&right)
        );
        merges.push([std::mem::replace(&mut symbols[at], merged.clone()), right]);
        tokens.push(merged);
    }
}
