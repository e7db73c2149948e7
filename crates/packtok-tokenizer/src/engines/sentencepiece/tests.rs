//! The fast path gives the ids of the slow path.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use yada::builder::DoubleArrayBuilder;

use super::merge_rules::byte_bpe_of;
use super::model::Model;
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

/// A model that merge rules cover, with the texts of its pieces: scores differ, except those of runs of white space,
/// which are best, worst or between. All characters are pieces. Some pieces are user-defined, also longer ones.
fn ruled() -> impl Strategy<Value = Value> {
    let merged = prop::collection::vec(select(&CHARS[..6]), 2..6).prop_map(|chars| chars.concat());
    let user_defined = select(
        &[
            "ab",
            "a▁",
            "▁▁",
            "▁▁▁",
            "b",
            "数a",
            "bb▁bb▁bb▁bb▁bb▁bb▁",
            "éa数",
            "x",
        ][..],
    );
    (
        prop::collection::vec(merged, 0..40),
        prop::collection::btree_set(user_defined, 0..4),
        prop::collection::btree_set(2..9usize, 0..6),
        -50i32..2,
        [any::<bool>(), any::<bool>(), any::<bool>()],
        select(MAPS),
    )
        .prop_map(
            move |(merged, user_defined, runs, score_of_runs, [dummy, removes, suffix], map)| {
                let mut pieces: Vec<(String, f32, &'static str)> = Vec::new();
                let mut put = |text: &str, score: f32, kind| {
                    if pieces.iter().all(|(other, ..)| other != text) {
                        pieces.push((text.to_owned(), score, kind));
                    }
                };
                for text in user_defined {
                    put(text, 0.0, "user_defined");
                }
                for char in &CHARS[..6] {
                    put(char, -1.0, "normal");
                }
                for length in runs {
                    put(&"▁".repeat(length), score_of_runs as f32 - 0.5, "normal");
                }
                let is_run = |text: &&String| text.chars().all(|char| char == '▁');
                for (rank, text) in merged.iter().filter(|text| !is_run(text)).enumerate() {
                    put(text, -(rank as f32), "normal");
                }
                file(
                    "SentencePieceBPE",
                    &pieces,
                    map,
                    [dummy, removes, suffix, true],
                )
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn merge_rules_give_the_ids_of_the_slow_path(
        file in ruled(),
        texts in prop::collection::vec(
            prop_oneof![
                text(24),
                prop::collection::vec(
                    select(&["a", "b", "é", "▁", " ", "   ", "数", "🙂", "ab", "x", "bb bb bb bb bb bb ", "語", "\n"][..]),
                    0..300,
                ).prop_map(|parts| parts.concat()),
            ],
            1..6,
        ),
    ) {
        let model = Model::read(&file).unwrap();
        // A user-defined character leaves the pieces that contain it without it.
        prop_assume!(byte_bpe_of(&model).is_some());
        let (slow_path, fast_path) = (SlowPath::load(&file).unwrap(), FastPath::load(&file).unwrap());
        let mut scratch = Scratch::new(Some(1 << 16));
        for text in &texts {
            prop_assert_eq!(ids_of(&fast_path, &mut scratch, text), slow_ids_of(&slow_path, text), "{:?}", text);
        }
    }
}

#[test]
fn merge_rules_cover_runs_of_equal_score_and_no_other_equal_scores() {
    let covers = |pieces: &[(&str, f32)]| {
        let chars = ["a", "b", "▁"].map(|char| (char, -9.0));
        let pieces = pieces.iter().chain(&chars);
        let pieces: Vec<_> = pieces
            .map(|&(text, score)| (text.to_owned(), score, "normal"))
            .collect();
        let file = file("SentencePieceBPE", &pieces, &[], [true, false, false, true]);
        byte_bpe_of(&Model::read(&file).unwrap()).is_some()
    };
    assert!(covers(&[("▁a", -1.0), ("ab", -2.0)]));
    assert!(covers(&[("▁▁", -3.0), ("▁▁▁▁", -3.0), ("▁a", -1.0)]));
    assert!(!covers(&[("▁a", -1.0), ("ab", -1.0)]));
    assert!(!covers(&[("▁▁", -3.0), ("▁▁▁▁", -3.0), ("▁▁▁", -1.0)]));
    assert!(!covers(&[("▁▁", -3.0), ("▁a", -3.0)]));
    assert!(!covers(&[("▁c", -3.0)]), "c is no piece");
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
