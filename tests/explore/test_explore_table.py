"""The table of documents of `packtok explore`, compared with the lengths and texts of the files."""

from __future__ import annotations

import json
import os
import urllib.parse
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
import reference
from explore_site import TEXTS, Page, Served, notes, served, write_corpus

import packtok
from packtok.explore.pages import table
from packtok.explore.pages.histogram import lengths_of
from packtok.explore.pages.table import DocumentLengths
from packtok.explore.site import site_of_file

GPT2 = packtok.Tokenizer.builtin("gpt2")
TOKENS = [len(GPT2.encode(text)) + 1 for text in TEXTS]
# The lines of the corpus start at these bytes.
BYTES = [0, *accumulate(len(json.dumps({"text": text})) + 1 for text in TEXTS)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("table")
    corpus = write_corpus(folder / "c.jsonl", TEXTS)
    packtok.pack(input=corpus, output=folder / "a.pbin", tokenizer="gpt2", origins=True)
    with served(site_of_file(folder / "a.pbin")) as running:
        yield running


def numbers(page: Page) -> list[int]:
    return [int(row[0]) for row in page.rows("documents")]


def test_table_shows_lengths_texts_and_origins(server: Served) -> None:
    rows = server.page("/table/a.pbin").rows("documents")
    assert [int(row[0]) for row in rows] == list(range(len(TEXTS)))
    assert [int(row[1]) for row in rows] == TOKENS
    for row, text, tokens in zip(rows, TEXTS, TOKENS, strict=True):
        # The text of one document has an EOD, which is a special token and no text.
        plain, num_eods = text.replace("<|endoftext|>", ""), text.count("<|endoftext|>")
        assert int(row[2].replace(",", "")) == len(plain.encode())
        assert row[3] == f"{len(plain.encode()) / (tokens - 1 - num_eods):.2f}"
    assert rows[0][4] == "The quick brown fox jumps over the lazy dog."
    assert "c.jsonl" in rows[0][5]


def test_table_as_json_has_the_values_of_the_page(server: Served) -> None:
    answer = server.get("/table/a.pbin?sort=longest&least=12&format=json")
    assert answer.headers["content-type"] == "application/json"
    facts = json.loads(answer.text)
    rows = facts.pop("rows")
    expected = sorted((i for i in range(len(TOKENS)) if TOKENS[i] >= 12), key=lambda i: -TOKENS[i])
    assert facts == {
        "name": "a.pbin",
        "num_documents": len(TEXTS),
        "sort": "longest",
        "least": 12,
        "most": None,
        "total": len(expected),
        "page": 1,
        "num_pages": 1,
    }
    assert [row["document"] for row in rows] == expected
    assert {row["document"]: row for row in rows}[7] == {
        "document": 7,
        "tokens": TOKENS[7],
        "bytes": len(TEXTS[7].encode()),
        "is_estimate": False,
        "bytes_per_token": len(TEXTS[7].encode()) / (TOKENS[7] - 1),
        "start": TEXTS[7],
        "origin": f"c.jsonl, byte {BYTES[7]:,}",
    }
    assert server.get("/table/a.pbin?format=xml").status == 400


@pytest.mark.parametrize("sort", ["number", "longest", "shortest"])
def test_sort_and_filter_agree_with_a_plain_computation(server: Served, sort: str) -> None:
    keys = {"number": lambda i: i, "longest": lambda i: -TOKENS[i], "shortest": lambda i: TOKENS[i]}
    expected = sorted((i for i in range(len(TOKENS)) if 12 <= TOKENS[i] <= 30), key=keys[sort])
    assert 3 < len(expected) < len(TOKENS)
    assert numbers(server.page(f"/table/a.pbin?sort={sort}&least=12&most=30")) == expected


@pytest.mark.parametrize("longest_first", [False, True])
def test_pages_of_many_equal_lengths_have_each_document_once(longest_first: bool) -> None:
    values = np.random.default_rng(0).integers(1, 9, 500).astype(np.uint64)
    lengths = DocumentLengths(values)
    key = (lambda i: -int(values[i])) if longest_first else (lambda i: int(values[i]))
    expected = sorted((i for i in range(500) if 2 <= values[i] <= 7), key=key)
    found = [
        number
        for start in range(0, 520, 7)
        for number in lengths.by_length(2, 7, start, start + 7, longest_first=longest_first)
    ]
    assert found == expected
    assert lengths.count(2, 7) == len(expected)
    assert lengths.by_length(9, 1 << 63, 0, 7, longest_first=longest_first) == []


def test_lengths_above_4_bytes_are_sorted() -> None:
    lengths = DocumentLengths(np.array([5, (1 << 32) + 3, 3], np.uint64))
    assert lengths.by_length(0, (1 << 64) - 1, 0, 3, longest_first=True) == [1, 0, 2]


def test_bars_of_the_histogram_lead_to_their_documents(server: Served) -> None:
    page = server.page("/file/a.pbin")
    links = [path for path in page.links() if path.startswith("/table/a.pbin?")]
    seen: list[int] = []
    for path in links:
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query))
        found = numbers(server.page(path))
        inside = range(int(query["least"]), int(query["most"]) + 1)
        assert found == [i for i in range(len(TOKENS)) if TOKENS[i] in inside]
        seen += found
    assert sorted(seen) == list(range(len(TEXTS)))
    shares = [float(text.split()[0]) for text in page.all("td") if text.endswith(" %")]
    assert len(shares) >= len(links)
    assert sum(shares) == pytest.approx(100, abs=0.05 * len(shares))


