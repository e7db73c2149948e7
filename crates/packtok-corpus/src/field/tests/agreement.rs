//! The fast path and the general path give the same results.

use proptest::prelude::*;

use super::text_of_bytes;

/// JSON-like text: mostly valid JSON, with difficult parts for parsers.
fn json() -> impl Strategy<Value = String> {
    let string = prop_oneof![
        "[a-c ]{0,3}",
        r#"(\\["\\/bfnrt]|\\u[dD][89a-fA-F][0-9a-f]{2}|\\u00[0-7]e|é|😀|[a-c\[{]){0,4}"#,
        Just(r"\ud83d\ude00".to_owned()),
    ]
    .prop_map(|inner| format!("\"{inner}\""));
    let scalar = prop_oneof![
        6 => string.clone(),
        1 => "(-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?)|null|true|false",
    ];
    let key = prop_oneof![
        5 => "[abt]".prop_map(|key| format!("\"{key}\"")),
        1 => Just(r#""\u0074""#.to_owned()),
        1 => string,
    ];
    let space = "[ \t]{0,1}";
    scalar.prop_recursive(4, 24, 4, move |value| {
        let items = prop::collection::vec((space, value.clone()), 0..4);
        let entries = prop::collection::vec((key.clone(), space, value), 0..4);
        prop_oneof![
            items.prop_map(|items| {
                let items: Vec<_> = items.into_iter().map(|(s, v)| s + &v).collect();
                format!("[{}]", items.join(","))
            }),
            entries.prop_map(|entries| {
                let entries: Vec<_> = entries
                    .into_iter()
                    .map(|(k, s, v)| k + &s + ":" + &v)
                    .collect();
                format!("{{{}}}", entries.join(","))
            }),
        ]
    })
}

const PATTERNS: [&str; 8] = [
    ".",
    ".t",
    ".a.b",
    ".a[0]",
    ".[0]",
    ".[-1].t",
    ".t[-2]",
    ".[\"b\"].t",
];

/// Contents of strings that span several blocks: plain runs, escapes at various distances, and
/// bytes that are not UTF-8 or not allowed in a string.
fn long_inside() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        8 => "[a-zé ]{0,90}".prop_map(String::into_bytes),
        8 => r#"\\["\\/bfnrt]|\\u00[0-7]e|\\ud83d\\ude00|😀"#.prop_map(String::into_bytes),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

fn agree(line: &[u8]) {
    for pattern in PATTERNS {
        let _ = text_of_bytes(pattern, line);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn both_paths_agree_on_json(line in json()) {
        agree(line.as_bytes());
    }

    #[test]
    fn both_paths_agree_on_broken_json(
        line in json(),
        at in any::<prop::sample::Index>(),
        change in prop_oneof![Just(None), any::<u8>().prop_map(Some), prop::sample::select(b"\"\\{}[]:,0u\n".to_vec()).prop_map(Some)],
        is_insert in any::<bool>(),
    ) {
        let mut line = line.into_bytes();
        let at = at.index(line.len());
        match change {
            Some(byte) if is_insert => line.insert(at, byte),
            Some(byte) => line[at] = byte,
            None => drop(line.remove(at)),
        }
        agree(&line);
    }

    #[test]
    fn both_paths_agree_on_arbitrary_bytes(line in prop::collection::vec(any::<u8>(), 0..64)) {
        agree(&line);
    }

    #[test]
    fn both_paths_agree_on_long_texts(
        inside in long_inside(),
        after in "[ab]{0,140}",
        num_cut in prop_oneof![4 => Just(0), 1 => 0..200usize],
    ) {
        let line = [br#"{"t":""#, &inside[..], br#"","b":""#, after.as_bytes(), br#""}"#].concat();
        let _ = text_of_bytes(".t", &line[..line.len().saturating_sub(num_cut)]);
        let line = [br#"{"t":""#, &inside[..], br#""}"#].concat();
        let _ = text_of_bytes(".t", &line);
    }

    #[test]
    fn any_text_survives_encoding_as_json(text in any::<String>()) {
        let line = serde_json::json!({"x": [text], "t": text}).to_string();
        prop_assert_eq!(text_of_bytes(".t", line.as_bytes()), Ok(text.clone()));
        let ascii = line.chars().fold(String::new(), |line, c| if c.is_ascii() { line + &c.to_string() } else { c.encode_utf16(&mut [0; 2]).iter().fold(line, |line, unit| line + &format!("\\u{unit:04x}")) });
        prop_assert_eq!(text_of_bytes(".t", ascii.as_bytes()), Ok(text));
    }
}
