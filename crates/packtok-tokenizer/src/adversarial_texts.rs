//! Texts on which engines have differed or may differ.
//!
//! Most are generated from rules: each scalar value next to letters and digits, runs of every
//! length around the widths of vectors, and each added token in difficult surroundings.

use crate::tokenizer::Tokenizer;

/// Number of scalar values per text.
const SCALARS_A_TEXT: u32 = 64;
/// The texts cover every scalar value up to this one. Above it, in planes with few assigned
/// values, they cover every `STEP_ABOVE`-th value.
const LAST_OF_ALL: u32 = 0x1_ffff;
const STEP_ABOVE: usize = 61;
/// A sample covers every scalar value up to this one, and every `SAMPLED_STEP`-th of the others.
const LAST_OF_EACH: u32 = 0x7ff;
const SAMPLED_STEP: usize = 127;
/// The longest run of a sample.
const LONGEST_SAMPLED_RUN: usize = 65;

/// Strings that are repeated to every length of `LENGTHS`.
const RUNS: &[&str] = &[
    "a",
    "A",
    "1",
    " ",
    "\n",
    "\r\n",
    "\t",
    "'",
    ".",
    "\u{e9}",
    "e\u{301}",
    "\u{6570}",
    "\u{1f642}",
    "\u{a0}",
    "\u{3000}",
    "\u{0}",
    "ab",
    "a ",
    " a",
    "1a",
    "'s",
    "_",
    "\u{2581}",
    "\u{200d}",
    "\u{fffd}",
];
const LENGTHS: &[usize] = &[
    1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000,
];

const TEXTS: &[&str] = &[
    "",
    " ",
    "\n",
    "I'm you're we've they'll he'd it's don't I'M YOU'RE WE'VE THEY'LL HE'D IT'S DON'T 'S 'T",
    "I\u{2019}m you\u{2019}re \u{017f}'\u{017f} 'ſ 'ſt",
    "hello  world   a    b\t\tc \t d\n\n\ne \n f\r\n\r\ng\r\rh \r\n i",
    "trailing space ",
    "trailing spaces   ",
    "trailing line\n",
    "trailing lines\n\n \n",
    "\u{a0} a \u{a0}",
    "1 12 123 1234 12345 123456 1234567 1,234,567.89 1e-10 0x1F 1st 2nd \u{661}\u{662}\u{663}\u{664} \u{bd}\u{2167}\u{b2}\u{2460}",
    "def f(x):\n    return x[1:-1]  # comment\n\n\nclass A(B):\n\tpass\n",
    "<a href=\"https://example.org/?q=1&r=%20#x\">x</a> &amp; user@example.org C:\\path\\to\\file",
    "!!! ??? ... --- *** ### ,,, ;;; ((())) [[]] {{}} <<>> ||| \\\\ // && %% $$ @@ ^^ ~~ ``",
    "\u{fb01}\u{fb02} \u{212b}\u{2126} \u{1e9b}\u{323} \u{ac00}\u{1100}\u{1161}\u{11a8} \u{3a9} \u{df}\u{1e9e} \u{130}i\u{307} \u{1c5}\u{1c6}",
    "a\u{300}\u{301}\u{302}\u{303}b \u{301}\u{301} \u{301}a 1\u{20e3} \u{940}\u{928}\u{92e}\u{938}\u{94d}\u{924}\u{947}",
    "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}\u{200d}\u{1f466} \u{1f1e9}\u{1f1ea}\u{1f1eb} \u{1f44b}\u{1f3fd} \u{2764}\u{fe0f} #\u{fe0f}\u{20e3}",
    "\u{feff}a\u{feff} \u{200b}b\u{200b} \u{200e}c\u{200f} \u{ad}d \u{2028}e\u{2029}f \u{85}g \u{b}h \u{c}i \u{1680}j \u{180e}k",
    "\u{0}\u{1}\u{7f}\u{80}\u{9f}\u{fffe}\u{ffff}\u{fdd0}\u{10ffff}\u{e000}\u{e0001}",
    "\u{4f60}\u{597d}\u{ff0c}\u{4e16}\u{754c}\u{3002} \u{3053}\u{3093}\u{306b}\u{3061}\u{306f} \u{30ab}\u{309a} \u{d55c}\u{ad6d}\u{c5b4}",
    "\u{645}\u{631}\u{62d}\u{628}\u{627} \u{628}\u{627}\u{644}\u{639}\u{627}\u{644}\u{645} \u{5e9}\u{5b8}\u{5dc}\u{5d5}\u{5b9}\u{5dd} \u{e2a}\u{e27}\u{e31}\u{e2a}\u{e14}\u{e35} \u{43f}\u{440}\u{438}\u{432}\u{435}\u{442}",
    "camelCaseWord HTTPServer snake_case_word kebab-case-word SCREAMING_CASE iPhone McDonald's O'Neil",
    "\u{2581}a\u{2581}\u{2581}b \u{2581}",
    "\u{120}a \u{10a}b",
    "<0x0A><0xFF>",
    "<unk>",
    "##a ##",
    "<|endoftext|>",
    "<|endoftext|",
    "|endoftext|>",
    "<s></s><s",
    "[CLS] a [SEP][MASK]",
    "<|im_start|>user\nx<|im_end|>",
];

