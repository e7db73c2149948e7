//! The model of a tokenizer.json, as bytes and ids.

use ahash::AHashMap;
use serde_json::Value;

use super::alphabet::Alphabet;
use super::merge::{MAX_IDS, NO_ID};
use super::missing_bytes::{MissingBytes, occurs_in_utf8};
use crate::letters::Letters;

/// How a vocabulary spells its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engines) enum Spelling {
    /// One letter per byte.
    Bytes,
    /// As text, with [`SPACE_MARK`] for spaces. Characters that the vocabulary lacks are spelled
    /// as tokens for their bytes.
    Text,
    /// As text, with a suffix at the end of a word. Characters that the vocabulary lacks have no symbol. The last
    /// character of a word is a symbol of its own, see [`last_char`].
    Suffixed,
}

/// The last character of a word, as a character of its own: that of the private plane 16 with the same low bits. `None`
/// for characters beyond the basic plane.
#[inline]
pub(in crate::engines) fn last_char(char: char) -> Option<char> {
    let low = u16::try_from(u32::from(char)).ok()?;
    char::from_u32(LAST_CHARS | u32::from(low))
}

/// Whether a character of a text is none of [`last_char`], so that it can be inside a word.
#[inline]
pub(in crate::engines) fn is_inside(char: char) -> bool {
    u32::from(char) < LAST_CHARS
}

/// The plane of [`last_char`].
const LAST_CHARS: u32 = 0x10_0000;

/// The character for a space in vocabularies that spell tokens as text.
pub(super) const SPACE_MARK: &str = "\u{2581}";

/// A BPE model.
pub(in crate::engines) struct Model {
    pub(in crate::engines) alphabet: Alphabet,
    /// The bytes of texts that have no symbol.
    pub(super) missing_bytes: MissingBytes,
    /// By rank: the two ids of each merge and the resulting id.
    pub(in crate::engines) merges: Vec<[u32; 3]>,
    pub(super) tokens: Tokens,
}

/// The tokens that text may become: their concatenated bytes, and the end and id of each.
#[derive(Default)]
pub(super) struct Tokens {
    bytes: Vec<u8>,
    ends: Vec<(usize, u32)>,
}

impl Tokens {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], u32)> {
        let mut start = 0;
        self.ends.iter().map(move |&(end, id)| {
            let token = &self.bytes[start..end];
            start = end;
            (token, id)
        })
    }

    /// Adds a token that is spelled as text.
    fn push_text(&mut self, name: &str, id: u32) {
        for (i, part) in name.split(SPACE_MARK).enumerate() {
            self.bytes.extend((i > 0).then_some(b' '));
            self.bytes.extend_from_slice(part.as_bytes());
        }
        self.ends.push((self.bytes.len(), id));
    }

    /// Adds a token that is spelled with letters for bytes. Skips a token with other letters,
    /// because no word contains it.
    fn push(&mut self, name: &str, id: u32, letters: &Letters) {
        let start = self.bytes.len();
        for letter in name.chars() {
            match letters.byte(letter) {
                Some(byte) => self.bytes.push(byte),
                None => return self.bytes.truncate(start),
            }
        }
        if self.bytes.len() > start {
            self.ends.push((self.bytes.len(), id));
        }
    }
}

impl Model {
    /// A model of characters: the ids of bytes and characters, by rank the two ids of each merge and the resulting id,
    /// and all tokens that merges give, with spaces for [`SPACE_MARK`].
    pub(in crate::engines) fn of_characters<'t>(
        of_byte: [u32; 256],
        chars: impl Iterator<Item = (char, u32)>,
        merges: Vec<[u32; 3]>,
        tokens: impl Iterator<Item = (&'t str, u32)>,
    ) -> Self {
        let mut all = Tokens::default();
        for (token, id) in tokens {
            all.bytes.extend_from_slice(token.as_bytes());
            all.ends.push((all.bytes.len(), id));
        }
        Self {
            alphabet: Alphabet::of_chars(of_byte, chars),
            missing_bytes: MissingBytes::default(),
            merges,
            tokens: all,
        }
    }

