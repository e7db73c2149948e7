//! Any bytes as the index of a Megatron or datatrove dataset: an error, or a file whose documents
//! tile its tokens.
//!
//! Seeds: the indices in `tests/golden/megatron` and `tests/golden/datatrove`.
#![no_main]

use std::fs::{self, File};
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use packtok_formats::{Error, TokenFile, megatron};

/// The longest file of tokens that is made.
const MAX_DATA_BYTES: u64 = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder can be created");
    let is_megatron = bytes.starts_with(&megatron::MAGIC);
    let (data, index) = if is_megatron {
        ("a.bin", "a.idx")
    } else {
        ("a.ds", "a.ds.index")
    };
    let (data, index) = (folder.path().join(data), folder.path().join(index));
    fs::write(&index, bytes).expect("and written");
    File::create(&data).expect("and created");
    let to_open = if is_megatron { &index } else { &data };
    if let Some(file) = open_with_tokens(to_open, &data) {
        check(&file);
    }
});

/// Opens the file, with as many bytes of tokens as its index implies.
fn open_with_tokens(to_open: &Path, data: &Path) -> Option<TokenFile> {
    match TokenFile::open(to_open) {
        Ok(file) => Some(file),
        Err(Error::DataLength { expected, .. }) if expected <= MAX_DATA_BYTES => {
            let file = File::options().write(true).open(data).expect("it exists");
            file.set_len(expected).expect("it can grow");
            Some(
                TokenFile::open(to_open)
                    .expect("the tokens have the length that the index implies"),
            )
        }
        Err(_) => None,
    }
}

fn check(file: &TokenFile) {
    let mut start = 0;
    for i in 0..file.num_documents() {
        let tokens = file.document_tokens(i).expect("the document exists");
        assert_eq!(tokens.start, start);
        start = tokens.end;
        if !tokens.is_empty() {
            let mut documents = file.documents_from(tokens.start).expect("the token exists");
            let (document, of_document) = documents
                .next()
                .expect("it has a document")
                .expect("checked");
            assert_eq!((document, of_document), (i, tokens));
        }
    }
    assert_eq!(start, file.num_tokens());
    file.tokens(0..start).expect("all ids are zero");
    assert!(file.tokens(0..start + 1).is_err());
}
