//! The tokenizer that a caller declares for files that do not record theirs, proven on a sample.

use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;

use packtok_formats::TokenFile;
use packtok_pack::texts::Encoders;
use packtok_pbin::TokenizerInfo;
use packtok_tokenizer::{EncodeOptions, SpecialTokensInText, Tokenizer};

use crate::error::{Error, Result};

/// Documents of a file that are decoded, and the most tokens of each.
const SAMPLED_DOCUMENTS: u64 = 16;
const SAMPLED_TOKENS: u64 = 512;
/// Fewer tokens prove nothing.
const LEAST_TOKENS: u64 = 256;
/// The least share of tokens that come back, in percent. Of text in several languages and code, 99 or more come
/// back with the right tokenizer, 53 to 88 with another one, and at most 94 if ids are permuted.
const LEAST_RETURNED: u64 = 97;
/// Tokens of a sampled document that may not come back in addition, because it may start and end within words.
const CUT_TOKENS: u64 = 2;

/// A declared tokenizer.
#[derive(Clone)]
pub struct DeclaredTokenizer {
    info: TokenizerInfo,
    tokenizer: Tokenizer,
}

impl fmt::Debug for DeclaredTokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.info.fmt(f)
    }
}

impl DeclaredTokenizer {
    /// The declaration of `tokenizer`, of which files record `info`.
    pub fn new(tokenizer: Tokenizer, info: TokenizerInfo) -> Self {
        Self { info, tokenizer }
    }

    /// What files record of the tokenizer.
    pub fn info(&self) -> &TokenizerInfo {
        &self.info
    }

    /// Checks that the ids of `file` are those of the tokenizer: some documents are decoded, and most of
    /// their ids must come back when the texts are tokenized.
    ///
    /// # Errors
    /// [`Error::TokenizerDoesNotFit`]; the file is damaged.
    pub(crate) fn check(&self, file: &TokenFile) -> Result<()> {
        let (mut ids, mut offsets) = (Vec::new(), vec![0]);
        let num_documents = file.num_documents();
        let step = num_documents.div_ceil(SAMPLED_DOCUMENTS).max(1);
        for document in (0..num_documents).step_by(step as usize) {
            let tokens = file.document_tokens(document)?;
            let tokens = tokens.start..tokens.end.min(tokens.start + SAMPLED_TOKENS);
            ids.extend(file.width().ids(file.tokens(tokens)?));
            offsets.push(ids.len());
        }
        let is_known = |&id: &u32| u64::from(id) < self.info.vocab_size;
        // An id beyond the vocabulary is found by another check, which names it.
        if (ids.len() as u64) < LEAST_TOKENS || !ids.iter().all(is_known) {
            return Ok(());
        }
        let mut check = || ControlFlow::Continue(());
        let encoders = Encoders::new(self.tokenizer.clone());
        let texts = encoders.decode_batch(&ids, &offsets, false, 1, &mut check)?;
        let options = EncodeOptions {
            special_tokens_in_text: SpecialTokensInText::Parse,
            ..EncodeOptions::default()
        };
        let again = encoders.encode_batch(&texts, &options, 1, Vec::new(), &mut check)?;
        let spans = offsets.windows(2).zip(again.offsets.windows(2));
        let returned = spans.map(|(before, after)| {
            let before = &ids[before[0]..before[1]];
            num_in_both(before, &again.ids[after[0] as usize..after[1] as usize])
        });
        let (returned, sampled) = (returned.sum::<u64>(), ids.len() as u64);
        let cut = CUT_TOKENS * (offsets.len() as u64 - 1);
        if (returned + cut) * 100 >= sampled * LEAST_RETURNED {
            return Ok(());
        }
        Err(Error::TokenizerDoesNotFit {
            path: file.path().into(),
            tokenizer: self.info.name.clone(),
            returned,
            sampled,
        })
    }
}

/// The number of ids that two lists have in common, each as often as both have it.
fn num_in_both(first: &[u32], second: &[u32]) -> u64 {
    let mut counts: HashMap<u32, u64> = HashMap::new();
    for &id in first {
        *counts.entry(id).or_default() += 1;
    }
    let is_in_both = |id: &&u32| match counts.get_mut(id) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    };
    second.iter().filter(is_in_both).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_common_are_counted_as_often_as_both_have_them() {
        assert_eq!(num_in_both(&[1, 1, 2, 3], &[1, 3, 3, 4, 1, 1]), 3);
        assert_eq!(num_in_both(&[], &[1]), 0);
    }
}
