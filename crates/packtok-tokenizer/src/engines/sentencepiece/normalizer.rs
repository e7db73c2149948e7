//! Normalizes texts for the fast path, with one-byte spaces for white space.
//!
//! The library writes white space as U+2581 and leaves no spaces, so one character can represent
//! both. Here, the space does: it is a third as long, so more words fit in a short key.

use memchr::memmem;

use super::normalization_rules::NormalizationRules;
use super::piece::SPACE_MARK;

/// The bytes that the rules do not change.
#[derive(Debug)]
pub(super) struct Normalizer {
    /// Bytes other than the space that are unchanged if an ASCII byte or the end of the text
    /// follows.
    is_kept: [bool; 256],
    keeps_space: bool,
    /// Finds what is written for white space, if everything else is unchanged.
    marks: Option<memmem::Finder<'static>>,
}

impl Normalizer {
    /// For rules that escape white space.
    pub(super) fn new(rules: &NormalizationRules) -> Self {
        let is_kept = |byte: u8| byte < 0x80 && rules.keeps(byte);
        Self {
            is_kept: std::array::from_fn(|byte| byte != usize::from(b' ') && is_kept(byte as u8)),
            keeps_space: is_kept(b' '),
            marks: rules.keep_all().then(|| memmem::Finder::new(SPACE_MARK)),
        }
    }

    /// Writes the normalized text to `normalized`.
    pub(super) fn run(&self, rules: &NormalizationRules, text: &[u8], normalized: &mut Vec<u8>) {
        normalized.clear();
        let mut at = 0;
        if rules.remove_extra_whitespaces {
            while let (b" ", len @ 1..) = rules.first_of(&text[at..]) {
                at += len;
            }
        }
        if at == text.len() {
            return;
        }
        normalized.reserve(text.len() - at + 1);
        if rules.add_dummy_prefix && !rules.treat_whitespace_as_suffix {
            normalized.push(b' ');
        }
        if let Some(marks) = &self.marks {
            push_all(text, marks, normalized);
            at = text.len();
        }
        let removes = rules.remove_extra_whitespaces;
        let mut after_space = removes;
        while at < text.len() {
            let kept = self.num_kept(&text[at..]);
            if kept > 0 {
                normalized.extend_from_slice(&text[at..at + kept]);
                at += kept;
                after_space = false;
                continue;
            }
            if self.keeps_space && text[at] == b' ' && text.get(at + 1).is_none_or(u8::is_ascii) {
                if !after_space {
                    normalized.push(b' ');
                }
                after_space = removes;
                at += 1;
                continue;
            }
            let (mut first, len) = rules.first_of(&text[at..]);
            while after_space && let [b' ', rest @ ..] = first {
                first = rest;
            }
            if !first.is_empty() {
                push(first, normalized);
                after_space = removes && first.ends_with(b" ");
            }
            at += len;
        }
        if removes {
            while normalized.last() == Some(&b' ') {
                normalized.pop();
            }
        }
        if rules.add_dummy_prefix && rules.treat_whitespace_as_suffix {
            normalized.push(b' ');
        }
    }

    /// The number of leading bytes that are unchanged.
    #[inline]
    fn num_kept(&self, text: &[u8]) -> usize {
        let is_changed = |&byte: &u8| !self.is_kept[usize::from(byte)];
        let kept = text.iter().position(is_changed).unwrap_or(text.len());
        match text.get(kept) {
            // A character beyond ASCII may combine with the byte before it.
            Some(0x80..) => kept.saturating_sub(1),
            _ => kept,
        }
    }
}

/// Appends `text` with spaces in place of U+2581, which `marks` finds.
fn push_all(text: &[u8], marks: &memmem::Finder<'_>, normalized: &mut Vec<u8>) {
    let mut start = 0;
    for mark in marks.find_iter(text) {
        normalized.extend_from_slice(&text[start..mark]);
        normalized.push(b' ');
        start = mark + SPACE_MARK.len();
    }
    normalized.extend_from_slice(&text[start..]);
}

/// Appends `bytes` with spaces in place of U+2581.
#[inline]
fn push(mut bytes: &[u8], normalized: &mut Vec<u8>) {
    let space = SPACE_MARK.as_bytes();
    while let Some(at) = bytes.windows(space.len()).position(|part| part == space) {
        normalized.extend_from_slice(&bytes[..at]);
        normalized.push(b' ');
        bytes = &bytes[at + space.len()..];
    }
    normalized.extend_from_slice(bytes);
}
