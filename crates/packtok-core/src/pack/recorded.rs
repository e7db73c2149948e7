//! What the trailer says of a run: a function of the documents, the options that change bytes and
//! the version, without secrets.

use packtok_bpe::{SpecialTokensInText, Tokenizer};
use packtok_pbin::{Counts, Metadata, Options, SpecialToken, TokenizerInfo, WriterInfo};

use super::sink::Sink;
use super::{Consume, EmptyDocument, PackOptions};
use crate::corpus::{self, Source};
use crate::error::Result;

/// Name that a pbin carries of what wrote it.
const WRITER: &str = "packtok";

/// The metadata of a file.
pub(crate) fn metadata(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    counts: Counts,
    stopped_early: bool,
) -> Metadata {
    let recorded_token = |special: &SpecialToken| SpecialToken {
        token: redacted(&special.token, &options.redactions),
        id: special.id,
    };
    Metadata {
        writer: WriterInfo {
            name: WRITER.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        tokenizer: Some(TokenizerInfo {
            name: redacted(tokenizer.name(), &options.redactions),
            fingerprint: tokenizer.fingerprint().to_owned(),
            vocab_size: tokenizer.vocab_size(),
        }),
        eod: Some(recorded_token(&options.eod)),
        bos: options.bos.as_ref().map(recorded_token),
        counts,
        options: recorded_options(options),
        stopped_early,
        shard: None,
        parts: Vec::new(),
    }
}

/// The checksums that the trailer names.
///
/// A run that a limit stopped has read an amount that depends on the chunks, so it records none;
/// one by index reads parts only, so the file is read once more.
pub(super) fn recorded_digests(
    options: &PackOptions,
    sources: &[Source],
    digests: Vec<Option<u32>>,
    stopped_early: bool,
    sink: &mut Sink<'_>,
) -> Result<Vec<Option<u32>>> {
    match options.index_path {
        _ if stopped_early => Ok(vec![None; sources.len()]),
        Some(_) => corpus::digests(sources, |bytes_read| sink.tick(bytes_read)),
        None => Ok(digests),
    }
}

/// The sources as the trailer names them.
pub(super) fn recorded_sources(
    options: &PackOptions,
    sources: &[Source],
    digests: Vec<Option<u32>>,
) -> Vec<packtok_pbin::Source> {
    let recorded = sources.iter().zip(digests);
    recorded
        .map(|(source, crc32c)| packtok_pbin::Source {
            path: redacted(&source.label, &options.redactions),
            bytes: source.bytes,
            // What was read of a part says nothing of the whole.
            crc32c: crc32c.filter(|_| source.range.is_none()),
        })
        .collect()
}

/// The options that change bytes, as the trailer has them.
fn recorded_options(options: &PackOptions) -> Options {
    Options {
        field: redacted(options.field.pattern(), &options.redactions),
        add_special_tokens: options.encode.add_special_tokens,
        special_tokens_in_text: match options.encode.special_tokens_in_text {
            SpecialTokensInText::Parse => "parse",
            SpecialTokensInText::Text => "text",
            SpecialTokensInText::Fail => "fail",
        }
        .to_owned(),
        empty_document: match options.empty_document {
            EmptyDocument::Skip => "skip",
            EmptyDocument::Keep => "keep",
            EmptyDocument::Fail => "fail",
        }
        .to_owned(),
        truncate_to: options.encode.truncate_to.map(|tokens| tokens as u64),
        max_document_bytes: options.read.max_document_bytes,
        max_documents: options.max_documents,
        max_tokens: options.max_tokens,
    }
}

/// `text` with every secret replaced.
pub(crate) fn redacted(text: &str, redactions: &[(String, String)]) -> String {
    redactions
        .iter()
        .filter(|(secret, _)| !secret.is_empty())
        .fold(text.to_owned(), |text, (secret, shown)| {
            text.replace(secret, shown)
        })
}
