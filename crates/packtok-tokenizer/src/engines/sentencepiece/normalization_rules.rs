//! The normalization rules of a model.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::piece::{Piece, SPACE_MARK, num_bytes_of_char};
use crate::engines::double_array::DoubleArray;
use crate::engines::excess::{Excess, Room};
use crate::load::Kind;

/// The normalization of texts before segmentation.
#[derive(Debug)]
pub(super) struct NormalizationRules {
    pub(super) add_dummy_prefix: bool,
    pub(super) remove_extra_whitespaces: bool,
    pub(super) escape_whitespaces: bool,
    pub(super) treat_whitespace_as_suffix: bool,
    charsmap: Option<Charsmap>,
    user_defined: DoubleArray,
}

/// Maximum number of matching keys that the library considers at one position.
const MAX_REPLACED_KEYS: usize = 32;
pub(super) const MAX_USER_DEFINED_KEYS: usize = 64;

/// Replacements of texts: a trie of their positions, and the replacements, each followed by a zero byte.
#[derive(Debug)]
struct Charsmap {
    trie: DoubleArray,
    replacements: Vec<u8>,
    /// Bytes of the longest replacement.
    longest: usize,
}

impl Charsmap {
    /// Reads a `precompiled_charsmap`: the size of the trie in 32 bits, the trie, the replacements.
    fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let parts = bytes
            .split_first_chunk::<4>()
            .and_then(|(len, rest)| rest.split_at_checked(u32::from_le_bytes(*len) as usize));
        let (trie, replacements) = parts.ok_or("its precompiled_charsmap is truncated")?;
        // So that every replacement is terminated.
        if replacements.last().is_some_and(|&last| last != 0) {
            return Err("its precompiled_charsmap is truncated".to_owned());
        }
        let trie = DoubleArray::from_bytes(trie)
            .map_err(|reason| format!("its precompiled_charsmap is invalid: {reason}"))?;
        let lens = replacements.split(|&byte| byte == 0).map(<[u8]>::len);
        Ok(Self {
            trie,
            replacements: replacements.to_owned(),
            longest: lens.max().unwrap_or(0),
        })
    }

    /// The replacement of the beginning of `text`, and how many bytes it replaces.
    #[inline]
    fn replacement(&self, text: &[u8]) -> Option<(&[u8], usize)> {
        let (len, at) = self.trie.longest(text, MAX_REPLACED_KEYS)?;
        let rest = self.replacements.get(at as usize..)?;
        // The last replacement is terminated, too.
        let end = rest.iter().position(|&byte| byte == 0)?;
        Some((&rest[..end], len))
    }
}

