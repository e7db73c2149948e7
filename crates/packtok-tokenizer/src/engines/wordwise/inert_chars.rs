//! Characters that the normalizer of a file leaves unchanged, whatever is beside them.

use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::Value;
use unicode_normalization_alignments::char::canonical_combining_class;
use unicode_normalization_alignments::{IsNormalized, is_nfc_quick};
use unicode_segmentation::UnicodeSegmentation;

use super::coverage::collect_steps;
use crate::engines::reference::Normalizer;

/// Characters from here on are never inert: they are rare.
const FIRST_RARE: usize = 0x3_0000;

const UNKNOWN: u8 = 0;
const INERT: u8 = 1;
const OTHER: u8 = 2;

/// The characters that are known to be inert. Each is examined at its first occurrence.
pub(super) struct InertChars {
    steps: Vec<Normalizer>,
    /// All characters of the texts that steps replace.
    replaced: String,
    known: Box<[AtomicU8]>,
}

impl InertChars {
    /// The characters for a normalizer of a tokenizer.json; `None` if the crate does not know it.
    pub(super) fn read(normalizer: &Value) -> Option<Self> {
        let mut steps = Vec::new();
        collect_steps(normalizer, &mut steps);
        let replaced = steps
            .iter()
            .filter_map(|step| step["pattern"]["String"].as_str());
        Some(Self {
            replaced: replaced.collect(),
            steps: steps
                .into_iter()
                .map(Normalizer::read)
                .collect::<Option<_>>()?,
            known: (0..FIRST_RARE).map(|_| AtomicU8::new(UNKNOWN)).collect(),
        })
    }

    /// Whether a character is inert.
    #[inline]
    pub(super) fn has(&self, char: char) -> bool {
        let Some(known) = self.known.get(char as usize) else {
            return false;
        };
        match known.load(Ordering::Relaxed) {
            UNKNOWN => {
                let is_inert = self.examine(char);
                known.store(if is_inert { INERT } else { OTHER }, Ordering::Relaxed);
                is_inert
            }
            is_inert => is_inert == INERT,
        }
    }

    /// Whether no step changes a character, and none can combine it with its neighbours: it is a grapheme cluster of
    /// its own, composes with nothing before it, and is not in a text that is replaced.
    #[cold]
    fn examine(&self, char: char) -> bool {
        let twice = String::from_iter([char, char]);
        let between = format!("a{char}a");
        let is_alone = twice.graphemes(true).count() == 2 && between.graphemes(true).count() == 3;
        let stays = |step: &Normalizer| {
            let normalized = step.normalized(&twice);
            normalized.is_some_and(|normalized| normalized == twice)
        };
        is_alone
            && !char.is_whitespace()
            && canonical_combining_class(char) == 0
            && is_nfc_quick(std::iter::once(char)) == IsNormalized::Yes
            && !self.replaced.contains(char)
            && self.steps.iter().all(stays)
    }
}
