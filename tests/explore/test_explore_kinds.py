"""Tokens by kind on the page of `packtok explore`, compared with a plain computation."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import oracle
import pytest
import reference
from explore_site import TEXTS, Served, notes, served, write_corpus

import packtok
from packtok.explore.files import NotServedError
from packtok.explore.pages import kinds
from packtok.explore.site import site_of_file, site_of_folder

EOD = "<|endoftext|>"
MIXED = [*TEXTS, "In 2024, 1,500 \u5c0f\u8aac and 90 \U0001f9a9 cost \u20ac3.50!\n\n\n", "   \n", ""]
LABELS = ["Words", "Numbers", "White space", "Punctuation, symbols", "Parts of characters"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kinds")
    corpus = write_corpus(folder / "c.jsonl", MIXED)
    packtok.pack(input=corpus, output=folder / "a.pbin", tokenizer="gpt2", empty_document="keep")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    with served(site_of_file(folder / "a.pbin")) as running:
        yield running


def facts(server: Served, query: str = "") -> Any:
    return json.loads(server.get(f"/kinds/a.pbin?format=json{query}").text)


def kind_of(content: bytes) -> str:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "bytes"
    if any(character.isalpha() for character in text):
        return "word"
    if any(character.isnumeric() for character in text):
        return "number"
    return "white_space" if text.isspace() else "symbol"


def counted(name: str, ids: Sequence[int]) -> dict[str, int]:
    """Returns the kinds of tokens, whose names in the vocabulary have a letter for each byte."""
    bytes_of = {letter: byte for byte, letter in enumerate(oracle.letters_of_bytes())}
    tokenizer = packtok.Tokenizer.builtin(name)
    names = [tokenizer.id_to_token(id_) or "" for id_ in ids]
    return Counter(kind_of(bytes(bytes_of[letter] for letter in name)) for name in names if name != EOD)


def test_kinds_agree_with_a_plain_computation(server: Served, folder: Path) -> None:
    answer = facts(server, "&compare=cl100k_base")
    documents = reference.read_pbin(folder / "a.pbin").documents
    texts = [text.replace(EOD, "") for text in MIXED]
    num_bytes = sum(len(text.encode()) for text in texts)
    other = packtok.Tokenizer.builtin("cl100k_base")
    ids = {
        "gpt2": [id_ for document in documents for id_ in document],
        "cl100k_base": [id_ for text in texts for id_ in other.encode(text).tolist()],
    }
    assert (answer["num_documents"], answer["documents"], answer["bytes"]) == (28, 28, num_bytes)
    assert {row["name"] for row in answer["tokenizers"]} == {*ids}
    for row in answer["tokenizers"]:
        expected = counted(row["name"], ids[row["name"]])
        assert {kind: number for kind, number in row["kinds"].items() if number} == expected
        assert all(expected[kind] for kind in ("word", "number", "white_space", "symbol", "bytes"))
        assert row["tokens"] == sum(expected.values())
        assert row["bytes_per_token"] == num_bytes / row["tokens"]
        # One text has an EOD, and each document ends with one.
        assert row["special"] == (len(MIXED) + 1 if row["is_own"] else 0)


def test_page_has_the_numbers_of_the_json(server: Served) -> None:
    page = server.page("/kinds/a.pbin?compare=cl100k_base")
    header = page.all("th", scope="col")
    assert header == ["Tokenizer", "Bytes per token", "Tokens", *LABELS, "Special"]
    for row, expected in zip(
        page.rows("kinds"), facts(server, "&compare=cl100k_base")["tokenizers"], strict=True
    ):
        assert row[0] == expected["name"] + (" this file" if expected["is_own"] else "")
        assert row[1] == f"{expected['bytes_per_token']:.2f}"
        numbers = [expected["kinds"][kind] for kind in ("word", "number", "white_space", "symbol", "bytes")]
        shares = [f"{number:,} {100 * number / expected['tokens']:.1f} %" for number in numbers]
        assert row[2:] == [f"{expected['tokens']:,}", *shares, str(expected["special"])]
    checked = [
        attributes["value"]
        for tag, attributes, _ in page.elements
        if tag == "input" and "checked" in attributes
    ]
    assert checked == ["cl100k_base"]


def test_sample_is_limited_always_the_same_and_says_how_large_it_is(
    folder: Path, server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds, "MAX_DOCUMENTS", 9)
    monkeypatch.setattr(kinds, "MAX_DOCUMENT_TOKENS", 5)
    first = facts(server)
    assert first["documents"] == 9
    assert 9 < first["tokenizers"][0]["tokens"] <= 9 * 5
    with served(site_of_file(folder / "a.pbin")) as other:
        assert facts(other) == first
        text = " ".join(other.page("/kinds/a.pbin").text.split())
    assert f"A sample of 9 of 28 documents with {first['bytes']} bytes of text" in text
    assert "more than 5 tokens" in text
    monkeypatch.setattr(kinds, "MAX_BYTES", 20)
    assert 1 <= facts(server)["documents"] < 9
    assert facts(server)["bytes"] >= 20


def test_tokenizer_that_does_not_exist_is_an_error(server: Served) -> None:
    answer = server.get("/kinds/a.pbin?compare=/etc/passwd")
    assert answer.status == 404
    assert "/etc/passwd: no such tokenizer" in answer.text


def test_file_without_tokenizer_or_documents_says_so(tmp_path: Path) -> None:
    reference.write_modalities(tmp_path / "a.pbin", [[7, 8]], 2)
    with served(site_of_file(tmp_path / "a.pbin")) as running:
        (note,) = notes(running.get("/kinds/a.pbin").text)
        assert re.match("The tokens cannot be classified: the file does not say which tokenizer", note)
        answer = facts(running)
        assert answer["tokenizers"] == []
        assert answer["reason"] in note
    reference.write_modalities(tmp_path / "a.pbin", [], 2)
    with served(site_of_file(tmp_path / "a.pbin")) as running:
        assert "no documents" in running.page("/kinds/a.pbin").text
        assert (facts(running)["num_documents"], facts(running)["documents"]) == (0, None)


def test_files_with_different_tokenizers_have_no_sample(folder: Path) -> None:
    packtok.pack(input=folder / "c.jsonl", output=folder / "b.pbin", tokenizer="cl100k_base")
    site = site_of_folder(folder)
    group = site.files.group("both", ["a.pbin", "b.pbin"])
    with pytest.raises(NotServedError, match=r"b\.pbin was packed with another tokenizer than a\.pbin"):
        kinds.sample_of(site, group, packtok.Tokenizer.builtin("gpt2"))
