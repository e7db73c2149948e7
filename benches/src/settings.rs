//! The options that the benches pack with: those of a plain `packtok pack`.

use std::path::{Path, PathBuf};

use packtok_bpe::{EncodeOptions, EngineChoice, SpecialTokensInText, Tokenizer};
use packtok_core::corpus::ReadOptions;
use packtok_core::field::Field;
use packtok_core::pack::{EmptyDocument, Existing, OnBadDocument, PackOptions};
use packtok_pbin::SpecialToken;

/// The token that closes documents in all benches.
const EOD: &str = "<|endoftext|>";

/// How documents are encoded.
pub fn encode_options() -> EncodeOptions {
    EncodeOptions {
        add_special_tokens: true,
        special_tokens_in_text: SpecialTokensInText::Parse,
        truncate_to: None,
        ..EncodeOptions::default()
    }
}

/// A function that encodes a text and gives its number of tokens; all ids go to one buffer that is emptied
/// for each text, so that it stays in the nearest cache.
///
/// # Panics
/// If the engine does not cover the tokenizer, or a text cannot be encoded.
pub fn token_counter(
    tokenizer: &Tokenizer,
    engine: EngineChoice,
) -> impl FnMut(&str) -> usize + use<> {
    let options = EncodeOptions {
        engine,
        ..encode_options()
    };
    let mut encoder = tokenizer.encoder(&options).expect("the engine covers it");
    let mut ids = Vec::new();
    move |text| {
        ids.clear();
        encoder
            .encode_into(text, &mut ids)
            .expect("the text can be encoded");
        ids.len()
    }
}

/// How corpora are read.
pub fn read_options() -> ReadOptions {
    ReadOptions {
        chunk_bytes: 1 << 18,
        max_document_bytes: 1 << 30,
        zstd_window_log_max: 27,
    }
}

/// Packs the texts of `input` into `output`, which may be replaced.
///
/// # Panics
/// If the tokenizer has no EOD.
pub fn pack_options(
    tokenizer: &Tokenizer,
    input: &Path,
    output: PathBuf,
    num_threads: usize,
) -> PackOptions {
    PackOptions {
        inputs: vec![input.display().to_string()],
        output,
        index_path: None,
        span_bytes: 16 << 20,
        max_rejects: None,
        restart: false,
        field: Field::compile(".text").expect("the pattern is jq"),
        encode: encode_options(),
        eod: SpecialToken {
            token: EOD.to_owned(),
            id: tokenizer
                .token_to_id(EOD)
                .expect("the tokenizers of the benches have this EOD"),
        },
        bos: None,
        empty_document: EmptyDocument::Skip,
        on_bad_document: OnBadDocument::Fail,
        max_documents: None,
        max_tokens: None,
        num_threads,
        read: read_options(),
        existing: Existing::Replace,
        redactions: Vec::new(),
    }
}
