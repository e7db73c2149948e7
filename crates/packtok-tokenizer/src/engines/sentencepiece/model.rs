//! A SentencePiece model as its tokenizer.json has it.

use std::collections::HashSet;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::engines::double_array::DoubleArray;

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

const KINDS: [(Kind, &str); 6] = [
    (Kind::Normal, "normal"),
    (Kind::Unknown, "unknown"),
    (Kind::Control, "control"),
    (Kind::UserDefined, "user_defined"),
    (Kind::Unused, "unused"),
    (Kind::Byte, "byte"),
];

impl Kind {
    /// The kind that a `.model` file writes as this number.
    pub(crate) fn of_number(number: i32) -> Option<Self> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        KINDS.get(at).map(|&(kind, _)| kind)
    }

    fn of_name(name: &str) -> Option<Self> {
        let mut kinds = KINDS.iter();
        kinds
            .find(|(_, known)| *known == name)
            .map(|&(kind, _)| kind)
    }

    pub(crate) fn name(self) -> &'static str {
        let found = KINDS.iter().find(|(kind, _)| *kind == self);
        found.map_or("", |(_, name)| name)
    }

    /// Whether texts are matched with it.
    pub(super) fn is_matched(self) -> bool {
        matches!(self, Self::Normal | Self::UserDefined | Self::Unused)
    }
}

/// How pieces are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelType {
    /// The pieces whose scores make the greatest sum.
    Unigram,
    /// What remains when the pair that makes the piece of best score is merged, again and again.
    Bpe,
    /// Words between white space.
    Word,
    /// Characters.
    Char,
}

const MODEL_TYPES: [(ModelType, &str); 4] = [
    (ModelType::Unigram, "SentencePieceUnigram"),
    (ModelType::Bpe, "SentencePieceBPE"),
    (ModelType::Word, "SentencePieceWord"),
    (ModelType::Char, "SentencePieceChar"),
];

impl ModelType {
    /// The type that a `.model` file writes as this number.
    pub(crate) fn of_number(number: i32) -> Option<Self> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        MODEL_TYPES.get(at).map(|&(model_type, _)| model_type)
    }

    /// The type that a tokenizer.json calls so.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let mut types = MODEL_TYPES.iter();
        types
            .find(|(_, known)| *known == name)
            .map(|&(model_type, _)| model_type)
    }

    pub(crate) fn name(self) -> &'static str {
        let found = MODEL_TYPES
            .iter()
            .find(|(model_type, _)| *model_type == self);
        found.map_or("", |(_, name)| name)
    }
}

/// A piece of the vocabulary.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) score: f32,
    pub(super) kind: Kind,
}

/// What becomes of a text before it is cut into pieces.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) add_dummy_prefix: bool,
    pub(super) remove_extra_whitespaces: bool,
    pub(super) escape_whitespaces: bool,
    pub(super) treat_whitespace_as_suffix: bool,
    charsmap: Option<Charsmap>,
    user_defined: DoubleArray,
}

/// Of the keys that a text begins with, so many are looked at by the library.
const MOST_REPLACED: usize = 32;
const MOST_USER_DEFINED: usize = 64;

/// Texts that are replaced: a trie of them, and what each becomes, ended by a zero.
#[derive(Debug)]
struct Charsmap {
    trie: DoubleArray,
    replacements: Vec<u8>,
}

impl Charsmap {
    /// Reads a `precompiled_charsmap`: the bytes of the trie in 32 bits, the trie, the replacements.
    fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let parts = bytes
            .split_first_chunk::<4>()
            .and_then(|(len, rest)| rest.split_at_checked(u32::from_le_bytes(*len) as usize));
        let (trie, replacements) = parts.ok_or("its precompiled_charsmap is cut short")?;
        // So that every replacement ends somewhere.
        if replacements.last().is_some_and(|&last| last != 0) {
            return Err("its precompiled_charsmap is cut short".to_owned());
        }
        let trie = DoubleArray::from_bytes(trie)
            .map_err(|reason| format!("its precompiled_charsmap is broken: {reason}"))?;
        Ok(Self {
            trie,
            replacements: replacements.to_owned(),
        })
    }

    /// What the beginning of `text` becomes, and how many bytes of it.
    #[inline]
    fn replacement(&self, text: &[u8]) -> Option<(&[u8], usize)> {
        let (len, at) = self.trie.longest(text, MOST_REPLACED)?;
        let rest = self.replacements.get(at as usize..)?;
        // The last one is ended, too.
        let end = rest.iter().position(|&byte| byte == 0)?;
        Some((&rest[..end], len))
    }
}

impl Rules {
    /// What the first character of `text`, or more of it, becomes, and how many bytes that takes.
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

