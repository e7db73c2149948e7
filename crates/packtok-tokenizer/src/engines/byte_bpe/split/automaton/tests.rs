//! Automata split texts as the package's library does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use proptest::prelude::*;
use tokenizers::tokenizer::pattern::Pattern;
use tokenizers::utils::SysRegex;

use super::cuts::Cuts;
use super::dfa::{Dfa, is_total};
use super::splitting::Automaton;
use super::syntax::Node;
use super::{Finds, Step, Steps, StepsProgress, split_alike};
use crate::engines::byte_bpe::split::tests::is_thorough;
use crate::letters::Letters;

/// Patterns of current tokenizers, and others with each kind of syntax.
const PATTERNS: [&str; 44] = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    r" ?[^(\s|[.,!?…。，、।۔،])]+",
    r"[\r\n]",
    r"\s?\p{L}+",
    r"\s?\p{P}+",
    r"[一-龥ࠀ-一가-퟿]+",
    r"[A-Za-z]+|[^\r\n]",
    r"\p{N}",
    r"[0-9][0-9][0-9]",
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    r"\s+$|x",
    r"a(?=b)|ab?",
    r"a*?b|a+?|b{2}",
    r"a{,2}b|(a|b)+1|.",
    r"(?i)'s|'LL|k+",
    r"(?:a|ab)(?:c|bcd)?(?!d)",
    r"\s++\p{L}|\s|\p{L}",
    r"\P{L}+|\p{^N}|1",
    r"[^\P{L}a-z]+|[a\-z\]]+|[\^.]",
    r"[-a]|[1-]+|\$|\-",
    r"\d{2,}|\D\S",
    r"\p{N}{1,3}+\.",
    r"(?:\p{L}{2}){1,2}+|.",
    r"[\p{L}\p{N}&&\p{Latin}&&[^a1]]+",
    r"[^a&&[^b]]+|ab",
    r"x|y|",
    r"\p{L}(?![a-z])|\p{L}\p{L}",
    r"(?=\p{L})[^a]+",
    r"(?:\s+(?!\S))?\p{L}|\s",
    r"\t\n|\f|\r+",
    r"'(?i:[k])|(?i:K)",
    r"\p{Lu}?\p{Ll}+?1|\p{L}",
    r"1{3}|1{2}|11?",
    r"(?:(?:ab)+c)+|[abc]",
    r"[\s\p{P}]+(?=\p{L})|[\s\p{P}]",
    r"[aé-ñ語]+",
];

/// What texts consist of: each class that the patterns name, and what they end at.
const PARTS: [&str; 48] = [
    "a",
    "b",
    "c",
    "d",
    "ab",
    "bcd",
    "abc",
    "s",
    "S",
    "ſ",
    "'",
    "'s",
    "'LL",
    "'ve",
    "k",
    "K",
    "\u{212a}",
    "Z",
    "é",
    "É",
    "ǅ",
    "ʰ",
    "\u{301}",
    "語",
    "가",
    "ー",
    "1",
    "1",
    "11",
    "²",
    "Ⅷ",
    ".",
    ",",
    "-",
    "]",
    "^",
    "$",
    "😀",
    "<|endoftext|>",
    " ",
    " ",
    "  ",
    "\n",
    "\r",
    "\t",
    "\u{a0}",
    "\u{85}",
    "\u{e000}",
];

fn texts() -> impl Strategy<Value = String> {
    let part = (0..PARTS.len(), 1..4usize).prop_map(|(part, times)| PARTS[part].repeat(times));
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

/// The ends of the words, found with room for so many in a call.
fn ends(steps: &Steps, text: &str, room: usize) -> Vec<u32> {
    ends_if_linear(steps, text, room).unwrap()
}

/// As [`ends`]; `None` if finding them takes too long.
fn ends_if_linear(steps: &Steps, text: &str, room: usize) -> Option<Vec<u32>> {
    let (mut progress, mut some, mut all) = (StepsProgress::default(), vec![0; room], Vec::new());
    loop {
        let num_ends = steps.fill(text.as_bytes(), &mut progress, &mut some);
        if progress.has_given_up() {
            return None;
        }
        if num_ends == 0 {
            return Some(all);
        }
        all.extend_from_slice(&some[..num_ends]);
    }
}

/// Steps, and where texts can be cut for them.
struct CutSteps {
    steps: Steps,
    automata: Vec<Automaton>,
    cuts: Cuts,
}

impl CutSteps {
    fn new(steps: &[Step]) -> Self {
        let automata = steps.iter().map(|step| step.automaton().unwrap());
        let automata: Vec<_> = automata.collect();
        Self {
            steps: Steps::new(steps).unwrap(),
            cuts: Cuts::of(&automata),
            automata,
        }
    }

    /// The parts of a text between cuts.
    fn parts<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let (mut start, mut all) = (0, Vec::new());
        while start < text.len() {
            let end = self
                .cuts
                .end_of_part(&self.automata, text.as_bytes(), start);
            all.push(&text[start..end]);
            start = end;
        }
        all
    }

    /// The ends of the words, found in the parts of a text, each on its own.
    fn ends_in_parts(&self, text: &str) -> Vec<u32> {
        let (mut start, mut all) = (0, Vec::new());
        for part in self.parts(text) {
            all.extend(ends(&self.steps, part, 64).iter().map(|at| start + at));
            start += part.len() as u32;
        }
        all
    }
}

