"""Odd and hostile tokenizer files: the ids and texts of the wheel, or a one-line error."""

from __future__ import annotations

import base64
import io
import json
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import oracle
import pytest
import sentencepiece
import sentencepiece_json
import tokenizers
from extent import extent

import packtok
from packtok import DocumentError, Tokenizer, TokenizerError

WHITESPACE = {"type": "Whitespace"}
WORDS = {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2}}
HIGHEST = 2**32 - 1


def added(content: str, **flags: Any) -> dict[str, Any]:
    of_all = {"special": False, "single_word": False, "lstrip": False, "rstrip": False, "normalized": True}
    return {"id": 0, "content": content, **of_all, **flags}


def file_of(model: dict[str, Any] = WORDS, **components: Any) -> dict[str, Any]:
    """Returns a complete tokenizer.json."""
    keys = ("normalizer", "pre_tokenizer", "post_processor", "decoder", "truncation", "padding")
    return {"version": "1.0", "added_tokens": [], **dict.fromkeys(keys), "model": model, **components}


def bpe(vocab: dict[str, int], merges: list[Any], **settings: Any) -> dict[str, Any]:
    return {"type": "BPE", "vocab": vocab, "merges": merges, **settings}


def gpt2() -> dict[str, Any]:
    """Returns the file of GPT-2 with its first merges, which loads in a third of the time."""
    file: dict[str, Any] = json.loads(Tokenizer.builtin("gpt2").to_json())
    num_merges = extent(50_000, 16_000)
    model = file["model"]
    model["merges"] = model["merges"][:num_merges]
    last_ids = range(256 + num_merges, 50_256)
    model["vocab"] = {token: id_ for token, id_ in model["vocab"].items() if id_ not in last_ids}
    return file


def load(file: dict[str, Any]) -> Tokenizer:
    return Tokenizer(json.dumps(file).encode(), "t.json")


def assert_as_wheel(file: dict[str, Any], texts: list[str]) -> Tokenizer:
    """Asserts that ids with and without special tokens, and decoded texts, equal those of the wheel."""
    ours, wheel = load(file), tokenizers.Tokenizer.from_str(json.dumps(file))
    for text in texts:
        for adds in (True, False):
            ids = wheel.encode(text, add_special_tokens=adds).ids
            assert ours.encode(text, add_special_tokens=adds).tolist() == ids, text
            for skips in (True, False):
                expected = wheel.decode(ids, skip_special_tokens=skips)
                assert ours.decode(ids, skip_special_tokens=skips) == expected, text
    return ours


TEXTS = ["", "a", "a b", "b  a?", "Hello world é", "x a", "数 a"]


def test_missing_decoder_joins_tokens_with_spaces() -> None:
    file = json.loads(Tokenizer.builtin("gpt2").to_json())
    file["decoder"] = None
    tokenizer = assert_as_wheel(file, TEXTS)
    assert tokenizer.engine == "packtok"
    assert tokenizer.decode(tokenizer.encode("Hello world é")) == "Hello Ġworld ĠÃ©"


@pytest.mark.parametrize(
    "decoder",
    [
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": "H", "start": 1, "stop": 0},
        {"type": "Replace", "pattern": {"String": "Ġ"}, "content": "_"},
        {"type": "BPEDecoder", "suffix": "o"},
        {"type": "Metaspace", "replacement": "Ġ", "prepend_scheme": "always", "split": True},
        {"type": "WordPiece", "prefix": "Ġ", "cleanup": True},
        {"type": "CTC", "pad_token": "Ġ", "word_delimiter_token": "o", "cleanup": True},
        {"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteFallback"}]},
    ],
    ids=lambda decoder: decoder["type"],
)
def test_ids_are_decoded_by_the_decoder_of_the_file(decoder: dict[str, Any]) -> None:
    file = gpt2()
    file["decoder"] = decoder
    file["added_tokens"] += [added("<é>", special=True), added("Ġthe", normalized=False)]
    assert_as_wheel(file, [*TEXTS, "a<é>b", "x<|endoftext|>y", "Ġthe the"])