    /// What becomes of a text, step by step as the library does it.
    pub(super) fn normalized(&self, mut text: &[u8]) -> Vec<u8> {
        let space = match self.escape_whitespaces {
            true => SPACE.as_bytes(),
            false => b" ",
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

    /// [`first_symbol`] among the symbols of these rules.
    pub(super) fn first_symbol(&self, text: &[u8]) -> (usize, bool) {
        first_symbol(&self.user_defined, text)
    }

    /// Whether a character of one byte stays what it is when another such, or nothing, follows.
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

/// Bytes of the first character of `text`, or of the user-defined symbol that it begins with; and whether it does.
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
    let longest = symbols.longest(text, MOST_USER_DEFINED);
    longest.map(|(len, _)| len)
}

/// Bytes of the character that `text` begins with.
#[inline]
pub(super) fn num_bytes_of_char(text: &[u8]) -> usize {
    let len = match text.first() {
        None => 0,
        Some(0..0xc0) => 1,
        Some(0xc0..0xe0) => 2,
        Some(0xe0..0xf0) => 3,
        Some(_) => 4,
    };
    len.min(text.len())
}

/// What white space is written as.
pub(super) const SPACE: &str = "\u{2581}";

/// A model and all that its ids and texts depend on.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) model_type: ModelType,
    pub(super) pieces: Vec<Piece>,
    pub(super) rules: Rules,
    pub(super) unk_id: u32,
    /// The score of a character that no piece is.
    pub(super) unk_score: f32,
    /// The id of each byte, where unknown characters are written by them.
    pub(super) byte_ids: Option<Box<[u32; 256]>>,
    pub(super) unk_surface: String,
    /// What is done to the text of ids.
    denormalizer: Option<Rules>,
}

/// Where a sum is beyond this, it is taken off all that are under way, so that rounding does not get worse.
pub(super) const MOST_SUM: f32 = 100_000.0;

/// What an unknown character costs, below the worst piece.
const UNK_PENALTY: f32 = 10.0;

impl Model {
    /// Reads the tokenizer.json of a model.
    ///
    /// # Errors
    /// What of it is not as it must be.
    pub(super) fn read(json: &Value) -> Result<Self, String> {
        let model = &json["model"];
        let model_type = model["type"].as_str().and_then(ModelType::of_name);
        let model_type = model_type.ok_or("its model is none of SentencePiece's")?;
        let vocab = model["vocab"].as_array().map_or(&[][..], Vec::as_slice);
        let pieces = vocab.iter().map(piece).collect::<Result<Vec<_>, _>>()?;
        check_differ(&pieces)?;
        let rules = rules_of(&json["normalizer"], &pieces)?;
        let ids = || (0u32..).zip(&pieces);
        let mut unknown = ids().filter(|(_, piece)| piece.kind == Kind::Unknown);
        let (unk_id, _) = unknown.next().ok_or("it has no unknown piece")?;
        if unknown.next().is_some() {
            return Err("it has more than one unknown piece".to_owned());
        }
        let byte_ids = match model["byte_fallback"] == true {
            true => Some(byte_ids(ids())?),
            false => None,
        };
        let unk_surface = json["decoder"]["unk_surface"].as_str().unwrap_or_default();
        let normal = || {
            let normal = pieces.iter().filter(|piece| piece.kind == Kind::Normal);
            normal.map(|piece| piece.score)
        };
        Ok(Self {
            model_type,
            rules,
            unk_id,
            unk_score: normal().fold(f32::MAX, f32::min) - UNK_PENALTY,
            byte_ids,
            unk_surface: unk_surface.to_owned(),
            denormalizer: match &json["decoder"]["denormalizer"] {
                Value::Null => None,
                // The library matches user-defined pieces in texts only.
                written => Some(rules_of(written, &[])?),
            },
            pieces,
        })
    }

    /// The score of a piece where sums are compared: a user-defined one is always to be chosen.
    pub(super) fn sum_score(&self, id: u32) -> f32 {
        let piece = &self.pieces[id as usize];
        match piece.kind {
            Kind::UserDefined => (0.1 * (piece.text.len() - 1) as f64) as f32,
            _ => piece.score,
        }
    }

    /// Appends what a piece with this text becomes; `after_unknown` says whether the one before was unknown, and is
    /// whether this one is.
    pub(super) fn push_id(
        &self,
        id: u32,
        text: &[u8],
        after_unknown: &mut bool,
        ids: &mut Vec<u32>,
    ) {
        let is_unknown = id == self.unk_id;
        match &self.byte_ids {
            Some(byte_ids) if is_unknown => {
                ids.extend(text.iter().map(|&byte| byte_ids[usize::from(byte)]));
            }
            // A run of them is one.
            _ if is_unknown && *after_unknown => {}
            _ => ids.push(id),
        }
        *after_unknown = is_unknown;
    }

