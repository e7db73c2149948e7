"""Packing a corpus into a pbin: the bytes of Modalities, and every line accounted for."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import pickle
import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import oracle
import pytest
import reference
import zstandard
from extent import extent
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import packtok

THREADS = [1, 2, 7]
PROSE = ("cfa27fe0cab69e0f27f9f164e4647ef7101bbe6623968b0236245bc3ca650644", 33_063_507)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a byte-level tokenizer of 302 ids: EOD is 300, <|bos|> 301."""
    return oracle.byte_level(tmp_path_factory.mktemp("tokenizer") / "small.json")


def pack(folder: Path, tokenizer: Path | str, **options: Any) -> packtok.PackReport:
    """Packs ``corpus.jsonl`` in ``folder`` into ``out.pbin``, unless ``options`` override them."""
    defaults: dict[str, Any] = {"input": folder / "corpus.jsonl", "output": folder / "out.pbin"}
    return packtok.pack(**(defaults | {"tokenizer": str(tokenizer), "existing": "replace"} | options))


def expected_documents(tokenizer: Path, texts: list[str]) -> list[list[int]]:
    return list(oracle.documents(oracle.load(tokenizer), texts))


def packed_documents(path: Path) -> list[list[int]]:
    return reference.read_pbin(path).documents


def left_behind(folder: Path) -> list[str]:
    """Returns the names in a folder that belong to no corpus and no tokenizer."""
    return sorted(path.name for path in folder.iterdir() if "corpus" not in path.name)


# --- the bytes of Modalities


@pytest.mark.parametrize("name", ["redpajama/train", "modalities/lorem_long"])
def test_packed_file_starts_with_the_bytes_of_modalities(shared: Path, tmp_path: Path, name: str) -> None:
    theirs = (shared / f"{name}.pbin").read_bytes()
    field = ".raw_content" if name == "redpajama/train" else ".text"
    files = []
    for threads in THREADS:
        output = tmp_path / f"{threads}.pbin"
        packtok.pack(
            input=shared / f"{name}.jsonl",
            output=output,
            tokenizer=str(shared / "tokenizers/gpt2"),
            field=field,
            eod=oracle.EOD,
            num_cpus=threads,
        )
        files.append(output.read_bytes())
    assert files[0][: len(theirs)] == theirs
    assert files[0] == files[1] == files[2]


@pytest.mark.whole
def test_prose_starts_with_the_bytes_of_modalities(shared: Path, tmp_path: Path) -> None:
    digest, num_bytes = PROSE
    files = []
    for threads in THREADS:
        output = tmp_path / f"{threads}.pbin"
        packtok.pack(
            input=shared / "corpora/prose.jsonl.zst",
            output=output,
            tokenizer=str(shared / "tokenizers/gpt2"),
            num_cpus=threads,
        )
        files.append(output.read_bytes())
    assert hashlib.sha256(files[0][:num_bytes]).hexdigest() == digest
    assert files[0] == files[1] == files[2]


# --- bad documents


@dataclass(frozen=True)
class Bad:
    """A line that is not a document, the reason, and the remedy."""

    line: bytes
    reason: str
    remedy: str


