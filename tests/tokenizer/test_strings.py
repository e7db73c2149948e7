"""Python's strings of all kinds: their ids are those of their UTF-8, however packtok reads them."""

import json
import random
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

import packtok
from packtok._packtok import string_access

# The first and last characters of each length of UTF-8, and of each of Python's widths.
EDGES = "\0\x7f\x80\xff\u0100\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"
ALPHABETS = ["abc ", "aéÿ ", "aéя ", "語、a ", "😀語я a", EDGES]
SURROGATE = "the text contains a lone surrogate, U+{:04X} at index {}, which UTF-8 cannot represent"
# Run by a Python in which packtok does not know how strings are stored.
OTHER_PYTHON = """
import json, sys
sys.implementation.name = "another"
import packtok
from packtok._packtok import string_access
tokenizer = packtok.Tokenizer.builtin("gpt2")
texts = json.load(sys.stdin)
ids, offsets = tokenizer.encode_batch(texts)
errors = []
for call in (lambda: tokenizer.encode("ab\\ud800"), lambda: tokenizer.count(["a", "é\\udfff"])):
    try:
        call()
    except ValueError as error:
        errors.append(str(error))
print(json.dumps([string_access(), ids.tolist(), offsets.tolist(), errors]))
"""


class Named(str):
    """A subclass, which Python stores in another way."""

    __slots__ = ("name",)


def texts_of_all_kinds() -> list[str]:
    """Texts of each width around the lengths that vectors have."""
    rng = random.Random(44)
    lengths = [*range(70), 127, 128, 129, 1000, 70_000]
    texts = ["".join(rng.choices(alphabet, k=length)) for alphabet in ALPHABETS for length in lengths]
    # Long runs of one width, each interrupted by a wider character.
    texts += [("a" * 100 + char) * 3 for char in EDGES]
    return texts


@pytest.fixture(scope="module")
def gpt2() -> packtok.Tokenizer:
    return packtok.Tokenizer.builtin("gpt2")


def test_ids_of_all_kinds_are_those_of_their_utf8(gpt2: packtok.Tokenizer) -> None:
    assert string_access() == ("code points", None)
    texts = texts_of_all_kinds()
    assert [gpt2.decode(gpt2.encode(text)) for text in texts] == texts
    for threads in (1, 2):
        ids, offsets = gpt2.encode_batch(texts, threads=threads)
        assert gpt2.decode_batch(ids, offsets) == texts
        assert gpt2.count(texts, threads=threads).tolist() == (offsets[1:] - offsets[:-1]).tolist()
        # Of these, Python makes the UTF-8.
        subclassed = [Named(text) if i % 2 else text for i, text in enumerate(texts)]
        again, offsets_again = gpt2.encode_batch(subclassed, threads=threads)
        assert (again.tolist(), offsets_again.tolist()) == (ids.tolist(), offsets.tolist())


def test_python_keeps_no_utf8(gpt2: packtok.Tokenizer) -> None:
    text = "".join(["語", "я", "a"] * 100)
    num_bytes = sys.getsizeof(text)
    gpt2.encode(text), gpt2.encode_batch([text]), gpt2.count([text])
    assert sys.getsizeof(text) == num_bytes


@pytest.mark.parametrize(
    ("text", "code_point", "index"),
    [
        ("\ud800", 0xD800, 0),
        ("ab" * 50 + "\udfff", 0xDFFF, 100),
        # A pair is two surrogates, and not the character that UTF-16 would make of it.
        ("語" * 33 + "\ud83d\ude00" + "a" * 40, 0xD83D, 33),
        ("😀" * 20 + "\udc80", 0xDC80, 20),
    ],
    ids=["alone", "last", "pair", "wide"],
)
def test_surrogates_are_named(gpt2: packtok.Tokenizer, text: str, code_point: int, index: int) -> None:
    message = SURROGATE.format(code_point, index)
    calls: list[tuple[str, Callable[[], object]]] = [
        ("", lambda: gpt2.encode(text)),
        ("texts[2]: ", lambda: gpt2.encode_batch(["a", "é", text, text])),
        ("texts[0]: ", lambda: gpt2.count([text, "a"])),
    ]
    for prefix, call in calls:
        with pytest.raises(ValueError, match=f"^{re.escape(prefix + message)}$") as caught:
            call()
        assert type(caught.value) is ValueError


def test_another_python_reads_utf8(gpt2: packtok.Tokenizer) -> None:
    texts = texts_of_all_kinds()
    result = subprocess.run(
        [sys.executable, "-c", OTHER_PYTHON],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    access, ids, offsets, errors = json.loads(result.stdout)
    assert access == ["UTF-8", "this is another, not CPython"]
    expected_ids, expected_offsets = gpt2.encode_batch(texts)
    assert (ids, offsets) == (expected_ids.tolist(), expected_offsets.tolist())
    assert errors == [SURROGATE.format(0xD800, 2), "texts[1]: " + SURROGATE.format(0xDFFF, 1)]


def test_inspect_shows_how_strings_are_read() -> None:
    inspect = [sys.executable, "-m", "packtok", "tokenizer", "inspect", "gpt2", "--json"]
    result = subprocess.run(inspect, capture_output=True, text=True, check=True)
    assert json.loads(result.stdout)["strings"] == {"read_as": "code points", "reason": None}
