//! Documents as texts, and their ids with another tokenizer.

use std::ops::ControlFlow;

use packtok_pack::texts::Encoders;
use packtok_pbin::{Metadata, SpecialToken, TokenizerInfo};
use packtok_tokenizer::{EncodeOptions, SpecialTokensInText};
use serde::Serialize;

use super::selection::Reshaper;
use crate::convert::Meaning;
use crate::error::Result;

/// Numbers of documents that a report lists.
const MAX_LISTED: usize = 1000;

/// The tokenizer that documents are tokenized with again.
pub struct Retokenizing {
    /// The tokenizer of the ids of the input.
    pub from: Encoders,
    /// The new tokenizer.
    pub to: Encoders,
    /// The token that ends every document.
    pub eod: SpecialToken,
    /// The token that starts every document.
    pub bos: Option<SpecialToken>,
    /// Threads that decode and encode.
    pub num_threads: usize,
}

impl Retokenizing {
    /// The meaning of the new ids.
    pub(super) fn meaning(&self) -> Meaning {
        let tokenizer = self.to.tokenizer();
        Meaning {
            tokenizer: Some(TokenizerInfo {
                name: tokenizer.name().to_owned(),
                fingerprint: tokenizer.fingerprint().to_owned(),
                vocab_size: tokenizer.vocab_size(),
            }),
            eod: Some(self.eod.clone()),
            bos: self.bos.clone(),
        }
    }

    /// The ids of a document with BOS and EOD where they are not yet, as packing writes them.
    fn enclosed(&self, mut ids: Vec<u32>) -> Vec<u32> {
        if let Some(bos) = &self.bos
            && ids.first().is_some_and(|&first| first != bos.id)
        {
            ids.insert(0, bos.id);
        }
        if ids.last() != Some(&self.eod.id) {
            ids.push(self.eod.id);
        }
        ids
    }
}

/// What happened to documents that were tokenized again.
#[derive(Debug, Default, Clone, Serialize)]
pub struct RetokenizeReport {
    /// Tokens of the documents before.
    pub tokens_before: u64,
    /// Documents whose text, encoded with the tokenizer of the input, has other ids than the document.
    pub not_restored: u64,
    /// The numbers of such documents among those of the input; at most 1000.
    pub not_restored_documents: Vec<u64>,
}

/// The tokens around the text of a document.
pub(super) struct Enclosing {
    bos: Option<u32>,
    eod: Option<u32>,
}

impl Enclosing {
    pub(super) fn of(metadata: &Metadata) -> Self {
        let id = |token: &Option<SpecialToken>| token.as_ref().map(|token| token.id);
        Self {
            bos: id(&metadata.bos),
            eod: id(&metadata.eod),
        }
    }

    /// The ids of a document without BOS and EOD.
    fn without<'a>(&self, ids: &'a [u32]) -> &'a [u32] {
        let ids = match (ids, self.bos) {
            ([first, rest @ ..], Some(bos)) if *first == bos => rest,
            _ => ids,
        };
        match (ids, self.eod) {
            ([rest @ .., last], Some(eod)) if *last == eod => rest,
            _ => ids,
        }
    }
}

/// Ids of documents, one after the other, and where each starts.
struct Ids {
    ids: Vec<u32>,
    offsets: Vec<usize>,
}

impl Reshaper {
    fn inner_ids(&self, numbers: &[u64], enclosing: &Enclosing) -> Result<Ids> {
        let (mut ids, mut offsets) = (Vec::new(), vec![0]);
        for &number in numbers {
            ids.extend_from_slice(enclosing.without(&self.ids(number)?));
            offsets.push(ids.len());
        }
        Ok(Ids { ids, offsets })
    }

    /// The texts of documents, without BOS and EOD.
    pub(super) fn texts(
        &self,
        numbers: &[u64],
        enclosing: &Enclosing,
        encoders: &Encoders,
        num_threads: usize,
        check: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Vec<String>> {
        let Ids { ids, offsets } = self.inner_ids(numbers, enclosing)?;
        Ok(encoders.decode_batch(&ids, &offsets, false, num_threads, check)?)
    }

    /// The new ids of documents, with BOS and EOD, for each document.
    pub(super) fn retokenized(
        &self,
        numbers: &[u64],
        retokenizing: &Retokenizing,
        report: &mut RetokenizeReport,
        check: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Vec<Vec<u32>>> {
        let Retokenizing {
            from,
            to,
            num_threads,
            ..
        } = retokenizing;
        let enclosing = Enclosing::of(&self.inputs.metadata);
        let before = self.inner_ids(numbers, &enclosing)?;
        let texts = from.decode_batch(&before.ids, &before.offsets, false, *num_threads, check)?;
        // The text of a special token in a document is this token in its file.
        let again = EncodeOptions {
            special_tokens_in_text: SpecialTokensInText::Parse,
            ..EncodeOptions::default()
        };
        let again = from.encode_batch(&texts, &again, *num_threads, Vec::new(), check)?;
        let spans = before.offsets.windows(2).zip(again.offsets.windows(2));
        for (&document, (old, new)) in numbers.iter().zip(spans) {
            let is_restored =
                before.ids[old[0]..old[1]] == again.ids[new[0] as usize..new[1] as usize];
            if !is_restored {
                report.not_restored += 1;
                if report.not_restored_documents.len() < MAX_LISTED {
                    report.not_restored_documents.push(document);
                }
            }
        }
        let options = EncodeOptions {
            add_special_tokens: true,
            special_tokens_in_text: SpecialTokensInText::Parse,
            ..EncodeOptions::default()
        };
        let encoded = to.encode_batch(&texts, &options, *num_threads, Vec::new(), check)?;
        let documents = encoded.offsets.windows(2).map(|span| {
            let ids = encoded.ids[span[0] as usize..span[1] as usize].to_vec();
            retokenizing.enclosed(ids)
        });
        Ok(documents.collect())
    }
}