SKIP = 'with on_bad_document="skip"'
MEND = f"repair the line, or skip such lines {SKIP}"
OTHER = f"change field (jq_pattern in a config), or skip such documents {SKIP}"
UTF8 = f"convert the file to UTF-8, or skip such lines {SKIP}"
LONGER = f"raise max_document_bytes, or skip such lines {SKIP}"
JSON = "malformed JSON at byte {} of the line: {}"
SURROGATE = "lone surrogate escape at byte {} of the line: not a valid character"
BAD = {
    "cut": Bad(b'{"text": "a"', JSON.format(12, "EOF while parsing an object"), MEND),
    "two values": Bad(b'{"text": "a"} {}', JSON.format(15, "trailing characters"), MEND),
    "comment": Bad(b'{"text": "a"} # b', JSON.format(15, "trailing characters"), MEND),
    "NaN": Bad(b'{"text": "a", "x": NaN}', JSON.format(20, "expected value"), MEND),
    "byte string": Bad(b'{"text": b"a"}', JSON.format(10, "expected value"), MEND),
    "no-break space": Bad(b"\xc2\xa0", JSON.format(1, "expected value"), MEND),
    "late BOM": Bad(
        b'\xef\xbb\xbf{"text": "a"}',
        "byte order mark (U+FEFF) at byte 1 of the line, expected only at the start of a file",
        "remove it (files that were joined have one where each of them starts), or skip such lines with "
        'on_bad_document="skip"',
    ),
    "missing": Bad(b'{"body": "a"}', "field .text is missing; the object has .body", OTHER),
    "null": Bad(b'{"text": null}', ".text is null, not a string", OTHER),
    "number": Bad(b'{"text": 5}', ".text is a number, not a string", OTHER),
    "boolean": Bad(b'{"text": true}', ".text is a boolean, not a string", OTHER),
    "list": Bad(b'{"text": ["a"]}', ".text is an array, not a string", OTHER),
    "object": Bad(b'{"text": {}}', ".text is an object, not a string", OTHER),
    "no object": Bad(b"[1]", 'filter .text fails: cannot index [1] with "text"', OTHER),
    "surrogate": Bad(b'{"text": "a\\ud800b"}', SURROGATE.format(12), MEND),
    "surrogate elsewhere": Bad(b'{"text": "a", "x": "\\udc00"}', SURROGATE.format(21), MEND),
    "not UTF-8": Bad(b'{"text": "gr\xfc\xdfe"}', "not UTF-8 at byte 13 of the line", UTF8),
    "not UTF-8 elsewhere": Bad(b'{"text": "a", "x":"\xff"}', "not UTF-8 at byte 20 of the line", UTF8),
    "oversize": Bad(
        b'{"text": "' + b"x" * 200 + b'"}', "line of 212 bytes exceeds max_document_bytes 150", LONGER
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_document_ends_the_run(tmp_path: Path, small: Path, kind: str) -> None:
    bad = BAD[kind]
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_bytes(b'{"text": "ok"}\n\n' + bad.line + b'\n{"text": "after"}\n')
    with pytest.raises(packtok.DocumentError) as caught:
        pack(tmp_path, small, max_document_bytes=150)
    assert str(caught.value) == f"{corpus}:3: byte 16: {bad.reason}; {bad.remedy}"
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("kind", BAD)
def test_bad_document_is_skipped_and_named(tmp_path: Path, small: Path, kind: str) -> None:
    bad = BAD[kind]
    (tmp_path / "corpus.jsonl").write_bytes(b'{"text": "ok"}\n\n' + bad.line + b'\n{"text": "after"}\n')
    report = pack(tmp_path, small, max_document_bytes=150, on_bad_document="skip")
    assert (report.lines, report.packed, report.empty, report.blank, report.rejected) == (4, 2, 0, 1, 1)
    assert report.rejects_path == str(tmp_path / "out.pbin.rejects.jsonl")
    rejects = [json.loads(line) for line in Path(report.rejects_path).read_bytes().splitlines()]
    assert rejects == [
        {
            "source": "corpus.jsonl",
            "line": 3,
            "offset_bytes": 16,
            "len_bytes": len(bad.line),
            "reason": bad.reason,
        }
    ]
    assert packed_documents(tmp_path / "out.pbin") == expected_documents(small, ["ok", "after"])


def test_rejects_of_an_earlier_run_are_removed(tmp_path: Path, small: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_bytes(b'{"text": 5}\n')
    pack(tmp_path, small, on_bad_document="skip", max_rejects="100%")
    assert (tmp_path / "out.pbin.rejects.jsonl").exists()
    corpus.write_bytes(b'{"text": "a"}\n')
    assert pack(tmp_path, small, on_bad_document="skip").rejects_path is None
    assert left_behind(tmp_path) == ["out.pbin", "out.pbin.tokenizer.json"]


def test_first_bad_document_is_named(tmp_path: Path, small: Path) -> None:
    lines = [b'{"text": "%s"}' % (b"word " * 200)] * 9000
    for at in (7001, 8500):
        lines[at] = b'{"text": %d}' % at
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_bytes(b"\n".join(lines))
    offset = sum(len(line) + 1 for line in lines[:7001])
    for threads in THREADS:
        with pytest.raises(packtok.DocumentError) as caught:
            pack(tmp_path, small, num_cpus=threads)
        assert str(caught.value).startswith(f"{corpus}:7002: byte {offset}: .text is a number")


# --- any number of threads gives the same bytes


def mixed_lines(seed: int, num_lines: int) -> list[bytes]:
    """Returns lines of every kind, a few of them long, several megabytes in total: many batches of work."""
    chance = random.Random(seed)
    words = ["the", "thing", " a", "数", "🙂", oracle.EOD, "\\n", "x1", "Grüße"]
    lines = []
    for i in range(num_lines):
        text = "".join(chance.choices(words, k=chance.choice([0, 1, 9, 80, 200])))
        good = f'{{"text": "{text}"}}'.encode()
        kind = chance.randrange(40)
        bad = chance.choice(list(BAD.values())).line if kind == 0 else b""
        lines.append({0: bad, 1: b"", 2: b" \t", 3: good + b"\r"}.get(kind, good))
        if i % 1500 == 700:
            lines.append(b'{"text": "%s"}' % (b"a long one " * 150_000))
    return lines


def test_output_and_rejects_do_not_depend_on_threads(tmp_path: Path, small: Path) -> None:
    lines = mixed_lines(1, 9000)
    (tmp_path / "corpus.jsonl").write_bytes(b"\n".join(lines))
    seen = []
    for threads in THREADS:
        report = pack(tmp_path, small, num_cpus=threads, on_bad_document="skip", max_document_bytes=1 << 20)
        rejects = (tmp_path / "out.pbin.rejects.jsonl").read_bytes()
        seen.append(((tmp_path / "out.pbin").read_bytes(), rejects, report.packed, report.rejected))
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][3] > 100
    numbers = [json.loads(line)["line"] for line in seen[0][1].splitlines()]
    assert numbers == sorted(numbers)
    for reject in map(json.loads, seen[0][1].splitlines()):
        line = lines[reject["line"] - 1]
        assert reject["len_bytes"] == len(line)
        assert reject["offset_bytes"] == sum(len(before) + 1 for before in lines[: reject["line"] - 1])


@pytest.mark.parametrize("limit", [{"max_documents": 5000}, {"max_tokens": 400_000}])
def test_limits_do_not_depend_on_threads(tmp_path: Path, small: Path, limit: dict[str, int]) -> None:
    (tmp_path / "corpus.jsonl").write_bytes(b"\n".join(mixed_lines(2, 9000)))
    files = []
    for threads in THREADS:
        report = pack(tmp_path, small, num_cpus=threads, on_bad_document="skip", **limit)
        assert report.stopped_early
        files.append((tmp_path / "out.pbin").read_bytes())
    assert files[0] == files[1] == files[2]


# --- every line is accounted for

CHUNKS = st.sampled_from(
    ["the", "th", "e", " a", "\n", "数", "🙂", "\u0000", oracle.EOD, "<|bos|>", '"', "\\", "x"]
)
TEXT = st.lists(CHUNKS, max_size=6).map("".join)


def document_lines(text: str) -> st.SearchStrategy[bytes]:
    """Strategy for JSON encodings of ``text``."""
    return st.sampled_from(
        [
            json.dumps({"text": text}).encode(),
            json.dumps({"text": text}, ensure_ascii=False).encode(),
            b' {"x": [1, {"text": 3}], "text" : ' + json.dumps(text).encode() + b"\t}",
            json.dumps({"a": "b"}).encode()[:-1]
            + b', "text": 1, "text": '
            + json.dumps(text).encode()
            + b"}",
            b'{"te\\u0078t": ' + json.dumps(text).encode() + b"}",
        ]
    )


LINE = st.one_of(
    TEXT.flatmap(document_lines),
    st.sampled_from([b"", b" ", b"\t  ", b'{"text": ""}']),
    st.sampled_from([bad.line for kind, bad in BAD.items() if kind != "oversize"]),
    st.binary(max_size=12).filter(lambda line: b"\n" not in line and b"\x0c" not in line),
)


@settings(
    max_examples=extent(150, 50),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(
    lines=st.lists(LINE, max_size=12),
    ending=st.sampled_from([b"\n", b"\r\n"]),
    is_ended=st.booleans(),
    bom=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    empty=st.sampled_from(["skip", "keep"]),
)
def test_every_line_is_packed_empty_blank_or_rejected(
    tmp_path: Path, small: Path, lines: list[bytes], ending: bytes, is_ended: bool, bom: bytes, empty: str
) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_bytes(bom + ending.join(lines) + (ending if is_ended and lines else b""))
    lines = oracle.lines_of(corpus)
    texts = [None if not line.strip(b" \t\r\n") else oracle.text_of(line) for line in lines]
    kinds = ["blank" if not line.strip(b" \t\r\n") else "bad" for line in lines]
    documents: list[list[int]] = []
    text_counts = {"bytes": 0, "tokens": 0}
    ids = oracle.encode(oracle.load(small), [text for text in texts if text is not None])
    for i, text in enumerate(texts):
        if text is not None:
            text_ids = next(ids)
            kinds[i] = "packed" if text_ids or empty == "keep" else "empty"
            if kinds[i] == "packed":
                documents.append(oracle.close(text_ids, 300))
                text_counts["bytes"] += len(text.encode())
                text_counts["tokens"] += len(text_ids)

    report = pack(tmp_path, small, on_bad_document="skip", max_rejects="100%", empty_document=empty)

    output = (tmp_path / "out.pbin").read_bytes()
    assert output.startswith(reference.modalities_bytes(documents, 2))
    pbin = reference.read_pbin(tmp_path / "out.pbin")
    assert pbin.documents == documents
    counts = {
        "documents": len(documents),
        "tokens": sum(map(len, documents)),
        "lines": len(lines),
        "packed": kinds.count("packed"),
        "empty": kinds.count("empty"),
        "blank": kinds.count("blank"),
        "rejected": kinds.count("bad"),
        "eods_in_text": sum(document.count(300) - 1 for document in documents),
    }
    assert pbin.metadata is not None
    assert pbin.metadata["counts"].pop("text") == text_counts
    assert pbin.metadata["counts"] == counts
    assert {name: getattr(report, name) for name in counts} == counts
    assert report.lines == report.packed + report.empty + report.blank + report.rejected
    assert rejected_lines(tmp_path / "out.pbin.rejects.jsonl") == [
        i + 1 for i, kind in enumerate(kinds) if kind == "bad"
    ]


def rejected_lines(path: Path) -> list[int]:
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [json.loads(line)["line"] for line in lines]


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (b'{"text": "a"}\r\n{"text": "b"}\r\n', ["a", "b"]),
        (b'{"text": "a"}\n{"text": "b"}', ["a", "b"]),
        (b'\xef\xbb\xbf{"text": "a"}\n', ["a"]),
        (b'\n\n{"text": "a"}\n\n \t\r\n{"text": "b"}\n\n', ["a", "b"]),
        (b'{"text": "a\\u0000\\ud83d\\ude42\\"\\/"}', ['a\0🙂"/']),
        (b'{"text": "x", "text": "a"}', ["a"]),
        (b"", []),
        (b"\n", []),
        (b"\xef\xbb\xbf", []),
    ],
)
def test_white_space_around_lines_does_not_matter(
    tmp_path: Path, small: Path, content: bytes, texts: list[str]
) -> None:
    (tmp_path / "corpus.jsonl").write_bytes(content)
    report = pack(tmp_path, small)
    assert packed_documents(tmp_path / "out.pbin") == expected_documents(small, texts)
    assert (report.packed, report.lines) == (len(texts), len(texts) + report.blank)


def test_empty_corpus_gives_a_valid_file_and_a_warning(tmp_path: Path, small: Path) -> None:
    (tmp_path / "corpus.jsonl").write_bytes(b"")
    report = pack(tmp_path, small)
    assert (report.documents, report.lines) == (0, 0)
    assert report.warnings == ("no document was packed; the output is valid but empty",)
    assert (tmp_path / "out.pbin").read_bytes().startswith(reference.modalities_bytes([], 2))
    assert len(packtok.PbinReader(str(tmp_path / "out.pbin"))) == 0


# --- EOD, BOS and empty documents


def test_empty_documents(tmp_path: Path, small: Path) -> None:
    corpus = oracle.write_lines(tmp_path / "corpus.jsonl", ["a", "", "b"])
    a, b = expected_documents(small, ["a", "b"])
    report = pack(tmp_path, small)
    assert (report.packed, report.empty) == (2, 1)
    assert packed_documents(tmp_path / "out.pbin") == [a, b]
    report = pack(tmp_path, small, empty_document="keep")
    assert (report.packed, report.empty) == (3, 0)
    assert packed_documents(tmp_path / "out.pbin") == [a, [300], b]
    for on_bad_document in ("fail", "skip"):
        with pytest.raises(packtok.DocumentError) as caught:
            pack(tmp_path, small, empty_document="fail", on_bad_document=on_bad_document)
        assert str(caught.value) == (
            f"{corpus}:2: byte 14: the document is empty: it has no tokens before EOD; "
            "set empty_document to skip or keep"
        )


def test_eod_is_not_doubled_and_is_counted_inside(tmp_path: Path, small: Path) -> None:
    eod = oracle.EOD
    oracle.write_lines(tmp_path / "corpus.jsonl", [f"a{eod}", f"a{eod}{eod}", f"{eod}a", eod, f"a{eod} "])
    report = pack(tmp_path, small)
    vocab = oracle.load(small).get_vocab()
    a, space = vocab["a"], vocab["Ġ"]
    documents = [[a, 300], [a, 300, 300], [300, a, 300], [300], [a, 300, space, 300]]
    assert packed_documents(tmp_path / "out.pbin") == documents
    assert report.eods_in_text == 3


def test_bos_opens_every_document_once(tmp_path: Path, small: Path) -> None:
    oracle.write_lines(tmp_path / "corpus.jsonl", ["a", "<|bos|>a", "", "the"])
    pack(tmp_path, small, bos="<|bos|>", empty_document="keep")
    vocab = oracle.load(small).get_vocab()
    a, the = vocab["a"], vocab["the"]
    assert packed_documents(tmp_path / "out.pbin") == [[301, a, 300], [301, a, 300], [300], [301, the, 300]]
    metadata = packtok.PbinReader(str(tmp_path / "out.pbin")).metadata
    assert metadata is not None
    assert (metadata["bos"], metadata["eod"]) == (
        {"token": "<|bos|>", "id": 301},
        {"token": oracle.EOD, "id": 300},
    )


@pytest.mark.parametrize("role", ["eod", "bos"])
@pytest.mark.parametrize("token", ["a b", "</s>", "🙂"])
def test_eod_and_bos_must_be_one_token(tmp_path: Path, small: Path, role: str, token: str) -> None:
    oracle.write_lines(tmp_path / "corpus.jsonl", ["a"])
    with pytest.raises((packtok.TokenizerError, ValueError)) as caught:
        pack(tmp_path, small, **{role: token})
    assert oracle.EOD in str(caught.value)
    assert "<|bos|>" in str(caught.value)
    assert repr(token)[1:-1] in str(caught.value)
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize(
    ("vocab_size", "added", "width"),
    [
        (300, (oracle.EOD,), 2),
        (65_535, (oracle.EOD,), 2),
        (65_536, (oracle.EOD,), 4),
        (65_535, (oracle.EOD, "<x>"), 4),
    ],
)
def test_width_follows_the_highest_id_added_tokens_included(
    tmp_path: Path, vocab_size: int, added: tuple[str, ...], width: int
) -> None:
    tokenizer = oracle.byte_level(tmp_path / "tokenizer.json", vocab_size=vocab_size, added=added)
    oracle.write_lines(tmp_path / "corpus.jsonl", ["the thing", added[-1]])
    report = pack(tmp_path, tokenizer)
    pbin = reference.read_pbin(tmp_path / "out.pbin")
    assert pbin.width == width == report.token_bytes
    assert pbin.documents == expected_documents(tokenizer, ["the thing", added[-1]])
    assert pbin.metadata is not None
    assert pbin.metadata["tokenizer"]["vocab_size"] == vocab_size + len(added)


# --- padding and truncation


def padded_tokenizer(folder: Path, files: dict[str, Any] | None = None, **sections: Any) -> Path:
    """Writes a tokenizer that adds EOD, with the files next to it and sections of tokenizer.json."""
    folder.mkdir()
    processor = oracle.template(before=("<|bos|>",), after=("<sep>",), ids={"<|bos|>": 301, "<sep>": 302})
    added = (oracle.EOD, "<|bos|>", "<sep>", "<pad>")
    path = oracle.byte_level(folder / "tokenizer.json", added=added, post_processor=processor)
    path.write_text(json.dumps(json.loads(path.read_text()) | sections), encoding="utf-8")
    for name, content in (files or {}).items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return path


def wheel_ids(path: Path, texts: list[str], length: int, sides: tuple[str, str], pad: str) -> list[list[int]]:
    """Returns the ids that the wheel gives with truncation and padding at these sides."""
    wheel = oracle.load(path)
    wheel.enable_truncation(length, direction=sides[0])
    wheel.enable_padding(length=length, direction=sides[1], pad_id=wheel.token_to_id(pad), pad_token=pad)
    return [encoding.ids for encoding in wheel.encode_batch(texts)]


PADDED_TEXTS = ["the thing that is longer", "", "a", f"x{oracle.EOD}y", f"ends{oracle.EOD}", "12345678"]


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("pad", ["<pad>", oracle.EOD])
@pytest.mark.parametrize(
    "sides", [("left", "left"), ("left", "right"), ("right", "left"), ("right", "right")]
)
def test_padding_and_truncation_give_the_ids_of_the_wheel(
    tmp_path: Path, sides: tuple[str, str], pad: str, engine: str
) -> None:
    config = {"truncation_side": sides[0], "padding_side": sides[1], "pad_token": pad}
    tokenizer = padded_tokenizer(tmp_path / "tokenizer", {"tokenizer_config.json": config})
    oracle.write_lines(tmp_path / "corpus.jsonl", PADDED_TEXTS)
    for length in (2, 9, 30):
        report = pack(
            tmp_path, tokenizer, truncation=True, padding="max_length", max_length=length, engine=engine
        )
        ids = wheel_ids(tokenizer, PADDED_TEXTS, length, sides, pad)
        pbin = reference.read_pbin(tmp_path / "out.pbin")
        assert pbin.documents == [oracle.close(text_ids, 300) for text_ids in ids]
        assert pbin.metadata is not None
        assert "text" not in pbin.metadata["counts"]
        # Padding with EOD at the end closes a document.
        unpadded = wheel_ids(tokenizer, PADDED_TEXTS, length, sides, "<pad>")
        num_of_texts = sum(text_ids.count(300) for text_ids in unpadded)
        num_closing = sum(text_ids[-1] == 300 for text_ids in unpadded)
        assert report.eods_in_text == num_of_texts - num_closing


def test_padding_comes_from_the_file_that_transformers_reads_first(tmp_path: Path) -> None:
    padding = {"strategy": {"Fixed": 3}, "direction": "Left", "pad_to_multiple_of": None, "pad_id": 1}
    padding |= {"pad_type_id": 0, "pad_token": "<sep>"}
    cases: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], str, str]] = [
        ({"pad_token": "<pad>", "padding_side": "right"}, {"padding": padding}, {}, "right", "<pad>"),
        ({}, {"padding": padding}, {}, "left", "<sep>"),
        ({}, {"padding": padding}, {"special_tokens": {"pad_token": "<pad>"}}, "left", "<pad>"),
        ({"tokenizer_class": "LlamaTokenizerFast", "pad_token": "<pad>"}, {}, {}, "left", "<pad>"),
        ({"tokenizer_class": "GPT2Tokenizer", "pad_token": "<pad>"}, {}, {}, "right", "<pad>"),
    ]
    oracle.write_lines(tmp_path / "corpus.jsonl", ["a"])
    for i, (config, sections, options, side, pad) in enumerate(cases):
        tokenizer = padded_tokenizer(tmp_path / str(i), {"tokenizer_config.json": config}, **sections)
        component = {
            "pretrained_model_name_or_path": str(tokenizer),
            "padding": "max_length",
            "max_length": 6,
        }
        packtok.pack(
            {"tokenizer": {"config": component | options}},
            input=tmp_path / "corpus.jsonl",
            output=tmp_path / "out.pbin",
            eod=oracle.EOD,
            existing="replace",
        )
        ids = wheel_ids(tokenizer, ["a"], 6, ("right", side), pad)
        assert packed_documents(tmp_path / "out.pbin") == [oracle.close(ids[0], 300)], i


