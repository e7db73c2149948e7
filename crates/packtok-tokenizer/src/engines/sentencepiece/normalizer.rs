//! What becomes of a text before it is cut into pieces, with white space as blanks of one byte.
//!
//! The library writes white space as U+2581. As it then leaves no blank, either can stand for the other, and here
//! the blank stands for both: it is a third as long, and a word with it in front is more often a short one.

use super::piece::SPACE;
use super::rules::Rules;

/// The rules, and which bytes they do not change.
#[derive(Debug)]
pub(super) struct Normalizer {
    /// Bytes other than the blank that stay what they are when another byte below 0x80, or nothing, follows.
    is_kept: [bool; 256],
    keeps_blank: bool,
}

impl Normalizer {
    /// For rules that escape white space.
    pub(super) fn new(rules: &Rules) -> Self {
        let is_kept = |byte: u8| byte < 0x80 && rules.keeps(byte);
        Self {
            is_kept: std::array::from_fn(|byte| byte != usize::from(b' ') && is_kept(byte as u8)),
            keeps_blank: is_kept(b' '),
        }
    }

    /// Puts the normalized text into `normalized`.
    pub(super) fn run(&self, rules: &Rules, text: &[u8], normalized: &mut Vec<u8>) {
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
            if self.keeps_blank && text[at] == b' ' && text.get(at + 1).is_none_or(u8::is_ascii) {
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

    /// How many bytes from the first on stay what they are.
    #[inline]
    fn num_kept(&self, text: &[u8]) -> usize {
        let is_changed = |&byte: &u8| !self.is_kept[usize::from(byte)];
        let kept = text.iter().position(is_changed).unwrap_or(text.len());
        match text.get(kept) {
            // What is beyond ASCII may become one with what is before it.
            Some(0x80..) => kept.saturating_sub(1),
            _ => kept,
        }
    }
}

/// Appends `bytes` with blanks for what the library writes white space as.
#[inline]
fn push(mut bytes: &[u8], normalized: &mut Vec<u8>) {
    let space = SPACE.as_bytes();
    while let Some(at) = bytes.windows(space.len()).position(|part| part == space) {
        normalized.extend_from_slice(&bytes[..at]);
        normalized.push(b' ');
        bytes = &bytes[at + space.len()..];
    }
    normalized.extend_from_slice(bytes);
}
