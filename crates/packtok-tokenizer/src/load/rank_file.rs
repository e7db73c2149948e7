//! Files of tiktoken's ranks (`cl100k_base.tiktoken`): on each line, a token in base64 and its rank.
//!
//! ```text
//! IQ== 0
//! Ig== 1
//! ```
//!
//! Such a file contains neither the split pattern nor the special tokens. Both are known for built-in tokenizers and
//! for some published files (`published.rs`). Other ranks are refused, because a guess would not be exact.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::LoadError;
use crate::error::{Error, Result};
use crate::load::builtin::{BUILTIN_NAMES, builtin_json_of_ranks};
use crate::load::merges::merges;
use crate::load::published::{PUBLISHED, published};
use crate::load::ranks::{Ranked, split_by};

/// Whether the first line of a file is a token and its rank.
pub(crate) fn is_one(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|&byte| byte == b'\n');
    lines.next().is_some_and(|line| entry(line).is_some())
}

/// Converts a file of ranks to tokenizer.json.
///
/// # Errors
/// A line is invalid, or these ranks are not known.
pub(crate) fn tokenizer_json(name: &str, bytes: &[u8]) -> Result<String> {
    let refused = |reason: String| {
        Error::Load(LoadError::Ranks {
            name: name.to_owned(),
            reason,
        })
    };
    let mut tokens = Vec::new();
    // The first line whose rank is not the next one. Files leave out the ranks of special tokens.
    let mut gap = None;
    for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        let line = line.trim_ascii_end();
        if line.is_empty() {
            continue;
        }
        let Some((token, rank)) = entry(line).or_else(|| entry_without_token(line)) else {
            return Err(refused(format!(
                "line {number} is not a base64 token, a space and a rank"
            )));
        };
        if rank != tokens.len() as u64 {
            let reason = format!("line {number} has rank {rank}, expected {}", tokens.len());
            if rank != tokens.len() as u64 + 1 {
                return Err(refused(reason));
            }
            gap.get_or_insert(reason);
            tokens.push(vec![]);
        }
        tokens.push(token);
    }
    if let Some(published) = published(bytes) {
        let ranked = Ranked {
            merges: merges(&tokens),
            tokens,
            first_id: 0,
            special_tokens: (published.special_tokens)(),
            pre_tokenizer: split_by(published.pattern),
            is_nfc: published.is_nfc,
        };
        return Ok(ranked.tokenizer_json());
    }
    builtin_json_of_ranks(&tokens).ok_or_else(|| {
        if let Some(reason) = gap {
            return refused(reason);
        }
        let names = BUILTIN_NAMES.iter().copied();
        let names: Vec<&str> = names.chain(PUBLISHED.iter().map(|file| file.name)).collect();
        refused(format!(
            "its {} tokens are not those of a known file ({}), and a rank file does not specify how to split text",
            tokens.len(),
            names.join(", ")
        ))
    })
}

/// The token of a line and its rank.
fn entry(line: &[u8]) -> Option<(Vec<u8>, u64)> {
    let line = std::str::from_utf8(line.trim_ascii_end()).ok()?;
    let (token, rank) = line.split_once(' ')?;
    let token = BASE64_STANDARD.decode(token).ok()?;
    Some((token, rank.parse().ok()?)).filter(|(token, _)| !token.is_empty())
}

/// The rank of a line whose token is empty, as the last one of Whisper's file is.
fn entry_without_token(line: &[u8]) -> Option<(Vec<u8>, u64)> {
    let rank = line.trim_ascii_end().strip_prefix(b"= ")?;
    Some((vec![], std::str::from_utf8(rank).ok()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(file: &[u8]) -> String {
        tokenizer_json("t", file).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        assert!(is_one(b"IQ== 0\nIg== 1\n"));
        assert!(!is_one(b"{\"a\": 0}"));
        assert!(!is_one(b""));
        assert_eq!(
            refused(b"IQ== 0\nIg== 2\n"),
            "t: not a tiktoken rank file that packtok supports: line 2 has rank 2, expected 1; use the \
             tokenizer.json of the same model"
        );
        assert!(
            refused(b"IQ== 0\n\nIg==\n")
                .contains("line 3 is not a base64 token, a space and a rank;")
        );
        assert!(
            refused(b"IQ== 0\r\nIg== 1\r\n").contains("its 2 tokens are not those of a known file")
        );
    }
}
