//! Properties: a read returns what was written, a join equals packing in one run, and no bytes make
//! the reader panic.

use std::fs;
use std::path::Path;

use packtok_pbin::{
    Error, JoinOptions, Reader, Replace, Source, TokenWidth, join, parse_pairs, read_raw_index,
    write_pairs,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::fixture::{documents_of, example_metadata, golden, proceed, seal, write};

fn width_and_documents() -> impl Strategy<Value = (TokenWidth, Vec<Vec<u32>>)> {
    let widths = prop_oneof![
        Just((TokenWidth::U8, u32::from(u8::MAX))),
        Just((TokenWidth::U16, u32::from(u16::MAX))),
        Just((TokenWidth::U32, u32::MAX)),
    ];
    widths.prop_flat_map(|(width, highest)| (Just(width), vec(vec(0..=highest, 0..20), 0..30)))
}

/// Calls every method of the reader; results and errors are fine, panics are not.
fn use_everything(path: &Path) {
    let Ok(reader) = Reader::open(path) else {
        return;
    };
    for i in (0..reader.len().min(100)).chain([reader.len(), u64::MAX]) {
        let _ = (reader.document(i), reader.document_span(i));
    }
    for stop in [0, reader.num_tokens(), u64::MAX] {
        let _ = (reader.tokens(0..stop), reader.tokens(1..stop));
    }
    for token in (0..reader.num_tokens().min(100)).chain([reader.num_tokens(), u64::MAX]) {
        let _ = (reader.document_at(token), reader.prefetch(token..u64::MAX));
        if let Ok(documents) = reader.documents_from(token) {
            documents.for_each(drop);
        }
    }
    for piece in [0, 1, u64::MAX] {
        let _ = (reader.verify_data_piece(piece), reader.verify_offsets());
    }
    let _ = (
        reader.metadata().is_ok(),
        reader.sources(),
        reader.data_crc32c(),
        reader.data().len(),
    );
    let _ = reader.verify(&mut proceed);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn any_token_finds_its_document(
        lengths in vec(prop_oneof![Just(0), 0..4usize, 0..200usize], 0..300), width_is_one: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.pbin");
        let width = if width_is_one { TokenWidth::U8 } else { TokenWidth::U32 };
        let documents: Vec<Vec<u32>> = lengths.iter().map(|&len| vec![7; len]).collect();
        write(&path, width, &documents, example_metadata(), &[]);
        let reader = Reader::open(&path).unwrap();
        let mut stop = 0;
        let spans: Vec<_> = lengths.iter().map(|&len| { stop += len as u64; stop - len as u64..stop }).collect();
        for (document, span) in spans.iter().enumerate() {
            prop_assert_eq!(&reader.document_tokens(document as u64).unwrap(), span);
            for token in span.clone().step_by(17).chain(span.clone().last()) {
                prop_assert_eq!(reader.document_at(token).unwrap(), document as u64);
            }
        }
        if let Some(first) = spans.iter().position(|span| !span.is_empty()) {
            let from_token: Vec<_> = reader.documents_from(spans[first].end - 1).unwrap().map(Result::unwrap).collect();
            let expected: Vec<_> = (0..).zip(spans).skip(first).collect();
            prop_assert_eq!(from_token, expected);
        }
        let is_refused = matches!(reader.document_at(stop), Err(Error::NoSuchTokens { .. }));
        prop_assert!(is_refused);
    }

    #[test]
    fn a_read_returns_what_was_written(
        (width, documents) in width_and_documents(),
        sources in vec((".{0,20}", any::<u64>(), any::<Option<u32>>()), 0..5),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.pbin");
        let sources: Vec<Source> =
            sources.into_iter().map(|(path, bytes, crc32c)| Source { path, bytes, crc32c, format: None, input: None }).collect();
        let summary = write(&path, width, &documents, example_metadata(), &sources);
        let reader = Reader::open(&path).unwrap();
        reader.verify(&mut proceed).unwrap();
        prop_assert_eq!(documents_of(&reader), documents);
        prop_assert_eq!(reader.sources().unwrap(), sources);
        prop_assert_eq!(reader.data_crc32c().unwrap(), Some(crc32c::crc32c(reader.data())));
        prop_assert_eq!(summary.file_bytes, reader.file_bytes());
        let metadata = reader.metadata().unwrap().unwrap();
        prop_assert_eq!(&metadata.tokenizer, &example_metadata().tokenizer);
        prop_assert_eq!(metadata.counts.tokens, reader.num_tokens());
    }

    #[test]
    fn a_join_equals_packing_in_one_run((width, documents) in width_and_documents(), cut in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().unwrap();
        let [a, b, joined, at_once] = ["a", "b", "joined", "at_once"].map(|name| folder.path().join(name));
        let (left, right) = documents.split_at(cut.index(documents.len() + 1));
        write(&a, width, left, example_metadata(), &[]);
        write(&b, width, right, example_metadata(), &[]);
        let options = JoinOptions { replace: Replace::Never, declared_tokenizer: None };
        let summary = join(&[a, b], &joined, &options, &mut proceed).unwrap();
        let expected = write(&at_once, width, &documents, example_metadata(), &[]);
        prop_assert_eq!(summary.data_crc32c, expected.data_crc32c);
        let (joined, at_once) = (fs::read(&joined).unwrap(), fs::read(&at_once).unwrap());
        let metadata = at_once.windows(10).position(|window| window == b"{\"writer\":").unwrap();
        prop_assert_eq!(&joined[..metadata], &at_once[..metadata]);
    }

    #[test]
    fn pairs_are_parsed_as_written(pairs in vec(any::<(u64, u64)>(), 0..3000)) {
        let written = write_pairs(Vec::new(), pairs.iter().copied()).unwrap();
        let mut parsed = Vec::new();
        let stop = parse_pairs(&written, |_, fault| fault, |a, b| { parsed.push((a, b)); Ok(()) });
        prop_assert_eq!(stop, Ok(written.len() as u64));
        prop_assert_eq!(parsed, pairs);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in vec(any::<u8>(), 0..200)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, bytes).unwrap();
        use_everything(&path);
        let _ = read_raw_index(&path);
    }

    #[test]
    fn mutated_files_do_not_panic(
        name in prop::sample::select(vec!["example.pbin", "plain_u16.pbin", "plain_protocol2.pbin", "plain_legacy.pbin"]),
        edits in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
        is_sealed in any::<bool>(),
    ) {
        let mut bytes = fs::read(golden(name)).unwrap();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if is_sealed {
            let _ = seal(&mut bytes);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, bytes).unwrap();
        use_everything(&path);
    }
}
