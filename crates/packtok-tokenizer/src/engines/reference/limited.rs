//! Normalizers, pre-tokenizers and decoders of the crate. A step does not run if its result would
//! exceed the limit for the text ([`Room`]).
//!
//! The crate converts errors of a normalizer to panics, so an `Excess` is unwound to the place
//! where panics are caught.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use tokenizers::decoders::DecoderWrapper;
use tokenizers::normalizers::{NormalizerWrapper, Precompiled, Replace};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::processors::PostProcessorWrapper;
use tokenizers::utils::SysRegex;
use tokenizers::{
    Decoder, Encoding, NormalizedString, Normalizer, OffsetReferential, OffsetType, PostProcessor,
    PreTokenizedString, PreTokenizer, Result,
};

use super::charsmap::longest_replacement;
use crate::engines::excess::Room;

thread_local! {
    /// The limit for the text that this thread is processing.
    static ROOM: Cell<Room> = const { Cell::new(Room::of(0)) };
    /// Number of bytes of the text parts that were already normalized.
    static NORMALIZED_BYTES: Cell<u64> = const { Cell::new(0) };
}

/// Sets the limits for a text that this thread processes next.
pub(super) fn begin(text_bytes: usize) {
    ROOM.set(Room::of(text_bytes));
    NORMALIZED_BYTES.set(0);
}

/// Unwinds if a step would produce `num_bytes` in addition to the results of other parts.
fn check(component: &'static str, num_bytes: u64) {
    let room = ROOM.get();
    if !room.has(num_bytes.saturating_add(NORMALIZED_BYTES.get())) {
        resume_unwind(Box::new(room.excess(component)));
    }
}

/// The maximum growth of a text by a step.
enum Growth {
    Factor(u64),
    /// Adds so many bytes.
    Constant(u64),
    Replace(Replacing),
    Precompiled(Precompiled, u64),
}

struct NormalizerStep {
    normalizer: NormalizerWrapper,
    growth: Growth,
}

/// A normalizer, as its sequence of steps.
#[derive(Clone)]
pub(super) struct LimitedNormalizer(Arc<[NormalizerStep]>);

impl<'de> Deserialize<'de> for LimitedNormalizer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let mut steps = Vec::new();
        collect(NormalizerWrapper::deserialize(deserializer)?, &mut steps)
            .map_err(D::Error::custom)?;
        Ok(Self(steps.into()))
    }
}

/// Appends the steps of a normalizer, which may be a sequence of others.
fn collect(normalizer: NormalizerWrapper, steps: &mut Vec<NormalizerStep>) -> Result<()> {
    if let NormalizerWrapper::Sequence(sequence) = normalizer {
        for member in sequence {
            collect(member, steps)?;
        }
        return Ok(());
    }
    let growth = growth_of(&normalizer)?;
    steps.push(NormalizerStep { normalizer, growth });
    Ok(())
}

fn growth_of(normalizer: &NormalizerWrapper) -> Result<Growth> {
    use NormalizerWrapper as N;
    Ok(match normalizer {
        N::Replace(replace) => Growth::Replace(Replacing::of(replace)?),
        N::Prepend(prepend) => Growth::Constant(prepend.prepend.len() as u64),
        N::Precompiled(map) => {
            let longest = longest_replacement(&serde_json::to_value(map)?);
            Growth::Precompiled(map.clone(), longest)
        }
        N::StripNormalizer(_) | N::StripAccents(_) | N::Nmt(_) | N::Sequence(_) => {
            Growth::Factor(1)
        }
        N::Lowercase(_) | N::ByteLevel(_) => Growth::Factor(2),
        N::NFC(_) | N::NFD(_) => Growth::Factor(4),
        // `BertNormalizer` decomposes, adds spaces around Chinese characters and lowercases.
        N::BertNormalizer(_) => Growth::Factor(4 * 2 * 2),
        N::NFKC(_) | N::NFKD(_) => Growth::Factor(12),
    })
}

impl Normalizer for LimitedNormalizer {
    fn normalize(&self, text: &mut NormalizedString) -> Result<()> {
        for step in self.0.iter() {
            step.check(text.get());
            step.normalizer.normalize(text)?;
        }
        NORMALIZED_BYTES.set(NORMALIZED_BYTES.get() + text.get().len() as u64);
        Ok(())
    }
}