def test_padding_without_truncation_leaves_longer_documents(tmp_path: Path) -> None:
    tokenizer = padded_tokenizer(tmp_path / "t", {"special_tokens_map.json": {"pad_token": "<pad>"}})
    oracle.write_lines(tmp_path / "corpus.jsonl", ["12345", "1"])
    pack(tmp_path, tokenizer, padding="max_length", max_length=5)
    assert [len(document) for document in packed_documents(tmp_path / "out.pbin")] == [8, 6]


def test_padding_needs_a_token_and_a_possible_length(tmp_path: Path) -> None:
    oracle.write_lines(tmp_path / "corpus.jsonl", ["a"])
    bare = padded_tokenizer(tmp_path / "bare")
    absent = padded_tokenizer(tmp_path / "absent", {"tokenizer_config.json": {"pad_token": "[PAD]"}})
    odd = {"pad_token": "<pad>", "padding_side": "up"}
    cases = [
        (
            bare,
            9,
            "padding: tokenizer.config.padding is 'max_length', but bare names no pad_token; name one of its "
            "tokens as pad_token in tokenizer.config.special_tokens",
        ),
        (
            absent,
            9,
            "padding: tokenizer.config.padding is 'max_length', but absent does not have its pad_token "
            "'[PAD]'; name one of its tokens as pad_token in tokenizer.config.special_tokens",
        ),
        (
            padded_tokenizer(tmp_path / "odd", {"tokenizer_config.json": odd}),
            9,
            f"{tmp_path}/odd/tokenizer_config.json: padding_side is 'up'; expected 'left' or 'right'",
        ),
        (
            padded_tokenizer(tmp_path / "long", {"tokenizer_config.json": {"pad_token": "<pad>"}}),
            1 << 40,
            "max_length: tokenizer.config.max_length is 1099511627776; documents can be padded to at most "
            "16777216 ids; lower it, or remove padding",
        ),
    ]
    for tokenizer, length, message in cases:
        with pytest.raises((ValueError, packtok.TokenizerError)) as caught:
            pack(tmp_path, tokenizer, padding="max_length", max_length=length)
        assert str(caught.value) == message
        assert not (tmp_path / "out.pbin").exists()