/// How many of the built-in texts are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextExtent {
    /// All of them.
    All,
    /// Those without most scalar values and without long runs, in about a fifth of the time.
    Sample,
}

/// The built-in texts for comparing engines, with the added tokens of `tokenizer`.
pub fn adversarial_texts(tokenizer: &Tokenizer, extent: TextExtent) -> Vec<String> {
    let mut texts: Vec<String> = TEXTS.iter().map(|&text| text.to_owned()).collect();
    let is_included = |&length: &usize| extent == TextExtent::All || length <= LONGEST_SAMPLED_RUN;
    for run in RUNS {
        for length in LENGTHS.iter().copied().filter(is_included) {
            texts.push(run.repeat(length));
            texts.push(format!("x{} y", run.repeat(length)));
        }
    }
    for (token, other) in tokenizer.added_tokens().iter().zip(others(tokenizer)) {
        let (token, other) = (&token.content, &other);
        texts.push(format!("a{token}b {token} c\n{token}\n{token}{token}"));
        texts.push(format!(
            "  {token}  {other}{token} \u{e9}{token}\u{301}1{token}2"
        ));
        let half = token.floor_char_boundary(token.len() / 2);
        texts.push(format!("{} {}{token}", &token[..half], &token[half..]));
    }
    texts.extend(scalars(match extent {
        TextExtent::All => 1,
        TextExtent::Sample => SAMPLED_STEP,
    }));
    texts
}

/// For each added token, another added token: the next one in the list.
fn others(tokenizer: &Tokenizer) -> impl Iterator<Item = String> {
    let tokens = tokenizer.added_tokens().iter();
    tokens.cycle().skip(1).map(|token| token.content.clone())
}

/// Scalar values between letters, digits and spaces: above `LAST_OF_EACH`, every `step`-th.
fn scalars(step: usize) -> impl Iterator<Item = String> {
    let first = 0..=LAST_OF_EACH;
    let all = (LAST_OF_EACH + 1..=LAST_OF_ALL).step_by(step);
    let some = (LAST_OF_ALL + 1..=0x10_ffff).step_by(STEP_ABOVE * step);
    let scalars: Vec<char> = first
        .chain(all)
        .chain(some)
        .filter_map(char::from_u32)
        .collect();
    let of = |scalars: &[char]| {
        let each = scalars.iter();
        each.map(|c| format!("a{c}1 {c}b{c}{c}A.{c}\n")).collect()
    };
    let texts: Vec<String> = scalars.chunks(SCALARS_A_TEXT as usize).map(of).collect();
    texts.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scalar_value_of_two_planes_and_every_added_token_is_there() {
        let tokenizer = Tokenizer::builtin("gpt2").unwrap();
        let texts = adversarial_texts(&tokenizer, TextExtent::All).concat();
        let chars: std::collections::HashSet<char> = texts.chars().collect();
        let missing = (0..=LAST_OF_ALL)
            .filter_map(char::from_u32)
            .find(|scalar| !chars.contains(scalar));
        assert_eq!(missing, None);
        assert!(texts.contains("a<|endoftext|>b"));
        assert!(texts.contains("<|endo ftext|><|endoftext|>"));
    }
}
