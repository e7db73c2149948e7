//! The bytes that each id adds to the text, to show where tokens begin and end.

use crate::error::Result;
use crate::tokenizer::Tokenizer;
use crate::vocabulary::{Vocabulary, byte_of_name};

impl Tokenizer {
    /// The bytes that each of `ids` adds to the text. A token of a byte-level vocabulary may be a
    /// part of a character.
    ///
    /// All pieces together are the text that [`Tokenizer::decode`] returns, with two exceptions.
    /// Invalid UTF-8 is not replaced. If a decoder changes the text around tokens, such as by
    /// removing spaces before punctuation, the pieces are computed from pairs of tokens.
    /// `vocabulary` is the vocabulary of this tokenizer.
    ///
    /// # Errors
    /// As [`Tokenizer::decode`].
    pub fn pieces(&self, ids: &[u32], vocabulary: &Vocabulary) -> Result<Vec<Vec<u8>>> {
        if let Some(decoder) = self.byte_decoder() {
            return Ok(ids
                .iter()
                .map(|&id| decoder.bytes_of(id).to_vec())
                .collect());
        }
        let mut pieces = Vec::with_capacity(ids.len());
        let mut previous = None;
        for &id in ids {
            let name = vocabulary.name_of(id).unwrap_or_default();
            // A decoder without byte fallback decodes a byte token as its name.
            if let Some(byte) = byte_of_name(name)
                && self.decode(&[id])? != name
            {
                pieces.push(vec![byte]);
                // Decoders remove a space at the start of the text only, which this token ends.
                previous = previous.or(Some(id));
                continue;
            }
            pieces.push(self.text_after(previous, id)?.into_bytes());
            previous = Some(id);
        }
        Ok(pieces)
    }

    /// The text that `id` adds after another token.
    fn text_after(&self, previous: Option<u32>, id: u32) -> Result<String> {
        let Some(previous) = previous else {
            return self.decode(&[id]);
        };
        let (before, both) = (self.decode(&[previous])?, self.decode(&[previous, id])?);
        match both.strip_prefix(&before) {
            Some(added) => Ok(added.to_owned()),
            None => self.decode(&[id]),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn assert_pieces(file: serde_json::Value, ids: &[u32], expected: &[&[u8]]) {
        let tokenizer = Tokenizer::from_json("t.json", file.to_string()).unwrap();
        let pieces = tokenizer.pieces(ids, &Vocabulary::of(&tokenizer)).unwrap();
        assert_eq!(pieces, expected);
        let text = String::from_utf8_lossy(&pieces.concat()).into_owned();
        assert_eq!(text, tokenizer.decode(ids).unwrap());
    }

    #[test]
    fn a_byte_level_token_may_be_a_part_of_a_character() {
        // The letters stand for the bytes c3, a9 and 20.
        let vocab = json!({"\u{c3}": 0, "\u{a9}": 1, "\u{120}": 2, "a": 3});
        let file = json!({
            "model": {"type": "BPE", "vocab": vocab, "merges": []},
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true},
            "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
            "added_tokens": [{
                "id": 4, "content": "<eod>", "special": true,
                "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            }],
        });
        assert_pieces(
            file,
            &[3, 2, 0, 1, 4],
            &[b"a", b" ", b"\xc3", b"\xa9", b"<eod>"],
        );
    }

    #[test]
    fn only_the_first_space_of_the_text_is_removed() {
        let vocab = json!([
            ["<unk>", 0.0],
            ["\u{2581}a", -1.0],
            ["\u{2581}b", -1.0],
            ["<0xC3>", -9.0],
            ["<0xA9>", -9.0]
        ]);
        let file = json!({
            "model": {"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": true},
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"String": "\u{2581}"}, "content": " "},
                {"type": "ByteFallback"}, {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ]},
        });
        assert_pieces(
            file.clone(),
            &[1, 2, 3, 4, 1],
            &[b"a", b" b", b"\xc3", b"\xa9", b" a"],
        );
        assert_pieces(file, &[3, 4, 2], &[b"\xc3", b"\xa9", b" b"]);
    }
}
