//! The split patterns that the engine implements, as files write them.

use super::automaton::{Finds, Step, split_alike};

pub(crate) const GPT2_PATTERN: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
pub(crate) const CL100K_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

pub(crate) const QWEN_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The pattern of Qwen 3.5. A mark that starts a word may be the character before the letters or one of them, which is
/// the same word, so that this is [`QWEN_PATTERN`] with marks as letters.
const QWEN_3_5_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

pub(crate) const O200K_PATTERN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

pub(crate) const KIMI_K2_PATTERN: &str = r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The pattern of Mistral's newer vocabularies.
const TEKKEN_PATTERN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The patterns of DeepSeek from version 3 on. The last pattern contains the line ends as literal
/// characters, as in the file.
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

/// The patterns that SIMD blocks split, and the steps of each.
fn known() -> [(Pattern, Vec<Step>); 9] {
    let regexes = |patterns: &[&str]| -> Vec<Step> {
        let finds = patterns
            .iter()
            .map(|&pattern| Finds::Regex(pattern.to_owned()));
        finds.map(Step::new).collect()
    };
    let digits = Step::new(Finds::Digits { each: true });
    let between_numbers = [vec![digits], regexes(&[GPT2_PATTERN])].concat();
    [
        (Pattern::Gpt2, regexes(&[GPT2_PATTERN])),
        (Pattern::Gpt2BetweenNumbers, between_numbers),
        (Pattern::Cl100k { digits: 3 }, regexes(&[CL100K_PATTERN])),
        (Pattern::Cl100k { digits: 1 }, regexes(&[QWEN_PATTERN])),
        (Pattern::Cl100kWithMarks, regexes(&[QWEN_3_5_PATTERN])),
        (
            Pattern::O200k { is_tekken: false },
            regexes(&[O200K_PATTERN]),
        ),
        (
            Pattern::O200k { is_tekken: true },
            regexes(&[TEKKEN_PATTERN]),
        ),
        (Pattern::Deepseek, regexes(&DEEPSEEK_PATTERNS)),
        (Pattern::KimiK2, kimi_k2()),
    ]
}

/// The steps of [`Pattern::KimiK2`].
pub(super) fn kimi_k2() -> Vec<Step> {
    vec![Step::new(Finds::Regex(KIMI_K2_PATTERN.to_owned()))]
}

/// How texts are split into words.
#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    Gpt2,
    /// Each number is a word, and the text between numbers is split by [`Pattern::Gpt2`].
    Gpt2BetweenNumbers,
    /// With at most this many digits in a word.
    Cl100k {
        digits: usize,
    },
    /// As [`Pattern::Cl100k`], with one digit in a word, and marks are letters.
    Cl100kWithMarks,
    O200k {
        is_tekken: bool,
    },
    Deepseek,
    /// SIMD blocks split texts without Chinese characters, an automaton splits the others.
    KimiK2,
    /// Any other patterns.
    Steps(Vec<Step>),
    /// No pattern: texts are split at positions that no token crosses. With `each_space`, a word
    /// also starts at every space.
    Pieces {
        each_space: bool,
    },
}

impl Pattern {
    /// The pattern that splits texts as these steps do: one that SIMD blocks split, if there is one.
    ///
    /// # Errors
    /// What a step has that cannot be read, or that it is too large.
    pub(crate) fn of(steps: Vec<Step>) -> Result<Self, String> {
        let known = known();
        if let Some((pattern, _)) = known.iter().find(|(_, of_known)| *of_known == steps) {
            return Ok(pattern.clone());
        }
        // In other words, which takes longer to find out.
        for (pattern, of_known) in known {
            if split_alike(&steps, &of_known)? {
                return Ok(pattern);
            }
        }
        Ok(Self::Steps(steps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kimi_k2_is_o200k_without_slashes_for_texts_without_chinese_characters() {
        // `[\p{Han}]+` matches nothing, and `&&[^\p{Han}]` excludes nothing.
        let without_han = KIMI_K2_PATTERN
            .replace(r"[\p{Han}]+|", "")
            .replace(r"&&[^\p{Han}]", "");
        assert_eq!(without_han, O200K_PATTERN.replace(r"[\r\n/]*", r"[\r\n]*"));
    }
}