def test_share_of_tokens_of_each_range_is_exact() -> None:
    lengths = lengths_of([np.array([1, 2, 2], np.uint64), np.array([9], np.uint64)], {1, 2, 4, 8})
    assert lengths is not None
    assert [lengths.share(start) for start in (1, 2, 4, 8)] == pytest.approx(
        [100 / 14, 400 / 14, 0, 900 / 14]
    )


def test_wrong_parameters_and_pages_after_the_last_one_are_explained(server: Served) -> None:
    answer = server.get("/table/a.pbin?least=9&most=3")
    assert answer.status == 400
    assert "most is 3, expected at least 9" in answer.text
    assert server.get("/table/a.pbin?sort=size").status == 400
    assert "after the last one" in notes(server.get("/table/a.pbin?page=9").text)[0]
    assert notes(server.get("/table/a.pbin?least=100000").text) == ["No document has such a length."]


def test_without_a_tokenizer_the_table_shows_ids(tmp_path: Path) -> None:
    reference.write_modalities(tmp_path / "a.pbin", [[7, 8], list(range(20))], 2)
    with served(site_of_file(tmp_path / "a.pbin")) as running:
        rows = running.page("/table/a.pbin?sort=longest").rows("documents")
    assert rows == [["1", "20", "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 …"], ["0", "2", "7, 8"]]


def test_json_of_a_file_whose_name_is_no_text_has_its_bytes(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff.pbin")
    reference.write_modalities(tmp_path / name, [[7, 8]], 2)
    with served(site_of_file(tmp_path / name)) as running:
        assert json.loads(running.get("/table/%FF.pbin?format=json").text)["name"] == name


def test_long_documents_are_estimated_and_labelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_DECODED_TOKENS", 4)
    corpus = write_corpus(tmp_path / "c.jsonl", [" a" * 9])
    packtok.pack(input=corpus, output=tmp_path / "a.pbin", tokenizer="gpt2")
    with served(site_of_file(tmp_path / "a.pbin")) as running:
        page = running.page("/table/a.pbin")
    # All documents of a file with one source came from it.
    assert page.rows("documents")[0][1:] == ["10", "≈ 20", "2.00", "a a a a", "c.jsonl"]
    assert "estimated from the first 4 tokens" in page.text


def test_damaged_lengths_are_an_error_that_names_the_file(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", ["a b", "c d"])
    packtok.pack(input=corpus, output=tmp_path / "a.pbin", tokenizer="gpt2")
    content = (tmp_path / "a.pbin").read_bytes()
    offsets = reference.trailer_of(content)[reference.OFFSETS].content
    (tmp_path / "a.pbin").write_bytes(content.replace(offsets, offsets[:8] + b"\4" + offsets[9:]))
    with served(site_of_file(tmp_path / "a.pbin")) as running:
        answer = running.get("/table/a.pbin?sort=longest")
    assert answer.status == 404
    assert "a.pbin: the lengths of its documents are damaged; run packtok verify" in answer.text


def test_sorting_more_documents_than_fit_is_refused_and_their_numbers_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "MAX_TABLE_DOCUMENTS", 2)
    reference.write_modalities(tmp_path / "a.pbin", [[1]] * 3, 2)
    with served(site_of_file(tmp_path / "a.pbin")) as running:
        assert numbers(running.page("/table/a.pbin")) == [0, 1, 2]
        answer = running.get("/table/a.pbin?sort=longest")
    assert answer.status == 404
    assert "expected at most 2" in answer.text
