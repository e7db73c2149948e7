//! Any bytes as an NPY file of documents: an error, or a reader whose documents tile its tokens and
//! whose tokens can be read or are an error.
//!
//! Seeds: the `*.npy` files of `tests/golden`.
#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;
use packtok_formats::TokenRead;
use packtok_formats::npy::NpyFile;

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be created");
    file.write_all(bytes).expect("and written");
    let Ok(npy) = NpyFile::open(file.path()) else {
        return;
    };
    let mut start = 0;
    for (i, length) in npy.document_lengths().enumerate() {
        let tokens = npy.document_tokens(i as u64).expect("the document exists");
        assert_eq!(tokens, start..start + length);
        start = tokens.end;
        if !tokens.is_empty() {
            let document = npy
                .documents_from(tokens.start)
                .expect("the token exists")
                .next();
            let document = document.map(|document| document.expect("the lengths are checked"));
            assert_eq!(document, Some((i as u64, tokens)));
        }
    }
    assert_eq!(start, npy.num_tokens());
    if let Ok(tokens) = npy.tokens(0..start) {
        assert_eq!(tokens.len() as u64, start * 4);
    }
    assert!(npy.tokens(0..start + 1).is_err());
});