/// The ends of the words that the package's library finds, in parts of a text one after the other.
fn ends_by_library(regexes: &[&SysRegex], text: &str) -> Vec<u32> {
    let mut ends = vec![0, text.len()];
    for &regex in regexes {
        let mut within = vec![0];
        for part in ends.windows(2) {
            let words = regex.find_matches(&text[part[0]..part[1]]).unwrap();
            within.extend(words.into_iter().map(|((_, end), _)| part[0] + end));
        }
        within.dedup();
        ends = within;
    }
    ends[1..].iter().map(|&end| end as u32).collect()
}

fn regex(pattern: &str) -> Step {
    Step::new(Finds::Regex(pattern.to_owned()))
}

struct Pair {
    pattern: &'static str,
    step: Step,
    loaded: CutSteps,
    regex: SysRegex,
}

fn pairs() -> &'static [Pair] {
    static ALL: OnceLock<Vec<Pair>> = OnceLock::new();
    ALL.get_or_init(|| {
        let readable = PATTERNS.iter().filter(|pattern| !pattern.ends_with('|'));
        let pair = |&pattern: &&'static str| {
            let step = regex(pattern);
            Pair {
                pattern,
                loaded: CutSteps::new(std::slice::from_ref(&step)),
                step,
                regex: SysRegex::new(pattern).unwrap(),
            }
        };
        readable.map(pair).collect()
    })
}

/// Patterns, and other kinds of steps; the last ones on bytes, as in files.
fn any_steps(chosen: &[usize], num_on_bytes: usize) -> Vec<Step> {
    let step = |(place, &number): (usize, &usize)| Step {
        finds: match number.checked_sub(PATTERNS.len()) {
            None => pairs()[number % pairs().len()].step.finds.clone(),
            Some(0) => Finds::Digits { each: false },
            Some(1) => Finds::Punctuation { each: false },
            Some(_) => Finds::Text("\u{120}".to_owned()),
        },
        is_on_bytes: place + num_on_bytes >= chosen.len(),
    };
    chosen.iter().enumerate().map(step).collect()
}

