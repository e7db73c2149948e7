//! The packing options of the benches: the defaults of `packtok pack`.

use std::path::{Path, PathBuf};

use packtok_corpus::OnBadDocument;
use packtok_corpus::{CHUNK_BYTES, ReadOptions};
use packtok_pack::pack::{Existing, PackOptions, PackSpec};
use packtok_pbin::Options;
use packtok_tokenizer::{EncodeOptions, EngineChoice, SpecialTokensInText, Tokenizer};

/// The EOD token in all benches.
const EOD: &str = "<|endoftext|>";

/// The options for encoding documents.
pub fn encode_options() -> EncodeOptions {
    EncodeOptions {
        add_special_tokens: true,
        special_tokens_in_text: SpecialTokensInText::Parse,
        truncate_to: None,
        ..EncodeOptions::default()
    }
}

/// A function that encodes a text and returns its number of tokens. All ids go to one buffer that
/// is cleared for each text, so that it stays in the L1 cache.
///
/// # Panics
/// If the engine does not support the tokenizer, or a text cannot be encoded.
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

/// The options for reading corpora.
pub fn read_options() -> ReadOptions {
    ReadOptions::for_json_lines(1 << 30)
}

/// The options for packing the texts of `input` into `output`, which may be replaced.
///
/// # Panics
/// If the tokenizer has no EOD.
pub fn pack_options(
    tokenizer: &Tokenizer,
    input: &Path,
    output: PathBuf,
    num_threads: usize,
) -> PackOptions {
    let spec = PackSpec {
        plugin: None,
        input: vec![input.display().to_string()],
        output,
        ignore: Vec::new(),
        split: None,
        root: None,
        index_path: None,
        eod: Some(EOD.to_owned()),
        bos: None,
        recorded: Options {
            field: ".text".to_owned(),
            add_special_tokens: true,
            max_document_bytes: 1 << 30,
            ..Options::default()
        },
        engine: EngineChoice::Auto,
        cache_bytes: None,
        on_bad_document: OnBadDocument::Fail,
        max_rejects: None,
        num_cpus: num_threads,
        zstd_window_log: 27,
        existing: Existing::Replace,
        span_bytes: 16 << 20,
        restart: false,
        redactions: Vec::new(),
        chunk_bytes: CHUNK_BYTES,
    };
    spec.resolve(tokenizer)
        .expect("the tokenizers of the benches have this EOD")
}
