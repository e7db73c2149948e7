//! Verification: a pbin by itself, a pbin against its corpus, and one engine against another.

mod corpus;
mod engines;
mod file;
mod origins;
mod proof;

pub use corpus::{CorpusReport, verify_corpus};
pub use engines::{EnginesReport, verify_engines};
pub use file::{FileReport, verify_file};
pub use origins::{OriginsOptions, verify_origins};
pub use proof::prove;

use packtok_pbin::{Reader, SpecialTokensInText, TokenWidth};
use packtok_tokenizer::Tokenizer;

use crate::error::{Error, Result};
use crate::pack::{PackOptions, Sample};

/// The first token at which two documents differ, and its id in each document; `None` past the end
/// of a document.
fn first_difference(
    found: &[u8],
    expected: &[u8],
    width: TokenWidth,
) -> Option<(u64, Option<u32>, Option<u32>)> {
    if found == expected {
        return None;
    }
    let differing = (width.ids(found).zip(width.ids(expected)))
        .take_while(|(found, expected)| found == expected)
        .count();
    let id = |tokens: &[u8]| width.ids(tokens).nth(differing);
    Some((differing as u64, id(found), id(expected)))
}

/// The sample of documents to tokenize. It must include all documents if special tokens are
/// forbidden in text, because only tokenizing shows which documents are rejected.
fn sample(options: &PackOptions, fraction: f64) -> Sample {
    match options.spec.recorded.special_tokens_in_text {
        SpecialTokensInText::Fail => Sample::ALL,
        _ => Sample::fraction(fraction),
    }
}

/// Checks that the token width of `file` is the requested one, or the one that `tokenizer` needs.
fn check_width(file: &Reader, tokenizer: &Tokenizer) -> Result<()> {
    let vocab_size = tokenizer.vocab_size();
    let expected_width = match file.metadata()? {
        Some(metadata) => metadata.options.width_for_vocab(vocab_size),
        None => TokenWidth::for_vocab(vocab_size),
    };
    if file.width() == expected_width {
        return Ok(());
    }
    Err(Error::WidthDiffers {
        path: file.path().to_owned(),
        found_bytes: file.width().bytes(),
        expected_bytes: expected_width.bytes(),
    })
}
