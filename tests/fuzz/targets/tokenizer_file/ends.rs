//! Generates post-processors and decoders of every kind.

use serde_json::{Value, json};

use crate::model::Family;
use crate::source::Source;
use crate::steps;
use crate::words::Words;

pub(crate) fn post_processor(source: &mut Source, contents: &[String], depth: usize) -> Value {
    match source.below(16) {
        0..=3 => Value::Null,
        4 => steps::any_byte_level(source),
        5 | 6 => {
            let mut step = json!({"type": "BertProcessing", "sep": [name(source, contents), id(source)], "cls": [name(source, contents), id(source)]});
            if source.once_in(8) {
                step.as_object_mut().map(|step| step.remove("type"));
            }
            step
        }
        7 | 8 => {
            json!({"type": "RobertaProcessing", "sep": [name(source, contents), id(source)], "cls": [name(source, contents), id(source)],
            "trim_offsets": source.coin(), "add_prefix_space": source.coin()})
        }
        9 | 10 if depth < 2 => {
            let steps = (0..source.below(4)).map(|_| post_processor(source, contents, depth + 1));
            let steps: Vec<Value> = steps.filter(|step| !step.is_null()).collect();
            json!({"type": "Sequence", "processors": steps})
        }
        _ => template(source, contents),
    }
}

fn name(source: &mut Source, contents: &[String]) -> String {
    if contents.is_empty() || source.once_in(4) {
        source.pick(&["[CLS]", "[SEP]", "<s>", ""]).to_owned()
    } else {
        source.pick(contents)
    }
}

fn id(source: &mut Source) -> Value {
    match source.below(240) {
        0 => source.pick(&[
            json!(1u64 << 32),
            json!(-1),
            json!(1.0),
            json!("1"),
            Value::Null,
        ]),
        1..=16 => source.pick(&[json!(u32::MAX), json!(u32::MAX - 1), json!(1_000_000_000)]),
        _ => json!(source.below(300)),
    }
}

fn template(source: &mut Source, contents: &[String]) -> Value {
    let (mut single, mut special) = (Vec::new(), json!({}));
    let type_id = source.pick(&[0, 0, 1, u32::MAX]);
    let sequence = |id: &str| json!({"Sequence": {"id": id, "type_id": type_id}});
    let num_pieces = source.below(5);
    let place = source.below(num_pieces + 1);
    for at in 0..=num_pieces {
        if at == place {
            match source.below(24) {
                0 => {}
                1 => single.push(sequence("B")),
                2 => single.extend([sequence("A"), sequence("A")]),
                _ => single.push(sequence("A")),
            }
        }
        if at < num_pieces {
            let name = name(source, contents);
            single.push(json!({"SpecialToken": {"id": name, "type_id": type_id}}));
            let num_ids = source.pick(&[1, 1, 1, 1, 2, 3, 0]);
            let ids: Vec<Value> = (0..num_ids).map(|_| id(source)).collect();
            let tokens = vec![name.clone(); if source.once_in(16) { 1 } else { num_ids }];
            if !source.once_in(40) {
                special[&name] = json!({"id": name, "ids": ids, "tokens": tokens});
            }
        }
    }
    let single = if source.once_in(30) {
        // A form that only the Python API accepts.
        json!(["[CLS]", "$A"])
    } else {
        single.into()
    };
    json!({"type": "TemplateProcessing", "single": single, "pair": [sequence("A"), sequence("B")], "special_tokens": special})
}

/// A decoder that is typical of the family, or any other.
pub(crate) fn decoder(source: &mut Source, words: &Words, family: Family) -> Value {
    if source.once_in(3) {
        return any_decoder(source, words, 0);
    }
    match family {
        Family::ByteLevel => {
            json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true})
        }
        Family::Chars => json!({"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}),
        Family::WordPiece => json!({"type": "WordPiece", "prefix": "##", "cleanup": source.coin()}),
        Family::WordLevel => Value::Null,
        Family::Unigram => steps::metaspace(source),
    }
}

fn any_decoder(source: &mut Source, words: &Words, depth: usize) -> Value {
    match source.below(20) {
        0 | 1 => Value::Null,
        2 => json!({"type": "BPEDecoder", "suffix": source.pick(&["</w>", "", "a", " "])}),
        3 | 4 => steps::any_byte_level(source),
        5 | 6 => {
            json!({"type": "WordPiece", "prefix": source.pick(&["##", "", "a", "@@"]), "cleanup": source.coin()})
        }
        7 | 8 => steps::metaspace(source),
        9 => {
            json!({"type": "CTC", "pad_token": source.pick(&["<pad>", "a", ""]), "word_delimiter_token": source.pick(&["|", "b", ""]),
            "cleanup": source.coin()})
        }
        10 => json!({"type": "Fuse"}),
        11 | 12 => {
            json!({"type": "Strip", "content": source.pick(&[" ", "a", "語", "", "ab"]), "start": source.below(3), "stop": source.below(3)})
        }
        13 | 14 => json!({"type": "ByteFallback"}),
        15 | 16 => steps::replace(source, words),
        _ if depth < 2 => {
            let steps = (0..source.below(4)).map(|_| any_decoder(source, words, depth + 1));
            let steps: Vec<Value> = steps.filter(|step| !step.is_null()).collect();
            json!({"type": "Sequence", "decoders": steps})
        }
        _ => json!({"type": "Fuse"}),
    }
}
