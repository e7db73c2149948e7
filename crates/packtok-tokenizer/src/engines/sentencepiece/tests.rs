//! The fast path gives the ids of the slow path.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use yada::builder::DoubleArrayBuilder;

use super::{FastPath, Scratch, SlowPath};

/// Few characters, of all lengths, so that pieces overlap; white space in both spellings.
const CHARS: &[&str] = &["a", "b", "é", "▁", "数", "🙂", "x", " "];

fn text(most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(select(CHARS), 0..most).prop_map(|chars| chars.concat())
}

/// Text, score and kind of pieces. Scores are from a small set, so that many are equal. The set
/// has a zero of each sign.
fn pieces() -> impl Strategy<Value = Vec<(String, f32, &'static str)>> {
    let kinds = select(vec!["normal"; 12])
        .prop_union(select(vec!["user_defined", "unused", "control"]))
        .or(select(vec!["normal"; 3]));
    let scores = select(vec![-0.0, 0.0, -1.0, -1.5, -2.25, -3.1, -7.7, 0.3]);
    let piece = (prop::collection::vec(select(CHARS), 1..5), scores, kinds);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| {
        let mut pieces: Vec<_> = pieces
            .into_iter()
            .map(|(chars, score, kind)| (chars.concat(), score, kind))
            .collect();
        pieces.sort_by(|left, right| left.0.cmp(&right.0));
        pieces.dedup_by(|next, kept| next.0 == kept.0);
        pieces
    })
}

/// A `precompiled_charsmap` of these replacements.
fn charsmap(replacements: &[(&str, &str)]) -> String {
    let (mut entries, mut texts) = (Vec::new(), Vec::new());
    for (from, to) in replacements {
        entries.push((from.as_bytes().to_vec(), texts.len() as u32));
        texts.extend_from_slice(to.as_bytes());
        texts.push(0);
    }
    entries.sort();
    let trie = if entries.is_empty() {
        return String::new();
    } else {
        DoubleArrayBuilder::build(&entries).unwrap()
    };
    let len = (trie.len() as u32).to_le_bytes();
    BASE64_STANDARD.encode([&len[..], &trie, &texts].concat())
}

const MAPS: &[&[(&str, &str)]] = &[
    &[],
    &[("é", "e"), ("数", " ")],
    &[("a🙂", "b"), ("ab", ""), ("x", " a  b "), ("🙂", "▁")],
    &[(" é", "é"), ("b数", "数 ")],
];

fn file(
    model_type: &str,
    pieces: &[(String, f32, &str)],
    map: &[(&str, &str)],
    [dummy, removes, suffix, bytes]: [bool; 4],
) -> Value {
    let mut vocab = vec![json!(["<unk>", 0.0, "unknown"])];
    vocab.extend(pieces.iter().map(|piece| json!(piece)));
    if bytes {
        vocab.extend((0..256).map(|byte| json!([format!("<0x{byte:02X}>"), 0.0, "byte"])));
    }
    json!({
        "normalizer": {"type": "SentencePiece", "precompiled_charsmap": charsmap(map), "add_dummy_prefix": dummy,
                       "remove_extra_whitespaces": removes, "escape_whitespaces": true,
                       "treat_whitespace_as_suffix": suffix},
        "decoder": {"type": "SentencePiece", "unk_surface": "?"},
        "model": {"type": model_type, "byte_fallback": bytes, "vocab": vocab},
    })
}

fn ids_of(fast_path: &FastPath, scratch: &mut Scratch, text: &str) -> Vec<u32> {
    let mut ids = Vec::new();
    assert!(fast_path.encode_into(text, scratch, &mut ids).unwrap());
    ids
}

fn slow_ids_of(slow_path: &SlowPath, text: &str) -> Vec<u32> {
    let mut ids = Vec::new();
    slow_path.encode_into(text, &mut ids).unwrap();
    ids
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn the_fast_path_gives_the_ids_of_the_slow_path(
        model_type in select(vec!["SentencePieceUnigram", "SentencePieceBPE"]),
        pieces in pieces(),
        map in select(MAPS),
        rules: [bool; 4],
        texts in prop::collection::vec(text(24), 1..6),
    ) {
        let file = file(model_type, &pieces, map, rules);
        let slow_path = SlowPath::load(&file).unwrap();
        if let Ok(fast_path) = FastPath::load(&file) {
            let mut scratch = Scratch::new(Some(1 << 16));
            for text in &texts {
                prop_assert_eq!(ids_of(&fast_path, &mut scratch, text), slow_ids_of(&slow_path, text), "{:?}", text);
            }
        }
    }
}