def test_padding_is_recorded_and_compared(tmp_path: Path) -> None:
    config = {"pad_token": "<pad>", "padding_side": "left", "truncation_side": "left"}
    tokenizer = padded_tokenizer(tmp_path / "t", {"tokenizer_config.json": config})
    oracle.write_lines(tmp_path / "corpus.jsonl", ["a", "the thing that is longer"])
    options = {"padding": "max_length", "truncation": True, "max_length": 5}
    pack(tmp_path, tokenizer, **options, origins=True)
    metadata = reference.read_pbin(tmp_path / "out.pbin").metadata
    assert metadata is not None
    recorded = {key: metadata["options"][key] for key in ("truncate_to", "truncate_side", "padding")}
    padding = {"length": 5, "id": 303, "side": "left"}
    assert recorded == {"truncate_to": 5, "truncate_side": "left", "padding": padding}
    # Verification needs no config: it pads as the file records.
    assert packtok.verify_origins(str(tmp_path / "out.pbin"), str(tmp_path)) == {
        "documents": 2,
        "compared": 2,
    }
    packtok.verify_corpus(
        str(tmp_path / "out.pbin"),
        {
            "settings": {"src_path": str(tmp_path / "corpus.jsonl")},
            "tokenizer": {"config": {"pretrained_model_name_or_path": str(tokenizer), **options}},
        },
    )
    with pytest.raises(packtok.PacktokError, match="its option padding is "):
        pack(tmp_path, tokenizer, **options | {"padding": "longest"}, origins=True, existing="skip")


