//! Any bytes as a SentencePiece model: an error, or an engine that gives any text the ids of the slow path.
//!
//! The first byte of an input is the length of a text, which follows; the rest is the file.
//! Seeds: `tests/fuzz/seeds/*.model_file`.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use packtok_tokenizer::{EncodeOptions, EngineChoice, Tokenizer};
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a temporary folder"));
static FILE: LazyLock<PathBuf> = LazyLock::new(|| FOLDER.path().join("any.model"));

fuzz_target!(|bytes: &[u8]| {
    let Some((&len, rest)) = bytes.split_first() else {
        return;
    };
    let Some((text, model)) = rest.split_at_checked(len.into()) else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    fs::write(&*FILE, model).expect("the temporary file takes the input");
    let Ok(tokenizer) = Tokenizer::from_file(&FILE, Some("any")) else {
        return;
    };
    let ids = |engine| {
        let options = EncodeOptions {
            engine,
            ..EncodeOptions::default()
        };
        tokenizer.encode(&text, &options)
    };
    let Ok(expected) = ids(EngineChoice::Reference) else {
        // Its map makes too much of the text.
        assert!(ids(EngineChoice::Auto).is_err(), "{text:?}");
        return;
    };
    let found = ids(EngineChoice::Auto).expect("a text that has ids has them with every engine");
    assert_eq!(found, expected, "{text:?}");
    if let Err(error) = tokenizer.decode(&expected) {
        let reason = packtok_pack::chain(&error);
        assert!(reason.contains("makes more than"), "{reason}");
    }
});
