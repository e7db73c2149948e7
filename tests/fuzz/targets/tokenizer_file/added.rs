//! Generates added tokens with all combinations of flags.

use serde_json::{Value, json};

use crate::source::Source;
use crate::words::{self, Words};

const CONTENTS: [&str; 30] = [
    "<s>",
    "</s>",
    "<unk>",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "s></",
    "|x y|",
    "x y|a",
    "|",
    "<",
    "<|",
    "a",
    "A",
    "É",
    "é",
    "\u{212b}",
    "ﬁ",
    "語",
    " ",
    "  ",
    "\n",
    "▁",
    "▁a",
    " a",
    "a ",
];

pub(crate) struct Added {
    pub(crate) json: Value,
    pub(crate) contents: Vec<String>,
}

impl Added {
    pub(crate) fn of(source: &mut Source, words: &Words, tokens: &[String]) -> Self {
        let num_tokens = match source.below(8) {
            0 => 0,
            1 => 8 + source.below(20),
            _ => 1 + source.below(5),
        };
        // packtok's own engines only find tokens without flags; most files get such tokens.
        let has_flags = source.once_in(3);
        let is_normalized = source.below(4);
        // The word-by-word engine only serves files whose added tokens are ASCII without white space.
        let is_plain = !source.once_in(4);
        let is_of_model = source.once_in(16);
        let mut contents: Vec<String> = Vec::new();
        let mut entries = Vec::new();
        for place in 0..num_tokens {
            let mut content = if is_of_model && !tokens.is_empty() {
                source.pick(tokens)
            } else {
                content(source, words, tokens, &contents)
            };
            if is_plain && (!content.is_ascii() || content.contains(char::is_whitespace)) {
                content = source.pick(&CONTENTS[..14]).to_owned();
            }
            let mut flag = |is_odd: bool| is_odd && source.once_in(3);
            let (single_word, lstrip, rstrip) = (flag(has_flags), flag(has_flags), flag(has_flags));
            let normalized = match is_normalized {
                0 => source.coin(),
                1 => true,
                _ => source.once_in(6),
            };
            let id = match source.below(6) {
                0 => source.pick(&[
                    json!(0),
                    json!(1),
                    json!(tokens.len() + 100),
                    json!(1_000_000_000),
                    json!(u32::MAX),
                ]),
                _ => json!(tokens.len() + place),
            };
            let mut entry = json!({"id": id, "content": content, "single_word": single_word, "lstrip": lstrip,
                "rstrip": rstrip, "normalized": normalized, "special": source.coin()});
            if source.once_in(400) {
                let key = source.pick(&[
                    "id",
                    "content",
                    "single_word",
                    "lstrip",
                    "rstrip",
                    "normalized",
                    "special",
                ]);
                entry.as_object_mut().map(|entry| entry.remove(key));
            }
            entries.push(entry);
            contents.push(content);
        }
        Self {
            json: entries.into(),
            contents,
        }
    }
}

fn content(source: &mut Source, words: &Words, tokens: &[String], before: &[String]) -> String {
    match source.below(20) {
        0 => source
            .pick(&[
                "", "\u{301}", "e\u{301}", "\u{3000}", "\r\n", "\t", "\u{a0}", "<0x0A>", "\0",
            ])
            .to_owned(),
        1 => words::any(source),
        2 | 3 if !tokens.is_empty() => source.pick(tokens),
        4 if !before.is_empty() => source.pick(before),
        5 if !before.is_empty() => {
            let one = source.pick(before);
            source.part_of(&one).to_owned()
        }
        6 if !before.is_empty() => source.pick(before) + &source.pick(before),
        7 if !before.is_empty() => source.pick(before) + words::space(source),
        8 => words.atom(source).repeat(1 + source.below(90)),
        9 | 10 => words.atom(source),
        11 => words.word(source),
        12 => format!("<{}>", words.word(source)),
        _ => source.pick(&CONTENTS).to_owned(),
    }
}