# --- token width


def test_requested_width_is_written_recorded_and_compared(small: Path, tmp_path: Path) -> None:
    oracle.write_lines(tmp_path / "corpus.jsonl", ["a", "the thing that is longer", ""])
    assert pack(tmp_path, small).token_bytes == 2
    narrow = reference.read_pbin(tmp_path / "out.pbin")
    assert narrow.metadata is not None
    assert "token_width" not in narrow.metadata["options"]
    with pytest.raises(packtok.PacktokError, match="token_width"):
        pack(tmp_path, small, token_width="uint32", existing="skip")
    assert pack(tmp_path, small, token_width="uint32", existing="replace").token_bytes == 4
    wide = reference.read_pbin(tmp_path / "out.pbin")
    assert wide.metadata is not None
    assert wide.metadata["options"]["token_width"] == "uint32"
    assert packtok.PbinReader(tmp_path / "out.pbin").dtype == "uint32"
    assert wide.documents == narrow.documents
    assert packtok.verify(str(tmp_path / "out.pbin"))["unchecked"] == []
    packtok.verify_corpus(
        str(tmp_path / "out.pbin"),
        {
            "settings": {"src_path": str(tmp_path / "corpus.jsonl")},
            "tokenizer": {"config": {"pretrained_model_name_or_path": str(small)}},
        },
    )


def test_width_that_is_too_narrow_is_an_error(tmp_path: Path) -> None:
    oracle.write_lines(tmp_path / "corpus.jsonl", ["a"])
    with pytest.raises(ValueError, match="token_width") as caught:
        pack(tmp_path, "cl100k_base", token_width="uint16")
    assert str(caught.value) == (
        "token_width: settings.token_width is uint16, but cl100k_base has 100277 ids, which need uint32; "
        "set it to uint32 or auto"
    )
    assert not (tmp_path / "out.pbin").exists()


# --- limits


