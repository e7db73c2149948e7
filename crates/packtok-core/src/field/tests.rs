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
        "integer with more than 100000 digits at byte 14 of the line"
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
        "filter def f: f; f exceeds a limit on this document: too many steps"
    );
    assert_eq!(
        complaint("[] | .[1000000000000] = 1", "1"),
        "filter [] | .[1000000000000] = 1 fails: \"index 1000000000000 out of bounds\""
    );
}

#[test]
fn closures_that_hold_each_other_are_bounded() {
    for filter in [
        "def f(g): f(g|g); f(.)",
        "def f(g): f(g,g); f(.)",
        "def f (g): f(g); f(.)",
        "def o(g): def i: o(i); i; o(.)",
        "def f(a; b): f(b; a|b); f(.; .)",
        "def f(g; $x): f(g|g; $x); f(.; 1)",
        "def f(g): def h(k): f(k|g); h(g|g); f(.)",
        "path(def f(g): f(g|g); f(.))",
        "(def f(g): f(g|g); f(.)) |= 1",
        "reduce 1 as $x (0; def f(g): f(g|g); f(.))",
    ] {
        let bad = text(filter, "1").unwrap_err();
        let pattern = filter.into();
        let used = Excess::Stack;
        assert_eq!(bad, BadDocument::Runaway { pattern, used }, "{filter}");
    }
    // Evaluated at each turn, the closures take too many steps before they are too many.
    let filter = "def f(g): g | f(g|g); f(.)";
    let used = Excess::Steps;
    assert_eq!(
        text(filter, "1").unwrap_err(),
        BadDocument::Runaway {
            pattern: filter.into(),
            used
        }
    );
}

#[test]
fn recursion_with_closures_works() {
    let line = r#"{"a":{"b":["x",{"c":"y"}]},"n":300}"#;
    for (filter, expected) in [
        (
            "def walk2(f): if isobject or isarray then .[] |= walk2(f) end | f; walk2(if isstring then ascii_upcase end) | [.a.b[0], .a.b[1].c] | join(\" \")",
            "X Y",
        ),
        (
            "def f(g): if . > 300 then . else . + 1 | f(g) end; .n | f(.) | tostring",
            "301",
        ),
        (
            "def f(g): g; def f(g; h): g + h; f(\"a\") + f(\"b\"; \"c\")",
            "abc",
        ),
        ("def f(g): g; def f($x): $x + \"!\"; f(\"a\")", "a!"),
        ("def f(f): f; f(\"a\")", "a"),
        ("def length(f): f; def g: length(\"a\"); g", "a"),
        ("def indices(f): f, f; [indices(\"a\")] | add", "aa"),
        ("def f(g): def g: \"inner\"; g; f(\"outer\")", "inner"),
        ("def f(g): def h: g; [h] | .[0]; f(\"a\")", "a"),
    ] {
        assert_eq!(text(filter, line).as_deref(), Ok(expected), "{filter}");
    }
}

#[test]
fn paths_and_values_are_bounded() {
    let zeros = "0,".repeat(20) + "0";
    let nested = format!("([range(9000)] | . + .) | reduce range(100000) as $i (0; [., {zeros}])");
    for (filter, used) in [
        (
            "null | path(getpath([range(20000) | \"a\"])) | tojson",
            Excess::Stack,
        ),
        ("null | path(def f: .a | f; f)", Excess::Stack),
        (
            "null | path(last(limit(9000; recurse(.a)))) | tojson",
            Excess::Stack,
        ),
        ("null | path(recurse(.a)) | empty", Excess::Stack),
        (&nested, Excess::Value),
        (
            "[range(9000)] as $b | reduce range(60) as $i ([$b, $b]; [., .]) | tojson",
            Excess::Value,
        ),
        ("reduce range(600) as $i (0; [.]) | tojson", Excess::Value),
        (
            "reduce range(600) as $i ({}; .a |= [$i, .]) | tojson",
            Excess::Value,
        ),
    ] {
        let bad = text(filter, "1");
        let Err(BadDocument::Runaway { used: found, .. }) = bad else {
            panic!("{filter}: {:?}", bad.map(|text| text.len()));
        };
        assert_eq!(found, used, "{filter}");
    }
}

