//! Paths into documents, and rejected documents.

use super::{complaint, text, text_of_bytes};
use crate::field::BadDocument;

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
fn the_last_of_equal_keys_wins() {
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
            "lone surrogate escape at byte 7 of the line: not a valid character",
        ),
        (
            ".t",
            r#"{"t":"a","u":"\udc00\ud800"}"#,
            "lone surrogate escape at byte 15 of the line: not a valid character",
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
        "convert the file to UTF-8, or skip such lines with --on-bad-document skip (on_bad_document: skip)"
    );
    let oversize = BadDocument::Oversize {
        len_bytes: 9,
        max_document_bytes: 8,
    };
    assert_eq!(
        oversize.to_string(),
        "line of 9 bytes exceeds max_document_bytes 8"
    );
}

#[test]
fn invalid_json_is_rejected() {
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
        "integer with more than 100000 digits at byte 14 of the line"
    );
}

#[test]
fn both_paths_have_the_same_nesting_limit() {
    for (nesting, is_allowed) in [(127, true), (128, true), (129, false), (100_000, false)] {
        // The object itself is one level.
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
fn fromjson_is_as_strict_as_lines() {
    let nested = serde_json::to_string(&"[".repeat(1_000_000)).unwrap();
    let bad = complaint("fromjson", &nested);
    assert!(bad.starts_with("filter fromjson fails: "), "{bad}");
    assert_eq!(text("fromjson | .a", r#""{\"a\":\"b\"}""#).unwrap(), "b");
    assert!(complaint("fromjson", r#""NaN""#).starts_with("filter fromjson fails: "));
}