@pytest.mark.parametrize(
    ("normalizer", "tokens"),
    [
        ({"type": "Strip", "strip_left": True, "strip_right": True}, ["  "]),
        ({"type": "Strip", "strip_left": True, "strip_right": True}, [" a "]),
        ({"type": "StripAccents"}, ["\u0301"]),
        ({"type": "Lowercase"}, ["A", "AB"]),
        ({"type": "Replace", "pattern": {"String": "a"}, "content": "bb"}, ["a", "ab"]),
        (None, ["ab", "abab", "aba"]),
        (None, ["a", "a", "b"]),
    ],
)
@pytest.mark.parametrize("normalized", [True, False])
def test_added_tokens_stripped_or_hidden_by_others(
    normalizer: dict[str, Any] | None, tokens: list[str], normalized: bool
) -> None:
    file = file_of(normalizer=normalizer, pre_tokenizer=WHITESPACE)
    file["added_tokens"] = [added(token, normalized=normalized) for token in tokens]
    assert_as_wheel(file, ["", "a", "a b", "abab ab", "AB Ab", "a  b ", "ababa"])


@pytest.mark.parametrize("length", extent([65_536, 1_000_000], [65_536]))
def test_added_token_of_any_length(length: int) -> None:
    token = "x" * length
    for file in (file_of(pre_tokenizer=WHITESPACE), gpt2()):
        file["added_tokens"].append(added(token, normalized=False))
        assert_as_wheel(file, [token, f"a{token}b", token[1:20]])


@pytest.mark.parametrize("highest", extent([10**9, HIGHEST], [HIGHEST]))
@pytest.mark.parametrize("kind", [*extent(["words", "WordPiece", "added"], []), "byte-level", "template"])
def test_high_ids_take_no_memory(tmp_path: Path, highest: int, kind: str) -> None:
    """Runs with a memory limit of 2 GB; a table sized by the highest id would need at least 4 GB."""
    file = gpt2()
    if kind == "byte-level":
        file["model"]["vocab"]["Ġworld"] = highest
    elif kind == "words":
        file = file_of({**WORDS, "vocab": {"?": 0, "a": highest}}, pre_tokenizer=WHITESPACE)
    elif kind == "WordPiece":
        vocab = {"[UNK]": 0, "a": 1, "##b": highest}
        model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
        file = file_of({**model, "max_input_chars_per_word": 100, "vocab": vocab}, pre_tokenizer=WHITESPACE)
    elif kind == "added":
        file["model"]["vocab"]["unlikelyname"] = highest
        file["added_tokens"].append(added("unlikelyname", special=True))
    else:
        file["post_processor"] = oracle.template(before=("<s>",), ids={"<s>": highest})
    eod = "?" if kind == "words" else "[UNK]" if kind == "WordPiece" else oracle.EOD
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file), encoding="utf-8")
    texts = ["Hello world a ab", "unlikelyname a"]
    corpus = oracle.write_lines(tmp_path / "c.jsonl", texts)
    script = (
        "import packtok, sys\n"
        "tokenizer = packtok.Tokenizer.from_file(sys.argv[1])\n"
        "ids, _ = tokenizer.encode_batch(sys.argv[5:])\n"
        "tokenizer.decode(ids)\n"
        "packtok.pack(input=sys.argv[2], output=sys.argv[3], tokenizer=sys.argv[1], eod=sys.argv[4])\n"
        "reader = packtok.PbinReader(sys.argv[3])\n"
        "assert reader.tokens(0, reader.num_tokens).max() == ids.max()\n"
        "print(*ids)"
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30))

    done = subprocess.run(
        [sys.executable, "-c", script, path, corpus, tmp_path / "out.pbin", eod, *texts],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )
    assert done.returncode == 0, done.stderr
    wheel = oracle.load(path)
    assert [int(word) for word in done.stdout.split()] == [
        id for text in texts for id in wheel.encode(text).ids
    ]