impl NormalizationRules {
    /// The normalized form of the first character of `text` or of a longer prefix, and the length
    /// of the normalized prefix in bytes.
    pub(super) fn first_of<'a>(&'a self, text: &'a [u8]) -> (&'a [u8], usize) {
        if let Some(len) = longest_user_defined(&self.user_defined, text) {
            return (&text[..len], len);
        }
        let replaced = self.charsmap.as_ref().and_then(|map| map.replacement(text));
        replaced.unwrap_or_else(|| {
            let len = num_bytes_of_char(text);
            (&text[..len], len)
        })
    }

    /// Checks that the normalized text does not exceed the limit on its length.
    ///
    /// # Errors
    /// The normalized text would exceed the limit.
    pub(super) fn check_growth(&self, text: &str) -> Result<(), Excess> {
        let Some(charsmap) = &self.charsmap else {
            return Ok(());
        };
        // Each space of a replacement is written as three bytes.
        let longest = SPACE_MARK.len() * charsmap.longest.max(1);
        let room = Room::of(text.len());
        if room.has((text.len() as u64).saturating_mul(longest as u64)) {
            return Ok(());
        }
        let (mut rest, mut num_bytes) = (text.as_bytes(), 0);
        while !rest.is_empty() {
            let (first, len) = self.first_of(rest);
            let num_spaces = first.iter().filter(|&&byte| byte == b' ').count();
            num_bytes += (first.len() + (SPACE_MARK.len() - 1) * num_spaces) as u64;
            rest = &rest[len..];
        }
        if room.has(num_bytes) {
            Ok(())
        } else {
            Err(room.excess("precompiled_charsmap"))
        }
    }

    /// The normalized form of a text, step by step as in the library.
    pub(super) fn normalized(&self, mut text: &[u8]) -> Vec<u8> {
        let space = if self.escape_whitespaces {
            SPACE_MARK.as_bytes()
        } else {
            b" "
        };
        let mut normalized = Vec::new();
        if self.remove_extra_whitespaces {
            while let (b" ", len @ 1..) = self.first_of(text) {
                text = &text[len..];
            }
        }
        if text.is_empty() {
            return normalized;
        }
        if self.add_dummy_prefix && !self.treat_whitespace_as_suffix {
            normalized.extend_from_slice(space);
        }
        let mut after_space = self.remove_extra_whitespaces;
        while !text.is_empty() {
            let (mut first, len) = self.first_of(text);
            while after_space && let [b' ', rest @ ..] = first {
                first = rest;
            }
            for &byte in first {
                match byte {
                    b' ' => normalized.extend_from_slice(space),
                    _ => normalized.push(byte),
                }
            }
            if !first.is_empty() {
                after_space = first.ends_with(b" ");
            }
            after_space &= self.remove_extra_whitespaces;
            text = &text[len..];
        }
        if self.remove_extra_whitespaces {
            while let Some(rest) = normalized.strip_suffix(space) {
                normalized.truncate(rest.len());
            }
        }
        if self.add_dummy_prefix && self.treat_whitespace_as_suffix {
            normalized.extend_from_slice(space);
        }
        normalized
    }

    /// [`first_symbol`] with the user-defined symbols of these rules.
    pub(super) fn first_symbol(&self, text: &[u8]) -> (usize, bool) {
        first_symbol(&self.user_defined, text)
    }

    /// Whether texts keep all characters, in either spelling of white space.
    pub(super) fn keep_all(&self) -> bool {
        self.charsmap.is_none() && !self.remove_extra_whitespaces
    }

    /// Whether an ASCII byte is unchanged if an ASCII byte or the end of the text follows.
    pub(super) fn keeps(&self, byte: u8) -> bool {
        let leads_on = |trie: &DoubleArray| {
            trie.step(trie.root(), byte).is_some_and(|(place, value)| {
                value.is_some() || (0..0x80).any(|next| trie.step(place, next).is_some())
            })
        };
        let in_map = self
            .charsmap
            .as_ref()
            .is_some_and(|map| leads_on(&map.trie));
        !in_map
            && self
                .user_defined
                .step(self.user_defined.root(), byte)
                .is_none()
    }
}

/// Length of the user-defined symbol at the start of `text`, or else of the first character; and
/// whether it is a user-defined symbol.
#[inline]
pub(super) fn first_symbol(user_defined: &DoubleArray, text: &[u8]) -> (usize, bool) {
    match longest_user_defined(user_defined, text) {
        Some(len) => (len, true),
        None => (num_bytes_of_char(text), false),
    }
}

/// Bytes of the user-defined symbol that `text` begins with.
#[inline]
fn longest_user_defined(symbols: &DoubleArray, text: &[u8]) -> Option<usize> {
    let longest = symbols.longest(text, MAX_USER_DEFINED_KEYS);
    longest.map(|(len, _)| len)
}

pub(super) fn normalization_rules_of(
    normalizer: &Value,
    pieces: &[Piece],
) -> Result<NormalizationRules, String> {
    let is_set = |key: &str| {
        let set = normalizer[key].as_bool();
        set.ok_or_else(|| format!("its normalizer does not set {key}"))
    };
    let charsmap = normalizer["precompiled_charsmap"]
        .as_str()
        .and_then(|text| BASE64_STANDARD.decode(text).ok());
    let charsmap = charsmap.ok_or("its precompiled_charsmap is not base64")?;
    let charsmap = if charsmap.is_empty() {
        None
    } else {
        Some(Charsmap::from_bytes(&charsmap)?)
    };
    let user_defined = (0u32..).zip(pieces);
    let user_defined = user_defined.filter(|(_, piece)| piece.kind == Kind::UserDefined);
    Ok(NormalizationRules {
        add_dummy_prefix: is_set("add_dummy_prefix")?,
        remove_extra_whitespaces: is_set("remove_extra_whitespaces")?,
        escape_whitespaces: is_set("escape_whitespaces")?,
        treat_whitespace_as_suffix: is_set("treat_whitespace_as_suffix")?,
        charsmap,
        user_defined: DoubleArray::of(
            user_defined
                .map(|(id, piece)| (piece.text.clone().into_bytes(), id))
                .collect(),
        )?,
    })
}