#[test]
fn work_in_native_functions_is_counted() {
    for filter in [
        "(\"x\" * 1000000) as $s | last(range(1000000) | $s | ascii_downcase | length)",
        "(\"x\" * 1000000) as $s | last(range(1000000) | $s | @base64 | length)",
        "(\"x\" * 200000) as $s | last(range(1000000) | $s | test(\"y\"))",
        "last(range(1000000) | \"x\" | test(\"\\\\w{900}\"))",
        "(\"x\" * 1000000) as $s | last(range(1000000) | $s / \"y\")",
        "[range(20000)] as $s | last(range(1000000) | first($s[]))",
        "[range(20000)] as $s | last(range(1000000) | last($s | ..))",
        "[range(20000)] as $s | [range(20000)] as $t | last(range(1000000) | $s == $t)",
        "[range(20000)] as $s | last(range(1000000) | $s - $s)",
        "[range(20000)] as $s | last(range(1000000) | $s | sort)",
        "[range(20000)] as $s | last(range(1000000) | $s | contains($s))",
        "[range(20000) | 0] as $s | $s | indices([range(10000) | 0])",
        "[range(20000) | 0] as $s | $s | .[[range(10000) | 0]]",
        "(\"a\" * 2000000) | indices(\"a\" * 1000000)",
        "[range(20000)] as $s | last(range(1000000) | ($s | .a)?)",
        "[range(20000)] as $s | last(range(1000000) | try ($s | .a) catch .)",
        "[range(20000)] as $s | last(range(1000000) | \"\\($s)\")",
        "jn(2147483647; 1e9)",
        "([limit(30000; repeat(\"9\"))] | add | tonumber) as $n | last(range(1000000) | $n * $n)",
        "[limit(1000; repeat(\"x\" * 4000000))] | length",
        "(\"x\" * 4000000) as $s | [range(1000) | $s + \"y\"] | length",
        "(\"x\" * 4000000) | explode",
        "(\"x\" * 4000000) | [match(\".\"; \"g\")]",
    ] {
        let bad = text(filter, "1");
        let is_runaway = matches!(bad, Err(BadDocument::Runaway { .. }));
        assert!(is_runaway, "{filter}: {:?}", bad.map(|text| text.len()));
    }
}

#[test]
fn what_the_library_panics_at_is_a_bad_document() {
    let bad = text("[-9223372036854775808] | implode", "1").unwrap_err();
    assert!(matches!(bad, BadDocument::FilterFails { .. }), "{bad}");
}

#[test]
fn values_that_grow_step_by_step_do_not_run_away() {
    let words: Vec<String> = (0..4000).map(|i| format!("w{}", i % 500)).collect();
    let line = serde_json::json!({"words": words, "text": words.join(" ")}).to_string();
    for (filter, expected) in [
        (
            "reduce .words[] as $w (\"\"; . + $w) | length | tostring",
            "15120",
        ),
        (
            "reduce .words[] as $w ([]; . + [$w]) | length | tostring",
            "4000",
        ),
        (
            "reduce .words[] as $w ({}; .[$w] += 1) | .w3 | tostring",
            "8",
        ),
        (
            "reduce .words[] as $w ({}; . + {($w): 1}) | length | tostring",
            "500",
        ),
        (
            "reduce .words[] as $w ({}; .[$w] += [1]) | .w3 | length | tostring",
            "8",
        ),
        (".words | join(\" \") | length | tostring", "19119"),
        (".text | gsub(\"w\"; \"v\") | .[:5]", "v0 v1"),
        (".text | [scan(\"[0-9]+\")] | length | tostring", "4000"),
        (
            ".words | map(select(test(\"^w49\"))) | length | tostring",
            "88",
        ),
        (
            ".words | group_by(.) | map(length) | unique | tojson",
            "[8]",
        ),
        ("[.. | strings] | length | tostring", "4001"),
        (
            ".text | ascii_downcase | split(\" \") | unique | length | tostring",
            "500",
        ),
    ] {
        assert_eq!(text(filter, &line).as_deref(), Ok(expected), "{filter}");
    }
}

