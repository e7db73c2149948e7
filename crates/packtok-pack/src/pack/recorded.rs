//! The metadata in the trailer: a function of the documents, the options that change bytes and the
//! version, without secrets.

use packtok_corpus::Source;
use packtok_pbin::{Counts, Metadata, Options, SpecialToken, TokenizerInfo, WriterInfo};
use packtok_tokenizer::Tokenizer;

use super::PackOptions;

/// The name of the writer in the metadata.
const WRITER: &str = "packtok";

/// The metadata of a file.
pub(crate) fn metadata(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    counts: Counts,
    stopped_early: bool,
) -> Metadata {
    let recorded_token = |special: &SpecialToken| SpecialToken {
        token: redacted(&special.token, &options.spec.redactions),
        id: special.id,
    };
    let recorded = &options.spec.recorded;
    let pattern = |pattern: &str| redacted(pattern, &options.spec.redactions);
    Metadata {
        writer: WriterInfo {
            name: WRITER.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        tokenizer: Some(TokenizerInfo {
            name: redacted(tokenizer.name(), &options.spec.redactions),
            fingerprint: tokenizer.fingerprint().to_owned(),
            vocab_size: tokenizer.vocab_size(),
        }),
        eod: Some(recorded_token(&options.eod)),
        bos: options.bos.as_ref().map(recorded_token),
        counts,
        options: Options {
            field: pattern(&recorded.field),
            input_fields: recorded
                .input_fields
                .iter()
                .map(|field| pattern(field))
                .collect(),
            ..recorded.clone()
        },
        stopped_early,
        shard: None,
        parts: Vec::new(),
        shuffle: None,
        rearranged: false,
        steps: Vec::new(),
    }
}

/// The sources as recorded in the trailer.
pub(super) fn recorded_sources(
    options: &PackOptions,
    sources: &[Source],
    digests: Vec<Option<u32>>,
) -> Vec<packtok_pbin::Source> {
    let recorded_options = &options.spec.recorded;
    let has_inputs = recorded_options.origins && !recorded_options.input_fields.is_empty();
    let recorded = sources.iter().zip(digests);
    recorded
        .map(|(source, crc32c)| packtok_pbin::Source {
            path: redacted(&source.label, &options.spec.redactions),
            bytes: source.bytes,
            // The checksum of a range does not identify the file.
            crc32c: crc32c.filter(|_| source.range.is_none()),
            format: recorded_options.origins.then_some(source.format),
            input: has_inputs.then_some(source.input as u64),
        })
        .collect()
}

/// `text` with every secret replaced.
pub(crate) fn redacted(text: &str, redactions: &[(String, String)]) -> String {
    redactions
        .iter()
        .filter(|(secret, _)| !secret.is_empty())
        .fold(text.to_owned(), |text, (secret, placeholder)| {
            text.replace(secret, placeholder)
        })
}