    /// The text of `ids`.
    ///
    /// # Errors
    /// An id that is no piece's.
    pub(super) fn decode(&self, ids: &[u32]) -> Result<String, String> {
        let mut text = String::new();
        let mut bytes = Vec::new();
        let (mut is_at_start, mut took_space) = (true, false);
        for &id in ids {
            let piece = self.pieces.get(id as usize);
            let piece = piece.ok_or_else(|| format!("there is no piece {id}"))?;
            if piece.kind == Kind::Byte {
                bytes.extend(byte_of(&piece.text));
                continue;
            }
            push_bytes(&mut bytes, &mut text);
            is_at_start &= !took_space && text.is_empty();
            took_space = false;
            match piece.kind {
                Kind::Control => {}
                Kind::Unknown => text.push_str(&self.unk_surface),
                _ => {
                    let mut shown = piece.text.as_str();
                    if is_at_start
                        && (self.rules.add_dummy_prefix || self.rules.remove_extra_whitespaces)
                        && let Some(rest) = shown.strip_prefix(SPACE)
                    {
                        shown = rest;
                        // Where more white space would have been taken out, more of it is not shown either.
                        took_space = !self.rules.remove_extra_whitespaces;
                    }
                    text.push_str(&shown.replace(SPACE, " "));
                }
            }
        }
        push_bytes(&mut bytes, &mut text);
        Ok(match &self.denormalizer {
            Some(rules) => String::from_utf8_lossy(&rules.normalized(text.as_bytes())).into_owned(),
            None => text,
        })
    }
}

/// Moves what pieces of one byte say to the text; each byte that begins no character is shown as one.
fn push_bytes(bytes: &mut Vec<u8>, text: &mut String) {
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    bytes.clear();
}

/// Pieces are shorter.
const MOST_PIECE_BYTES: usize = 8000;

fn piece(entry: &Value) -> Result<Piece, String> {
    let read = || {
        let [text, score, kind] = &entry.as_array()?[..] else {
            return None;
        };
        Some(Piece {
            text: text.as_str()?.to_owned(),
            score: score.as_f64()? as f32,
            kind: Kind::of_name(kind.as_str()?)?,
        })
    };
    let piece = read().ok_or_else(|| format!("{entry} is no piece"))?;
    if piece.text.is_empty() || piece.text.contains('\0') {
        return Err(format!(
            "the piece {:?} is empty or holds a zero",
            piece.text
        ));
    }
    match piece.text.len() {
        ..MOST_PIECE_BYTES => Ok(piece),
        num_bytes => Err(format!("a piece has {num_bytes} bytes")),
    }
}

/// # Errors
/// Two pieces with one text, both of which texts are matched with, or neither.
fn check_differ(pieces: &[Piece]) -> Result<(), String> {
    let mut seen = HashSet::with_capacity(pieces.len());
    for piece in pieces {
        if !seen.insert((piece.kind.is_matched(), piece.text.as_str())) {
            return Err(format!("it has the piece {:?} twice", piece.text));
        }
    }
    Ok(())
}

fn rules_of(normalizer: &Value, pieces: &[Piece]) -> Result<Rules, String> {
    let is_set = |key: &str| {
        let set = normalizer[key].as_bool();
        set.ok_or_else(|| format!("its normalizer does not say {key}"))
    };
    let charsmap = normalizer["precompiled_charsmap"]
        .as_str()
        .and_then(|text| BASE64_STANDARD.decode(text).ok());
    let charsmap = charsmap.ok_or("its precompiled_charsmap is no base64")?;
    let charsmap = match charsmap.is_empty() {
        true => None,
        false => Some(Charsmap::from_bytes(&charsmap)?),
    };
    let user_defined = (0u32..).zip(pieces);
    let user_defined = user_defined.filter(|(_, piece)| piece.kind == Kind::UserDefined);
    Ok(Rules {
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

/// The byte that a piece such as `<0x0A>` stands for.
fn byte_of(piece: &str) -> Option<u8> {
    let hex = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    let byte = u8::from_str_radix(hex, 16).ok()?;
    (format!("{byte:02X}") == hex).then_some(byte)
}

fn byte_ids<'a>(pieces: impl Iterator<Item = (u32, &'a Piece)>) -> Result<Box<[u32; 256]>, String> {
    let mut ids = Box::new([None; 256]);
    for (id, piece) in pieces.filter(|(_, piece)| piece.kind == Kind::Byte) {
        let byte = byte_of(&piece.text);
        let byte = byte.ok_or_else(|| format!("{:?} is no piece of a byte", piece.text))?;
        ids[usize::from(byte)] = Some(id);
    }
    if let Some(missing) = ids.iter().position(Option::is_none) {
        return Err(format!("it has no piece for the byte {missing}"));
    }
    Ok(Box::new(ids.map(Option::unwrap_or_default)))
}
