//! Generates normalizers and pre-tokenizers: those that packtok's own engines cover, and all other kinds.

use serde_json::{Value, json};

use crate::charsmap::{base64, charsmap};
use crate::model::Family;
use crate::source::Source;
use crate::words::{self, Words};

const BLANK: &str = "▁";

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const CL100K: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK: [&str; 3] = [
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
];
const PATTERNS: [&str; 34] = [
    GPT2,
    CL100K,
    QWEN,
    O200K,
    TEKKEN,
    DEEPSEEK[0],
    DEEPSEEK[1],
    DEEPSEEK[2],
    r" ?[^(\s|[.,!?…。，、।۔،])]+",
    r"\s+",
    r"\s",
    r"\d",
    r"\d{3}",
    r"\w+|[^\w\s]+",
    r"\p{Han}+",
    r"[\r\n]",
    r"[^\r\n]+",
    r"(?=\s)",
    r"^",
    r"$",
    r"x*",
    r"\b",
    "",
    "a",
    "A|b",
    r"(?i)s",
    r".",
    r"\R",
    r"\X",
    " ",
    " {2,}",
    BLANK,
    r"\p{L}\p{M}*",
    r"[a-c]",
];
const BROKEN_PATTERNS: [&str; 5] = ["(", "[", "*a", r"\p{Nothing}", "a{2,1}"];

/// A normalizer that is typical of the family, or any other.
pub(crate) fn normalizer(source: &mut Source, words: &Words, family: Family) -> Value {
    if source.once_in(12) {
        return any_normalizer(source, words, 0);
    }
    let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": BLANK});
    let prepend = json!({"type": "Prepend", "prepend": BLANK});
    let form = json!({"type": source.pick(&["NFC", "NFC", "NFKC", "NFD"])});
    match family {
        Family::ByteLevel => source.pick(&[Value::Null, Value::Null, form]),
        Family::Chars => {
            let both = json!({"type": "Sequence", "normalizers": [prepend, replace]});
            let one = json!({"type": "Sequence", "normalizers": [replace]});
            source.pick(&[Value::Null, Value::Null, both.clone(), both, one, replace])
        }
        Family::WordPiece => match source.below(4) {
            0 => Value::Null,
            _ => bert(source),
        },
        Family::WordLevel => local_steps(source, words),
        Family::Unigram => match source.below(4) {
            0 => Value::Null,
            1 => form,
            2 => precompiled(source, words),
            _ => local_steps(source, words),
        },
    }
}

/// A sequence of steps that change each word on its own.
fn local_steps(source: &mut Source, words: &Words) -> Value {
    let steps = (0..1 + source.below(4)).map(|_| match source.below(10) {
        0 => json!({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}),
        1 | 2 => {
            let from = source.pick(&["``", "''", "a", "é", "ab", "\u{301}"]);
            json!({"type": "Replace", "pattern": {"String": from}, "content": source.pick(&["\"", "", "b", "e", "ß", " "])})
        }
        3 => precompiled(source, words),
        4 => bert(source),
        5 if source.once_in(4) => {
            // `tokenizers` does not know this name, and identifies the step by its keys.
            let mut step = any_normalizer(source, words, 2);
            step["type"] = "BertNormalizer".into();
            step
        }
        _ => plain_normalizer(source),
    });
    json!({"type": "Sequence", "normalizers": steps.collect::<Vec<Value>>()})
}

fn plain_normalizer(source: &mut Source) -> Value {
    match source.pick(&[
        "NFC",
        "NFD",
        "NFKC",
        "NFKD",
        "Lowercase",
        "StripAccents",
        "Nmt",
        "Strip",
    ]) {
        "Strip" => {
            json!({"type": "Strip", "strip_left": source.coin(), "strip_right": source.coin()})
        }
        kind => json!({"type": kind}),
    }
}

pub(crate) fn any_normalizer(source: &mut Source, words: &Words, depth: usize) -> Value {
    match source.below(20) {
        0 | 1 => Value::Null,
        2 | 3 => bert(source),
        4 => {
            let prepend = source.pick(&[BLANK, BLANK, "", "a", " ", "語", "ab"]);
            json!({"type": "Prepend", "prepend": prepend})
        }
        5..=8 => replace(source, words),
        9 => json!({"type": "ByteLevel"}),
        10 | 11 => precompiled(source, words),
        12..=14 if depth < 2 => {
            let steps = (0..source.below(4)).map(|_| any_normalizer(source, words, depth + 1));
            // `null` is not a valid step.
            let steps: Vec<Value> = steps.filter(|step| !step.is_null()).collect();
            json!({"type": "Sequence", "normalizers": steps})
        }
        _ => plain_normalizer(source),
    }
}

