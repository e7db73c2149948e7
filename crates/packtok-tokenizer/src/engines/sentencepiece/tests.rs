//! The fast path gives the ids of the slow path.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use yada::builder::DoubleArrayBuilder;

use super::{Plain, Quick, Scratch};

/// Few characters, of all lengths, so that pieces meet; white space in both spellings.
const CHARS: &[&str] = &["a", "b", "é", "▁", "数", "🙂", "x", " "];

fn text(most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(select(CHARS), 0..most).prop_map(|chars| chars.concat())
}

/// Text, score and kind of pieces; scores are few, so that many are equal, and zero in both spellings.
fn pieces() -> impl Strategy<Value = Vec<(String, f32, &'static str)>> {
    let kinds = select(vec!["normal"; 12])
        .prop_union(select(vec!["user_defined", "unused", "control"]))
        .or(select(vec!["normal"; 3]));
    let scores = select(vec![-0.0, 0.0, -1.0, -1.5, -2.25, -3.1, -7.7, 0.3]);
    let one = (prop::collection::vec(select(CHARS), 1..5), scores, kinds);
    prop::collection::vec(one, 0..24).prop_map(|pieces| {
        let mut pieces: Vec<_> = pieces
            .into_iter()
            .map(|(chars, score, kind)| (chars.concat(), score, kind))
            .collect();
        pieces.sort_by(|one, other| one.0.cmp(&other.0));
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
    let trie = match entries.is_empty() {
        true => return String::new(),
        false => DoubleArrayBuilder::build(&entries).unwrap(),
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

fn ids_of(quick: &Quick, scratch: &mut Scratch, text: &str) -> Vec<u32> {
    let mut ids = Vec::new();
    assert!(quick.encode_into(text, scratch, &mut ids).unwrap());
    ids
}

fn plain_ids_of(plain: &Plain, text: &str) -> Vec<u32> {
    let mut ids = Vec::new();
    plain.encode_into(text, &mut ids);
    ids
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn the_quick_one_gives_the_ids_of_the_plain_one(
        model_type in select(vec!["SentencePieceUnigram", "SentencePieceBPE"]),
        pieces in pieces(),
        map in select(MAPS),
        rules: [bool; 4],
        texts in prop::collection::vec(text(24), 1..6),
    ) {
        let file = file(model_type, &pieces, map, rules);
        let plain = Plain::load(&file).unwrap();
        if let Ok(quick) = Quick::load(&file) {
            let mut scratch = Scratch::new(Some(1 << 16));
            for text in &texts {
                prop_assert_eq!(ids_of(&quick, &mut scratch, text), plain_ids_of(&plain, text), "{:?}", text);
            }
        }
    }
}

/// Sums of a long text are taken back to zero, wherever that is.
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
    let (plain, quick) = (Plain::load(&file).unwrap(), Quick::load(&file).unwrap());
    let text = "a aaa b aa a ab aaaaaa é ".repeat(200);
    let ids = ids_of(&quick, &mut Scratch::new(None), &text);
    assert_eq!(ids, plain_ids_of(&plain, &text));
    assert!(ids.len() > 2000);
}

#[test]
fn what_the_quick_one_does_not_cover_is_said() {
    let covers = |text: &str, kind: &'static str| {
        let pieces = [
            (text.to_owned(), 0.0, kind),
            ("▁".to_owned(), 0.0, "normal"),
        ];
        Quick::load(&file("SentencePieceBPE", &pieces, &[], [true; 4])).err()
    };
    assert_eq!(covers("▁a", "normal"), None);
    assert_eq!(covers("a▁", "normal"), None);
    assert_eq!(
        covers("ab", "unused").unwrap(),
        "its piece \"ab\" is not to be used"
    );
    let words = file("SentencePieceWord", &[], &[], [true; 4]);
    assert_eq!(
        Quick::load(&words).err().unwrap(),
        "its model is SentencePieceWord"
    );
}

#[test]
fn texts_come_back() {
    let pieces = ["▁a", "b", "▁", "é"].map(|text| (text.to_owned(), -1.0, "normal"));
    let file = file("SentencePieceBPE", &pieces, &[], [true, false, false, true]);
    let plain = Plain::load(&file).unwrap();
    for text in ["a b  b", " a", "é🙂\n b", "▁", ""] {
        let shown = text.replace('▁', " ");
        assert_eq!(
            plain.decode(&plain_ids_of(&plain, text)).unwrap(),
            shown,
            "{text:?}"
        );
    }
    let byte = |byte: u32| 5 + byte;
    assert_eq!(
        plain.decode(&[byte(0xc3), byte(0x28), 0]).unwrap(),
        "\u{fffd}(?"
    );
    assert_eq!(plain.decode(&[9999]).unwrap_err(), "there is no piece 9999");
}
