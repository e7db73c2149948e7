//! The output does not depend on the number of threads or the length of chunks.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use packtok_corpus::OnBadDocument;
use packtok_pack::Error;
use packtok_pack::pack::{Existing, pack};
use packtok_pack::pbin::{Padding, Reader, Side};
use packtok_pack::verify::verify_corpus;
use proptest::prelude::*;

use crate::extent;
use crate::fixture::{byte_tokenizer, line, options, run};

fn write_corpus(folder: &Path, files: &[Vec<Vec<u8>>]) -> Vec<PathBuf> {
    let write = |(i, lines): (usize, &Vec<Vec<u8>>)| {
        let path = folder.join(format!("part{i}.jsonl"));
        fs::write(&path, lines.join(&b'\n')).unwrap();
        path
    };
    files.iter().enumerate().map(write).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(extent(48, 24)))]

    #[test]
    fn threads_and_chunks_change_nothing(
        files in prop::collection::vec(prop::collection::vec(line(), 0..30), 1..4),
        max_documents in prop::option::of(0u64..20),
        max_tokens in prop::option::of(0u64..200),
        padding in prop::option::of((0u64..12, 250u32..257, any::<bool>())),
    ) {
        let folder = tempfile::TempDir::new().unwrap();
        let inputs = write_corpus(folder.path(), &files);
        let padding = padding.map(|(length, id, is_left)| Padding {
            length,
            id,
            side: if is_left { Side::Left } else { Side::Right },
        });
        let mut first: Option<(Vec<u8>, Option<Vec<u8>>)> = None;
        for (i, (num_threads, chunk_bytes)) in [(1, 1 << 20), (1, 1), (2, 40), (7, 64)].into_iter().enumerate() {
            let output = folder.path().join(format!("{i}.pbin"));
            let mut options = options(&inputs, &output, num_threads, chunk_bytes);
            (options.spec.recorded.max_documents, options.spec.recorded.max_tokens) = (max_documents, max_tokens);
            options.spec.recorded.padding = padding;
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
    fn the_error_names_the_first_bad_document_for_any_number_of_threads(
        files in prop::collection::vec(prop::collection::vec(line(), 0..30), 1..4),
    ) {
        let folder = tempfile::TempDir::new().unwrap();
        let inputs = write_corpus(folder.path(), &files);
        let mut messages = Vec::new();
        for (num_threads, chunk_bytes) in [(1, 1 << 20), (1, 1), (2, 40), (7, 64)] {
            let output = folder.path().join("out.pbin");
            let mut options = options(&inputs, &output, num_threads, chunk_bytes);
            options.spec.on_bad_document = OnBadDocument::Fail;
            options.spec.existing = Existing::Replace;
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
fn an_interrupted_run_leaves_no_files() {
    let folder = tempfile::TempDir::new().unwrap();
    let inputs = write_corpus(folder.path(), &[vec![b"{\"text\": \"a\"}".to_vec(); 1000]]);
    let options = options(&inputs, &folder.path().join("out.pbin"), 2, 64);
    let error = pack(&options, &byte_tokenizer(), &mut |_| ControlFlow::Break(())).unwrap_err();
    assert!(matches!(error, Error::Cancelled));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn verify_detects_a_corpus_with_other_ids() {
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
        format!("{out}: file has 2 documents, the corpus has 1")
    );
    assert_eq!(
        compare("{\"text\": \"one\"}\n{\"text\": \"two\"}\n\n{\"text\": \"three\"}"),
        format!("{out}: file has 2 documents, but the corpus has one more at {source}:4")
    );
}

#[test]
fn impossible_padding_is_rejected_before_a_document_is_read() {
    let folder = tempfile::TempDir::new().unwrap();
    let inputs = write_corpus(folder.path(), &[vec![b"{\"text\": \"a\"}".to_vec()]]);
    let output = folder.path().join("out.pbin");
    // A file names its padding, so a forged one can name any.
    for (length, id, message) in [
        (
            u64::MAX,
            3,
            "--max-length: tokenizer.config.max_length is 18446744073709551615; documents can be padded to at most 16777216 ids; lower it, or remove --padding",
        ),
        (
            4,
            257,
            "the id of padding is 257, but bytes has 257 ids; give its tokenizer",
        ),
    ] {
        let mut options = options(&inputs, &output, 1, 1 << 20);
        let side = Side::Right;
        options.spec.recorded.padding = Some(Padding { length, id, side });
        assert_eq!(run(&options).unwrap_err().to_string(), message);
        assert!(!output.exists());
    }
}