impl NormalizerStep {
    /// Unwinds if the step would make too much of a text.
    fn check(&self, text: &str) {
        let num_bytes = text.len() as u64;
        match &self.growth {
            Growth::Factor(factor) => check("normalizer", num_bytes.saturating_mul(*factor)),
            Growth::Constant(added) => check("Prepend", num_bytes.saturating_add(*added)),
            Growth::Replace(replacing) => replacing.check([text].into_iter()),
            Growth::Precompiled(map, longest) => {
                if !ROOM.get().has(num_bytes.saturating_mul((*longest).max(1))) {
                    check("Precompiled", replaced_bytes(map, text));
                }
            }
        }
    }
}

/// An upper bound on the bytes that a map produces from a text. A map replaces characters, and
/// graphemes of less than 6 bytes; only the shortest matching prefix of a grapheme counts.
fn replaced_bytes(map: &Precompiled, text: &str) -> u64 {
    const MAX_GRAPHEME_BYTES: usize = 5;
    let bytes_at = |(at, character): (usize, char)| {
        let end = text.floor_char_boundary((at + MAX_GRAPHEME_BYTES).min(text.len()));
        let end = end.max(at + character.len_utf8());
        let replaced = map.transform(&text[at..end]).map_or(0, str::len);
        replaced.max(character.len_utf8()) as u64
    };
    text.char_indices().map(bytes_at).sum()
}

/// A step that replaces the matches of a pattern.
struct Replacing {
    pattern: Pattern,
    content_bytes: u64,
}

enum Pattern {
    Text(String),
    Regex(SysRegex),
}

impl Replacing {
    fn of(replace: &Replace) -> Result<Self> {
        let json = serde_json::to_value(replace)?;
        let regex = json["pattern"]["Regex"].as_str();
        let text = json["pattern"]["String"].as_str().unwrap_or_default();
        Ok(Self {
            pattern: match regex {
                Some(regex) => Pattern::Regex(SysRegex::new(regex)?),
                None => Pattern::Text(text.to_owned()),
            },
            content_bytes: replace.content.len() as u64,
        })
    }

    /// Unwinds if the replacement would make too much of these texts together.
    fn check<'a>(&self, texts: impl Iterator<Item = &'a str> + Clone) {
        let num_bytes: u64 = texts.clone().map(|text| text.len() as u64).sum();
        // A pattern may match the empty string at every position.
        let num_places = num_bytes + texts.clone().count() as u64;
        let at_most = num_bytes.saturating_add(num_places.saturating_mul(self.content_bytes));
        if ROOM
            .get()
            .has(at_most.saturating_add(NORMALIZED_BYTES.get()))
        {
            return;
        }
        let num_matches: u64 = texts.map(|text| self.num_matches(text)).sum();
        let added = num_matches.saturating_mul(self.content_bytes);
        check("Replace", num_bytes.saturating_add(added));
    }

    fn num_matches(&self, text: &str) -> u64 {
        let num_matches = match &self.pattern {
            Pattern::Text(pattern) => text.matches(pattern.as_str()).count(),
            Pattern::Regex(regex) => regex.find_iter(text).count(),
        };
        num_matches as u64
    }
}

/// A pre-tokenizer. Most pre-tokenizers cannot grow a text beyond the limit and are not checked.
#[derive(Clone)]
pub(super) struct LimitedPreTokenizer {
    steps: Arc<[PreTokenizerWrapper]>,
    is_checked: bool,
}

/// Maximum growth of a byte by one step: a mark of four bytes before a character of one byte.
const PRE_TOKENIZER_FACTOR: u64 = 5;

impl<'de> Deserialize<'de> for LimitedPreTokenizer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        fn collect(pre_tokenizer: PreTokenizerWrapper, steps: &mut Vec<PreTokenizerWrapper>) {
            match pre_tokenizer {
                PreTokenizerWrapper::Sequence(sequence) => {
                    sequence
                        .into_iter()
                        .for_each(|member| collect(member, steps));
                }
                step => steps.push(step),
            }
        }
        let mut steps = Vec::new();
        collect(PreTokenizerWrapper::deserialize(deserializer)?, &mut steps);
        let num_growing = steps.iter().filter(|step| grows(step)).count();
        Ok(Self {
            steps: steps.into(),
            is_checked: num_growing > 1,
        })
    }
}