/// Fewer outside the thorough run.
fn num_cases() -> u32 {
    if is_thorough() { 10_000 } else { 32 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(num_cases()))]
    #[test]
    fn texts_are_split_as_by_the_library(text in texts(), room in 1..70usize) {
        for pair in pairs() {
            prop_assert_eq!(
                ends(&pair.loaded.steps, &text, room),
                ends_by_library(&[&pair.regex], &text),
                "{} {:?}", pair.pattern, &text
            );
            prop_assert_eq!(
                pair.loaded.ends_in_parts(&text),
                ends(&pair.loaded.steps, &text, 64),
                "{} {:?} in parts", pair.pattern, &text
            );
        }
    }

    #[test]
    fn several_patterns_are_applied_one_after_the_other(
        text in texts(),
        chosen in prop::collection::vec(0..PATTERNS.len() - 1, 2..5),
        room in 1..70usize,
    ) {
        let chosen: Vec<&Pair> = chosen.into_iter().map(|number| &pairs()[number]).collect();
        let steps: Vec<Step> = chosen.iter().map(|pair| pair.step.clone()).collect();
        let regexes: Vec<&SysRegex> = chosen.iter().map(|pair| &pair.regex).collect();
        let expected = ends_by_library(&regexes, &text);
        let patterns: Vec<_> = chosen.iter().map(|pair| pair.pattern).collect();
        let loaded = CutSteps::new(&steps);
        prop_assert_eq!(ends(&loaded.steps, &text, room), &expected[..], "{:?} {:?}", patterns, &text);
        prop_assert_eq!(
            loaded.ends_in_parts(&text),
            expected,
            "{:?} {:?} in parts", patterns, &text
        );
    }

    #[test]
    fn texts_are_cut_where_all_steps_forget_what_they_have_read(
        text in texts(),
        chosen in prop::collection::vec(0..PATTERNS.len() + 3, 1..5),
        num_on_bytes in 0..4usize,
    ) {
        let all = any_steps(&chosen, num_on_bytes);
        let loaded = CutSteps::new(&all);
        prop_assert_eq!(loaded.ends_in_parts(&text), ends(&loaded.steps, &text, 64), "{:?} {:?}", all, &text);
    }

    #[test]
    fn generated_patterns_are_read_as_by_the_library_or_refused(
        pattern in patterns(),
        texts in prop::collection::vec(texts(), 8),
    ) {
        let steps = [regex(&pattern)];
        if Steps::new(&steps).is_err() {
            return Ok(());
        }
        let loaded = CutSteps::new(&steps);
        let regex = SysRegex::new(&pattern);
        prop_assert!(regex.is_ok(), "{pattern}");
        let regex = regex.unwrap();
        for text in texts {
            // The library gives up, with a panic, if it goes back too often.
            let expected = catch_unwind(AssertUnwindSafe(|| ends_by_library(&[&regex], &text)));
            if let Ok(expected) = expected {
                prop_assert_eq!(ends(&loaded.steps, &text, 64), &expected[..], "{} {:?}", &pattern, &text);
                prop_assert_eq!(loaded.ends_in_parts(&text), expected, "{} {:?} in parts", &pattern, &text);
            }
        }
    }
}

/// Patterns of random parts, most of which are read.
fn patterns() -> impl Strategy<Value = String> {
    const ATOMS: &[&str] = &[
        "a",
        "b",
        "1",
        " ",
        "'",
        "s",
        r"\s",
        r"\S",
        r"\p{L}",
        r"\p{N}",
        r"\P{L}",
        "[ab]",
        "[^a]",
        r"[^\s\p{L}\p{N}]",
        r"[\p{Lu}\p{M}]",
        r"[\p{Ll}\p{Lo}]",
        "[a-c&&[^b]]",
        r"[\r\n]",
        ".",
        r"\.",
        "語",
        "[^é語]",
        "(?i:k)",
        "(?i:'ll)",
        "(?i:[st])",
        r"\d",
        r"[\p{L}\-]",
        r"\p{Han}",
        "[a-]",
        "[-1]",
    ];
    let atom = prop::sample::select(ATOMS).prop_map(str::to_owned);
    const SUFFIXES: &[&str] = &[
        "", "", "", "", "?", "*", "+", "??", "*?", "+?", "?+", "*+", "++", "{2}", "{1,3}",
        "{1,3}+", "{,2}", "{2,}", "{0,2}+",
    ];
    let pattern = atom.prop_recursive(4, 24, 4, move |inner| {
        let repeated = (inner.clone(), prop::sample::select(SUFFIXES))
            .prop_map(|(inner, suffix)| format!("(?:{inner}){suffix}"));
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner, 1..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            repeated,
        ]
    });
    const LOOKS: &[&str] = &[
        "", "", "", "", r"(?!\S)", r"(?=\s)", "(?!a)", "(?=[^1])", "$",
    ];
    let branch = (
        pattern,
        prop::sample::select(SUFFIXES),
        prop::sample::select(LOOKS),
    );
    let branch = branch.prop_map(|(pattern, suffix, look)| match suffix {
        "" => format!("{pattern}{look}"),
        _ => format!("(?:{pattern}){suffix}{look}"),
    });
    // A repetition of a character alone, which may be possessive.
    let atom = prop::sample::select(ATOMS);
    let runs = (
        atom.clone(),
        prop::sample::select(SUFFIXES),
        atom,
        prop::sample::select(SUFFIXES),
    );
    let runs = runs.prop_map(|(a, of_a, b, of_b)| format!("{a}{of_a}{b}{of_b}"));
    prop::collection::vec(prop_oneof![branch, runs], 1..5).prop_map(|branches| branches.join("|"))
}