fn bert(source: &mut Source) -> Value {
    let strip_accents = source.pick(&[Value::Null, Value::Null, true.into(), false.into()]);
    json!({"type": "BertNormalizer", "clean_text": !source.once_in(4), "handle_chinese_chars": !source.once_in(4),
        "strip_accents": strip_accents, "lowercase": source.coin()})
}

pub(crate) fn replace(source: &mut Source, words: &Words) -> Value {
    let content = match source.below(8) {
        0 => words.word(source),
        _ => source
            .pick(&["", " ", BLANK, "a", "ab", "語", "\u{301}", "  "])
            .to_owned(),
    };
    json!({"type": "Replace", "pattern": pattern(source, words), "content": content})
}

fn pattern(source: &mut Source, words: &Words) -> Value {
    match source.below(8) {
        0 => json!({"String": words.atom(source)}),
        1 | 2 => json!({"String": source.pick(&[" ", " ", "", "a", BLANK, "  ", "\n", ".", "ab"])}),
        _ => json!({"Regex": regex(source)}),
    }
}

fn regex(source: &mut Source) -> String {
    let pattern = source.pick(&PATTERNS);
    match source.below(16) {
        0 => source.pick(&BROKEN_PATTERNS).to_owned(),
        1 => pattern.replace("{1,3}", "{1,2}"),
        2 => pattern.replacen('+', "*", 1),
        3 => pattern.replace("(?!\\S)", ""),
        4 => pattern.split('|').skip(1).collect::<Vec<_>>().join("|"),
        5 => pattern.replace("(?i:", "(?:"),
        6 => format!("{pattern}|a"),
        _ => pattern.to_owned(),
    }
}

fn precompiled(source: &mut Source, words: &Words) -> Value {
    let mut pairs = Vec::new();
    for _ in 0..source.below(12) {
        let from = match source.below(3) {
            0 => words::any(source),
            1 => words.atom(source),
            _ => source
                .pick(&[
                    "ﬁ", "é", "e\u{301}", "Å", " ", "\u{3000}", "\u{a0}", "\t", "\n", "１", "ｱ",
                    "\u{ad}", "\u{200b}", "a\u{301}",
                ])
                .to_owned(),
        };
        let to = match source.below(3) {
            0 => words.atom(source),
            _ => source
                .pick(&[
                    "", " ", "a", "fi", "e", "é", "  ", "x y", "語", "\u{301}", "ア", "1",
                ])
                .to_owned(),
        };
        if !from.contains('\0') && from.len() < 40 {
            pairs.push((from, to.replace('\0', "")));
        }
    }
    let mut map = charsmap(&pairs);
    match source.below(40) {
        0 => map.truncate(source.below(map.len())),
        1 => {
            let at = source.below(map.len());
            map[at] ^= 1 << source.below(8);
        }
        2 => map.clear(),
        _ => {}
    }
    let text = if source.once_in(100) {
        "no base64".to_owned()
    } else {
        base64(&map)
    };
    json!({"type": "Precompiled", "precompiled_charsmap": text})
}

