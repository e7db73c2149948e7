"""`packtok.Tokenizer`: the wheel's ids, for many texts on any number of threads, and decoding."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from repository import ROOT
from small_tokenizers import unigram, wheel_of, word_piece, write_tokenizer
from stories import TOKENIZER
from tokenizers import Tokenizer as Wheel

import packtok
from packtok import Tokenizer

TEXTS = [
    "",
    "Hello world",
    "  two  spaces\n\n",
    "Grüße aus Köln, 数 🙂",
    "a<|endoftext|>b",
    "e\u0301\u200d\u0000",
    "1234567 it's",
]


def bpe_with_template(folder: Path) -> Tokenizer:
    processor = oracle.template(
        before=("<|bos|>",), after=(oracle.EOD,), ids={oracle.EOD: 300, "<|bos|>": 301}
    )
    return Tokenizer.from_file(oracle.byte_level(folder / "bpe.json", post_processor=processor))


def from_wheel(make: Callable[[], Wheel]) -> Callable[[Path], Tokenizer]:
    return lambda _: Tokenizer(make().to_str().encode())


TOKENIZERS: dict[str, Callable[[Path], Tokenizer]] = {
    "gpt2": lambda _: Tokenizer.builtin("gpt2"),
    "template": bpe_with_template,
    "word_piece": from_wheel(word_piece),
    "unigram": from_wheel(unigram),
}


@pytest.fixture(scope="module", params=TOKENIZERS)
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return TOKENIZERS[request.param](tmp_path_factory.mktemp("tokenizer"))


@lru_cache(maxsize=1)
def _gpt2() -> Tokenizer:
    return Tokenizer.builtin("gpt2")


@lru_cache(maxsize=1)
def wheel_of_gpt2() -> Wheel:
    return wheel_of(_gpt2())


@pytest.fixture(scope="module")
def gpt2() -> Tokenizer:
    return _gpt2()


@pytest.mark.parametrize("add_special_tokens", [True, False])
def test_ids_equal_those_of_the_wheel(tokenizer: Tokenizer, add_special_tokens: bool) -> None:
    expected = list(oracle.encode(wheel_of(tokenizer), TEXTS, add_special_tokens=add_special_tokens))
    for text, ids in zip(TEXTS, expected, strict=True):
        array = tokenizer.encode(text, add_special_tokens=add_special_tokens)
        assert array.dtype == np.uint32
        assert array.tolist() == ids
    flat, offsets = tokenizer.encode_batch(TEXTS, add_special_tokens=add_special_tokens)
    assert (flat.dtype, offsets.dtype) == (np.uint32, np.int64)
    assert flat.tolist() == [id for ids in expected for id in ids]
    assert offsets.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    counts = tokenizer.count(TEXTS, add_special_tokens=add_special_tokens)
    assert counts.dtype == np.int64
    assert counts.tolist() == [len(ids) for ids in expected]


def test_special_tokens_in_text_are_parsed_read_as_text_or_rejected(gpt2: Tokenizer) -> None:
    text = "a<|endoftext|>"
    assert gpt2.encode(text).tolist() == [64, 50256]
    wheel = wheel_of(gpt2)
    wheel.encode_special_tokens = True
    as_text = gpt2.encode(text, special_tokens_in_text="text").tolist()
    assert as_text == wheel.encode(text).ids
    assert gpt2.encode_batch([text, text], special_tokens_in_text="text")[0].tolist() == 2 * as_text
    assert gpt2.count([text], special_tokens_in_text="text").tolist() == [len(as_text)]
    refused = {"special_tokens_in_text": "fail"}
    message = 'the text contains the special token "<|endoftext|>"'
    for call, start in [
        (lambda: gpt2.encode(text, **refused), ""),
        (lambda: gpt2.encode_batch(["b", text], **refused), "texts[1]: "),
        (lambda: gpt2.count(["b", "c", text], **refused), "texts[2]: "),
    ]:
        with pytest.raises(packtok.DocumentError) as caught:
            call()
        assert str(caught.value) == start + message


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.text(max_size=20), max_size=8))
def test_any_texts_round_trip_through_ids(texts: list[str]) -> None:
    tokenizer = _gpt2()
    flat, offsets = tokenizer.encode_batch(texts)
    expected = [encoding.ids for encoding in wheel_of_gpt2().encode_batch(texts)]
    parts = [flat[start:stop].tolist() for start, stop in pairwise(offsets.tolist())]
    assert parts == expected
    assert tokenizer.decode_batch(flat, offsets) == texts


def test_batch_encoding_does_not_depend_on_threads(tokenizer: Tokenizer) -> None:
    # Enough for several batches of texts on each thread.
    texts = [f"{i} {TEXTS[i % len(TEXTS)]} " * (i % 45) for i in range(3000)]
    expected = tokenizer.encode_batch(texts, threads=1)
    assert len(expected[0]) > 50_000
    for threads in (2, 7, None):
        encoded = tokenizer.encode_batch(texts, threads=threads)
        assert all(np.array_equal(array, other) for array, other in zip(encoded, expected, strict=True))
        assert np.array_equal(tokenizer.count(texts, threads=threads), np.diff(expected[1]))


def test_texts_can_come_from_any_iterable(gpt2: Tokenizer) -> None:
    expected = gpt2.encode_batch(["a", "b c"])[0].tolist()
    for texts in (("a", "b c"), iter(["a", "b c"]), np.array(["a", "b c"]), (text for text in ("a", "b c"))):
        assert gpt2.encode_batch(texts)[0].tolist() == expected
    flat, offsets = gpt2.encode_batch([])
    assert (flat.tolist(), offsets.tolist(), gpt2.count([]).tolist()) == ([], [0], [])


def test_ids_decode_to_the_text_of_the_wheel(tokenizer: Tokenizer) -> None:
    wheel = wheel_of(tokenizer)
    rng = np.random.default_rng(1)
    lists = [[id] for id in range(min(tokenizer.vocab_size, 3000))]
    lists += [rng.integers(tokenizer.vocab_size, size=size).tolist() for size in range(200)]
    special = [id for _, id in tokenizer.special_tokens]
    lists += [[*special, 5, *special, 6], special]
    flat = [id for ids in lists for id in ids]
    offsets = np.cumsum([0, *map(len, lists)])
    for skip in (False, True):
        expected = wheel.decode_batch(lists, skip_special_tokens=skip)
        assert tokenizer.decode_batch(flat, offsets, skip_special_tokens=skip, threads=3) == expected
        assert [tokenizer.decode(ids, skip_special_tokens=skip) for ids in lists[-20:]] == expected[-20:]


def test_special_tokens_are_skipped_as_in_the_wheel(tmp_path: Path) -> None:
    # The wheel identifies special tokens by their text. The normalizer changes the text of one token, which
    # is therefore kept.
    file = json.loads(oracle.byte_level(tmp_path / "t.json").read_text())
    file["normalizer"] = {"type": "Prepend", "prepend": "_"}
    file["added_tokens"][0]["normalized"] = True
    tokenizer = Tokenizer(json.dumps(file).encode())
    ids = [64, 300, 65, 301]
    for skips in (True, False):
        expected = wheel_of(tokenizer).decode(ids, skip_special_tokens=skips)
        assert tokenizer.decode(ids, skip_special_tokens=skips) == expected


@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", ">u2", ">i8"]
)
def test_ids_to_decode_can_have_any_integer_type(gpt2: Tokenizer, dtype: str) -> None:
    ids = np.array([40, 3, 12, 99, 0, 1], dtype=dtype)
    assert gpt2.decode(ids) == gpt2.decode(ids.tolist()) == wheel_of_gpt2().decode(ids.tolist())
    assert gpt2.decode(ids[::2]) == gpt2.decode(ids.tolist()[::2])
    assert gpt2.decode_batch(ids, np.array([1, 3, 3, 6], dtype=dtype)) == [
        gpt2.decode(part) for part in ([3, 12], [], [99, 0, 1])
    ]


def test_documents_of_a_pbin_are_decoded(gpt2: Tokenizer, tmp_path: Path) -> None:
    corpus = oracle.write_lines(tmp_path / "c.jsonl", TEXTS[1:])
    packtok.pack(input=corpus, output=tmp_path / "c.pbin", tokenizer="gpt2")
    reader = packtok.PbinReader(tmp_path / "c.pbin")
    assert gpt2.decode(reader[0]) == f"{TEXTS[1]}{oracle.EOD}"
    assert gpt2.decode(reader[0], skip_special_tokens=True) == TEXTS[1]
    assert gpt2.token_bytes == reader.dtype.itemsize == 2


def test_every_token_has_the_string_and_the_id_of_the_wheel(tokenizer: Tokenizer) -> None:
    wheel = wheel_of(tokenizer)
    for id in range(tokenizer.vocab_size):
        name = tokenizer.id_to_token(id)
        assert name == wheel.id_to_token(id)
        assert name is not None
        assert tokenizer.token_to_id(name) == wheel.token_to_id(name) == id
    assert tokenizer.id_to_token(tokenizer.vocab_size) is None
    assert tokenizer.token_to_id("no such token") is None
    assert tokenizer.vocab_size == wheel.get_vocab_size()


def _fingerprint_and_ids(tokenizer: Tokenizer) -> tuple[Any, ...]:
    return tokenizer.name, tokenizer.fingerprint, tokenizer.eos_token, tokenizer.encode("a b").tolist()


def test_tokenizer_pickles_with_its_content(tmp_path: Path) -> None:
    folder = write_tokenizer(tmp_path / "named", {"eos_token": "</s>", "truncation_side": "left"})
    tokenizer = Tokenizer.from_pretrained(folder)
    assert (tokenizer.name, tokenizer.eos_token) == ("named", "</s>")
    assert any("truncation_side" in note for note in tokenizer.notes)
    pickled = pickle.dumps(tokenizer)
    (folder / "tokenizer.json").unlink()
    copy = pickle.loads(pickled)
    assert _fingerprint_and_ids(copy) == _fingerprint_and_ids(tokenizer)
    assert copy.notes == tokenizer.notes
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(_fingerprint_and_ids, tokenizer).result() == _fingerprint_and_ids(tokenizer)


def test_forked_process_can_encode(gpt2: Tokenizer) -> None:
    texts = ["some words " * 2000] * 40
    expected = gpt2.count(texts, threads=2).tolist()
    # The child inherits the tokenizer and its encoders from before the fork.
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        assert pool.submit(_counted_by_gpt2, texts).result(timeout=60) == expected


def _counted_by_gpt2(texts: list[str]) -> list[int]:
    counts: list[int] = _gpt2().count(texts, threads=2).tolist()
    return counts


def test_names_work_as_in_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Tokenizer.from_pretrained("gpt2").eos_token == oracle.EOD
    folder = write_tokenizer(tmp_path / "mine")
    by_folder, by_file = (
        Tokenizer.from_pretrained(folder),
        Tokenizer.from_pretrained(folder / "tokenizer.json"),
    )
    assert (
        by_folder.fingerprint
        == by_file.fingerprint
        == Tokenizer.from_file(folder / "tokenizer.json").fingerprint
    )
    with pytest.raises(FileNotFoundError, match="no such tokenizer file or folder"):
        Tokenizer.from_pretrained(str(tmp_path / "none.json"))


def test_invalid_arguments_are_named(gpt2: Tokenizer) -> None:
    cases: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (
            lambda: gpt2.encode_batch("a"),
            TypeError,
            "texts is a str, expected a list or another iterable of str",
        ),
        (lambda: gpt2.encode(5), TypeError, "text is int, expected a str"),  # type: ignore[arg-type]
        (lambda: gpt2.count(["a", 5]), TypeError, "texts[1] is int, expected a str"),  # type: ignore[list-item]
        (lambda: gpt2.encode_batch(["a"], threads=0), ValueError, "threads is 0, expected 1 to 4096"),
        (
            lambda: gpt2.encode("a", special_tokens_in_text="x"),
            ValueError,
            'special_tokens_in_text is "x", expected one of parse, text, fail',
        ),
        (
            lambda: gpt2.decode([5, 50257]),
            ValueError,
            "ids[1] is 50257, expected an id below 50257",
        ),
        (lambda: gpt2.decode([5, -1]), ValueError, "ids[1] is -1, expected an id, from 0 to 4294967295"),
        (
            lambda: gpt2.decode([1.5]),
            TypeError,
            "ids: found list of float64 with 1 dimensions, expected a one-dimensional array of integers",
        ),
        (lambda: gpt2.decode_batch([1], [0, 2]), ValueError, "offsets end at 2, but there are 1 ids"),
        (
            lambda: gpt2.decode_batch([1, 2], [0, 2, 1]),
            ValueError,
            "offsets[2] is 1, less than the preceding 2; offsets must not decrease",
        ),
        (
            lambda: Tokenizer(b"{}", "t.json"),
            packtok.TokenizerError,
            "t.json: not a tokenizer.json: model is missing, expected an object",
        ),
    ]
    for call, error, message in cases:
        with pytest.raises(error) as caught:
            call()
        assert (type(caught.value), str(caught.value)) == (error, message)


def test_callable_returns_lists_like_hugging_face(tmp_path: Path) -> None:
    tokenizer = bpe_with_template(tmp_path)
    wheel, call = wheel_of(tokenizer), tokenizer.as_hf()
    single, many = wheel.encode("the cat").ids, [wheel.encode(text).ids for text in TEXTS]
    assert call("the cat") == {"input_ids": single, "attention_mask": [1] * len(single)}
    assert call(TEXTS)["input_ids"] == many
    assert call(TEXTS)["attention_mask"] == [[1] * len(ids) for ids in many]
    without = wheel.encode("the cat", add_special_tokens=False).ids
    assert call("the cat", add_special_tokens=False, return_attention_mask=False) == {"input_ids": without}
    assert call.encode("the cat") == single
    assert all(type(id) is int for id in single)
    assert call.decode(single, skip_special_tokens=True) == "the cat"
    assert call.decode(single[1]) == wheel.decode([single[1]])
    assert call.convert_tokens_to_ids(["<|bos|>", "none"]) == [301, None]
    assert (call.eos_token, call.eos_token_id) == (None, None)
    hf = Tokenizer.from_pretrained("gpt2").as_hf()
    assert (hf.eos_token, hf.eos_token_id, hf.vocab_size, len(hf)) == (oracle.EOD, 50256, 50257, 50257)
    assert pickle.loads(pickle.dumps(hf))("a b") == hf("a b")
    with pytest.raises(TypeError, match="padding"):
        hf("a", padding=True)  # type: ignore[call-arg]


def test_documentation_shows_the_results_of_the_calls() -> None:
    chapter = ROOT / "docs" / "guides" / "tokenizers.md"
    names: dict[str, Any] = {}
    num_results = 0
    for block in re.findall(r"^```python\n(.*?)^```", chapter.read_text(encoding="utf-8"), re.M | re.S):
        for line in block.splitlines():
            code, _, result = line.partition("  # ")
            if not result or not re.match(r"[\[{(0-9']|array", result.strip()):
                exec(code, names)
                continue
            value = eval(code, names)
            # Text after a colon or semicolon is an explanation.
            assert re.split(r"[;:] [a-z.]", result.strip())[0] == re.sub(r"\s+", " ", repr(value)), line
            num_results += 1
    assert num_results == 8


def test_importing_the_package_does_not_import_numpy() -> None:
    program = (
        "import packtok, sys; packtok.Tokenizer; print({'numpy', 'torch', 'pydantic'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_interrupt_ends_a_long_call(tmp_path: Path) -> None:
    # A hundred times longer than the delay of the signal, on any machine.
    program = (
        "import os, signal, threading, packtok\n"
        "texts = ['some words and 12 numbers ' * 400] * 100_000\n"
        "tokenizer = packtok.Tokenizer.builtin('gpt2')\n"
        "threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try:\n    tokenizer.count(texts, threads=2)\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "interrupted\n"


def test_pieces_are_the_bytes_of_the_text(shared: Path) -> None:
    tokenizers = [Tokenizer.builtin("gpt2"), Tokenizer.from_file(TOKENIZER)]
    models = (*shared.glob("tokenizers/sentencepiece/*.model"), shared / "tokenizers/llama2/tokenizer.json")
    tokenizers += [Tokenizer.from_file(path) for path in models]
    for text in (
        "Hello  world, it's — naïve 数学 😀😀 \n\n\tTab <s> </s> .",
        "  leading",
        "日本語",
        "\u200b",
        "",
    ):
        for tokenizer in tokenizers:
            ids = tokenizer.encode(text)
            pieces = tokenizer.pieces(ids)
            assert len(pieces) == len(ids)
            assert b"".join(pieces).decode() == tokenizer.decode(ids)


def test_builtin_tokenizers_do_not_depend_on_what_was_used_before() -> None:
    names = ["gpt2", "gpt2", "r50k_base", "cl100k_base", "gpt2"]
    tokenizers = [Tokenizer.builtin(name) for name in names]
    assert [tokenizer.name for tokenizer in tokenizers] == names
    assert [tokenizer.vocab_size for tokenizer in tokenizers] == [50257, 50257, 50257, 100277, 50257]
    assert [tokenizer.bos_token for tokenizer in tokenizers] == [
        "<|endoftext|>" if name == "gpt2" else None for name in names
    ]
