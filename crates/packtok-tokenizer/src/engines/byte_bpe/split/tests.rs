//! The SIMD blocks split texts as the oracle does, on every back end.

use proptest::prelude::*;

use super::patterns::{Pattern, kimi_k2};
use super::{ROOM, SplitState, Splitter};
use crate::engines::byte_pairs::Pairs;
use crate::engines::simd::{AnySimd, Job, Simd};

/// The ends of a text's words, on a back end.
struct Ends<'a>(&'a Splitter, &'a str);

impl Job for Ends<'_> {
    type Output = Vec<u32>;

    fn run(self, simd: impl Simd) -> Vec<u32> {
        let Self(splitter, text) = self;
        let (mut state, mut some, mut all) = (SplitState::new(), [0; ROOM], Vec::new());
        loop {
            let num_ends = splitter.fill(simd, &mut state, text, &mut some);
            if num_ends == 0 {
                return all;
            }
            all.extend_from_slice(&some[..num_ends]);
        }
    }
}

fn oracle_ends(splitter: &Splitter, text: &str) -> Vec<u32> {
    let (mut at, mut all) = (0, Vec::new());
    while at < text.len() {
        at = splitter.end_of_word(text, at);
        all.push(at as u32);
    }
    all
}

/// One splitter for every pattern.
fn splitters() -> Vec<Splitter> {
    // Half of all pairs, in no order.
    let mut pairs = Pairs::none();
    for pair in (0..=u16::MAX).filter(|pair| pair.wrapping_mul(40_503) >> 15 == 1) {
        let [left, right] = pair.to_be_bytes();
        pairs.put(left, right);
    }
    // A vocabulary with few kinds next to each other.
    let mut of_kinds = Pairs::none();
    for token in ["eab", " a", "; ", "\r\n", "é.", "a語"] {
        for two in token.as_bytes().windows(2) {
            of_kinds.put(two[0], two[1]);
        }
    }
    let pieces = |each_space| Pattern::Pieces { each_space };
    let of_kinds = [false, true]
        .map(|each_space| Splitter::new(pieces(each_space), of_kinds.clone()).unwrap());
    let of_pairs = [
        Pattern::Gpt2,
        Pattern::Cl100k { digits: 3 },
        Pattern::Gpt2BetweenNumbers,
        Pattern::Cl100k { digits: 1 },
        Pattern::Cl100kWithMarks,
        Pattern::O200k { is_tekken: false },
        Pattern::O200k { is_tekken: true },
        Pattern::Deepseek,
        Pattern::KimiK2,
        pieces(false),
        pieces(true),
    ]
    .map(|pattern| Splitter::new(pattern, pairs.clone()).unwrap());
    of_pairs.into_iter().chain(of_kinds).collect()
}

fn check(splitters: &[Splitter], text: &str) {
    for splitter in splitters {
        check_one(splitter, text);
        if let Pattern::KimiK2 = splitter.pattern {
            // SIMD blocks split texts without Chinese characters only.
            check_one(splitter, &text.replace('語', "가"));
        }
    }
}

fn check_one(splitter: &Splitter, text: &str) {
    let expected = match splitter.pattern {
        Pattern::KimiK2 => AnySimd::detect().run(Ends(automaton_of_kimi_k2(), text)),
        _ => oracle_ends(splitter, text),
    };
    for simd in AnySimd::all() {
        assert_eq!(
            simd.run(Ends(splitter, text)),
            expected,
            "{:?} {} {text:?}",
            splitter.pattern,
            simd.name()
        );
    }
}

/// Strings that occur at the edges of words: each class, with characters of all lengths.
const PARTS: [&str; 64] = [
    " ",
    " ",
    " ",
    "  ",
    "\n",
    "\n",
    "\r\n",
    "\t",
    "\u{b}",
    "\u{a0}",
    "\u{85}",
    "\u{3000}",
    "\u{2003}",
    "a",
    "b",
    "Z",
    "s",
    "é",
    "ſ",
    "я",
    "語",
    "𐐷",
    "0",
    "1",
    "22",
    "²",
    "٣",
    "Ⅷ",
    "𝟘",
    ".",
    ";",
    "--",
    "'",
    "'",
    "'s",
    "'LL",
    "'lL",
    "'re",
    "«",
    "€",
    "—",
    "😀",
    "\u{301}",
    "\0",
    "abcdefg",
    "A",
    "É",
    "ǅ",
    "Ꭰ",
    "/",
    "//",
    "\n/",
    "ー",
    "ि",
    "\u{fe0f}",
    "❤\u{fe0f}",
    "\u{200d}",
    "\u{200d}",
    "\u{e000}",
    "\u{f0000}",
    "カ",
    "。",
    "(x",
    "?é",
];

fn from_parts() -> impl Strategy<Value = String> {
    let part = (0..PARTS.len(), 1..3usize, 0..40usize).prop_map(|(part, few, chance)| {
        // Sometimes, a run that is longer than a SIMD block.
        let times = if chance == 0 { 61 + few * 5 } else { few };
        PARTS[part].repeat(times)
    });
    prop::collection::vec(part, 0..120).prop_map(|parts| parts.concat())
}

/// A third of the triples in the thorough run, otherwise a sixteenth.
fn thirds_are_every() -> usize {
    if is_thorough() { 3 } else { 16 }
}

pub(super) fn is_thorough() -> bool {
    std::env::var_os("PACKTOK_THOROUGH").is_some_and(|set| set == "1")
}

#[test]
fn every_pair_and_some_triples_are_split_alike_at_the_edge_of_a_block() {
    let splitters = splitters_once();
    // Each pair has other thirds than its neighbours, so that every part follows all classes.
    let step = thirds_are_every();
    for (i, first) in PARTS.into_iter().enumerate() {
        for (j, second) in PARTS.into_iter().enumerate() {
            for third in PARTS.iter().skip((i + j) % step).step_by(step) {
                for filler in ["x", " ", ";", "1", "\n"] {
                    let before = filler.repeat(62);
                    check(splitters, &format!("{before}{first}{second}{third}x"));
                }
            }
        }
    }
}

#[test]
fn texts_of_every_length_are_split_alike() {
    let splitters = splitters_once();
    for part in PARTS {
        for times in 0..140 {
            check(splitters, &part.repeat(times));
            check(
                splitters,
                &format!("{}\n{}", part.repeat(times), "  ".repeat(70)),
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn any_mix_is_split_alike(text in from_parts()) {
        check(splitters_once(), &text);
    }

    #[test]
    fn any_text_is_split_alike(text in "\\PC{0,200}") {
        check(splitters_once(), &text);
    }
}

/// Made once, because building a table of classes takes long.
fn splitters_once() -> &'static [Splitter] {
    static ALL: std::sync::OnceLock<Vec<Splitter>> = std::sync::OnceLock::new();
    ALL.get_or_init(splitters)
}

fn automaton_of_kimi_k2() -> &'static Splitter {
    static ONE: std::sync::OnceLock<Splitter> = std::sync::OnceLock::new();
    ONE.get_or_init(|| Splitter::new(Pattern::Steps(kimi_k2()), Pairs::none()).unwrap())
}