#[test]
fn the_meter_changes_no_output() {
    let lines = [
        "null",
        "1",
        r#""a,b c""#,
        r#"[1,[2,"x"],{"a":null}]"#,
        r#"{"a":[1,2,{"b":"x"}],"t":"A b","n":-3.5,"z":null}"#,
    ];
    for filter in [
        ".",
        "..",
        ".[]",
        ".[]?",
        ".a",
        ".a?",
        ".a[]?",
        ".a[0]?",
        ".[1:]?",
        ".[(0,1)]?",
        ".[][(0,1)]?",
        "[..]",
        "[.[]?]",
        "{a: .}",
        "{(\"x\",\"y\"): 1}",
        "[.[]? | (.., 1)]",
        "try .a catch .",
        "[.[]?, 1] | .[1:] |= map([.])",
        ".a? |= 1",
        "(.a?, .t?) |= 2",
        ".[]? += 1",
        ".t? += \"x\"",
        ".[]? -= 1",
        ".. |= .",
        ".a? //= 1",
        "del(.a?)",
        "del(.[0]?)",
        "[paths]",
        "[path(..)]",
        "[paths(type == \"number\")]",
        "path(.a[0]?)",
        "[path(.a?, .[0]?)]",
        "pick(.a?)",
        "to_entries?",
        "with_entries(.value |= tojson)?",
        "walk(.)",
        "map_values(.)?",
        "[limit(2; .[]?)]",
        "first(.[]?)",
        "[.[]? | tostring]",
        "tojson | fromjson",
        "@json",
        "@text",
        "@sh?",
        "@html \"\\(.)\"",
        "\"\\(.) and \\(1, 2)\"",
        ". == .",
        "[. < (1, \"a\", [])]",
        ". as [$a, {a: $b}] | [$a, $b]",
        "[.. == 1]",
        ". + .",
        "[.] + [.]",
        "[.] - [1]",
        "\"a,b\" / \",\"",
        ". * 2",
        "{a: {b: 1}} * {a: {c: .}}",
        "[1, 2] | contains([1])",
        "[.[]?] | index(1)",
        "indices(1)?",
        "\"abcb\" | indices(\"b\")",
        "explode?",
        "(explode | implode)?",
        "test(\"a\")?",
        "[match(\"[a-z]\"; \"g\")]?",
        "gsub(\"a\"; \"b\")?",
        "[splits(\", *\")]?",
        "split(\",\")?",
        "ascii_downcase?",
        "ltrimstr(\"a\")",
        "sort?",
        "sort_by(.a?)?",
        "group_by(.)?",
        "unique?",
        "min?",
        "add?",
        "length?",
        "keys?",
        "has(\"a\")?",
        "flatten?",
        "reverse?",
        "reduce .[]? as $x (0; . + 1)",
        "[foreach .[]? as $x (0; . + 1; [$x, .])]",
        "label $f | .[]? | ., break $f",
        "def f(g): [g]; f(.[]?)",
        "def f(g; $x): g + $x; f(1; 2, 3)",
        "def r: if isarray then .[] | r else . end; [r]",
        "def r(f): f | if . == 1 then [.] else . end; r(.)",
        "getpath([\"a\", 0])?",
        "setpath([\"q\"]; 1)?",
        "delpaths([[\"a\"]])?",
        "[combinations(2)]?",
        "transpose?",
        "input?",
        "[range(3)] | combinations?",
        "first(error(\"x\"))?",
        "error",
        "error(null)",
        "jn(1; 2)",
        "[.[]?][1:3]",
        ".[-1:]? = [1]",
        "if . then 1 elif 2 then 3 else 4 end",
        ".a // \"d\"",
        "[.a[]?.b?]",
        "..|numbers",
        "(.. | strings) |= ascii_upcase",
        "limit(1; .[]?) |= 5",
        "first(.[]?) |= 5",
        "path(first(.[]?))",
        "[path(.[]? | select(. == 1))]",
        "-(1, 2)",
        "tobytes?",
    ] {
        let Ok(field) = Field::compile(filter) else {
            continue;
        };
        let plain = general::Filter::compile_unmetered(filter);
        for line in lines {
            let value = || general::parse(line.as_bytes()).unwrap();
            let metered = field.0.filter.first_output(value(), line.len());
            let expected = plain.first_output(value(), line.len());
            assert_eq!(metered, expected, "{filter} on {line}");
        }
    }
}

