//! Decodes ids of byte-level vocabularies without the reference engine, whose loading takes longer
//! than decoding.
//!
//! Follows the `ByteLevel` decoder of `tokenizers`: a name that consists of letters that stand for
//! bytes becomes these bytes; any other name becomes its own UTF-8; invalid UTF-8 in the result
//! becomes U+FFFD.

use serde_json::Value;

use crate::letters::Letters;
use crate::load::{AddedToken, model_type};
use crate::token_table::{TextBuffer, TokenTable, names_decoded_as_normalized};

/// The bytes of each token.
pub(crate) struct ByteDecoder(TokenTable);

impl ByteDecoder {
    /// Builds the decoder from a tokenizer.json; `None` if the file defines another decoder.
    /// `reference_text` is as in [`TokenTable::correct`].
    pub(crate) fn read(
        file: &Value,
        added_tokens: &[AddedToken],
        reference_text: impl Fn(&[u32], bool) -> Option<String>,
    ) -> Option<Self> {
        if file["decoder"]["type"] != "ByteLevel" || model_type(&file["model"]) != "BPE" {
            return None;
        }
        let letters = Letters::new();
        let append = |name: &str, bytes: &mut Vec<u8>| {
            let start = bytes.len();
            for letter in name.chars() {
                match letters.byte(letter) {
                    Some(byte) => bytes.push(byte),
                    None => {
                        bytes.truncate(start);
                        bytes.extend_from_slice(name.as_bytes());
                        return false;
                    }
                }
            }
            false
        };
        let mut tokens = TokenTable::read(file, added_tokens, append)?;
        let normalized = names_decoded_as_normalized(file);
        if !normalized.is_empty() {
            tokens.correct(&normalized, added_tokens, text_of, reference_text)?;
        }
        Some(Self(tokens))
    }

    /// The text of `ids`. Unknown ids are skipped.
    pub(crate) fn text_of(&self, ids: &[u32], skip_special_tokens: bool) -> String {
        text_of(&self.0, ids, skip_special_tokens)
    }

    /// The bytes of `id`; empty if `id` is unknown.
    pub(crate) fn bytes_of(&self, id: u32) -> &[u8] {
        self.0.bytes_of(id)
    }
}