/// Sums are subtracted in a long text; the position must not matter.
#[test]
fn long_texts_have_the_same_sums() {
    let pieces = [
        ("a", -1234.5),
        ("aa", -2469.1),
        ("▁", -777.7),
        ("a▁a", -3246.9),
        ("b", -0.001),
    ];
    let pieces = pieces.map(|(text, score)| (text.to_owned(), score, "normal"));
    let file = file(
        "SentencePieceUnigram",
        &pieces,
        &[],
        [true, false, false, false],
    );
    let (slow_path, fast_path) = (
        SlowPath::load(&file).unwrap(),
        FastPath::load(&file).unwrap(),
    );
    let text = "a aaa b aa a ab aaaaaa é ".repeat(200);
    let ids = ids_of(&fast_path, &mut Scratch::new(None), &text);
    assert_eq!(ids, slow_ids_of(&slow_path, &text));
    assert!(ids.len() > 2000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Cached words must have the ids that the sum before them gives: two ways to write a word differ by as much as
    /// rounding does, and long texts have sums of all sizes, also some that are subtracted.
    #[test]
    fn cached_words_have_the_ids_of_their_place(
        scores in prop::collection::vec(-40.0f32..0.0, 4),
        gaps in prop::collection::vec(-0.06f32..0.06, 6),
        words in prop::collection::vec(prop::collection::vec(select(&["a", "b", "ab", "é", "x", "🙂"][..]), 1..8), 1..6),
        bytes: bool,
        repetitions in 1..1500usize,
    ) {
        let [a, b, e, mark] = scores[..] else { unreachable!() };
        let pieces = [
            ("a", a),
            ("b", b),
            ("é", e),
            ("▁", mark),
            ("▁a", mark + a + gaps[0]),
            ("ab", a + b + gaps[1]),
            ("aé", a + e + gaps[2]),
            ("ba", b + a + gaps[3]),
            ("▁ab", mark + a + b + gaps[4]),
            ("éab", e + a + b + gaps[5]),
        ];
        let pieces = pieces.map(|(text, score)| (text.to_owned(), score, "normal"));
        let file = file("SentencePieceUnigram", &pieces, &[], [true, false, false, bytes]);
        let (slow_path, fast_path) = (SlowPath::load(&file).unwrap(), FastPath::load(&file).unwrap());
        let words: Vec<String> = words.iter().map(|chars| chars.concat()).collect();
        let mut scratch = Scratch::new(Some(1 << 16));
        // A short text before fills the cache where sums are small.
        for text in [words.join(" "), format!("{} ", words.join(" ")).repeat(repetitions)] {
            prop_assert_eq!(ids_of(&fast_path, &mut scratch, &text), slow_ids_of(&slow_path, &text));
        }
    }
}

#[test]
fn models_that_the_fast_path_does_not_cover_are_refused_with_a_reason() {
    let covers = |text: &str, kind: &'static str| {
        let pieces = [
            (text.to_owned(), 0.0, kind),
            ("▁".to_owned(), 0.0, "normal"),
        ];
        FastPath::load(&file("SentencePieceBPE", &pieces, &[], [true; 4])).err()
    };
    assert_eq!(covers("▁a", "normal"), None);
    assert_eq!(covers("a▁", "normal"), None);
    assert_eq!(
        covers("ab", "unused").unwrap(),
        "its piece \"ab\" is marked unused"
    );
    let words = file("SentencePieceWord", &[], &[], [true; 4]);
    assert_eq!(
        FastPath::load(&words).err().unwrap(),
        "its model is SentencePieceWord"
    );
}

#[test]
fn texts_come_back() {
    let pieces = ["▁a", "b", "▁", "é"].map(|text| (text.to_owned(), -1.0, "normal"));
    let file = file("SentencePieceBPE", &pieces, &[], [true, false, false, true]);
    let slow_path = SlowPath::load(&file).unwrap();
    for text in ["a b  b", " a", "é🙂\n b", "▁", ""] {
        let with_spaces = text.replace('▁', " ");
        assert_eq!(
            slow_path.decode(&slow_ids_of(&slow_path, text)).unwrap(),
            with_spaces,
            "{text:?}"
        );
    }
    let byte = |byte: u32| 5 + byte;
    assert_eq!(
        slow_path.decode(&[byte(0xc3), byte(0x28), 0]).unwrap(),
        "\u{fffd}(?"
    );
    assert_eq!(
        slow_path.decode(&[9999]).unwrap_err(),
        "there is no piece 9999"
    );
}
