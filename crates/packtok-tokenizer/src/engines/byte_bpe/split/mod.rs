//! Texts cut into words, by hand for the split patterns that the tokenizers of today have.
//!
//! `blocks` does it 64 bytes at a time by the rules of each pattern (`gpt2`, `cl100k`, `o200k`, `deepseek`), and for
//! texts that no pattern splits (`pieces`), on the masks that a `lane` finds. `plain` does it word by word, as one reads
//! a pattern. The tests below hold one against the other; `tests/it/fast.rs` holds the blocks against the reference engine,
//! and that is held against the Python package.

mod blocks;
mod cl100k;
mod classes;
mod deepseek;
mod gpt2;
mod o200k;
#[cfg(test)]
mod oracle;
mod pieces;

pub(super) use self::blocks::{Blocks as Cut, ROOM};
use self::cl100k::Cl100k;
use self::classes::{COMMON, OF_DEEPSEEK};
pub(super) use self::classes::{ClassTable, INERT};
use self::deepseek::Deepseek;
use self::gpt2::Gpt2;
use self::o200k::O200k;
use self::pieces::{Pieces, Table};
use super::piece_bounds::Pairs;
use crate::engines::lane::Lane;

pub(crate) const GPT2_PATTERN: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
pub(crate) const CL100K_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub(crate) const QWEN_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub(crate) const O200K_PATTERN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Of Mistral's newer vocabularies.
const TEKKEN_PATTERN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// From its third version on. The line ends in the last one are characters, as the file has them.
const DEEPSEEK_PATTERNS: [&str; 3] = [
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    concat!(
        r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^"##,
        "\r\n",
        r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[",
        "\r\n",
        r"]*|\s*[",
        "\r\n",
        r"]+|\s+(?!\S)|\s+"
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    Gpt2,
    /// Each number is a word, and what is between numbers is split as [`Pattern::Gpt2`] splits texts.
    Gpt2BetweenNumbers,
    /// With so many digits in a word.
    Cl100k {
        digits: usize,
    },
    O200k {
        is_tekken: bool,
    },
    Deepseek,
    /// No pattern: cut wherever no token reaches across. With `each_blank` a word begins at every blank.
    Pieces {
        each_blank: bool,
    },
}

impl Pattern {
    /// The pattern as a tokenizer.json has it, if it is one of these.
    pub(super) fn of(regex: &str) -> Option<Self> {
        Some(match regex {
            GPT2_PATTERN => Self::Gpt2,
            CL100K_PATTERN => Self::Cl100k { digits: 3 },
            QWEN_PATTERN => Self::Cl100k { digits: 1 },
            O200K_PATTERN => Self::O200k { is_tekken: false },
            TEKKEN_PATTERN => Self::O200k { is_tekken: true },
            _ => return None,
        })
    }

    /// Several patterns by which text is split one after the other, if they are some of these.
    pub(super) fn of_several(regexes: &[&str]) -> Option<Self> {
        match regexes {
            [regex] => Self::of(regex),
            _ => (regexes == DEEPSEEK_PATTERNS).then_some(Self::Deepseek),
        }
    }
}

/// Cuts texts into words.
pub(super) struct Splitter {
    pattern: Pattern,
    classes: ClassTable,
    table: Table,
}

impl Splitter {
    /// For a pattern, and tokens that have these pairs of bytes in their middle.
    pub(super) fn new(pattern: Pattern, pairs: Pairs) -> Self {
        let classes = match pattern {
            Pattern::Gpt2BetweenNumbers => ClassTable::with_digits(),
            Pattern::Deepseek => ClassTable::new(&OF_DEEPSEEK),
            _ => ClassTable::new(&COMMON),
        };
        Self {
            pattern,
            classes,
            table: Table::new(pairs),
        }
    }

    /// Puts the ends of some more words into `ends` and says how many; 0 when there are no more.
    #[inline(always)]
    pub(super) fn fill(
        &self,
        lane: impl Lane,
        cut: &mut Cut,
        text: &str,
        ends: &mut [u32; ROOM],
    ) -> usize {
        let Self {
            pattern,
            classes,
            table,
        } = self;
        // Each of what a pattern names is compiled by itself.
        match *pattern {
            Pattern::Gpt2 => {
                let numbers_apart = false;
                cut.fill(lane, Gpt2 { numbers_apart }, classes, text, ends)
            }
            Pattern::Gpt2BetweenNumbers => {
                let numbers_apart = true;
                cut.fill(lane, Gpt2 { numbers_apart }, classes, text, ends)
            }
            Pattern::Cl100k { digits: 1 } => {
                cut.fill(lane, Cl100k { digits: 1 }, classes, text, ends)
            }
            Pattern::Cl100k { digits } => cut.fill(lane, Cl100k { digits }, classes, text, ends),
            Pattern::O200k { is_tekken: true } => {
                cut.fill(lane, O200k { is_tekken: true }, classes, text, ends)
            }
            Pattern::O200k { is_tekken } => {
                cut.fill(lane, O200k { is_tekken }, classes, text, ends)
            }
            Pattern::Deepseek => cut.fill(lane, Deepseek, classes, text, ends),
            Pattern::Pieces { each_blank } => {
                cut.fill(lane, Pieces { table, each_blank }, classes, text, ends)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::lane::{AnyLane, Job};
    use proptest::prelude::*;

    /// The ends of a text's words.
    struct Ends<'a>(&'a Splitter, &'a str);

    impl Job for Ends<'_> {
        type Done = Vec<u32>;

        fn run(self, lane: impl Lane) -> Vec<u32> {
            let Self(splitter, text) = self;
            let (mut cut, mut some, mut all) = (Cut::new(), [0; ROOM], Vec::new());
            loop {
                let num_ends = splitter.fill(lane, &mut cut, text, &mut some);
                if num_ends == 0 {
                    return all;
                }
                all.extend_from_slice(&some[..num_ends]);
            }
        }
    }

    fn plain_ends(splitter: &Splitter, text: &str) -> Vec<u32> {
        let (mut at, mut all) = (0, Vec::new());
        while at < text.len() {
            at = splitter.end_of_word(text, at);
            all.push(at as u32);
        }
        all
    }

    /// One for every pattern.
    fn splitters() -> Vec<Splitter> {
        // Of no vocabulary: every other pair, in no order.
        let mut pairs = Pairs::none();
        for pair in (0..=u16::MAX).filter(|pair| pair.wrapping_mul(40_503) >> 15 == 1) {
            let [left, right] = pair.to_be_bytes();
            pairs.put(left, right);
        }
        // Of one that has few kinds next to each other.
        let mut of_kinds = Pairs::none();
        for token in ["eab", " a", "; ", "\r\n", "é.", "a語"] {
            for two in token.as_bytes().windows(2) {
                of_kinds.put(two[0], two[1]);
            }
        }
        let pieces = |each_blank| Pattern::Pieces { each_blank };
        let of_kinds =
            [false, true].map(|each_blank| Splitter::new(pieces(each_blank), of_kinds.clone()));
        let of_pairs = [
            Pattern::Gpt2,
            Pattern::Cl100k { digits: 3 },
            Pattern::Gpt2BetweenNumbers,
            Pattern::Cl100k { digits: 1 },
            Pattern::O200k { is_tekken: false },
            Pattern::O200k { is_tekken: true },
            Pattern::Deepseek,
            pieces(false),
            pieces(true),
        ]
        .map(|pattern| Splitter::new(pattern, pairs.clone()));
        of_pairs.into_iter().chain(of_kinds).collect()
    }

    fn check(splitters: &[Splitter], text: &str) {
        for splitter in splitters {
            let expected = plain_ends(splitter, text);
            for lane in AnyLane::all() {
                assert_eq!(
                    lane.run(Ends(splitter, text)),
                    expected,
                    "{:?} {} {text:?}",
                    splitter.pattern,
                    lane.name()
                );
            }
        }
    }

    /// What stands at the edges of words, each class in all the lengths that characters have.
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
            // Now and then a run that reaches over more than one block.
            let times = if chance == 0 { 61 + few * 5 } else { few };
            PARTS[part].repeat(times)
        });
        prop::collection::vec(part, 0..120).prop_map(|parts| parts.concat())
    }

    #[test]
    fn every_pair_and_triple_is_cut_alike_at_the_edge_of_a_block() {
        let splitters = splitters_once();
        for first in PARTS {
            for second in PARTS {
                for third in PARTS.iter().step_by(3) {
                    for filler in ["x", " ", ";", "1", "\n"] {
                        let before = filler.repeat(62);
                        check(splitters, &format!("{before}{first}{second}{third}x"));
                    }
                }
            }
        }
    }

    #[test]
    fn texts_of_every_length_are_cut_alike() {
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
        fn any_mix_is_cut_alike(text in from_parts()) {
            check(splitters_once(), &text);
        }

        #[test]
        fn any_text_is_cut_alike(text in "\\PC{0,200}") {
            check(splitters_once(), &text);
        }
    }

    /// Made once, because a table of classes takes a while.
    fn splitters_once() -> &'static [Splitter] {
        static ALL: std::sync::OnceLock<Vec<Splitter>> = std::sync::OnceLock::new();
        ALL.get_or_init(splitters)
    }
}
