//! The resources of a filter are limited.

use super::{complaint, text};
use crate::field::{BadDocument, Excess, Field};

#[test]
fn filters_that_exceed_a_limit_are_stopped() {
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
fn chains_of_closures_are_limited() {
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
    // Evaluating the closures each time exceeds the step limit before the closure limit.
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
fn paths_and_values_are_limited() {
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
        let Err(BadDocument::Runaway { used: excess, .. }) = bad else {
            panic!("{filter}: {:?}", bad.map(|text| text.len()));
        };
        assert_eq!(excess, used, "{filter}");
    }
}

#[test]
fn the_library_calls_the_meter_for_every_term() {
    // Ends by itself if no step is counted, unlike the filters above.
    let filter = "0 | def f: if . == 60000 then tostring else 1 as $x | . + $x | f end; f";
    let used = Excess::Steps;
    assert_eq!(
        text(filter, "1").unwrap_err(),
        BadDocument::Runaway {
            pattern: filter.into(),
            used
        }
    );
    assert_eq!(text(&filter.replace("60000", "600"), "1").unwrap(), "600");
}

#[test]
fn what_native_functions_create_is_limited() {
    for (filter, used) in [
        (
            "[limit(1000; repeat(\"x\" * 4000000))] | length",
            Excess::Steps,
        ),
        (
            "(\"x\" * 4000000) as $s | [range(1000) | $s + \"y\"] | length",
            Excess::Steps,
        ),
        (
            "(\"x\" * 1000000) as $s | [limit(1000; repeat($s | ascii_downcase))] | length",
            Excess::Steps,
        ),
        (
            "[range(20000)] as $s | [limit(1000; repeat($s[1:]))] | length",
            Excess::Steps,
        ),
        ("jn(2147483647; 1e9)", Excess::Steps),
        ("(\"x\" * 4000000) | explode", Excess::Value),
        ("(\"x\" * 4000000) | [match(\".\"; \"g\")]", Excess::Value),
        // Texts of values that share their parts.
        (
            "(\"x\" * 1000000) as $s | [range(10) | $s] | tojson",
            Excess::Value,
        ),
        (
            "(\"x\" * 1000000) as $s | \"\\([range(10) | $s])\"",
            Excess::Value,
        ),
        (
            "(\"x\" * 1000000) as $s | [range(10) | $s] | tobytes",
            Excess::Value,
        ),
    ] {
        let bad = text(filter, "1");
        let Err(BadDocument::Runaway { used: excess, .. }) = bad else {
            panic!("{filter}: {:?}", bad.map(|text| text.len()));
        };
        assert_eq!(excess, used, "{filter}");
    }
}

#[test]
fn a_panic_of_the_library_is_a_bad_document() {
    let bad = text("[-9223372036854775808] | implode", "1").unwrap_err();
    assert!(matches!(bad, BadDocument::FilterFails { .. }), "{bad}");
}

#[test]
fn deeply_nested_patterns_are_rejected_or_run() {
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
        let start = pattern.chars().take(200).collect::<String>() + "…";
        assert_eq!(error, format!("jq pattern {start:?}: {expected}"));
    }
    let commas = vec!["\"a\""; 500].join(",");
    assert_eq!(text(&commas, "1").unwrap(), "a");
}
