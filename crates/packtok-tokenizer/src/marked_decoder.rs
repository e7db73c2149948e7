//! Decodes ids of vocabularies that write spaces as `▁` and unknown characters as bytes (Llama 2, Mistral, Gemma)
//! without the reference engine, which decodes a tenth as fast.
//!
//! Follows the decoders of `tokenizers` in the order `Replace`, `ByteFallback`, `Fuse` and, if the file has it,
//! `Strip`: `▁` becomes a space; tokens such as `<0xE2>` become bytes; if the bytes of neighbouring tokens are no
//! UTF-8 together, each of them becomes U+FFFD; and one space at the start of the text is removed.

use serde_json::{Value, json};

use crate::load::AddedToken;
use crate::token_table::{TextBuffer, TokenTable, names_decoded_as_normalized};
use crate::vocabulary::byte_of_name;

/// The text of each token, or its byte.
pub(crate) struct MarkedDecoder {
    tokens: TokenTable,
    /// Whether a space at the start of the text is removed.
    strips: bool,
}

impl MarkedDecoder {
    /// Builds the decoder from a tokenizer.json; `None` if the file defines another decoder.
    /// `reference_text` is as in [`TokenTable::correct`].
    pub(crate) fn read(
        file: &Value,
        added_tokens: &[AddedToken],
        reference_text: impl Fn(&[u32], bool) -> Option<String>,
    ) -> Option<Self> {
        let mut this = Self::with_names(file, added_tokens)?;
        let strips = this.strips;
        let text_of = |tokens: &TokenTable, ids: &[u32], skips| text_of(tokens, strips, ids, skips);
        let normalized = names_decoded_as_normalized(file);
        this.tokens
            .correct(&normalized, added_tokens, text_of, reference_text)?;
        Some(this)
    }

    fn with_names(file: &Value, added_tokens: &[AddedToken]) -> Option<Self> {
        if file["decoder"]["type"] != "Sequence" {
            return None;
        }
        let steps = [
            json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "}),
            json!({"type": "ByteFallback"}),
            json!({"type": "Fuse"}),
            json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}),
        ];
        let decoders = file["decoder"]["decoders"].as_array()?;
        let strips = decoders.len() == steps.len();
        if decoders[..] != steps[..decoders.len().clamp(3, 4)] {
            return None;
        }
        let append = |name: &str, bytes: &mut Vec<u8>| {
            let byte = byte_of_name(name);
            match byte {
                Some(byte) => bytes.push(byte),
                None => bytes.extend_from_slice(name.replace('▁', " ").as_bytes()),
            }
            byte.is_some()
        };
        Some(Self {
            tokens: TokenTable::read(file, added_tokens, append)?,
            strips,
        })
    }

    /// The text of `ids`. Unknown ids are skipped.
    pub(crate) fn text_of(&self, ids: &[u32], skip_special_tokens: bool) -> String {
        text_of(&self.tokens, self.strips, ids, skip_special_tokens)
    }
}

fn text_of(tokens: &TokenTable, strips: bool, ids: &[u32], skip_special_tokens: bool) -> String {
    let mut text = TextBuffer::new(tokens, ids.len());
    let mut bytes = Vec::new();
    for token in tokens.tokens(ids, skip_special_tokens) {
        if token.is_byte() {
            bytes.extend_from_slice(tokens.bytes(token));
        } else {
            end_bytes(&mut bytes, &mut text);
            text.push(token);
        }
    }
    end_bytes(&mut bytes, &mut text);
    let mut text = text.into_bytes();
    if strips && text.first() == Some(&b' ') {
        text.remove(0);
    }
    match String::from_utf8(text) {
        Ok(text) => text,
        Err(_) => unreachable!("names and complete bytes are UTF-8"),
    }
}

/// Moves the bytes of neighbouring tokens to the text.
#[inline]
fn end_bytes(bytes: &mut Vec<u8>, text: &mut TextBuffer) {
    if bytes.is_empty() {
        return;
    }
    match str::from_utf8(bytes) {
        Ok(_) => text.extend(bytes),
        Err(_) => bytes
            .iter()
            .for_each(|_| text.extend("\u{fffd}".as_bytes())),
    }
    bytes.clear();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tokenizer::Tokenizer;

    /// A BPE file with bytes, texts and added tokens.
    fn tokenizer(strips: bool) -> Tokenizer {
        let mut vocab: serde_json::Map<String, Value> = (0..256_u32)
            .map(|byte| (format!("<0x{byte:02X}>"), json!(byte)))
            .collect();
        let others = [
            "▁", "a", "▁▁a", "é", "数", "<0xZZ>", "<0x1>", "b▁", " ", "<unk>", "<0xe9>",
        ];
        vocab.extend(
            (256..)
                .zip(others)
                .map(|(id, name)| (name.to_owned(), json!(id))),
        );
        let added = |id: u32, content: &str, special: bool| {
            json!({"id": id, "content": content, "special": special, "single_word": false,
                   "lstrip": false, "rstrip": false, "normalized": false})
        };
        let normalized = |id, content, special| {
            let mut token = added(id, content, special);
            token["normalized"] = json!(true);
            token
        };
        let mut decoders = vec![
            json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "}),
            json!({"type": "ByteFallback"}),
            json!({"type": "Fuse"}),
        ];
        if strips {
            decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
        }
        let file = json!({"version": "1.0", "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
            "pre_tokenizer": null, "post_processor": null,
            "added_tokens": [added(265, "<unk>", true), added(268, "▁x", false), added(269, "<0xC3>", true),
                normalized(270, "<s>", true), normalized(271, " y", false)],
            "decoder": {"type": "Sequence", "decoders": decoders},
            "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": true, "vocab": vocab, "merges": []}});
        Tokenizer::from_json("t", file.to_string()).unwrap()
    }

    proptest! {
        #[test]
        fn ids_become_the_text_of_the_reference_engine(
            ids in proptest::collection::vec(
                prop_oneof![0..274_u32, 256..272_u32, Just(0xC3), Just(0xA9), Just(0x20), Just(100_000)], 0..12
            ),
            strips: bool,
            skips: bool,
        ) {
            static TOKENIZERS: std::sync::OnceLock<[Tokenizer; 2]> = std::sync::OnceLock::new();
            let tokenizers = TOKENIZERS.get_or_init(|| [tokenizer(false), tokenizer(true)]);
            let tokenizer = &tokenizers[usize::from(strips)];
            let file = serde_json::from_str(tokenizer.json()).unwrap();
            let decoder = MarkedDecoder::read(&file, tokenizer.added_tokens(), |ids, skips| {
                tokenizer.fallback_text(ids, skips).ok()
            }).unwrap();
            let expected = tokenizer.fallback_text(&ids, skips).unwrap();
            prop_assert_eq!(decoder.text_of(&ids, skips), expected);
        }
    }
}
