//! Filters do what jq does, and invalid patterns are rejected.

use super::text;
use crate::field::{Extractor, Field};

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
fn values_that_grow_gradually_stay_within_the_limits() {
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
fn a_missing_dot_is_suggested() {
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