# Invalid files, and the end of the error for each.
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a merge with an unknown result": (
        file_of(bpe({"a": 0, "b": 1}, [["a", "b"]])),
        "the tokenizers library fails on this file: range end index 2 out of range for slice of length 1",
    ),
    "a prefix longer than what it is cut from": (
        file_of(bpe({"a": 0, "b": 1, "ab": 2}, [["a", "b"]], continuing_subword_prefix="##")),
        "",
    ),
    "a model whose type is null": (
        file_of({**bpe({"a": 0, "b": 1, "ab": 2}, [["a", "b"]]), "type": None}),
        "",
    ),
    "a broken map": (
        file_of(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
        "",
    ),
    "an id beyond 32 bits": (file_of({**WORDS, "vocab": {"?": 0, "a": 2**32}}), ""),
    "a negative id": (file_of({**WORDS, "vocab": {"?": 0, "a": -1}}), ""),
    "a version that is not 1.0": (
        file_of(version="2.0"),
        "the tokenizer cannot be loaded: Unknown tokenizer version '2.0' at line 1 column 199",
    ),
    "a decoder that is none": (file_of(decoder={"type": "Strip", "content": ""}), ""),
    "two tokens that are the same once normalized": (
        file_of(normalizer={"type": "Lowercase"}, added_tokens=[added("A"), added("a")]),
        'the added tokens "a" and "A" are equal after normalization, so ids would be nondeterministic; '
        "remove one of them from tokenizer.json",
    ),
    "a token of which nothing is left, beside others": (
        file_of(normalizer={"type": "StripAccents"}, added_tokens=[added("\u0301"), added("ab")]),
        'the added token "\\u{301}" is empty after normalization, so searching for added tokens '
        'may never end; remove it from tokenizer.json, or set its "normalized" to false',
    ),
}


def precompiled(map_bytes: bytes) -> dict[str, Any]:
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(map_bytes).decode()}


def template(num_pieces: int, num_ids: int) -> dict[str, Any]:
    sequences = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    pieces = [{"SpecialToken": {"id": "x", "type_id": 0}}] * num_pieces
    token = {"id": "x", "ids": [1] * num_ids, "tokens": ["a"] * num_ids}
    return {
        "type": "TemplateProcessing",
        "single": [*pieces, sequences[0]],
        "pair": sequences,
        "special_tokens": {"x": token},
    }