#[test]
fn every_pair_of_characters_of_a_page_is_split_as_by_the_library() {
    let text: String = ('\0'..'\u{600}')
        .flat_map(|char| [char, 'a', ' ', char, '1', char])
        .collect();
    for pair in pairs() {
        assert!(
            ends(&pair.loaded.steps, &text, 1000) == ends_by_library(&[&pair.regex], &text),
            "{}",
            pair.pattern
        );
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    for (pattern, what) in [
        (r"(?<=a)b", "the group (?<"),
        (r"(?>a+)b", "the group (?>"),
        (r"\bfoo", r"\b"),
        (r"\w+", r"\w"),
        (r"^a", "'^' that is not escaped"),
        (r"(?!ab)c", "a look-ahead at more than one character"),
        (r"(?:a?)+", "a repetition of what may match nothing"),
        (r"a{2}?", "a repetition of a repetition"),
        (r"(?i:straße)", "characters beyond ASCII in (?i)"),
        (r"(?i:st)", "(?i) before s or f and another letter"),
        (
            r"(?:ab)++c",
            "a possessive repetition of more than one character",
        ),
        (r"\p{Klingon}", r"\p{Klingon}"),
        (r"[[:alpha:]]", "the class [:"),
        (r"a)", "')' where nothing is open"),
        (r"(a", "an end where something is open"),
        (r"[a", "an end where something is open"),
        (r"a{3,2}", "a repetition with limits in reverse"),
        (r"a{2000}", "a repetition of more than 1000"),
    ] {
        assert_eq!(Node::parse(pattern).unwrap_err(), what, "{pattern}");
    }
    let nested = format!("{}a{}", "(".repeat(40), ")".repeat(40));
    assert_eq!(
        Node::parse(&nested).unwrap_err(),
        "more than 32 nested groups or classes"
    );
    for (pattern, what) in [
        ("x|y|", "a match of no character"),
        ("(?:a{1000}){1000}", "too many repetitions"),
        ("[ab]*a[ab]{20}", "more than 4000 states"),
    ] {
        let reason = Steps::new(&[regex(pattern)]).err().unwrap();
        let expected = format!("the pattern of its pre-tokenizer has {what}");
        assert_eq!(reason, expected, "{pattern}");
    }
}

#[test]
fn spellings_of_a_pattern_are_equivalent() {
    let alike = |a: &str, b: &str| split_alike(&[regex(a)], &[regex(b)]).unwrap();
    let [gpt2, respelled, cl100k, possessive] = [0, 1, 2, 3].map(|number| PATTERNS[number]);
    assert!(alike(gpt2, respelled));
    assert!(alike(cl100k, possessive));
    assert!(alike(gpt2, &gpt2.replace(r"|'m|'ll|'d", r"|'m|'d|'ll")));
    assert!(!alike(gpt2, &gpt2.replace(r" ?\p{N}+", r" ?\p{N}{1,3}")));
    assert!(!alike(gpt2, cl100k));
    assert!(alike("a|b", "[ab]") && alike("ab?", "ab|a") && !alike("ab?", "a|ab"));
    assert!(!alike(r"\s+(?!\S)|\s", r"\s+|\s"));
}

#[test]
fn each_character_is_in_a_match_of_these_only() {
    for pattern in &PATTERNS[..9] {
        assert!(
            is_total(&Node::parse(pattern).unwrap()).unwrap(),
            "{pattern}"
        );
    }
    for pattern in [r"\p{L}+", r"\s?\p{P}+|\P{P}", PATTERNS[17], r"a|[^a](?!b)"] {
        let total = pattern.starts_with(r"\s?");
        assert_eq!(
            is_total(&Node::parse(pattern).unwrap()).unwrap(),
            total,
            "{pattern}"
        );
    }
}

#[test]
fn patterns_that_may_read_far_without_a_match_are_known() {
    for pattern in &PATTERNS[..9] {
        assert!(
            Dfa::of(&Node::parse(pattern).unwrap())
                .unwrap()
                .0
                .is_linear(),
            "{pattern}"
        );
    }
    for pattern in [r"a*b|a", r"\s*[\r\n]+", r"(?:ab)+c|."] {
        assert!(
            !Dfa::of(&Node::parse(pattern).unwrap())
                .unwrap()
                .0
                .is_linear(),
            "{pattern}"
        );
    }
}

#[test]
fn bytes_are_split_by_their_letters() {
    // `²` is the bytes C2 B2, whose letters are `Â` and `²`.
    let letters = Letters::new();
    let steps = Steps::new(&[Step {
        is_on_bytes: true,
        ..Step::new(Finds::Digits { each: false })
    }])
    .unwrap();
    let text = "a²1é3 ½";
    let mut expected = Vec::new();
    let is_number = |byte: u8| letters.name(&[byte]).chars().all(char::is_numeric);
    for (i, two) in text.as_bytes().windows(2).enumerate() {
        if is_number(two[0]) != is_number(two[1]) {
            expected.push(i as u32 + 1);
        }
    }
    expected.push(text.len() as u32);
    assert_eq!(ends(&steps, text, 5), expected);
    assert!(expected.contains(&2), "within a character");
}

#[test]
fn texts_are_cut_between_words_and_not_where_a_step_remembers() {
    let parts = |patterns: &[&str], text: &'static str| {
        let steps: Vec<Step> = patterns.iter().map(|pattern| regex(pattern)).collect();
        CutSteps::new(&steps).parts(text)
    };
    assert_eq!(
        parts(&["[\r\n]", r"\s?\p{L}+"], "The cat\nsaß © on\n\n a"),
        ["The", " cat", "\nsaß", " © on", "\n", "\n", " a"]
    );
    // Two spaces are one word or two, depending on what follows.
    assert_eq!(
        parts(&[r"\s+(?!\S)|\s+|\S+", "a"], "a  b c"),
        ["a", "  b", " c"]
    );
    // The first step may have matched the whole text before.
    assert_eq!(
        parts(&[r"a[a ]*b", r"\p{L}+"], "a a ab c"),
        ["a a ab", " c"]
    );
}