    /// Reads the vocabulary and the merges of a model.
    ///
    /// # Errors
    /// The model has a property that this engine does not cover.
    pub(in crate::engines) fn read(model: &Value, spelling: Spelling) -> Result<Self, String> {
        let is_set = |key: &str| !model[key].as_str().unwrap_or("").is_empty();
        if is_set("continuing_subword_prefix") {
            return Err("its model sets continuing_subword_prefix".to_owned());
        }
        if is_set("end_of_word_suffix") && spelling != Spelling::Suffixed {
            return Err("its model sets end_of_word_suffix".to_owned());
        }
        let vocab = model["vocab"]
            .as_object()
            .ok_or("its vocabulary is not a BPE vocabulary")?;
        let letters = Letters::new();
        let mut ids = Ids(AHashMap::with_capacity(vocab.len()));
        let mut tokens = Tokens::default();
        let mut is_taken = vec![false; MAX_IDS];
        for (name, id) in vocab {
            let id = id.as_u64().filter(|&id| id < MAX_IDS as u64);
            let id = id.ok_or_else(|| format!("the id of {name:?} is too high"))? as u32;
            // `tokenizers` merges by ids. If two tokens shared an id, the rules of one would apply
            // to the other.
            if std::mem::replace(&mut is_taken[id as usize], true) {
                return Err(format!("two of its tokens have id {id}"));
            }
            ids.0.insert(name, id);
            if spelling == Spelling::Bytes {
                tokens.push(name, id, &letters);
            }
        }
        let listed = model["merges"]
            .as_array()
            .ok_or("its merges are not BPE merges")?;
        // A file spells all merges either as lines or as pairs. A list of lines may start with a
        // version line.
        let are_lines = listed.first().is_some_and(Value::is_string);
        let is_merge = |merge: &&Value| {
            !(are_lines
                && merge
                    .as_str()
                    .is_some_and(|line| line.starts_with("#version")))
        };
        let mut merges = Vec::new();
        let mut name = String::new();
        for merge in listed.iter().filter(is_merge) {
            let pair = match merge {
                Value::String(line) if are_lines => {
                    let pair = line.split_once(' ');
                    pair.filter(|(_, right)| !right.contains(' '))
                }
                Value::Array(parts) if !are_lines => match &parts[..] {
                    [left, right] => left.as_str().zip(right.as_str()),
                    _ => None,
                },
                _ => None,
            };
            let (left, right) = pair.ok_or("its merges are not BPE merges")?;
            name.clear();
            name.push_str(left);
            name.push_str(right);
            let id = ids.of(&name)?;
            merges.push([ids.of(left)?, ids.of(right)?, id]);
            if spelling == Spelling::Text {
                if [left, right, &name].into_iter().any(is_byte) {
                    return Err("it merges byte-fallback tokens".to_owned());
                }
                tokens.push_text(&name, id);
            }
        }
        if merges.len() >= MAX_IDS {
            return Err("it has too many merges".to_owned());
        }
        let (alphabet, missing_bytes) = match spelling {
            Spelling::Bytes => ids.of_bytes(&letters),
            Spelling::Text => (ids.of_chars(model)?, MissingBytes::default()),
            Spelling::Suffixed => (ids.of_suffixed_chars(model)?, MissingBytes::default()),
        };
        Ok(Self {
            alphabet,
            missing_bytes,
            merges,
            tokens,
        })
    }
}

/// The ids of a vocabulary by name. Merges look up three names each: std's hash would take a tenth of loading.
struct Ids<'a>(AHashMap<&'a str, u32>);

impl Ids<'_> {
    fn of(&self, name: &str) -> Result<u32, String> {
        let id = self.0.get(name).copied();
        id.ok_or_else(|| format!("it needs the token {name:?}, which has no id"))
    }

    /// The ids of bytes, which are spelled as letters, and the bytes without one, which no text that this engine
    /// encodes has.
    fn of_bytes(&self, letters: &Letters) -> (Alphabet, MissingBytes) {
        let (mut of_byte, mut missing_bytes) = ([NO_ID; 256], MissingBytes::default());
        for (byte, letter) in letters.all() {
            match self.0.get(&*letter.encode_utf8(&mut [0; 4])) {
                Some(&id) => of_byte[usize::from(byte)] = id,
                None if occurs_in_utf8(byte) => missing_bytes.push(byte),
                None => {}
            }
        }
        (Alphabet::of_bytes(of_byte), missing_bytes)
    }

    /// The ids of characters, and of bytes for all others.
    fn of_chars(&self, model: &Value) -> Result<Alphabet, String> {
        if model["byte_fallback"] != true {
            return Err("it has no byte-fallback tokens for unknown characters".to_owned());
        }
        if model["ignore_merges"] == true {
            return Err("its model sets ignore_merges".to_owned());
        }
        let mut of_byte = [0; 256];
        for (byte, id) in of_byte.iter_mut().enumerate() {
            *id = self.of(&format!("<0x{byte:02X}>"))?;
        }
        let space = self.of(SPACE_MARK)?;
        let chars = self.0.iter().filter_map(|(name, &id)| {
            let mut chars = name.chars();
            let char = chars.next()?;
            chars.next().is_none().then_some((char, id))
        });
        // Spaces in texts are the token [`SPACE_MARK`].
        let chars = chars.filter(|&(char, _)| char != ' ');
        Ok(Alphabet::of_chars(of_byte, chars.chain([(' ', space)])))
    }

    /// The ids of characters inside words and at their ends.
    fn of_suffixed_chars(&self, model: &Value) -> Result<Alphabet, String> {
        for key in ["byte_fallback", "ignore_merges"] {
            if model[key] == true {
                return Err(format!("its model sets {key}"));
            }
        }
        let suffix = model["end_of_word_suffix"].as_str().unwrap_or("");
        let only_char = |name: &str| {
            let mut chars = name.chars();
            chars.next().filter(|_| chars.next().is_none())
        };
        let inside = self.0.iter().filter_map(|(name, &id)| {
            let char = only_char(name)?;
            is_inside(char).then_some((char, id))
        });
        let last = self.0.iter().filter_map(|(name, &id)| {
            let char = only_char(name.strip_suffix(suffix)?)?;
            Some((last_char(char)?, id))
        });
        Ok(Alphabet::of_chars([NO_ID; 256], inside.chain(last)))
    }
}

/// Whether a token stands for one byte.
fn is_byte(name: &str) -> bool {
    let hex = name
        .strip_prefix("<0x")
        .and_then(|rest| rest.strip_suffix('>'));
    hex.is_some_and(|hex| hex.len() == 2)
}