def test_limits_end_a_run_after_complete_documents(tmp_path: Path, small: Path) -> None:
    # Five documents of three tokens each; blank lines between them.
    (tmp_path / "corpus.jsonl").write_bytes(b'{"text": "xy"}\n\n' * 5)
    whole = expected_documents(small, ["xy"] * 5)
    for options, num_documents, lines in [
        ({"max_documents": 1}, 1, 1),
        ({"max_documents": 2}, 2, 3),
        ({"max_documents": 5}, 5, 9),
        ({"max_documents": 6}, 5, 10),
        ({"max_tokens": 2}, 0, 0),
        ({"max_tokens": 3}, 1, 1),
        # The run ends at the document that would exceed the limit, so the blank line before it counts.
        ({"max_tokens": 8}, 2, 4),
        ({"max_tokens": 9}, 3, 5),
        ({"max_tokens": 100}, 5, 10),
        ({"max_tokens": 9, "max_documents": 2}, 2, 3),
    ]:
        report = pack(tmp_path, small, **options)
        assert packed_documents(tmp_path / "out.pbin") == whole[:num_documents], options
        assert report.lines == lines == report.packed + report.blank, options
        assert report.stopped_early == (lines < 10), options


def test_bad_document_beyond_the_limit_is_ignored(tmp_path: Path, small: Path) -> None:
    (tmp_path / "corpus.jsonl").write_bytes(b'{"text": "a"}\n{"text": 5}\n')
    assert pack(tmp_path, small, max_documents=1).packed == 1


# --- inputs


