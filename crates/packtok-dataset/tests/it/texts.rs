//! The profile and the search of texts, with a tokenizer whose ids are bytes.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use packtok_dataset::files::file_set::Files;
use packtok_dataset::texts::profile::{Place, Profile};
use packtok_dataset::texts::{DocumentTexts, Hit, Pattern, Position, SearchLimits};
use packtok_pbin::{Metadata, Replace, SpecialToken, TokenWidth, Writer};
use packtok_tokenizer::Tokenizer;
use serde_json::json;

const EOD: u16 = 256;
const NO_LIMITS: SearchLimits = SearchLimits {
    hits: usize::MAX,
    time: Duration::MAX,
};

/// A byte-level tokenizer without merges: the id of a byte is its value.
fn tokenizer() -> Tokenizer {
    let is_own = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let mut others = 0x100..;
    let vocab: serde_json::Map<_, _> = (0..=255)
        .map(|byte| {
            let code = if is_own(byte) {
                u32::from(byte)
            } else {
                others.next().unwrap()
            };
            (char::from_u32(code).unwrap().to_string(), json!(byte))
        })
        .collect();
    let level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false});
    let eod = json!({"id": EOD, "content": "<eod>", "special": true, "single_word": false, "lstrip": false,
                     "rstrip": false, "normalized": false});
    let file = json!({
        "model": {"type": "BPE", "vocab": vocab, "merges": []},
        "pre_tokenizer": level, "decoder": level, "added_tokens": [eod],
    });
    Tokenizer::from_json("bytes", file.to_string()).unwrap()
}

/// Two files with the texts, each document closed by EOD.
fn texts(folder: &Path, files: [&[&[u8]]; 2]) -> DocumentTexts {
    let paths = [0, 1].map(|i| folder.join(format!("{i}.pbin")));
    for (path, documents) in paths.iter().zip(files) {
        let mut writer = Writer::create(path, TokenWidth::U16, false).unwrap();
        for document in documents {
            let ids = document.iter().map(|&byte| u16::from(byte)).chain([EOD]);
            let bytes: Vec<u8> = ids.flat_map(u16::to_le_bytes).collect();
            writer.append(&bytes, &[bytes.len() as u64]).unwrap();
        }
        let mut metadata = Metadata {
            eod: Some(SpecialToken {
                token: "<eod>".into(),
                id: EOD.into(),
            }),
            ..Metadata::default()
        };
        metadata.counts.documents = documents.len() as u64;
        let num_bytes: usize = documents.iter().map(|document| document.len() + 1).sum();
        metadata.counts.tokens = num_bytes as u64;
        let finished = writer.finish(&metadata, &[]).unwrap();
        finished.publish(Replace::Existing).unwrap();
    }
    DocumentTexts::new(Files::open(&paths, false).unwrap(), Some(tokenizer())).unwrap()
}

fn profile(texts: &DocumentTexts, sample_tokens: u64) -> Profile {
    texts
        .profile(sample_tokens, &mut |_| ControlFlow::Continue(()))
        .unwrap()
}

#[test]
fn figures_name_documents_by_file_and_number() {
    let folder = tempfile::tempdir().unwrap();
    let spam = "buy it now, ".repeat(9);
    let documents = texts(
        folder.path(),
        [
            &[b"plain text", "小説 и Пушкин".as_bytes(), b" \n", b"twice"],
            &[
                b"twice",
                spam.as_bytes(),
                b"a\0b\xff",
                b"mail me@example.org",
                b"",
                b"twice",
            ],
        ],
    );
    let report = profile(&documents, u64::MAX);
    assert_eq!((report.documents, report.sample.documents), (10, 10));
    assert_eq!(report.tokens, report.sample.tokens);
    let place = |file, document| Place { file, document };
    let empty = report.empty.examples.iter().map(|example| example.place);
    assert_eq!(empty.collect::<Vec<_>>(), [place(0, 2), place(1, 4)]);
    assert_eq!(
        (report.duplicates.documents, report.duplicates.tokens),
        (2, 12)
    );
    assert_eq!(report.duplicates.compared_documents, 8);
    let equal = &report.duplicates.examples[0];
    assert_eq!(
        (equal.copies, equal.documents),
        (3, [place(0, 3), place(1, 0)])
    );
    let ngrams = &report.repeated_ngrams;
    assert_eq!(
        (ngrams.documents, ngrams.examples[0].place),
        (1, place(1, 1))
    );
    assert_eq!(ngrams.examples[0].repeated, spam.len() as u64 - 12);
    let text = report.text.unwrap();
    let scripts = text
        .scripts
        .iter()
        .map(|script| (script.script, script.figure.occurrences));
    assert_eq!(
        scripts.collect::<Vec<_>>()[1..],
        [("Cyrillic", 7), ("Han", 2)]
    );
    assert_eq!(text.emails.examples[0].place, place(1, 3));
    for figure in [&text.control_characters, &text.replacement_characters] {
        assert_eq!((figure.documents, figure.occurrences), (1, 1));
        assert_eq!(figure.examples[0].place, place(1, 2));
    }
    assert_eq!(text.longest_words[0].start, "me@example.org");
    let mut most_used = report.vocabulary.most_used.iter();
    let eod = most_used
        .find(|used| used.token.id == u32::from(EOD))
        .unwrap();
    assert_eq!(
        (eod.token.name.as_deref(), eod.occurrences),
        (Some("<eod>"), 10)
    );
    assert_eq!(
        report.vocabulary.never_used,
        Some(257 - report.vocabulary.used)
    );
}