/// Whether a pre-tokenizer changes the bytes of texts.
fn grows(pre_tokenizer: &PreTokenizerWrapper) -> bool {
    use PreTokenizerWrapper as P;
    matches!(pre_tokenizer, P::ByteLevel(_) | P::Metaspace(_))
}

impl PreTokenizer for LimitedPreTokenizer {
    fn pre_tokenize(&self, text: &mut PreTokenizedString) -> Result<()> {
        for step in self.steps.iter() {
            if self.is_checked && grows(step) {
                let parts = text.get_splits(OffsetReferential::Normalized, OffsetType::None);
                let num_bytes = parts
                    .iter()
                    .map(|(part, ..)| part.len() as u64)
                    .sum::<u64>();
                let at_most = num_bytes.saturating_mul(PRE_TOKENIZER_FACTOR);
                if !ROOM.get().has(at_most) {
                    resume_unwind(Box::new(ROOM.get().excess("pre_tokenizer")));
                }
            }
            step.pre_tokenize(text)?;
        }
        Ok(())
    }
}

/// A decoder, as its sequence of steps.
#[derive(Clone)]
pub(super) struct LimitedDecoder(Arc<[DecoderStep]>);

/// A step, with its parameters if it is a replacement.
type DecoderStep = (DecoderWrapper, Option<Replacing>);

impl<'de> Deserialize<'de> for LimitedDecoder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        fn collect(decoder: DecoderWrapper, steps: &mut Vec<DecoderStep>) -> Result<()> {
            if let DecoderWrapper::Sequence(sequence) = &decoder {
                for member in sequence.get_decoders() {
                    collect(member.clone(), steps)?;
                }
                return Ok(());
            }
            let replacing = match &decoder {
                DecoderWrapper::Replace(replace) => Some(Replacing::of(replace)?),
                _ => None,
            };
            steps.push((decoder, replacing));
            Ok(())
        }
        let mut steps = Vec::new();
        collect(DecoderWrapper::deserialize(deserializer)?, &mut steps)
            .map_err(D::Error::custom)?;
        Ok(Self(steps.into()))
    }
}

impl Decoder for LimitedDecoder {
    fn decode_chain(&self, mut tokens: Vec<String>) -> Result<Vec<String>> {
        begin(tokens.iter().map(String::len).sum());
        for (decoder, replacing) in self.0.iter() {
            if let Some(replacing) = replacing {
                replacing.check(tokens.iter().map(String::as_str));
            }
            tokens = decoder.decode_chain(tokens)?;
        }
        Ok(tokens)
    }
}

/// Ids that a post-processor may add to a document.
const MAX_ADDED_IDS: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct LimitedPostProcessor(PostProcessorWrapper);

impl PostProcessor for LimitedPostProcessor {
    fn added_tokens(&self, is_pair: bool) -> usize {
        self.0.added_tokens(is_pair)
    }

    fn process_encodings(
        &self,
        encodings: Vec<Encoding>,
        add_special_tokens: bool,
    ) -> Result<Vec<Encoding>> {
        process(&self.0, encodings, add_special_tokens)
    }
}

/// Runs the steps of a post-processor. A step may repeat a token that stands for many ids, or the
/// result of an earlier step.
fn process(
    processor: &PostProcessorWrapper,
    mut encodings: Vec<Encoding>,
    add_special_tokens: bool,
) -> Result<Vec<Encoding>> {
    if let PostProcessorWrapper::Sequence(sequence) = processor {
        for member in sequence.as_ref() {
            encodings = process(member, encodings, add_special_tokens)?;
        }
        return Ok(encodings);
    }
    let longest = encodings.iter().map(Encoding::len).max().unwrap_or(0);
    let num_pieces = match processor {
        PostProcessorWrapper::Template(_) => {
            let json = serde_json::to_value(processor)?;
            let key = if encodings.len() > 1 {
                "pair"
            } else {
                "single"
            };
            json[key].as_array().map_or(0, Vec::len)
        }
        _ => encodings.len(),
    };
    let num_added = processor.added_tokens(encodings.len() > 1);
    let num_added = num_added.saturating_add(num_pieces.saturating_mul(longest + 2));
    if num_added > MAX_ADDED_IDS {
        return Err(format!(
            "its post_processor adds up to {num_added} ids to each document, expected at most {MAX_ADDED_IDS}"
        )
        .into());
    }
    processor.process_encodings(encodings, add_special_tokens)
}
