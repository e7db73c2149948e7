//! Any bytes as the index of a dataset of Megatron, datatrove or dolma, as the positions in a file of
//! llm.c, or as a file of llm.c, an NPY array, a Parquet or an Arrow file, or as the index and a file of a folder of
//! litdata or MDS, with a zero byte in between: an error, or a file whose documents tile its tokens.
//!
//! Seeds: the files of these formats in `tests/golden`, and the folders in `seeds`.
#![no_main]

use std::fs::{self, File};
use std::panic;
use std::path::Path;
use std::sync::Once;

use libfuzzer_sys::fuzz_target;
use packtok_formats::table::is_panic_contained;
use packtok_formats::{Error, OpenOptions, TokenFile, TokenFormat, megatron};

/// The longest file of tokens that is made.
const MAX_DATA_BYTES: u64 = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    static HOOK: Once = Once::new();
    HOOK.call_once(keep_contained_panics_from_aborting);
    let folder = tempfile::tempdir().expect("a temporary folder can be created");
    if bytes.starts_with(b"{") {
        if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
            check_folder(folder.path(), &bytes[..end], &bytes[end + 1..]);
        }
        return;
    }
    // The file that has the bytes, that of the tokens, and that which is opened.
    let (index, data, to_open) = match bytes {
        _ if bytes.starts_with(&megatron::MAGIC) => ("a.idx", "a.bin", "a.idx"),
        [0x1f, 0x8b, ..] => ("a.csv.gz", "a.npy", "a.npy"),
        // The magic numbers of llm.c and of NeMo AutoModel.
        [0x88, 0xd8, 0x34, 1, ..] | [0xa1, 0xd9, 0x34, 1, ..] | [0xcb, 0x99, 0x9f, 0x10, ..] => {
            ("a.bin", "b.ds", "a.bin")
        }
        [0x93, b'N', ..] => ("a.npy", "b.ds", "a.npy"),
        [b'A', b'R', b'R', b'O', b'W', ..] | [0xff, 0xff, 0xff, 0xff, ..] => {
            ("a.arrow", "b.ds", "a.arrow")
        }
        [b'P', b'A', b'R', b'1', ..] => ("a.parquet", "b.ds", "a.parquet"),
        _ => ("a.ds.index", "a.ds", "a.ds"),
    };
    let [index, data, to_open] = [index, data, to_open].map(|name| folder.path().join(name));
    fs::write(&index, bytes).expect("and written");
    File::create(&data).expect("and created");
    if let Some(file) = open_with_tokens(&to_open, &data) {
        check(&file);
        if file.format() == TokenFormat::Datatrove {
            // The same bytes as the loss mask, as far as there are tokens.
            let mask = bytes.iter().copied().cycle();
            let mask: Vec<u8> = mask.take(file.num_tokens() as usize).collect();
            fs::write(folder.path().join("a.ds.loss"), mask).expect("and written");
            check(&TokenFile::open(&to_open).expect("it was opened before"));
        }
    }
});

/// Checks a folder with this index and one file, under the name that the seeds have for it.
fn check_folder(folder: &Path, index: &[u8], file: &[u8]) {
    fs::write(folder.join("index.json"), index).expect("and written");
    for name in ["chunk-0-0.bin", "shard.00000.mds", "shard.00000.mds.zstd"] {
        let path = folder.join(name);
        fs::write(&path, file).expect("and written");
        if let Ok(file) = TokenFile::open(&path) {
            check(&file);
        }
    }
    // Without an index, a shard describes itself.
    fs::remove_file(folder.join("index.json")).expect("and removed");
    let options = OpenOptions {
        format: Some(TokenFormat::Mds),
        ..OpenOptions::default()
    };
    if let Ok(file) = TokenFile::open_with(&folder.join("shard.00000.mds"), &options) {
        check(&file);
    }
}

/// The library that decodes Parquet panics on some damaged files, which packtok turns into errors;
/// libFuzzer's own hook would end the process before that.
fn keep_contained_panics_from_aborting() {
    let aborting = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !is_panic_contained() {
            aborting(info);
        }
    }));
}

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
    if let Some(mask) = file.loss_mask() {
        let (mut is_counted, mut by_ranges) = (Vec::new(), vec![true; start as usize]);
        let ignored = mask.ignored(0..start, |range| by_ranges[range].fill(false));
        // A byte may be neither 0 nor 1.
        assert_eq!(
            mask.append_to(0..start, &mut is_counted).is_ok(),
            ignored.is_ok()
        );
        assert!(ignored.is_err() || is_counted == by_ranges);
    }
    // Ids of 64 bits may not fit.
    drop(file.tokens(0..start));
    assert!(file.tokens(0..start + 1).is_err());
}