#[test]
fn copies_are_in_a_sample_together() {
    let folder = tempfile::tempdir().unwrap();
    let documents: Vec<Vec<u8>> = (0..300).map(|i| (i / 3).to_string().into_bytes()).collect();
    let documents: Vec<&[u8]> = documents.iter().map(Vec::as_slice).collect();
    let texts = texts(folder.path(), [&documents[..200], &documents[200..]]);
    let report = profile(&texts, 400);
    assert!(
        (30..270).contains(&report.sample.documents),
        "{:?}",
        report.sample
    );
    assert_eq!(report.duplicates.documents * 3, report.sample.documents * 2);
    assert_eq!(report, profile(&texts, 400));
}

#[test]
fn a_long_document_is_counted_but_examined_at_its_start_only() {
    let folder = tempfile::tempdir().unwrap();
    // A letter of two bytes at the end of the part that is examined.
    let mut long = vec![b'a'; (1 << 20) - 1];
    long.extend("é and the rest: me@example.org".as_bytes());
    let texts = texts(folder.path(), [&[&long], &[&long]]);
    let report = profile(&texts, u64::MAX);
    assert_eq!(
        (report.sample.cut_documents, report.duplicates.documents),
        (2, 1)
    );
    assert_eq!(report.sample.tokens, 2 * (long.len() as u64 + 1));
    let text = report.text.unwrap();
    assert_eq!(
        (text.bytes, text.emails.documents),
        (2 * ((1 << 20) - 1), 0)
    );
    assert_eq!(text.replacement_characters.documents, 0);
    let a = &report.vocabulary.most_used[0];
    assert_eq!((a.token.id, a.occurrences), (97, 2 * ((1 << 20) + 1)));
}

/// All hits of a search that is continued again and again.
fn continued(texts: &DocumentTexts, pattern: &Pattern, limits: SearchLimits) -> Vec<Hit> {
    let mut hits = Vec::new();
    let mut next = Some(Position::default());
    while let Some(from) = next {
        let result = texts.search(pattern, from, limits).unwrap();
        assert!(result.hits.len() <= limits.hits);
        hits.extend(result.hits);
        next = result.next;
    }
    hits
}

#[test]
fn hits_are_those_of_a_plain_search_wherever_it_is_continued() {
    let folder = tempfile::tempdir().unwrap();
    // Hits before, across and at the border between two windows, and at the end.
    let mut long = String::new();
    for (border, before) in [
        (7168, 5),
        (2 * 7168, 0),
        (3 * 7168, 2),
        (4 * 7168, 1),
        (5 * 7168, 9),
    ] {
        long.push_str(&"x".repeat(border - before - long.len()));
        long.push_str("é Needle");
    }
    let documents = ["needle first", "none", &long, "", "NEEDLE, Needle"].map(str::as_bytes);
    let texts = texts(folder.path(), [&documents[..3], &documents[3..]]);
    for (text, ignore_case) in [
        ("Needle", false),
        ("needle", true),
        ("É NEE", true),
        ("xé N", false),
    ] {
        let expected = documents.iter().enumerate().flat_map(|(i, document)| {
            let original = std::str::from_utf8(document).unwrap();
            // Lower case has the same length in these texts.
            let (text, original) = if ignore_case {
                (text.to_lowercase(), original.to_lowercase())
            } else {
                (text.to_owned(), original.to_owned())
            };
            let starts = original.match_indices(&text).map(|(at, _)| at);
            // The last byte of the first character has the place of a hit.
            let place = |at: usize| {
                (
                    i as u64,
                    (at + original[at..].chars().next().unwrap().len_utf8() - 1) as u64,
                )
            };
            starts.map(place).collect::<Vec<_>>()
        });
        let expected: Vec<_> = expected.collect();
        let pattern = Pattern::new(text, ignore_case).unwrap();
        for (hits, time) in [
            (usize::MAX, Duration::MAX),
            (usize::MAX, Duration::ZERO),
            (1, Duration::MAX),
        ] {
            let hits = continued(&texts, &pattern, SearchLimits { hits, time });
            let places: Vec<_> = hits
                .iter()
                .map(|hit| (hit.at.document, hit.at.token))
                .collect();
            assert_eq!(places, expected, "{text}");
        }
    }
    let hits = continued(&texts, &Pattern::new("first", false).unwrap(), NO_LIMITS);
    let [
        Hit {
            before,
            text,
            after,
            ..
        },
    ] = hits.as_slice()
    else {
        panic!("{hits:?}");
    };
    assert_eq!(
        (before.as_str(), text.as_str(), after.as_str()),
        ("needle ", "first", "")
    );
}

#[test]
fn patterns_have_a_limited_length() {
    for text in ["", &"a".repeat(801)] {
        let error = Pattern::new(text, false).err().unwrap();
        let expected = format!(
            "the text to search for has {} bytes, expected 1 to 800",
            text.len()
        );
        assert_eq!(error.to_string(), expected);
    }
    assert!(Pattern::new(&"a".repeat(800), true).is_ok());
}
