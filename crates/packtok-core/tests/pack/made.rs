//! What the tests pack, and with what.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use packtok_bpe::{EncodeOptions, Tokenizer};
use packtok_core::Result;
use packtok_core::corpus::ReadOptions;
use packtok_core::field::Field;
use packtok_core::pack::{EmptyDocument, Existing, OnBadDocument, PackOptions, PackReport, pack};
use packtok_core::pbin::SpecialToken;
use proptest::prelude::*;

/// One byte is one token, which is enough to tell documents apart and needs no vocabulary file.
pub(crate) fn byte_tokenizer() -> Tokenizer {
    let spelling = |byte: u8| match byte {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
        0..=0x20 => char::from_u32(0x100 + u32::from(byte)).unwrap(),
        0x7f..=0xa0 => char::from_u32(0x100 + 33 + u32::from(byte) - 0x7f).unwrap(),
        0xad => '\u{143}',
    };
    let mut vocab: serde_json::Map<String, serde_json::Value> = (0..=255u8)
        .map(|byte| (spelling(byte).to_string(), byte.into()))
        .collect();
    vocab.insert("<eod>".to_owned(), 256.into());
    let file = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
        "added_tokens": [{"id": 256, "content": "<eod>", "special": true, "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": []},
    });
    Tokenizer::from_json("bytes", file.to_string()).unwrap()
}

pub(crate) fn options(
    inputs: &[PathBuf],
    output: &Path,
    num_threads: usize,
    chunk_bytes: usize,
) -> PackOptions {
    PackOptions {
        inputs: inputs
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
        output: output.to_owned(),
        index_path: None,
        span_bytes: 1 << 20,
        restart: false,
        field: Field::compile(".text").unwrap(),
        encode: EncodeOptions {
            add_special_tokens: true,
            ..EncodeOptions::default()
        },
        eod: SpecialToken {
            token: "<eod>".to_owned(),
            id: 256,
        },
        bos: None,
        empty_document: EmptyDocument::Skip,
        on_bad_document: OnBadDocument::Skip,
        max_documents: None,
        max_tokens: None,
        num_threads,
        read: ReadOptions {
            chunk_bytes,
            max_document_bytes: 200,
            zstd_window_log_max: 27,
        },
        existing: Existing::Error,
        redactions: Vec::new(),
    }
}

pub(crate) fn run(options: &PackOptions) -> Result<PackReport> {
    pack(options, &byte_tokenizer(), &mut |_| {
        ControlFlow::Continue(())
    })
}

/// A line of some kind; what it is to become is left to the code under test and to the account.
pub(crate) fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => "[a-z<>é ]{0,20}".prop_map(|text| serde_json::json!({"text": text}).to_string().into_bytes()),
        1 => Just(b"{\"text\": \"a<eod>b\"}".to_vec()),
        1 => Just(Vec::new()),
        1 => Just(b" \t".to_vec()),
        1 => Just(b"{\"text\": 1}".to_vec()),
        1 => Just(b"{broken".to_vec()),
        1 => Just(b"\xff".to_vec()),
        1 => Just(vec![b'x'; 300]),
    ]
}

pub(crate) fn write_corpus(folder: &Path, files: &[Vec<Vec<u8>>]) -> Vec<PathBuf> {
    let write = |(i, lines): (usize, &Vec<Vec<u8>>)| {
        let path = folder.join(format!("part{i}.jsonl"));
        fs::write(&path, lines.join(&b'\n')).unwrap();
        path
    };
    files.iter().enumerate().map(write).collect()
}