#[test]
fn a_step_on_bytes_is_another() {
    let digits = Step::new(Finds::Digits { each: true });
    let on_bytes = Step {
        is_on_bytes: true,
        ..digits.clone()
    };
    assert!(!split_alike(&[digits], &[on_bytes]).unwrap());
}

#[test]
fn a_text_that_takes_too_long_is_given_up() {
    let has_given_up = |steps: &Steps, text: &str| {
        let (mut progress, mut some) = (StepsProgress::default(), vec![0; 1000]);
        while steps.fill(text.as_bytes(), &mut progress, &mut some) > 0 {}
        progress.has_given_up()
    };
    for pattern in ["a*b", "(?:a|aa)+b|c", r"\s+$", "a*b|a"] {
        let steps = Steps::one_after_the_other(&[regex(pattern)]).unwrap();
        assert!(!steps.are_linear());
        for (len, is_given_up) in [(100, false), (100_000, true)] {
            for part in ["a", " "] {
                let text = format!("{}x", part.repeat(len));
                let matches_part = (part == " ") == pattern.starts_with(r"\s");
                let expected = is_given_up && matches_part;
                assert_eq!(has_given_up(&steps, &text), expected, "{pattern}");
            }
        }
    }
    // One automaton for all steps knows that no match starts in a run of characters if none starts at the first.
    let steps = Steps::new(&[regex("[\r\n]"), regex(r"\s+$"), regex("a*b")]).unwrap();
    for part in ["a", " "] {
        assert!(!has_given_up(&steps, &format!("{}x", part.repeat(100_000))));
    }
}

/// The steps of current models that have several, and of some that have one.
fn families() -> [Vec<Step>; 8] {
    let regexes = |patterns: &[&str]| -> Vec<Step> {
        patterns.iter().map(|pattern| regex(pattern)).collect()
    };
    let on_bytes = |finds| Step {
        is_on_bytes: true,
        ..Step::new(finds)
    };
    let [gpt2, cl100k, o200k, kimi] = [0, 2, 6, 7].map(|number| PATTERNS[number]);
    let falcon = vec![
        Step::new(Finds::Punctuation { each: false }),
        regex(gpt2),
        on_bytes(Finds::Digits { each: false }),
        on_bytes(Finds::Regex("[0-9][0-9][0-9]".to_owned())),
    ];
    let digits = || vec![Step::new(Finds::Digits { each: true })];
    let letters = r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-Ⴥ]+";
    let signs = r"\s?[!-/:-~！-／：-～‘-‟　-。]+";
    let cjk = "[一-龥ࠀ-一가-퟿]+";
    [
        falcon,
        [
            regexes(&["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", cjk]),
            digits(),
        ]
        .concat(),
        [regexes(&["[\r\n]", letters, signs, r"\s+$", cjk]), digits()].concat(),
        [
            regexes(&["[\r\n]", letters, signs, r"\s+$", cjk, r"\p{N}+"]),
            digits(),
            regexes(&[gpt2]),
        ]
        .concat(),
        regexes(&[kimi]),
        regexes(&[cl100k]),
        regexes(&[o200k, r"\s+$|\p{M}"]),
        regexes(&[" ", r"\s*[\r\n]+|a+b"]),
    ]
}

