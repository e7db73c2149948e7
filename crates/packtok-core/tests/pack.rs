//! What the output must not depend on: threads and the length of chunks.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use packtok_bpe::{EncodeOptions, Tokenizer};
use packtok_core::corpus::ReadOptions;
use packtok_core::field::Field;
use packtok_core::pack::{EmptyDocument, Existing, OnBadDocument, PackOptions, PackReport, pack};
use packtok_core::pbin::{Reader, SpecialToken};
use packtok_core::verify::verify_corpus;
use packtok_core::{Error, Result};
use proptest::prelude::*;

/// One byte is one token, which is enough to tell documents apart and needs no vocabulary file.
fn byte_tokenizer() -> Tokenizer {
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

fn options(
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

fn run(options: &PackOptions) -> Result<PackReport> {
    pack(options, &byte_tokenizer(), &mut |_| {
        ControlFlow::Continue(())
    })
}

/// A line of some kind; what it is to become is left to the code under test and to the account.
fn line() -> impl Strategy<Value = Vec<u8>> {
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

fn write_corpus(folder: &Path, files: &[Vec<Vec<u8>>]) -> Vec<PathBuf> {
    let write = |(i, lines): (usize, &Vec<Vec<u8>>)| {
        let path = folder.join(format!("part{i}.jsonl"));
        fs::write(&path, lines.join(&b'\n')).unwrap();
        path
    };
    files.iter().enumerate().map(write).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn threads_and_chunks_change_nothing(
        files in prop::collection::vec(prop::collection::vec(line(), 0..30), 1..4),
        max_documents in prop::option::of(0u64..20),
        max_tokens in prop::option::of(0u64..200),
    ) {
        let folder = tempfile::TempDir::new().unwrap();
        let inputs = write_corpus(folder.path(), &files);
        let mut first: Option<(Vec<u8>, Option<Vec<u8>>)> = None;
        for (i, (num_threads, chunk_bytes)) in [(1, 1 << 20), (1, 1), (2, 40), (7, 64)].into_iter().enumerate() {
            let output = folder.path().join(format!("{i}.pbin"));
            let mut options = options(&inputs, &output, num_threads, chunk_bytes);
            (options.max_documents, options.max_tokens) = (max_documents, max_tokens);
            let report = run(&options).unwrap();
            prop_assert_eq!(report.lines, report.packed + report.empty + report.blank + report.rejected);
            let file = Reader::open(&output).unwrap();
            file.verify(&mut |_| ControlFlow::Continue(())).unwrap();
            prop_assert_eq!(file.len(), report.packed);
            let files = (fs::read(&output).unwrap(), fs::read(options.rejects_path()).ok());
            prop_assert_eq!(first.get_or_insert(files.clone()), &files);
            let compared = verify_corpus(&options, &byte_tokenizer(), 1.0, &mut |_| ControlFlow::Continue(())).unwrap();
            prop_assert_eq!(compared.documents, file.len());
            verify_corpus(&options, &byte_tokenizer(), 0.5, &mut |_| ControlFlow::Continue(())).unwrap();
        }
    }

    #[test]
    fn the_first_bad_document_is_named_whoever_finds_it(
        files in prop::collection::vec(prop::collection::vec(line(), 0..30), 1..4),
    ) {
        let folder = tempfile::TempDir::new().unwrap();
        let inputs = write_corpus(folder.path(), &files);
        let mut messages = Vec::new();
        for (num_threads, chunk_bytes) in [(1, 1 << 20), (1, 1), (2, 40), (7, 64)] {
            let output = folder.path().join("out.pbin");
            let mut options = options(&inputs, &output, num_threads, chunk_bytes);
            options.on_bad_document = OnBadDocument::Fail;
            options.existing = Existing::Replace;
            messages.push(match run(&options) {
                Ok(report) => format!("{} documents", report.documents),
                Err(error) => error.to_string(),
            });
        }
        messages.dedup();
        prop_assert_eq!(messages.len(), 1, "{:?}", messages);
    }
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let folder = tempfile::TempDir::new().unwrap();
    let inputs = write_corpus(folder.path(), &[vec![b"{\"text\": \"a\"}".to_vec(); 1000]]);
    let options = options(&inputs, &folder.path().join("out.pbin"), 2, 64);
    let error = pack(&options, &byte_tokenizer(), &mut |_| ControlFlow::Break(())).unwrap_err();
    assert!(matches!(error, Error::Cancelled));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_corpus_that_gives_other_ids_is_found_out() {
    let folder = tempfile::TempDir::new().unwrap();
    let lines = ["{\"text\": \"one\"}", "{\"text\": \"two\"}"];
    let inputs = write_corpus(
        folder.path(),
        &[lines.map(|line| line.as_bytes().to_vec()).to_vec()],
    );
    let output = folder.path().join("out.pbin");
    let options = options(&inputs, &output, 1, 1 << 20);
    run(&options).unwrap();
    let compare = |text: &str| {
        fs::write(&inputs[0], text).unwrap();
        verify_corpus(&options, &byte_tokenizer(), 1.0, &mut |_| {
            ControlFlow::Continue(())
        })
        .unwrap_err()
        .to_string()
    };
    let (out, source) = (output.display(), inputs[0].display());
    assert_eq!(
        compare("{\"text\": \"one\"}\n{\"text\": \"tvo\"}\n"),
        format!(
            "{out}: document 1 differs from {source}:2 at token 1: found id 119, expected id 118"
        )
    );
    assert_eq!(
        compare("{\"text\": \"one\"}\n"),
        format!("{out}: has 2 documents, the corpus gives 1")
    );
    assert_eq!(
        compare("{\"text\": \"one\"}\n{\"text\": \"two\"}\n\n{\"text\": \"three\"}"),
        format!("{out}: has 2 documents, but {source}:4 gives one more")
    );
}
