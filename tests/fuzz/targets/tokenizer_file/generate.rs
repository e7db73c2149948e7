//! Generates whole tokenizer.json files, with texts and ids for them.

use serde_json::{Value, json};

use crate::added::Added;
use crate::breaking::{break_text, break_value, cross, limit};
use crate::ends;
use crate::model::{Family, Model};
use crate::source::Source;
use crate::steps;
use crate::texts;
use crate::words::Words;

/// Number of texts for each file.
pub(crate) const TEXTS: usize = 8;

/// The case that an input describes.
pub(crate) struct Case {
    pub(crate) json: String,
    pub(crate) texts: Vec<String>,
    pub(crate) limits: Limits,
    /// Ids to decode, in addition to those of the texts.
    pub(crate) ids: Vec<Vec<u32>>,
}

/// Options of the encoders.
#[derive(Clone)]
pub(crate) struct Limits {
    pub(crate) cache_bytes: usize,
    pub(crate) grows_cache: bool,
    /// Limit for truncation, in some cases.
    pub(crate) truncate_to: Option<usize>,
}

impl Limits {
    fn of(source: &mut Source) -> Self {
        Self {
            cache_bytes: source.pick(&[1 << 18, 1 << 18, 1 << 16, 1 << 12, 1, 0]),
            grows_cache: source.once_in(12),
            truncate_to: source.once_in(6).then(|| source.below(24)),
        }
    }
}

impl Case {
    pub(crate) fn of(input: &[u8]) -> Self {
        let source = &mut Source::new(input);
        let families = [
            Family::ByteLevel,
            Family::Chars,
            Family::WordPiece,
            Family::WordLevel,
            Family::Unigram,
        ];
        // Some files mix components of different families.
        let family = source.pick(&families);
        let mut other = || {
            if source.once_in(16) {
                source.pick(&families)
            } else {
                family
            }
        };
        let (of_steps, of_decoder) = (other(), other());
        let words = Words::of(source);
        let model = Model::of(source, &words, family);
        let added = Added::of(source, &words, &model.tokens);
        let mut file = json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": added.json,
            "normalizer": steps::normalizer(source, &words, of_steps),
            "pre_tokenizer": steps::pre_tokenizer(source, &words, of_steps),
            "post_processor": ends::post_processor(source, &added.contents, 0),
            "decoder": ends::decoder(source, &words, of_decoder),
            "model": model.json,
        });
        if source.once_in(30) {
            let (key, other) = other_component(source, &words, &added.contents, &families);
            cross(source, &mut file[key], &other);
        }
        if source.once_in(16) {
            limit(source, &mut file);
        }
        if source.once_in(16) {
            break_value(source, &mut file);
        }
        let mut json = file.to_string();
        if source.once_in(200) {
            json = break_text(source, json);
        }
        let tokens = &model.tokens;
        Self {
            json,
            limits: Limits::of(source),
            texts: (0..TEXTS)
                .map(|_| texts::text(source, &words, tokens, &added.contents))
                .collect(),
            ids: (0..2).map(|_| texts::ids(source, tokens.len())).collect(),
        }
    }
}

/// A component whose keys are added to the file's own, and where it belongs.
fn other_component(
    source: &mut Source,
    words: &Words,
    contents: &[String],
    families: &[Family],
) -> (&'static str, Value) {
    let family = source.pick(families);
    match source.below(8) {
        0 => ("normalizer", steps::normalizer(source, words, family)),
        1 => ("normalizer", steps::any_normalizer(source, words, 1)),
        2 => ("pre_tokenizer", steps::pre_tokenizer(source, words, family)),
        3 => ("pre_tokenizer", steps::any_pre_tokenizer(source, words, 1)),
        4 => ("post_processor", ends::post_processor(source, contents, 0)),
        5 => ("decoder", ends::decoder(source, words, family)),
        _ => ("model", Model::of(source, words, family).json),
    }
}
