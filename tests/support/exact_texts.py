"""Texts whose ids are compared with the wheel's: slices of corpora, tricky characters, scalar values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import oracle
from repository import CORPUS

import packtok

CORPORA = ["prose", "code", "multi", "nasty"]
# Every scalar value of the planes in which Unicode assigns characters, and some of the others.
SCALARS = [
    chr(scalar)
    for scalar in range(0x80, 0x110000)
    if (scalar >> 16 in (0, 1, 2, 3, 14) or scalar % 61 == 0) and not 0xD800 <= scalar < 0xE000
]
# Scalar values per document: few enough for simple context, many enough to be fast.
GROUP = 64
# Blocks in which Unicode tables of different years differ, and ordinary letters, marks and digits.
TRICKY = (
    "éßıİſǅΣςΩБ٣०৩༣中文가각한ｱﬁ①²½‿–—…“”«»¿¡§¶†‡€™∑≠√←↔😀🧑\u200d🚀🇩🇪"
    "\u0301\u0323\u3099\u200b\u2028\u00a0\u3000\ufeff\x85\u061d\u1b7d\u2e43\u1c89\u1dfa\ua7cb\U00010d40\U0001e5f0"
)


def some(texts: list[str], corpus: str) -> list[str]:
    """Returns the first documents, and single ones from the whole corpus."""
    first, step = (1000, 97) if corpus == "nasty" else (60, 499)
    return texts[:first] + texts[first::step]


@lru_cache(maxsize=1)
def from_all_corpora(shared: Path) -> list[str]:
    """Returns a slice of all corpora, for the fast tests."""
    paths = [(shared / f"corpora/{corpus}.jsonl.zst", corpus) for corpus in CORPORA]
    return [text for path, corpus in paths for text in some(oracle.texts_of(path), corpus)[::2]]


def example_texts() -> list[str]:
    """Returns the corpus in examples/, and each of its texts with a tricky part added."""
    texts = oracle.texts_of(CORPUS)
    tricky = [f"{text[:40]}{char}{text[40:60]} {char}{char} 7{char}" for char in TRICKY for text in texts[:3]]
    return [*texts, *tricky, TRICKY, " ".join(TRICKY), TRICKY.upper(), "", " ", "\n", "a  b   c\t\n d "]


def assert_every_scalar_value_exact(file: Path, folder: Path, eod: str, name: str) -> None:
    """Asserts that all of ``SCALARS`` get the wheel's ids; runs the wheel if their checksum is unknown."""
    texts = [text_of(group) for group in groups_of(SCALARS)]

    def expected() -> Iterator[list[int]]:
        assert differing(file, SCALARS, folder, eod) == []
        return oracle.documents(oracle.load(file), texts, eod)

    path = packed(texts, file, folder / "all.pbin", eod)
    oracle.assert_holds_known(path, f"scalar values, {name}", expected)


def differing(file: Path, scalars: list[str], folder: Path, eod: str) -> list[str]:
    """Returns the scalar values for which packtok and the wheel give different ids, as ``U+XXXX``."""
    suspects = [[scalar] for group in different(file, groups_of(scalars), folder, eod) for scalar in group]
    return [f"U+{ord(scalar):04X}" for (scalar,) in different(file, suspects, folder, eod)]


def groups_of(scalars: list[str]) -> list[list[str]]:
    return [scalars[at : at + GROUP] for at in range(0, len(scalars), GROUP)]


def text_of(group: list[str]) -> str:
    """Returns a document of these scalar values."""
    return "\n".join(f"a{scalar}1 {scalar}b {scalar}{scalar}A" for scalar in group)


def packed(texts: list[str], file: Path, output: Path, eod: str) -> Path:
    """Packs ``texts``, none of which is empty."""
    path = oracle.write_lines(output.with_suffix(".jsonl"), texts)
    packtok.pack(input=path, output=output, tokenizer=str(file), eod=eod, existing="replace")
    return output


def different(file: Path, groups: list[list[str]], folder: Path, eod: str) -> list[list[str]]:
    """Returns the groups for which packtok and the wheel give different ids, with one document per group."""
    texts = [text_of(group) for group in groups]
    reader = packtok.PbinReader(str(packed(texts, file, folder / "groups.pbin", eod)))
    assert len(reader) == len(groups)
    expected = oracle.documents(oracle.load(file), texts, eod)
    return [
        group
        for i, (group, document) in enumerate(zip(groups, expected, strict=True))
        if reader[i].tolist() != document
    ]