def test_compressed_input_gives_the_same_documents(tmp_path: Path, small: Path) -> None:
    lines = [json.dumps({"text": f"document {i} the"}).encode() + b"\n" for i in range(2000)]
    plain = b"".join(lines)
    halves = plain[: len(plain) // 3], plain[len(plain) // 3 :]
    zstd = zstandard.ZstdCompressor(write_content_size=False)
    skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00skip"
    variants = {
        "corpus.jsonl": plain,
        "corpus.jsonl.gz": gzip.compress(plain),
        "members.corpus.jsonl.gz": gzip.compress(halves[0]) + gzip.compress(b"") + gzip.compress(halves[1]),
        "corpus.jsonl.zst": zstd.compress(plain),
        "frames.corpus.jsonl.zst": zstd.compress(halves[0]) + skippable + zstd.compress(halves[1]),
    }
    documents = expected_documents(small, [f"document {i} the" for i in range(2000)])
    for name, content in variants.items():
        (tmp_path / name).write_bytes(content)
        report = pack(tmp_path, small, input=tmp_path / name)
        assert packed_documents(tmp_path / "out.pbin") == documents, name
        (source,) = reference.read_pbin(tmp_path / "out.pbin").sources
        assert source == {"path": name, "bytes": len(content), "crc32c": reference.crc32c(content)}
        assert report.source_bytes == len(content)


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_damaged_compression_is_an_error(tmp_path: Path, small: Path, kind: str) -> None:
    plain = b"".join(json.dumps({"text": f"{i}"}).encode() + b"\n" for i in range(5000))
    whole = gzip.compress(plain) if kind == "gz" else zstandard.ZstdCompressor().compress(plain)
    path = tmp_path / f"corpus.jsonl.{kind}"
    for content in (whole + b"garbage", whole + b"\0" * 16, whole[: len(whole) // 2], whole[:-1], b""):
        path.write_bytes(content)
        with pytest.raises((packtok.PacktokError, OSError, ValueError)) as caught:
            pack(tmp_path, small, input=path)
        assert "compressed data is corrupt, truncated or followed by other data" in str(caught.value)
        assert str(path) in str(caught.value)
        assert left_behind(tmp_path) == []


def test_zstd_window_over_128_mib_needs_an_option(tmp_path: Path, small: Path) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=28, write_content_size=False)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    content = compressor.compress(b'{"text": "a"}\n' * 9) + compressor.flush()
    path = tmp_path / "corpus.jsonl.zst"
    path.write_bytes(content)
    with pytest.raises((packtok.PacktokError, OSError, ValueError)) as caught:
        pack(tmp_path, small, input=path)
    assert str(caught.value) == (
        f"{path}: a zstd frame needs a window larger than 2^27 bytes; raise zstd_window_log, to at most 31"
    )
    assert pack(tmp_path, small, input=path, zstd_window_log=28).packed == 9


def test_inputs_keep_their_order_and_folders_use_natural_order(tmp_path: Path, small: Path) -> None:
    names = ["part10", "part9", "part1", "sub/a2", "sub/a10", "Zeta", "part09"]
    for name in names:
        path = tmp_path / "corpus" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        oracle.write_lines(path, [name])
    folder = tmp_path / "corpus"
    (folder / "notes.txt").write_text("not a corpus")
    (folder / ".hidden.jsonl").write_text('{"text": "hidden"}\n')
    wheel = oracle.load(small)

    def order(*inputs: Path) -> list[str]:
        pack(tmp_path, small, input=[str(path) for path in inputs])
        documents = packed_documents(tmp_path / "out.pbin")
        sources = reference.read_pbin(tmp_path / "out.pbin").sources
        texts = [wheel.decode(document[:-1]) for document in documents]
        assert [
            source["path"].removesuffix(".jsonl").endswith(text)
            for source, text in zip(sources, texts, strict=True)
        ]
        return texts

    in_order = order(folder)
    assert in_order.index("part1") < in_order.index("part9") < in_order.index("part10")
    assert in_order.index("sub/a2") < in_order.index("sub/a10")
    assert sorted(in_order) == sorted(names)
    assert order(folder / "part10.jsonl", folder / "part9.jsonl") == ["part10", "part9"]
    assert order(folder / "part?.jsonl") == ["part1", "part9"]
    assert order(folder / "Zeta.jsonl", folder / "sub") == ["Zeta", "sub/a2", "sub/a10"]
    assert order(folder / "**" / "a*.jsonl") == ["sub/a2", "sub/a10"]


def test_index_selects_the_lines_to_pack(tmp_path: Path, small: Path) -> None:
    lines = [json.dumps({"text": text}).encode() for text in ("zero", "one", "two", "three")]
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_bytes(b"\n".join(lines) + b"\n")
    offsets = [sum(len(line) + 1 for line in lines[:i]) for i in range(4)]
    index = tmp_path / "corpus.idx"
    index.write_bytes(pickle.dumps([(offsets[i], len(lines[i])) for i in (3, 1)]))
    report = pack(tmp_path, small, index_path=index)
    assert packed_documents(tmp_path / "out.pbin") == expected_documents(small, ["three", "one"])
    assert (report.lines, report.packed) == (2, 2)
    index.write_bytes(pickle.dumps([(offsets[3], len(lines[3]) + 2)]))
    with pytest.raises(packtok.PacktokError) as caught:
        pack(tmp_path, small, index_path=index)
    assert str(caught.value) == (
        f"{corpus}: index entry 0 covers {len(lines[3]) + 2} bytes from byte {offsets[3]}, but the file has "
        f"{offsets[3] + len(lines[3]) + 1} bytes; rebuild the index from this file"
    )


def test_index_that_would_execute_code_is_rejected(tmp_path: Path, small: Path) -> None:
    oracle.write_lines(tmp_path / "corpus.jsonl", ["a"])
    trace = tmp_path / "corpus-trace"
    (tmp_path / "corpus.idx").write_bytes(b"cos\nsystem\n(S'touch " + str(trace).encode() + b"'\ntR.")
    with pytest.raises(packtok.PbinFormatError):
        pack(tmp_path, small, index_path=tmp_path / "corpus.idx")
    assert not trace.exists()


# --- an existing output


def config_with_index(folder: Path, tokenizer: Path, index_path: Path) -> dict[str, Any]:
    settings = {"src_path": str(folder / "corpus.jsonl"), "dst_path": str(folder / "out.pbin")}
    return {"settings": {**settings, "index_path": str(index_path)}, "tokenizer": str(tokenizer)}


def test_missing_index_of_all_lines_in_a_config_is_not_needed(tmp_path: Path, small: Path) -> None:
    oracle.write_lines(tmp_path / "corpus.jsonl", ["a", "b"])
    index = tmp_path / "elsewhere" / "corpus.idx"
    report = packtok.pack(config_with_index(tmp_path, small, index))
    assert report.packed == 2
    assert report.warnings == (
        f"settings.index_path: no such file: {index}; it has the name of the index of all lines, which "
        "packtok does not need: the whole corpus is packed",
    )


def test_warnings_are_told_before_and_after_the_run(tmp_path: Path, small: Path) -> None:
    (tmp_path / "corpus.jsonl").write_bytes(b"")
    warnings_: list[Any] = []
    config = config_with_index(tmp_path, small, tmp_path / "elsewhere" / "corpus.idx")
    report = packtok.pack(config, on_warnings=warnings_.append)
    first, last = warnings_
    assert (*first, *last) == report.warnings
    warnings_.clear()
    packtok.plan(config, output=tmp_path / "shards", shards=2, on_warnings=warnings_.append)
    assert warnings_ == [first]


def test_missing_index_that_may_select_lines_is_an_error(tmp_path: Path, small: Path) -> None:
    oracle.write_lines(tmp_path / "corpus.jsonl", ["a", "b"])
    text = "no such raw index; remove index_path to pack the whole corpus"
    # The index is needed if its name is mistyped, or if the argument requests it under any name.
    for name, run in (
        ("corpsu.idx", lambda index: packtok.pack(config_with_index(tmp_path, small, index))),
        ("corpus.idx", lambda index: pack(tmp_path, small, index_path=index)),
    ):
        index = tmp_path / name
        with pytest.raises(FileNotFoundError) as caught:
            run(index)
        assert str(caught.value) == f"[Errno 2] {text}: '{index}'"
        assert not (tmp_path / "out.pbin").exists()


def test_index_of_pickle_that_names_a_line_twice_is_read(tmp_path: Path, small: Path) -> None:
    texts = ["zero", "one", "two"]
    lines = [json.dumps({"text": text}).encode() for text in texts]
    (tmp_path / "corpus.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    spans = [(sum(len(line) + 1 for line in lines[:i]), len(lines[i])) for i in range(3)]
    for protocol in (2, 3, 4, 5):
        with (tmp_path / "some.idx").open("wb") as file:
            pickle.dump([spans[2], spans[0], spans[2]], file, protocol=protocol)
        pack(tmp_path, small, index_path=tmp_path / "some.idx", existing="replace")
        expected = expected_documents(small, ["two", "zero", "two"])
        assert packed_documents(tmp_path / "out.pbin") == expected


def test_bad_document_is_a_value_error_as_in_modalities(tmp_path: Path, small: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"text": 1}\n')
    with pytest.raises(ValueError, match=r"corpus\.jsonl:1: byte 0: ") as caught:
        pack(tmp_path, small)
    assert type(caught.value) is packtok.DocumentError
    assert packtok.DocumentError.__mro__[1:3] == (packtok.PacktokError, ValueError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (packtok.DocumentError, str(caught.value))


def test_existing_output_is_an_error_by_default(tmp_path: Path, small: Path) -> None:
    oracle.write_lines(tmp_path / "corpus.jsonl", ["a"])
    output = tmp_path / "out.pbin"
    output.write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        pack(tmp_path, small, existing="error")
    assert output.read_bytes() == b"precious"
    pack(tmp_path, small, existing="replace")
    assert len(packtok.PbinReader(str(output))) == 1


def test_skip_keeps_a_complete_equal_file(tmp_path: Path, small: Path) -> None:
    oracle.write_lines(tmp_path / "corpus.jsonl", ["a", "b"])
    first = pack(tmp_path, small)
    before = (tmp_path / "out.pbin").stat()
    report = pack(tmp_path, small, existing="skip", num_cpus=7)
    after = (tmp_path / "out.pbin").stat()
    assert report.skipped_existing
    assert (report.documents, report.tokens) == (first.documents, first.tokens)
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_skip_packs_if_there_is_no_output(tmp_path: Path, small: Path) -> None:
    oracle.write_lines(tmp_path / "corpus.jsonl", ["a"])
    assert not pack(tmp_path, small, existing="skip").skipped_existing
    assert len(packtok.PbinReader(str(tmp_path / "out.pbin"))) == 1


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("source", "its source 0"),
        ("name", "its source 0"),
        ("more", "its source 1"),
        ("option", "its option empty_document"),
        ("field", "its option field"),
        ("eod", "its EOD"),
        ("bos", "its BOS"),
        ("tokenizer", "its tokenizer"),
        ("limit", "its option max_documents"),
    ],
)
def test_skip_rejects_a_file_made_with_other_options(
    tmp_path: Path, small: Path, change: str, named: str
) -> None:
    corpus = oracle.write_lines(tmp_path / "corpus.jsonl", ["a", "b"])
    pack(tmp_path, small)
    before = (tmp_path / "out.pbin").read_bytes()
    options: dict[str, Any] = {}
    tokenizer = small
    match change:
        case "source":
            corpus.write_bytes(corpus.read_bytes().replace(b'"a"', b'"c"'))
        case "name":
            options["input"] = corpus.rename(tmp_path / "corpus2.jsonl")
        case "more":
            options["input"] = [str(corpus), str(oracle.write_lines(tmp_path / "corpus3.jsonl", ["d"]))]
        case "option":
            options["empty_document"] = "keep"
        case "field":
            options["field"] = '.["text"]|.'
        case "eod":
            options["eod"] = "<|bos|>"
        case "bos":
            options["bos"] = "<|bos|>"
        case "limit":
            options["max_documents"] = 2
        case "tokenizer":
            tokenizer = oracle.byte_level(tmp_path / "corpus-tokenizer.json", merges=(("t", "h"),))
    with pytest.raises(packtok.PacktokError) as caught:
        pack(tmp_path, tokenizer, existing="skip", **options)
    message = str(caught.value)
    start = (
        f"{tmp_path / 'out.pbin'}: the existing output differs from what this run would write: {named} is "
    )
    assert message.startswith(start)
    assert message.endswith("; set existing to replace, or choose another output")
    assert (tmp_path / "out.pbin").read_bytes() == before


def test_skip_rejects_a_damaged_file(tmp_path: Path, small: Path) -> None:
    oracle.write_lines(tmp_path / "corpus.jsonl", ["a thing that is long enough", "b"])
    pack(tmp_path, small)
    output = tmp_path / "out.pbin"
    whole = output.read_bytes()
    index = 12 + int.from_bytes(whole[:8], "little")
    for at in (0, 8, 13, index, index + 20, len(whole) // 2, len(whole) - 1):
        output.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(packtok.PbinFormatError):
            pack(tmp_path, small, existing="skip")
    output.write_bytes(whole[:-5])
    with pytest.raises(packtok.PbinFormatError):
        pack(tmp_path, small, existing="skip")
    output.write_bytes(reference.modalities_bytes(packed_documents_of(whole, tmp_path), 2))
    with pytest.raises(packtok.PacktokError, match="has no trailer, so its origin cannot be verified"):
        pack(tmp_path, small, existing="skip")


def packed_documents_of(file: bytes, folder: Path) -> list[list[int]]:
    path = folder / "corpus-whole.pbin"
    path.write_bytes(file)
    return packed_documents(path)


# --- what the trailer holds, and what it does not


def test_output_does_not_depend_on_folders(
    tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for place, (folder, threads) in enumerate([("one", 1), ("two/deeper", 5)]):
        corpus = tmp_path / folder / "data"
        corpus.mkdir(parents=True)
        oracle.write_lines(corpus / "a.jsonl", ["a", "the"])
        oracle.write_lines(corpus / "b.jsonl", ["b", ""])
        os.utime(corpus / "a.jsonl", (place, place))
        monkeypatch.chdir(tmp_path / folder)
        tokenizer = tmp_path / folder / "mine" / "tokenizer.json"
        tokenizer.parent.mkdir()
        shutil.copy(small, tokenizer)
        packtok.pack(
            input="data" if place else str(corpus),
            output="out.pbin",
            tokenizer="mine/tokenizer.json" if place else str(tokenizer.parent),
            num_cpus=threads,
        )
        files.append((tmp_path / folder / "out.pbin").read_bytes())
    assert files[0] == files[1]
    assert [source["path"] for source in reference.read_pbin(tmp_path / "one/out.pbin").sources] == [
        "a.jsonl",
        "b.jsonl",
    ]
    for secret in (str(tmp_path), tmp_path.name, "two", os.uname().nodename):
        assert secret.encode() not in files[0]


def test_tokenizer_has_one_name_however_its_path_is_written(
    tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    shutil.copy(small, folder / "tokenizer.json")
    oracle.write_lines(folder / "corpus.jsonl", ["a"])
    monkeypatch.chdir(folder)
    for name in (folder, folder / "tokenizer.json", ".", "tokenizer.json", "../mine"):
        pack(folder, str(name))
        metadata = packtok.PbinReader(str(folder / "out.pbin")).metadata
        assert metadata is not None
        assert metadata["tokenizer"]["name"] == "mine", name


def test_tokenizer_is_stored_with_the_data(tmp_path: Path, small: Path) -> None:
    oracle.write_lines(tmp_path / "corpus.jsonl", ["the thing"])
    report = pack(tmp_path, small)
    assert report.tokenizer_path == str(tmp_path / "out.pbin.tokenizer.json")
    beside = tmp_path / "beside.pbin"
    pack(tmp_path, report.tokenizer_path, output=beside)
    assert packed_documents(beside) == packed_documents(tmp_path / "out.pbin")
    fingerprints = {
        reference.read_pbin(path).metadata["tokenizer"]["fingerprint"]  # type: ignore[index]
        for path in (beside, tmp_path / "out.pbin")
    }
    assert len(fingerprints) == 1


def test_trailer_describes_the_ids(tmp_path: Path, small: Path) -> None:
    oracle.write_lines(tmp_path / "corpus.jsonl", ["the", ""])
    pack(tmp_path, small, max_length=9, truncation=True)
    metadata = reference.read_pbin(tmp_path / "out.pbin").metadata
    assert metadata is not None
    fingerprint = metadata["tokenizer"].pop("fingerprint")
    assert fingerprint.startswith("sha256:")
    assert metadata == {
        "writer": {"name": "packtok", "version": packtok.__version__},
        "tokenizer": {"name": metadata["tokenizer"]["name"], "vocab_size": 302},
        "eod": {"token": oracle.EOD, "id": 300},
        "counts": {
            "documents": 1,
            "tokens": 2,
            "lines": 2,
            "packed": 1,
            "empty": 1,
            "blank": 0,
            "rejected": 0,
            "eods_in_text": 0,
        },
        "options": {
            "field": ".text",
            "add_special_tokens": True,
            "special_tokens_in_text": "parse",
            "empty_document": "skip",
            "truncate_to": 9,
            "max_document_bytes": 1 << 30,
        },
        "stopped_early": False,
    }