/// Both ways to split a text by some steps.
struct Ways {
    steps: Vec<Step>,
    together: Steps,
    one_after_the_other: Steps,
}

impl Ways {
    fn new(steps: &[Step]) -> Self {
        let together = Steps::new(steps).unwrap();
        assert!(together.has_one_automaton());
        Self {
            steps: steps.to_vec(),
            together,
            one_after_the_other: Steps::one_after_the_other(steps).unwrap(),
        }
    }

    fn check(&self, text: &str, room: usize) {
        let together = ends_if_linear(&self.together, text, room);
        let expected = ends_if_linear(&self.one_after_the_other, text, 1000);
        let (Some(ends), Some(expected)) = (together, expected) else {
            // Either may take too long.
            assert!(!self.together.are_linear(), "{:?}", self.steps);
            return;
        };
        let first = (0..expected.len()).find(|&i| ends.get(i) != expected.get(i));
        let around = first.map(|i| &text.as_bytes()[expected[i.saturating_sub(9)] as usize..]);
        let around = around.map(|text| &text[..text.len().min(100)]);
        assert!(
            ends == expected,
            "{:?}: {:?} at {first:?}, {:?} and {:?}",
            self.steps,
            around.map(String::from_utf8_lossy),
            first.and_then(|i| ends.get(i)),
            first.map(|i| expected[i]),
        );
    }
}

fn ways_of_families() -> &'static [Ways] {
    static ALL: OnceLock<Vec<Ways>> = OnceLock::new();
    ALL.get_or_init(|| families().iter().map(|steps| Ways::new(steps)).collect())
}

/// Texts that are read in several parts.
fn long_texts() -> impl Strategy<Value = String> {
    let part = (0..PARTS.len(), 1..4usize, 0..60usize).prop_map(|(part, few, chance)| {
        let times = match chance {
            // Longer than a group, and than a part.
            0 => 50 + few * 5,
            1 => 900 * few,
            _ => few,
        };
        PARTS[part].repeat(times)
    });
    // In most texts, as in prose, there is a cut every few characters.
    let word = prop::sample::select(&["The ", "cat ", " sat\n", " on 1 ", ", ", "    x"][..]);
    let part = prop_oneof![part, word.prop_map(str::to_owned)];
    prop::collection::vec(part, 0..600).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(num_cases() * 8))]
    #[test]
    fn one_automaton_splits_as_one_step_after_the_other(text in long_texts(), room in 1..1000usize) {
        for ways in ways_of_families() {
            ways.check(&text, room);
        }
    }
}

proptest! {
    // Loading patterns takes longer than splitting texts.
    #![proptest_config(ProptestConfig::with_cases(num_cases() / 2))]
    #[test]
    fn one_automaton_splits_by_any_patterns(
        texts in prop::collection::vec(long_texts(), 8),
        chosen in prop::collection::vec(0..PATTERNS.len() + 3, 1..6),
        num_on_bytes in 0..4usize,
    ) {
        let ways = Ways::new(&any_steps(&chosen, num_on_bytes));
        for text in texts {
            ways.check(&text, 1000);
        }
    }
}

#[test]
fn ends_before_characters_that_are_held_back_are_found() {
    // The automaton has no transition after three spaces. The steps cannot start at the first of these, since the end
    // before the apostrophe is not known: the second step may have matched `'s`.
    let steps = [regex(r"\s+$|x"), regex("(?i)'s"), regex(PATTERNS[0])];
    let steps = Ways::new(&steps);
    steps.check(" \t\t'    x", 1000);
    assert_eq!(ends(&steps.together, " \t\t'    x", 1000), [2, 3, 4, 8, 9]);
}

#[test]
fn every_pair_of_parts_is_split_alike_at_the_edge_of_a_group() {
    let step = if is_thorough() { 1 } else { 7 };
    for (i, first) in PARTS.iter().enumerate() {
        for second in PARTS.iter().skip(i % step).step_by(step) {
            for filler in ["x", " x", " ", "1", "\n "] {
                for len in 52..57 {
                    let before = filler.repeat(len);
                    let text = format!("{}{first}{second}x", &before[before.len() - len..]);
                    for ways in ways_of_families() {
                        ways.check(&text, 1000);
                    }
                }
            }
        }
    }
}
