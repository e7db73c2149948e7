//! The file `NAME.ds.metadata`.

use packtok_pbin::TokenWidth;

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatatroveMetadata {
    /// Name of the tokenizer, or its path.
    pub tokenizer: String,
    /// Bytes of one token.
    pub width: TokenWidth,
    /// Number of tokens.
    pub num_tokens: u64,
}

impl DatatroveMetadata {
    /// Parses the content of a file; `None` if it has another form.
    pub fn parse(content: &str) -> Option<Self> {
        let mut lines = content.lines();
        let (tokenizer, width) = lines.next()?.rsplit_once('|')?;
        let width = match width {
            "2" => TokenWidth::U16,
            "4" => TokenWidth::U32,
            _ => return None,
        };
        Some(Self {
            tokenizer: tokenizer.to_owned(),
            width,
            num_tokens: lines.next()?.parse().ok()?,
        })
    }

    /// The content of the file, as datatrove writes it.
    pub fn to_text(&self) -> String {
        let Self {
            tokenizer,
            num_tokens,
            ..
        } = self;
        let width = self.width.bytes();
        format!(
            "{tokenizer}|{width}\n{num_tokens}\n{}",
            for_people(*num_tokens)
        )
    }
}

/// A number of tokens with three digits and a prefix of the SI, such as `6.47 MT`.
fn for_people(num_tokens: u64) -> String {
    const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    let exponent = num_tokens.checked_ilog10().unwrap_or(0);
    let thousands = exponent / 3;
    let value = num_tokens as f64 / 10f64.powi((thousands * 3) as i32);
    let digits = (2 - exponent % 3) as usize;
    format!("{value:.digits$} {}T", PREFIXES[thousands as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people_are_those_of_humanize() {
        for (number, expected) in [
            (0, "0.00 T"),
            (7, "7.00 T"),
            (25, "25.0 T"),
            (999, "999 T"),
            (6_465_411, "6.47 MT"),
            (12_345_678_901, "12.3 GT"),
        ] {
            assert_eq!(for_people(number), expected);
        }
    }

    #[test]
    fn what_is_written_is_parsed() {
        let metadata = DatatroveMetadata {
            tokenizer: "a|b/c".to_owned(),
            width: TokenWidth::U16,
            num_tokens: 6_465_411,
        };
        assert_eq!(metadata.to_text(), "a|b/c|2\n6465411\n6.47 MT");
        assert_eq!(
            DatatroveMetadata::parse(&metadata.to_text()),
            Some(metadata)
        );
        for damaged in ["", "gpt2", "gpt2|3\n5\n", "gpt2|2\n-5\n", "gpt2|2"] {
            assert_eq!(DatatroveMetadata::parse(damaged), None, "{damaged}");
        }
    }
}
