//! The texts of documents: token files with the tokenizer that decodes them.
//!
//! [`DocumentTexts`] decodes a bounded part of a document at a time. [`profile`] reports what a sample of the
//! documents contains, and [`DocumentTexts::search`] finds a text in them. Both use memory that does not grow with
//! the files.

pub mod profile;
mod search;

use std::path::Path;

use packtok_pbin::TokenWidth;
use packtok_tokenizer::{Tokenizer, Vocabulary};

use crate::error::Result;
use crate::files::file_set::Files;

pub use search::{Hit, Pattern, Position, SearchLimits, SearchResult};

/// Bytes of text that are decoded at once, counted by the names of tokens. A tokenizer may have a token of
/// any length.
const MAX_TEXT_BYTES: u64 = 16 << 20;
/// Ids up to this one have a place of their own in tables. No known vocabulary has more.
const MAX_TABLE_IDS: usize = 1 << 20;
/// Bytes of tokens after which the pages of a mapped file are handed back.
const RELEASED_BYTES: u64 = 16 << 20;

/// Token files, and the tokenizer of their ids.
pub struct DocumentTexts {
    files: Files,
    decoder: Option<Decoder>,
    eod_id: Option<u32>,
}

impl DocumentTexts {
    /// The texts of `files`. Without a tokenizer, documents have ids only.
    ///
    /// # Errors
    /// The metadata of the first file is damaged.
    pub fn new(files: Files, tokenizer: Option<Tokenizer>) -> Result<Self> {
        let metadata = files.token_file(0)?.metadata()?;
        let eod_id = metadata.and_then(|metadata| Some(metadata.eod.as_ref()?.id));
        Ok(Self {
            files,
            decoder: tokenizer.map(Decoder::new),
            eod_id,
        })
    }

    /// Paths of the files, in order.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.entries().map(|entry| entry.path.as_path())
    }

    /// Reads the ids at the positions `tokens` of a file into `ids`, and returns their bytes.
    fn read_ids(
        &self,
        file: usize,
        tokens: std::ops::Range<u64>,
        ids: &mut Vec<u32>,
    ) -> Result<&[u8]> {
        let bytes = self.files.tokens(file, tokens)?;
        ids.clear();
        match self.files.width() {
            TokenWidth::U8 => ids.extend(bytes.iter().map(|&id| u32::from(id))),
            TokenWidth::U16 => {
                let (tokens, _) = bytes.as_chunks();
                ids.extend(
                    tokens
                        .iter()
                        .map(|&token| u32::from(u16::from_le_bytes(token))),
                );
            }
            TokenWidth::U32 => {
                let (tokens, _) = bytes.as_chunks();
                ids.extend(tokens.iter().map(|&token| u32::from_le_bytes(token)));
            }
        }
        Ok(bytes)
    }
}

/// A tokenizer, with tables for decoding large amounts of text.
struct Decoder {
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    /// Bytes of the name of each id; `None` for special tokens and unknown ids, which have no text.
    name_bytes: Vec<Option<u32>>,
}

impl Decoder {
    fn new(tokenizer: Tokenizer) -> Self {
        let vocabulary = Vocabulary::of(&tokenizer);
        let num_ids = tokenizer.vocab_size().min(MAX_TABLE_IDS as u64) as u32;
        let names = (0..num_ids).map(|id| vocabulary.name_of(id));
        let mut name_bytes: Vec<_> = names.map(|name| Some(name?.len() as u32)).collect();
        for token in tokenizer.special_tokens() {
            if let Some(bytes) = name_bytes.get_mut(token.id as usize) {
                *bytes = None;
            }
        }
        Self {
            tokenizer,
            vocabulary,
            name_bytes,
        }
    }

    /// Bytes of the name of an id; `None` if the id has no text.
    fn name_bytes(&self, id: u32) -> Option<u64> {
        Some((*self.name_bytes.get(id as usize)?)?.into())
    }

    /// The number of `ids`, from the first, that can be decoded at once.
    fn num_fitting(&self, ids: &[u32]) -> usize {
        let mut bytes = 0;
        let excess = ids.iter().position(|&id| {
            bytes += self.name_bytes(id).unwrap_or(0);
            bytes > MAX_TEXT_BYTES
        });
        excess.unwrap_or(ids.len())
    }

    fn decode(&self, ids: &[u32]) -> Result<String> {
        Ok(self.tokenizer.decode(ids)?)
    }
}
