//! The split patterns that the engine implements, as files write them.

pub(crate) const GPT2_PATTERN: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
pub(crate) const CL100K_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

pub(crate) const QWEN_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

pub(crate) const O200K_PATTERN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pattern {
    Gpt2,
    /// Each number is a word, and the text between numbers is split by [`Pattern::Gpt2`].
    Gpt2BetweenNumbers,
    /// With at most this many digits in a word.
    Cl100k {
        digits: usize,
    },
    O200k {
        is_tekken: bool,
    },
    Deepseek,
    /// No pattern: texts are split at positions that no token crosses. With `each_space`, a word
    /// also starts at every space.
    Pieces {
        each_space: bool,
    },
}

impl Pattern {
    /// The known pattern with this regular expression.
    pub(crate) fn of(regex: &str) -> Option<Self> {
        Some(match regex {
            GPT2_PATTERN => Self::Gpt2,
            CL100K_PATTERN => Self::Cl100k { digits: 3 },
            QWEN_PATTERN => Self::Cl100k { digits: 1 },
            O200K_PATTERN => Self::O200k { is_tekken: false },
            TEKKEN_PATTERN => Self::O200k { is_tekken: true },
            _ => return None,
        })
    }

    /// The known pattern that consists of these regular expressions, applied one after the other.
    pub(crate) fn of_several(regexes: &[&str]) -> Option<Self> {
        match regexes {
            [regex] => Self::of(regex),
            _ => (regexes == DEEPSEEK_PATTERNS).then_some(Self::Deepseek),
        }
    }
}
