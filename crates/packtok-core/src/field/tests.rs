use std::cell::RefCell;
use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn text(pattern: &str, line: &str) -> std::result::Result<String, BadDocument> {
    text_of_bytes(pattern, line.as_bytes())
}

/// Compiled once per pattern: the properties try thousands of lines.
fn compiled(pattern: &str) -> Field {
    thread_local! {
        static FIELDS: RefCell<HashMap<String, Field>> = RefCell::default();
    }
    let compile = || Field::compile(pattern).unwrap();
    FIELDS.with_borrow_mut(|fields| {
        fields
            .entry(pattern.to_owned())
            .or_insert_with(compile)
            .clone()
    })
}

fn text_of_bytes(pattern: &str, line: &[u8]) -> std::result::Result<String, BadDocument> {
    let field = compiled(pattern);
    let mut extractor = field.extractor();
    let answer = extractor.text(line).map(str::to_owned);
    let general = general_text(&field, &mut Val::Null, line).map(str::to_owned);
    assert_eq!(
        answer, general,
        "the two ways differ for {pattern} on {line:?}"
    );
    answer
}

fn complaint(pattern: &str, line: &str) -> String {
    text(pattern, line).unwrap_err().to_string()
}

#[test]
fn plain_paths_find_their_text() {
    for (pattern, line, expected) in [
        (".text", r#"{"text":"a"}"#, "a"),
        (".text", r#" { "x" : [1,{}] , "text" : "a b" } "#, "a b"),
        (".a.b[1]", r#"{"a":{"b":["x","y"]}}"#, "y"),
        (".a[-1]", r#"{"a":["x","y"]}"#, "y"),
        (".a[-2]", r#"{"a":["x","y"]}"#, "x"),
        (".\"k k\"", r#"{"k k":"v"}"#, "v"),
        (".[\"k\"]", r#"{"\u006b":"v"}"#, "v"),
        (".", r#""whole""#, "whole"),
        (".[0]", "[\"x\"]", "x"),
        (
            ".t",
            r#"{"t":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é😀"}"#,
            "\"\\/\u{8}\u{c}\n\r\té😀é😀",
        ),
        (".t", r#"{"t":""}"#, ""),
        (".t", "{\"t\":\"\u{7f}\u{2028}\"}", "\u{7f}\u{2028}"),
    ] {
        assert_eq!(
            text(pattern, line).as_deref(),
            Ok(expected),
            "{pattern} {line}"
        );
    }
}

#[test]
fn the_last_of_equal_keys_counts() {
    assert_eq!(text(".t", r#"{"t":"a","t":"b"}"#).unwrap(), "b");
    assert_eq!(text(".t", r#"{"t":1,"\u0074":"b"}"#).unwrap(), "b");
    assert_eq!(
        complaint(".t", r#"{"t":"a","t":1}"#),
        ".t is a number, not a string"
    );
    assert_eq!(
        complaint(".a.b", r#"{"a":{"b":"x"},"a":{}}"#),
        "field .a.b is missing; the object has .a"
    );
}

#[test]
fn bad_documents_say_what_is_wrong() {
    for (pattern, line, expected) in [
        (".t", "{}", "field .t is missing"),
        (".t", "null", "field .t is missing"),
        (
            ".t.u",
            r#"{"t":null}"#,
            "field .t.u is missing; the object has .t",
        ),
        (".[3]", "[]", "field .[3] is missing"),
        (".t", r#"{"t":null}"#, ".t is null, not a string"),
        (".t", r#"{"t":true}"#, ".t is a boolean, not a string"),
        (".t", r#"{"t":1}"#, ".t is a number, not a string"),
        (".t", r#"{"t":[]}"#, ".t is an array, not a string"),
        (".t", r#"{"t":{}}"#, ".t is an object, not a string"),
        (
            ".t|tobytes",
            r#"{"t":"a"}"#,
            ".t|tobytes is a byte string, not a string",
        ),
        (".t", "[]", "filter .t fails: cannot index [] with \"t\""),
        (
            ".t",
            r#"{"t":"a""#,
            "malformed JSON at byte 8 of the line: EOF while parsing an object",
        ),
        (
            ".t",
            r#"{"t":"a"} x"#,
            "malformed JSON at byte 11 of the line: trailing characters",
        ),
        (
            ".t",
            r#"{"t":"\ud800"}"#,
            "lone surrogate escape at byte 7 of the line: it stands for no character",
        ),
        (
            ".t",
            r#"{"t":"a","u":"\udc00\ud800"}"#,
            "lone surrogate escape at byte 15 of the line: it stands for no character",
        ),
        ("empty", "1", "filter empty has no output"),
        ("error(\"no\")", "1", "filter error(\"no\") fails: \"no\""),
        (
            "[-255] | implode",
            "1",
            "[-255] | implode is a string that is not UTF-8",
        ),
        ("null", "1", "null is null, not a string"),
    ] {
        assert_eq!(complaint(pattern, line), expected, "{pattern} {line}");
    }
    let bad = text_of_bytes(".t", b"{\"t\":\"a\xff\"}").unwrap_err();
    assert_eq!(bad.to_string(), "not UTF-8 at byte 8 of the line");
    assert_eq!(
        bad.remedy(),
        "convert the file to UTF-8, or set on_bad_document: skip to leave such lines out"
    );
    let oversize = BadDocument::Oversize {
        len_bytes: 9,
        max_document_bytes: 8,
    };
    assert_eq!(
        oversize.to_string(),
        "line of 9 bytes, over max_document_bytes 8"
    );
}

#[test]
fn json_that_is_no_json_is_refused() {
    for line in [
        "",
        " ",
        "# c\n{\"t\":\"a\"}",
        "{\"t\":\"a\"} # c",
        "{\"t\":\"a\",\"n\":NaN}",
        "{\"t\":\"a\",\"n\":Infinity}",
        "{\"t\":\"a\",\"n\":-Infinity}",
        "{\"t\":b\"a\"}",
        "{\"t\":\"a\",\"n\":01}",
        "{\"t\":\"a\",\"n\":+1}",
        "{\"t\":\"a\",\"n\":1.}",
        "{\"t\":\"a\",\"n\":.5}",
        "{\"t\":\"a\",}",
        "{\"t\":\"a\",\"n\":[1,]}",
        "{1:\"t\",\"t\":\"a\"}",
        "{\"t\":\"a\tb\"}",
        "{\"t\":\"a\",\"n\":\"\u{1}\"}",
        "{\"t\":\"\\x\"}",
        "{\"t\":\"a\",\"n\":\"\\q\"}",
        "{\"t\":'a'}",
        "{\"t\":\"a\"}{}",
        "{\"t\":\"a\"}]",
        "\u{feff}{\"t\":\"a\"}",
        "{\"t\":\"a\",\"n\":1e}",
        "{\"t\":\"a\",\"n\":\"\\u12g4\"}",
        "{\"t\":\"a\" \"n\":1}",
        "{\"t\":\"a\",\"n\":tru}",
    ] {
        for pattern in [".t", ".t | ."] {
            let bad = text(pattern, line).unwrap_err();
            assert!(
                matches!(bad, BadDocument::MalformedJson { .. }),
                "{line:?}: {bad}"
            );
        }
    }
}

#[test]
fn strange_numbers_are_accepted() {
    for number in [
        "1e999",
        "-0",
        "-0.0",
        "1E+2",
        "123456789012345678901234567890",
        "1e-999",
    ] {
        let line = format!(r#"{{"t":"a","n":{number}}}"#);
        assert_eq!(text(".t", &line).unwrap(), "a");
        assert_eq!(text(".n | tostring | .t? // \"a\"", &line).unwrap(), "a");
    }
    let digits = "1".repeat(200_000);
    let bad = complaint(".t | .", &format!(r#"{{"t":"a","n":{digits}}}"#));
    assert_eq!(
        bad,
        "integer of more than 100000 digits at byte 14 of the line"
    );
}

#[test]
fn nesting_is_limited_alike() {
    for (nesting, is_allowed) in [(127, true), (128, true), (129, false), (100_000, false)] {
        // One level is the object's own.
        let nested = "[".repeat(nesting - 1) + &"]".repeat(nesting - 1);
        let line = format!(r#"{{"t":"a","n":{nested}}}"#);
        for pattern in [".t", ".t | ."] {
            match text(pattern, &line) {
                Ok(text) => assert!(is_allowed && text == "a"),
                Err(bad) => {
                    assert!(!is_allowed);
                    assert_eq!(
                        bad.to_string(),
                        "JSON nested deeper than 128 levels at byte 141 of the line"
                    );
                }
            }
        }
    }
    let many = format!(r#"{{"t":"{}"}}"#, "[{".repeat(500));
    assert_eq!(text(".t", &many).unwrap(), "[{".repeat(500));
}

#[test]
fn filters_that_run_away_are_stopped() {
    for (filter, used) in [
        ("last(range(1000000000000))", Excess::Steps),
        ("[range(1000000000000)]", Excess::Steps),
        ("range(0; 1; 0)|select(.==2)", Excess::Steps),
        ("def f: f; f", Excess::Steps),
        ("def f: 1 + f; f", Excess::Stack),
        ("def f: [f]; f", Excess::Stack),
        ("repeat(1)|select(.==2)", Excess::Steps),
        ("until(false; .)", Excess::Steps),
        ("[limit(1000000000000; repeat(1))]", Excess::Steps),
        ("\"x\" * 1000000000000", Excess::Value),
        ("1000000000000 * \"x\"", Excess::Value),
        ("\"x\" * 100000000000000000000", Excess::Value),
        ("\"x\" | . *= 1000000000000", Excess::Value),
        ("{(\"x\" * 1000000000000): 1}", Excess::Value),
        ("reduce range(60) as $i (\"x\"; . + .)", Excess::Value),
        (
            "reduce range(60) as $i (\"x\"; \"\\(.)\\(.)\")",
            Excess::Value,
        ),
        ("reduce range(60) as $i ([1]; . + .)", Excess::Value),
        ("reduce range(60) as $i (1; [., .]) | tojson", Excess::Value),
        ("reduce range(60) as $i (3; . * .)", Excess::Value),
        ("reduce range(1000000) as $i (0; [.])", Excess::Value),
        ("reduce range(1000000) as $i (0; {a: .})", Excess::Value),
        ("reduce range(1000000) as $i ({}; .a = .)", Excess::Value),
    ] {
        let bad = text(filter, "1").unwrap_err();
        let pattern = filter.into();
        assert_eq!(bad, BadDocument::Runaway { pattern, used }, "{filter}");
    }
    assert_eq!(
        complaint("def f: f; f", "1"),
        "filter def f: f; f runs away: stopped after too many steps"
    );
    assert_eq!(
        complaint("[] | .[1000000000000] = 1", "1"),
        "filter [] | .[1000000000000] = 1 fails: \"index 1000000000000 out of bounds\""
    );
}

#[test]
fn json_in_a_document_is_read_as_strictly() {
    let nested = serde_json::to_string(&"[".repeat(1_000_000)).unwrap();
    let bad = complaint("fromjson", &nested);
    assert!(bad.starts_with("filter fromjson fails: "), "{bad}");
    assert_eq!(text("fromjson | .a", r#""{\"a\":\"b\"}""#).unwrap(), "b");
    assert!(complaint("fromjson", r#""NaN""#).starts_with("filter fromjson fails: "));
}

#[test]
fn filters_do_what_jq_does() {
    let line = r#"{"title":"T","parts":["a","b"],"n":2,"s":"x,y"}"#;
    for (filter, expected) in [
        (".title + \"\\n\" + (.parts | join(\" \"))", "T\na b"),
        ("if .n > 1 then .parts[1] else empty end", "b"),
        (".missing // .title", "T"),
        ("[.parts[] | ascii_upcase] | add", "AB"),
        (".s | gsub(\",\"; \";\")", "x;y"),
        (".parts[]", "a"),
        (".n |= . + 1 | .n *= 2 | .n | tostring", "6"),
        ("{title, x: .s} | \"\\(.title) \\(.x)\"", "T x,y"),
        (
            "{\"a b\": 1, @base64 \"x\": 2, \"q\\(.n)\": 3} | keys | join(\" \")",
            "a b q2 x",
        ),
        ("\"ab\" * 2", "abab"),
        ("[range(3)] | map(tostring) | join(\"\")", "012"),
        ("[range(5; 0; -2) | tostring] | join(\" \")", "5 3 1"),
        ("to_entries | map(.key) | join(\",\")", "title,parts,n,s"),
        ("[limit(2; repeat(\"x\"))] | join(\"\")", "xx"),
        (". as {title: $t, parts: [$p]} | $t + $p", "Ta"),
        ("try error(\"a\") catch .", "a"),
        ("def f(x): x + \"!\"; f(.title)", "T!"),
        ("reduce .parts[] as $p (\"\"; . + $p)", "ab"),
        (".parts | first, last", "a"),
        (
            "\"1970-01-01T00:00:00Z\" | fromdate | todate",
            "1970-01-01T00:00:00Z",
        ),
        ("# a comment\n.title # and another", "T"),
        ("@html \"<\\(\"&\")>\"", "<&amp;>"),
    ] {
        assert_eq!(text(filter, line).as_deref(), Ok(expected), "{filter}");
    }
}

#[test]
fn patterns_that_cannot_be_compiled_say_why() {
    for (pattern, expected) in [
        ("", "jq pattern \"\": expected term, found \"\""),
        (".a |", "jq pattern \".a |\": expected term, found \"\""),
        (
            ".a \"",
            "jq pattern \".a \\\"\": expected closing quote, found \"\"",
        ),
        ("nope", "jq pattern \"nope\": filter nope is not defined"),
        ("$x", "jq pattern \"$x\": variable $x is not defined"),
        (
            "include \"m\"; .",
            "jq pattern \"include \\\"m\\\"; .\": modules and imports are not available in packtok; write the definitions into the pattern",
        ),
        (
            "module {}; .",
            "jq pattern \"module {}; .\": modules and imports are not available in packtok; write the definitions into the pattern",
        ),
        (
            ".) | (.",
            "jq pattern \".) | (.\": expected token, found \") | (.\"",
        ),
    ] {
        let error = Field::compile(pattern).err().unwrap();
        assert_eq!(error.to_string(), expected);
    }
    for name in [
        "env",
        "now",
        "input",
        "inputs",
        "debug",
        "stderr",
        "halt",
        "halt_error",
        "localtime",
        "input_line_number",
        "get_search_list",
        "$ENV",
        "$__prog_args",
        "$__loc__",
    ] {
        let error = Field::compile(&format!(". | {name}")).err().unwrap();
        assert_eq!(
            error.to_string(),
            format!(
                "jq pattern \". | {name}\": {name} is not available in packtok because the output must depend on the documents alone"
            )
        );
    }
}

#[test]
fn fields_are_shared_between_threads() {
    fn is_shared<T: Send + Sync + Clone>() {}
    fn is_sent<T: Send>() {}
    is_shared::<Field>();
    is_sent::<Extractor>();
    let field = Field::compile(".a.b").unwrap();
    assert!(field.is_plain_path());
    assert_eq!(field.pattern(), ".a.b");
    assert!(!Field::compile(".a | .b").unwrap().is_plain_path());
}

/// JSON-like text: mostly JSON, with what trips parsers.
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

/// Insides of strings over several blocks: runs, escapes near and far from each other, bytes that
/// are no UTF-8 or must not stand in a string.
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
    fn both_ways_agree_on_json(line in json()) {
        agree(line.as_bytes());
    }

    #[test]
    fn both_ways_agree_on_broken_json(
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
    fn both_ways_agree_on_arbitrary_bytes(line in prop::collection::vec(any::<u8>(), 0..64)) {
        agree(&line);
    }

    #[test]
    fn both_ways_agree_on_long_texts(
        inside in long_inside(),
        behind in "[ab]{0,140}",
        num_cut in prop_oneof![4 => Just(0), 1 => 0..200usize],
    ) {
        let line = [br#"{"t":""#, &inside[..], br#"","b":""#, behind.as_bytes(), br#""}"#].concat();
        let _ = text_of_bytes(".t", &line[..line.len().saturating_sub(num_cut)]);
        let line = [br#"{"t":""#, &inside[..], br#""}"#].concat();
        let _ = text_of_bytes(".t", &line);
    }

    #[test]
    fn any_text_is_found_again(text in any::<String>()) {
        let line = serde_json::json!({"x": [text], "t": text}).to_string();
        prop_assert_eq!(text_of_bytes(".t", line.as_bytes()), Ok(text.clone()));
        let ascii = line.chars().fold(String::new(), |line, c| match c.is_ascii() {
            true => line + &c.to_string(),
            false => c.encode_utf16(&mut [0; 2]).iter().fold(line, |line, unit| line + &format!("\\u{unit:04x}")),
        });
        prop_assert_eq!(text_of_bytes(".t", ascii.as_bytes()), Ok(text));
    }
}