#[test]
fn patterns_that_nest_deeply_are_refused_or_run() {
    let repeated = |open: &str, middle: &str, close: &str, n: usize| {
        open.repeat(n) + middle + &close.repeat(n)
    };
    for (open, middle, close) in [
        ("(", ".", ")"),
        ("[", ".", "]"),
        ("{a:", ".", "}"),
        ("", ".", "|."),
        ("", ".", ",."),
        ("", ".", "+."),
        ("", ".", "//."),
        ("", ".", "="),
        ("-", "1", ""),
        ("try ", ".", ""),
        ("def a:", ".", ";."),
        ("def a(f):", "f", ";a(.)"),
        ("def f(g): g;", "f(1)", ""),
        (". as $x|", ".", ""),
        (". as [", "$x", "]|."),
        (". as {a:", "$x", "}|."),
        ("if . then ", ".", " end"),
        ("if . then 1 ", "end", ""),
        ("if . then 1 el", "if . then 1 end", ""),
        ("\"\\(", "1", ")\""),
        ("label $x|", ".", ""),
        ("reduce ", ".", " as $x (.;.)"),
        ("reduce . as $x (.;", ".", ")"),
        ("map(", ".", ")"),
        (".[", "0", "]"),
        (".a", "", ""),
        (".[]", "", ""),
        (".a?", "", ""),
        ("#", "\n.", ""),
        ("\"", "", ""),
        ("((", "", ""),
        ("1", "", ""),
        ("@json \"\\(", "1", ")\""),
        (".. |= ", "1", ""),
    ] {
        for max_bytes in [1000, 6000, 32_768] {
            let n = (max_bytes - middle.len()) / (open.len() + close.len());
            let pattern = repeated(open, middle, close, n);
            if let Ok(field) = Field::compile(&pattern) {
                let _ = field.extractor().text(b"{\"a\":[\"x\"]}").map(str::len);
            }
        }
    }
    for (pattern, expected) in [
        (
            ".".repeat(32_769),
            "length is 32769 bytes, at most 32768 are allowed; shorten it, or preprocess the corpus",
        ),
        (
            repeated("[", ".", "]", 2001),
            "terms are nested deeper than 2000 levels; shorten chains of operators and nested brackets",
        ),
        (
            ".a".repeat(257),
            "a path has more than 256 parts; write it as several paths joined by |",
        ),
    ] {
        let error = Field::compile(&pattern).err().unwrap().to_string();
        let shown = pattern.chars().take(200).collect::<String>() + "…";
        assert_eq!(error, format!("jq pattern {shown:?}: {expected}"));
    }
    let commas = vec!["\"a\""; 500].join(",");
    assert_eq!(text(&commas, "1").unwrap(), "a");
}

#[test]
fn a_forgotten_dot_is_asked_about() {
    for (pattern, name, meant) in [
        ("text", "text", ".text"),
        (" text ", "text", ".text"),
        ("meta.text", "meta", ".meta.text"),
        ("my-text", "my", ".\"my-text\""),
        ("meta.my-text", "meta", ".meta.\"my-text\""),
        ("input", "input", ".input"),
        ("text_2", "text_2", ".text_2"),
    ] {
        let error = Field::compile(pattern).err().unwrap();
        assert_eq!(
            error.to_string(),
            format!("jq pattern {pattern:?}: filter {name} is not defined; did you mean {meant}?")
        );
    }
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
        (
            "nope(1)",
            "jq pattern \"nope(1)\": filter nope is not defined",
        ),
        ("$x", "jq pattern \"$x\": variable $x is not defined"),
        (
            "include \"m\"; .",
            "jq pattern \"include \\\"m\\\"; .\": modules and imports are not available in packtok; put the definitions into the pattern",
        ),
        (
            "module {}; .",
            "jq pattern \"module {}; .\": modules and imports are not available in packtok; put the definitions into the pattern",
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
                "jq pattern \". | {name}\": {name} is not available in packtok because the output must depend only on the documents"
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