TRUNCATED = "the tokenizer cannot be loaded: the precompiled_charsmap of its normalizer is truncated"
CONTRADICTORY = (
    "the tokenizer cannot be loaded: the precompiled_charsmap of its normalizer contradicts itself"
)
# Tries of 256 units: the first unit of one leads outside it, the value of the other is no position of a
# character.
OUTSIDE = precompiled((1024).to_bytes(4, "little") + (1 << 20 | 1 << 10).to_bytes(4, "little") + bytes(1020))
NO_CHARACTER = precompiled(
    (1024).to_bytes(4, "little")
    + bytes(4 * ord("a"))
    + (1 << 11 | 1 << 8 | ord("a")).to_bytes(4, "little")
    + (1 << 31 | 77).to_bytes(4, "little") * (255 - ord("a"))
    + b"z\0"
)
UNKNOWN = "which the tokenizers library does not know with these settings"
REFUSED |= {
    "a map that says it is long": (file_of(normalizer=precompiled(b"\xff" * 200)), TRUNCATED),
    "a member with such a map": (
        file_of(normalizer={"type": "Sequence", "normalizers": [precompiled(b"\xff" * 200)]}),
        TRUNCATED,
    ),
    "a map that leads outside its trie": (file_of(normalizer=OUTSIDE), CONTRADICTORY),
    "a map with a value outside its replacements": (file_of(normalizer=NO_CHARACTER), CONTRADICTORY),
    "a template that repeats many ids": (
        file_of(post_processor=template(20_000, 20_000)),
        "its post_processor adds up to 400060003 ids to each document, expected at most 1048576",
    ),
    "a processor of many sequences": (
        file_of(
            post_processor={
                "type": "Sequence",
                "processors": [
                    template(20_000, 1),
                    *[{"type": "BertProcessing", "sep": ["a", 1], "cls": ["b", 2]}] * 2000,
                ],
            }
        ),
        "ids to each document, expected at most 1048576",
    ),
    "an unknown normalizer": (
        file_of(normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Foo", "x": 1}]}),
        f'the tokenizer cannot be loaded: its normalizer has a component with the type "Foo", {UNKNOWN}',
    ),
    "an unknown pre-tokenizer": (
        file_of(pre_tokenizer={"type": "Foo"}),
        f'its pre_tokenizer has a component with the type "Foo", {UNKNOWN}',
    ),
    "an unknown post-processor": (
        file_of(post_processor={"type": "Foo"}),
        f'its post_processor has a component with the type "Foo", {UNKNOWN}',
    ),
    "an unknown decoder": (
        file_of(decoder={"type": "Foo"}),
        f'its decoder has a component with the type "Foo", {UNKNOWN}',
    ),
    "an unknown model": (
        file_of({"type": "Foo", "vocab": {"a": 1}}),
        f'its model has a component with the type "Foo", {UNKNOWN}',
    ),
    "a component without a type": (
        file_of(normalizer={"x": 1}),
        f"its normalizer has a component with no type, {UNKNOWN}",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_unloadable_file_is_a_one_line_error(what: str, capfd: pytest.CaptureFixture[str]) -> None:
    file, end = REFUSED[what]
    with pytest.raises(TokenizerError) as caught:
        load(file)
    message = str(caught.value)
    assert message.startswith("t.json: ")
    assert message.endswith(end)
    assert "\n" not in message
    assert "bug" not in message
    assert len(message) < 400
    assert capfd.readouterr().err == ""


def replace(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": pattern}, "content": content}


def sequence(key: str, members: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "Sequence", key: members}


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
# Files that turn a few bytes into gigabytes, each with such a text, and the component that does it.
EXCESSIVE: dict[str, tuple[dict[str, Any], str, str]] = {
    "a long replacement": (file_of(normalizer=replace("a", "x" * 1_000_000)), "a" * 320, "Replace"),
    "a replacement of nothing": (
        file_of(normalizer={"type": "Replace", "pattern": {"Regex": ""}, "content": "x" * 1_000_000}),
        "a" * 320,
        "Replace",
    ),
    "replacements one after the other": (
        file_of(normalizer=sequence("normalizers", [replace("a", "aa")] * 40)),
        "aaa",
        "Replace",
    ),
    "beginnings one after the other": (
        file_of(normalizer=sequence("normalizers", [{"type": "Prepend", "prepend": "x" * 1_000_000}] * 40)),
        "a b",
        "Prepend",
    ),
    "bytes as characters again and again": (
        file_of(normalizer=sequence("normalizers", [{"type": "ByteLevel"}] * 40)),
        "ééé",
        "normalizer",
    ),
    "the same before tokenizing": (
        file_of(pre_tokenizer=sequence("pretokenizers", [BYTE_LEVEL] * 40)),
        "ééé",
        "pre_tokenizer",
    ),
    "a long name of the unknown token": (
        file_of({**WORDS, "unk_token": "?" * 1_000_000, "vocab": {"?" * 1_000_000: 0, "a": 1}}),
        "b " * 3000,
        "unk_token",
    ),
}


@pytest.mark.parametrize("what", EXCESSIVE)
def test_file_that_makes_too_much_of_a_text_is_a_tokenizer_error(what: str, tmp_path: Path) -> None:
    file, text, component = EXCESSIVE[what]
    tokenizer = load(file)
    num_bytes = len(text.encode())
    message = (
        f"t.json: the tokenizer is not usable: its {component} makes more than {(4 << 20) + 32 * num_bytes} "
        f"bytes of {num_bytes} bytes of text"
    )
    for call, prefix in (
        (lambda: tokenizer.encode(text), ""),
        (lambda: tokenizer.encode_batch(["", text]), "texts[1]: "),
    ):
        with pytest.raises(TokenizerError) as caught:
            call()
        assert str(caught.value) == prefix + message
    path = tmp_path / "t.json"
    path.write_text(json.dumps(file), encoding="utf-8")
    corpus = oracle.write_lines(tmp_path / "c.jsonl", ["c", text])
    # The tokenizer is at fault, so the document is not skipped.
    with pytest.raises(TokenizerError, match=r"t\.json: the tokenizer is not usable: its "):
        packtok.pack(
            input=corpus, output=tmp_path / "o.pbin", tokenizer=path, eod="a", on_bad_document="skip"
        )
    assert not (tmp_path / "o.pbin").exists()


@pytest.mark.parametrize(
    ("decoder", "ids"),
    [(sequence("decoders", [replace("a", "aa")] * 40), [1] * 3), (replace("a", "x" * 1_000_000), [1] * 3000)],
)
def test_decoder_that_makes_too_much_of_ids_is_a_tokenizer_error(
    decoder: dict[str, Any], ids: list[int]
) -> None:
    tokenizer = load(file_of(decoder=decoder))
    with pytest.raises(TokenizerError) as caught:
        tokenizer.decode(ids)
    limit = (4 << 20) + 32 * len(ids)
    assert str(caught.value) == (
        f"the tokenizer cannot decode these ids: its Replace makes more than {limit} bytes of {len(ids)} "
        "bytes of text"
    )


@pytest.mark.parametrize(
    "normalizer",
    [
        # Each of these may grow a text beyond the limit, but does not.
        replace("Z", "x" * 100_000),
        {"type": "Replace", "pattern": {"Regex": "Z+"}, "content": "x" * 100_000},
        sequence(
            "normalizers",
            [replace("ab", "ba"), replace("a", "aa"), {"type": "NFKD"}, {"type": "Lowercase"}] * 2,
        ),
        sequence("normalizers", [{"type": "Prepend", "prepend": "▁"}, replace(" ", "▁")]),
    ],
)
def test_text_that_does_not_grow_much_has_the_ids_of_the_wheel(normalizer: dict[str, Any]) -> None:
    file = file_of(bpe({"a": 0, "b": 1, "▁": 2, "x": 3}, []), normalizer=normalizer)
    assert_as_wheel(file, ["", "a b", "ab " * 40_000, "aZb" * 3])


def test_binary_file_is_a_one_line_error(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b'{"model": "\xff"}')
    message = (
        "not a tokenizer.json, tekken.json or SentencePiece .model: invalid utf-8 sequence of 1 bytes from "
        "index 11"
    )
    for load_it in (lambda: Tokenizer.from_file(path), lambda: Tokenizer(path.read_bytes(), str(path))):
        with pytest.raises(TokenizerError) as caught:
            load_it()
        assert str(caught.value) == f"{path}: {message}"


# Files that load but fail on texts, each with such a text.
FAILING: dict[str, tuple[dict[str, Any], str]] = {
    "no unknown token": (file_of({**WORDS, "vocab": {"a": 1}}, pre_tokenizer=WHITESPACE), "a b"),
    "a split within a character": (
        file_of(
            normalizer={"type": "Strip", "strip_left": True, "strip_right": True},
            pre_tokenizer=WHITESPACE,
            added_tokens=[added("  ")],
        ),
        "a é",
    ),
    "a pattern that gives up": (
        file_of(
            pre_tokenizer={
                "type": "Split",
                "pattern": {"Regex": "(a|aa)+c|."},
                "behavior": "Isolated",
                "invert": False,
            }
        ),
        "a" * 60,
    ),
}


@pytest.mark.parametrize("what", FAILING)
def test_text_that_the_library_fails_on_is_a_document_error(
    what: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file, text = FAILING[what]
    tokenizer = load(file)
    for call in (
        lambda: tokenizer.encode(text),
        lambda: tokenizer.encode_batch([text]),
        lambda: tokenizer.encode_batch(["a"] * 9000 + [text] * 9000, threads=2),
        lambda: tokenizer.count(["a", text]),
    ):
        with pytest.raises(DocumentError) as caught:
            call()
        assert "\n" not in str(caught.value)
        assert re.search(r"bug|report", str(caught.value)) is None
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file), encoding="utf-8")
    corpus = oracle.write_lines(tmp_path / "c.jsonl", ["a", text])
    pack: dict[str, Any] = {
        "input": corpus,
        "output": tmp_path / "o.pbin",
        "tokenizer": str(path),
        "eod": "a",
    }
    with pytest.raises(DocumentError, match=r"c\.jsonl:2: "):
        packtok.pack(**pack)
    report = packtok.pack(**pack, on_bad_document="skip")
    assert (report.packed, report.rejected) == (1, 1)
    assert capfd.readouterr().err == ""


def test_empty_replacement_pattern_matches_the_wheel() -> None:
    file = file_of(
        normalizer={"type": "Replace", "pattern": {"String": ""}, "content": "b"}, pre_tokenizer=WHITESPACE
    )
    ours = load(file)
    wheel = tokenizers.Tokenizer.from_str(json.dumps(file))
    for text in TEXTS:
        try:
            expected = wheel.encode(text).ids
        except BaseException:  # A panic of the wheel is not an Exception.
            with pytest.raises(DocumentError):
                ours.encode(text)
        else:
            assert ours.encode(text).tolist() == expected


def test_strip_before_a_map_strips_white_space_only_at_the_ends(tmp_path: Path) -> None:
    strip = {"type": "Strip", "strip_left": True, "strip_right": True}
    to_a = {"type": "Precompiled", "precompiled_charsmap": charsmap(tmp_path, "3000\t61\n")}
    for normalizers in ([strip, to_a], [to_a, strip]):
        file = file_of(pre_tokenizer={"type": "BertPreTokenizer"})
        file["normalizer"] = {"type": "Sequence", "normalizers": normalizers}
        assert_as_wheel(file, ["a \u3000 b", "\u3000a b\u3000", "a\u3000 \u3000b \u2003 a", "a \u3000b"])


def test_token_strips_white_space_that_a_map_would_turn_into_text(tmp_path: Path) -> None:
    model = {"type": "Unigram", "unk_id": 0, "vocab": [["?", -9.0], ["a", -1.0], ["b", -1.0]]}
    to_a = {"type": "Precompiled", "precompiled_charsmap": charsmap(tmp_path, "3000\t61\n")}
    texts = [
        "\u3000\nb a",
        "a\u3000 b\u3000a",
        "b\n\u3000",
        "a\u3000\n b",
        "\u3000",
        "a \u3000",
        "\u2003 b \u2003",
    ]
    for side in ("lstrip", "rstrip"):
        token = added("b", normalized=False, **{side: True})
        for pre_tokenizer in ({"type": "WhitespaceSplit"}, {"type": "BertPreTokenizer"}):
            file = file_of(model, pre_tokenizer=pre_tokenizer, normalizer=to_a, added_tokens=[token])
            assert assert_as_wheel(file, texts).engine == "packtok"


@pytest.mark.parametrize("normalizers", [[], [{"type": "Sequence", "normalizers": []}], [{"type": "NFC"}]])
def test_short_normalizer_sequence_equals_its_effect(normalizers: list[Any]) -> None:
    file = gpt2()
    file["normalizer"] = {"type": "Sequence", "normalizers": normalizers}
    assert assert_as_wheel(file, TEXTS).engine == "packtok"


def charsmap(folder: Path, rules: str) -> str:
    """Returns the map of a SentencePiece model with these rules, in base64."""
    (folder / "rules.tsv").write_text(rules, encoding="utf-8")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b ab ba aab"]),
        model_writer=model,
        vocab_size=8,
        hard_vocab_limit=False,
        normalization_rule_tsv=str(folder / "rules.tsv"),
        minloglevel=2,
    )
    (rules_of_model,) = (
        value for number, value in sentencepiece_json.fields(model.getvalue()) if number == 3
    )
    (of_model,) = (value for number, value in sentencepiece_json.fields(rules_of_model) if number == 2)
    return base64.b64encode(of_model).decode()


def test_template_with_the_highest_ids() -> None:
    file = gpt2()
    file["post_processor"] = oracle.template(
        before=("<s>",), after=("</s>",), ids={"<s>": HIGHEST, "</s>": 0}
    )
    tokenizer = assert_as_wheel(file, TEXTS)
    assert tokenizer.encode("a").tolist() == [HIGHEST, 64, 0]