fn text_of(tokens: &TokenTable, ids: &[u32], skip_special_tokens: bool) -> String {
    let mut text = TextBuffer::new(tokens, ids.len());
    for token in tokens.tokens(ids, skip_special_tokens) {
        text.push(token);
    }
    match String::from_utf8(text.into_bytes()) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::tokenizer::Tokenizer;

    fn read(tokenizer: &Tokenizer) -> Option<ByteDecoder> {
        let file = serde_json::from_str(tokenizer.json()).unwrap();
        let reference_text = |ids: &[u32], skips| tokenizer.fallback_text(ids, skips).ok();
        ByteDecoder::read(&file, tokenizer.added_tokens(), reference_text)
    }

    /// gpt2 with a normalizer and with added tokens: their ids and names, and whether they are special. They are
    /// normalized if there is a normalizer.
    fn gpt2_with(normalizer: Value, added_tokens: &[(u32, &str, bool)]) -> Tokenizer {
        let mut file: Value = serde_json::from_str(&crate::builtin_json("gpt2").unwrap()).unwrap();
        let is_normalized = !normalizer.is_null();
        let added = added_tokens.iter().map(|(id, content, special)| {
            json!({"id": id, "content": content, "special": special, "single_word": false,
                   "lstrip": false, "rstrip": false, "normalized": is_normalized})
        });
        file["added_tokens"] = added.collect();
        file["normalizer"] = normalizer;
        Tokenizer::from_json("t", file.to_string()).unwrap()
    }

    #[test]
    fn ids_become_the_text_of_the_reference_engine() {
        let added_tokens = [
            (50256, "<|endoftext|>", true),
            (50257, "<é>", false),
            (50258, "数", true),
            (262, "Ġthe", true),
        ];
        let tokenizer = gpt2_with(Value::Null, &added_tokens);
        let decoder = read(&tokenizer).unwrap();
        let reference = tokenizer.without_fast().unwrap().unwrap();
        let lists: [&[u32]; 6] = [
            &[],
            &[15496, 995, 262, 50256, 50257, 50258, 262],
            &[162, 242, 108, 50257],
            &[162, 50258, 242],
            &[99_999, 15496],
            &[255, 254, 253],
        ];
        for ids in lists {
            for skips in [false, true] {
                let expected = if skips {
                    reference.decode_without_special_tokens(ids)
                } else {
                    reference.decode(ids)
                };
                assert_eq!(decoder.text_of(ids, skips), expected.unwrap(), "{ids:?}");
            }
        }
    }

    /// The ids of the last added token: one close to the others, one so high that most ids have no token, and one of a
    /// file with a normalizer.
    const LAST_IDS: [u32; 3] = [60_000, 4_000_000_000, 60_001];

    /// gpt2 with added tokens, the last of which has the id `last`. The letter é stands for a byte that is no character.
    fn with_added_tokens(last: u32) -> Tokenizer {
        let (normalizer, part) = if last == LAST_IDS[2] {
            let steps = json!([{"type": "NFC"}, {"type": "Lowercase"}]);
            (json!({"type": "Sequence", "normalizers": steps}), "É ")
        } else {
            (Value::Null, "é")
        };
        let added_tokens = [
            (50256, "<|endoftext|>", true),
            (50257, &part.repeat(100), false),
            (50258, "A  e\u{301}", true),
            (last, "twelve bytes", true),
        ];
        gpt2_with(normalizer, &added_tokens)
    }

    proptest! {
        #[test]
        fn any_ids_become_the_text_of_the_reference_engine(
            ids in proptest::collection::vec(
                prop_oneof![
                    4 => 0..50_260_u32,
                    2 => 0..256_u32,
                    2 => proptest::sample::select(LAST_IDS.to_vec()),
                    // Tokens of 12, 13, 14, 128 and 200 bytes.
                    1 => prop_oneof![Just(1321), Just(2776), Just(3230), Just(35_496), Just(50_257)],
                ],
                0..120,
            ),
            number in 0..LAST_IDS.len(),
            skips: bool,
        ) {
            static TOKENIZERS: OnceLock<[(Tokenizer, ByteDecoder); 3]> = OnceLock::new();
            let tokenizers = TOKENIZERS.get_or_init(|| LAST_IDS.map(|id| {
                let tokenizer = with_added_tokens(id);
                let decoder = read(&tokenizer).unwrap();
                (tokenizer, decoder)
            }));
            let (tokenizer, decoder) = &tokenizers[number];
            let expected = tokenizer.fallback_text(&ids, skips).unwrap();
            prop_assert_eq!(decoder.text_of(&ids, skips), expected);
        }
    }

    #[test]
    fn normalized_names_of_bytes_are_left_to_the_reference_engine() {
        // The letters of the bytes c3 and e3, neither of which is a character.
        let tokenizer = gpt2_with(json!({"type": "Lowercase"}), &[(50257, "Ã", false)]);
        assert!(read(&tokenizer).is_none());
    }

    #[test]
    fn files_that_become_text_in_other_ways_are_not_read() {
        let gpt2 = crate::builtin_json("gpt2").unwrap();
        let changed = |key: &str, value: Value| {
            let mut file: Value = serde_json::from_str(&gpt2).unwrap();
            file[key] = value;
            read(&Tokenizer::from_json("t", file.to_string()).unwrap())
        };
        assert!(changed("decoder", Value::Null).is_none());
        assert!(changed("decoder", json!({"type": "Fuse"})).is_none());
        let normalized = json!([{"id": 50257, "content": "A", "special": false, "single_word": false,
                                 "lstrip": false, "rstrip": false, "normalized": true}]);
        assert!(changed("added_tokens", normalized).is_some());
        assert!(changed("normalizer", json!({"type": "NFC"})).is_some());
    }
}