/// A pre-tokenizer that is typical of the family, or any other.
pub(crate) fn pre_tokenizer(source: &mut Source, words: &Words, family: Family) -> Value {
    if source.once_in(12) {
        return any_pre_tokenizer(source, words, 0);
    }
    let sequence = |steps: Vec<Value>| json!({"type": "Sequence", "pretokenizers": steps});
    match family {
        Family::ByteLevel => {
            let isolated = |regex: &str| json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false});
            let mut steps: Vec<Value> = match source.below(8) {
                0 => return byte_level(true),
                1 => vec![
                    json!({"type": "Digits", "individual_digits": true}),
                    byte_level(true),
                ],
                2 => DEEPSEEK.iter().map(|regex| isolated(regex)).collect(),
                _ => vec![isolated(source.pick(&PATTERNS[..5]))],
            };
            if steps.len() != 2 {
                steps.push(byte_level(false));
            }
            sequence(steps)
        }
        Family::Chars => match source.below(4) {
            0 => {
                json!({"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": false})
            }
            1 | 2 => Value::Null,
            _ => metaspace(source),
        },
        Family::WordPiece if !source.once_in(4) => json!({"type": "BertPreTokenizer"}),
        Family::WordPiece | Family::WordLevel => {
            let first = json!({"type": source.pick(&["BertPreTokenizer", "Whitespace", "WhitespaceSplit"])});
            match source.below(3) {
                0 => first,
                _ => {
                    let mut steps = vec![first];
                    steps.extend((0..source.below(3)).map(|_| any_pre_tokenizer(source, words, 2)));
                    sequence(steps.into_iter().filter(|step| !step.is_null()).collect())
                }
            }
        }
        Family::Unigram => match source.below(10) {
            0 => metaspace(source),
            _ => {
                let blank = json!({"type": "Metaspace", "replacement": BLANK, "prepend_scheme": "always", "split": !source.once_in(4)});
                sequence(vec![
                    json!({"type": "WhitespaceSplit"}),
                    if source.once_in(6) {
                        metaspace(source)
                    } else {
                        blank
                    },
                ])
            }
        },
    }
}

fn byte_level(use_regex: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex})
}

pub(crate) fn metaspace(source: &mut Source) -> Value {
    let replacement = match source.below(40) {
        0 => source.pick(&["ab", ""]),
        1..=6 => source.pick(&["_", "a", " ", "語"]),
        _ => BLANK,
    };
    let mut step = json!({"type": "Metaspace", "replacement": replacement});
    if !source.once_in(4) {
        step["prepend_scheme"] = source.pick(&["always", "first", "never"]).into();
    }
    if !source.once_in(4) {
        step["split"] = source.pick(&[
            json!(true),
            json!(false),
            json!(true),
            json!(false),
            Value::Null,
        ]);
    }
    if source.once_in(4) {
        step["add_prefix_space"] =
            source.pick(&[json!(true), json!(true), Value::Null, json!(false)]);
    }
    if source.once_in(16) {
        step["str_rep"] = "_".into();
    }
    step
}

fn behavior(source: &mut Source) -> &'static str {
    source.pick(&[
        "Isolated",
        "Isolated",
        "Removed",
        "MergedWithPrevious",
        "MergedWithNext",
        "Contiguous",
    ])
}

pub(crate) fn any_pre_tokenizer(source: &mut Source, words: &Words, depth: usize) -> Value {
    match source.below(24) {
        0 | 1 => Value::Null,
        2..=4 => any_byte_level(source),
        5 => json!({"type": "Whitespace"}),
        6 => json!({"type": "WhitespaceSplit"}),
        7..=10 => {
            json!({"type": "Split", "pattern": pattern(source, words), "behavior": behavior(source), "invert": source.once_in(4)})
        }
        11 => {
            if source.once_in(4) {
                json!({"type": "Punctuation"})
            } else {
                json!({"type": "Punctuation", "behavior": behavior(source)})
            }
        }
        12 => json!({"type": "Digits", "individual_digits": source.coin()}),
        13 | 14 => metaspace(source),
        15 => json!({"type": "BertPreTokenizer"}),
        16 => {
            let delimiter = source.pick(&[" ", "a", "語", "\u{301}", "-"]);
            json!({"type": source.pick(&["Delimiter", "CharDelimiterSplit"]), "delimiter": delimiter})
        }
        17 => json!({"type": "UnicodeScripts"}),
        18 => json!({"type": "FixedLength", "length": source.pick(&[1, 2, 5, 0, 1000])}),
        _ if depth < 2 => {
            let steps = (0..source.below(4)).map(|_| any_pre_tokenizer(source, words, depth + 1));
            let steps: Vec<Value> = steps.filter(|step| !step.is_null()).collect();
            json!({"type": "Sequence", "pretokenizers": steps})
        }
        _ => json!({"type": "Digits", "individual_digits": source.coin()}),
    }
}

pub(crate) fn any_byte_level(source: &mut Source) -> Value {
    let mut step = json!({"type": "ByteLevel", "add_prefix_space": source.once_in(3), "trim_offsets": source.coin()});
    if !source.once_in(3) {
        step["use_regex"] = source.coin().into();
    }
    step
}
