"""The costs of the pages of `packtok explore`: bytes read and open files; and texts that start within a
document.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import socket
import struct
import tempfile
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import reference
from explore_site import Served, notes, served, served_folder, write_corpus, write_metadata

import packtok
from packtok.explore.contents import tokenizers
from packtok.explore.html import texts
from packtok.explore.html.texts import markdown
from packtok.explore.pages import compare, items, rows
from packtok.explore.site import Site, site_of_file

TOKEN = "t" * 20


class Counted:
    """A reader that counts the requests to it."""

    def __init__(self, reader: packtok.PbinReader) -> None:
        self._reader = reader
        self.used: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        self.used[name] += 1
        return getattr(self._reader, name)

    def __len__(self) -> int:
        return len(self._reader)

    def __getitem__(self, i: int) -> Any:
        return self._reader[i]


def packed(folder: Path, texts: list[str], **options: object) -> Site:
    corpus = write_corpus(folder / "c.jsonl", texts)
    packtok.pack(input=corpus, output=folder / "a.pbin", tokenizer="gpt2", **options)
    return site_of_file(folder / "a.pbin")


def short_documents(folder: Path, number: int) -> Site:
    reference.write_modalities(folder / "a.pbin", [[1, 2]] * number, 2)
    return site_of_file(folder / "a.pbin")


def test_sources_and_lengths_of_all_documents_are_read_once(tmp_path: Path) -> None:
    site = packed(tmp_path, ["a", "b c"], origins=True)
    file = site.files.open("a.pbin")
    counted = Counted(file.reader)
    file.reader = counted  # type: ignore[assignment]
    with served(site) as server:
        for path in ("file/a.pbin", "documents/a.pbin", "file/a.pbin", "documents/a.pbin?document=1"):
            server.page(f"/{path}")
        assert server.get("/documents/a.pbin?source=0").status == 303
    assert (counted.used["sources"], counted.used["document_lengths_histogram"]) == (1, 1)


def test_first_page_of_a_file_waits_for_no_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def builtin(name: str) -> packtok.Tokenizer:
        loaded.append(name)
        return packtok.Tokenizer.builtin(name)

    site = packed(tmp_path, ["a", "b c"])
    counted = SimpleNamespace(builtin=builtin, builtin_names=packtok.Tokenizer.builtin_names)
    monkeypatch.setattr(tokenizers, "Tokenizer", counted)
    site.prepare()
    assert loaded == ["gpt2"]
    with served(site) as server:
        assert server.page("/documents/a.pbin?document=1").tokens()
    assert loaded == ["gpt2"]


def test_plans_leave_no_files_and_no_mappings_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with served(short_documents(tmp_path, 20)) as server:
        for length in (4, 8, 4):
            page = server.page(f"/items/a.pbin?packing=best_fit&context_length={length}&item=1")
            assert [id_ for _, id_ in page.tokens()] == [1, 2] * (length // 2)
        assert not list((tmp_path / "temporary").iterdir())
        # Not even one without a name.
        assert str(tmp_path / "temporary") not in Path("/proc/self/maps").read_text()


def test_plan_of_a_file_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    def counted(*arguments: Any, **options: Any) -> Path:
        lengths.append(options["block_size"])
        return packtok._packtok.find_or_plan(*arguments, **options)

    monkeypatch.setattr(items, "find_or_plan", counted)
    with served(short_documents(tmp_path, 20)) as server:
        for length, item in ((4, 0), (8, 1), (4, 2), (8, 0)):
            server.page(f"/items/a.pbin?packing=best_fit&context_length={length}&item={item}")
    assert lengths == [4, 8]


def test_plan_with_too_many_parts_of_documents_is_refused(tmp_path: Path) -> None:
    header, index = struct.pack("<QI", 12_000_000, 2), pickle.dumps([(0, 12_000_000)])
    with (tmp_path / "a.pbin").open("wb") as file:
        file.write(header)
        file.seek(12_000_000, os.SEEK_CUR)
        file.write(index)
    with served(site_of_file(tmp_path / "a.pbin")) as server:
        answer = server.get("/items/a.pbin?packing=best_fit&context_length=1")
        assert answer.status == 400
        (note,) = notes(answer.text)
        assert "its plan has about 6,000,001 parts of documents, too many for a page" in note
        server.page("/items/a.pbin?packing=best_fit&context_length=2048")


def test_index_of_folders_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    write_metadata(tmp_path / "base" / "x" / "data", name="Some", description="described")
    with served_folder(tmp_path / "base") as server:
        for query in ("", "?q=described", "?sort=name"):
            assert server.page(f"/{query}").all("h3") == ["Some"]
        assert not list((tmp_path / "temporary").iterdir())


def test_item_with_thousands_of_documents_lists_those_that_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def segment(*values: Any) -> rows.Segment:
        made.append(values)
        return original(*values)

    original = rows.Segment
    monkeypatch.setattr(rows, "Segment", segment)
    with served(short_documents(tmp_path, 20_000)) as server:
        page = server.page("/items/a.pbin?context_length=32767&item=0&from=32700")
    assert "16,384 documents" in [" ".join(text.split()) for text in page.all("li")]
    expected = "Document 16,350 its tokens 0–1 at positions 32,700–32,701"
    assert " ".join(page.all("h3")[0].split()) == expected
    assert len(made) < 700


def test_login_of_a_client_that_leaves_is_no_error_of_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site = short_documents(tmp_path, 2)
    with caplog.at_level(logging.ERROR), served(site, host="0.0.0.0", token=TOKEN) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\ntoken=")
        assert server.get("/login").status == 401
    assert not caplog.records


def test_form_is_not_shown_to_a_browser_that_has_a_session(tmp_path: Path) -> None:
    with served(short_documents(tmp_path, 2), host="0.0.0.0", token=TOKEN) as server:
        answer = server.get("/login", headers={"Host": "x", "Cookie": signed_in(server)})
        assert (answer.status, answer.headers["location"]) == (303, "/")


def signed_in(server: Served) -> str:
    answer = server.get("/login", method="POST", body=f"token={TOKEN}")
    return answer.headers["set-cookie"].split(";")[0]


def test_browser_can_have_sessions_of_two_servers_on_one_host(tmp_path: Path) -> None:
    site = short_documents(tmp_path, 2)
    with (
        served(site, host="0.0.0.0", token=TOKEN) as first,
        served(site, host="0.0.0.0", token=TOKEN) as second,
    ):
        # A browser replaces a cookie by another of the same name.
        jar = dict(signed_in(server).split("=", 1) for server in (first, second))
        cookies = "; ".join(f"{name}={value}" for name, value in jar.items())
        for server in (first, second):
            assert server.get("/documents/a.pbin", headers={"Cookie": cookies}).status == 200


def test_links_keep_the_length_of_parts(tmp_path: Path) -> None:
    site = packed(tmp_path, ["one two three four five six seven eight nine ten"] * 2)
    with served(site) as server:
        page = server.page("/documents/a.pbin?document=0&window=3&from=3")
        assert "/documents/a.pbin?document=0&window=3" in page.links()
        assert "/documents/a.pbin?document=0&from=6&window=3" in page.links()
        assert "/documents/a.pbin?document=1&window=3" in page.links()
        random = server.get("/documents/a.pbin?random=1&seed=1&window=3")
        assert random.headers["location"].endswith("&window=3")


def words_with_spaces(folder: Path) -> packtok.Tokenizer:
    """A tokenizer whose decoder removes the space at the start of a text."""
    vocab = [["<unk>", 0.0], ["\u2581a", -1.0], ["\u2581b", -1.0], ["<0xC3>", -9.0], ["<0xA9>", -9.0]]
    decoders = [
        {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ]
    model = {"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": True}
    decoder = {"type": "Sequence", "decoders": decoders}
    return packtok.Tokenizer(json.dumps({"model": model, "decoder": decoder}).encode(), "words")


def test_space_at_the_start_of_a_part_is_shown(tmp_path: Path) -> None:
    reference.write_modalities(tmp_path / "a.pbin", [[1, 2, 3, 4, 2, 1]] * 2, 2)
    site = site_of_file(tmp_path / "a.pbin", words_with_spaces(tmp_path))
    with served(site) as server:
        for path, expected in [
            ("documents/a.pbin?document=0&window=2", ["a", " b"]),
            ("documents/a.pbin?document=0&window=2&from=1", [" b", "C3"]),
            ("documents/a.pbin?document=0&window=2&from=4", [" b", " a"]),
            ("items/a.pbin?context_length=4&item=1", [" b", " a", " a", " b"]),
        ]:
            assert [text for text, _ in server.page(f"/{path}").tokens()] == expected
        labels = [row[3] for row in server.page("/items/a.pbin?context_length=4&item=1").rows("positions")]
        assert labels == [" a", " a next document", " b", "C3"]


@pytest.fixture
def one_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads one built-in tokenizer, where a page would load all."""
    monkeypatch.setattr(compare, "tokenizer_names", lambda _: {"gpt2": "gpt2"})


@pytest.mark.usefixtures("one_tokenizer")
def test_tokens_that_packing_adds_are_not_compared(tmp_path: Path) -> None:
    site = packed(tmp_path, ["one two", "three"], bos="<|endoftext|>")
    with served(site) as server:
        for document, length in ((0, 2), (1, 1)):
            page = server.page(f"/documents/a.pbin?document={document}&compare=gpt2&counts=1")
            assert len(page.tokens()) == length + 2
            assert len(page.tokens("o")) == length
            assert page.rows("grid")[0][1] == str(length)


@pytest.mark.usefixtures("one_tokenizer")
def test_tokens_that_the_tokenizer_adds_are_not_compared(tmp_path: Path) -> None:
    processor = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<s>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "</s>", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {
            name: {"id": name, "ids": [i], "tokens": [name]} for i, name in enumerate(("<s>", "</s>"))
        },
    }
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    added = [
        {"id": i, "content": name, "special": True, "single_word": False, "lstrip": False, "rstrip": False}
        | {"normalized": False}
        for i, name in enumerate(("<s>", "</s>", "<eod>"))
    ]
    model = {"type": "BPE", "vocab": {"<s>": 0, "</s>": 1, "<eod>": 2, "a": 3, "b": 4}, "merges": []}
    content = {"model": model, "pre_tokenizer": byte_level, "decoder": byte_level, "added_tokens": added}
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps({**content, "post_processor": processor}))
    corpus = write_corpus(tmp_path / "c.jsonl", ["ab", "<s>a"])
    packtok.pack(input=corpus, output=tmp_path / "a.pbin", tokenizer=str(file), eod="<eod>")
    with served(site_of_file(tmp_path / "a.pbin")) as server:
        for document, ids, tokens in ((0, [0, 3, 4, 1, 2], "2"), (1, [0, 0, 3, 1, 2], "2")):
            page = server.page(f"/documents/a.pbin?document={document}&counts=1")
            assert [id_ for _, id_ in page.tokens()] == ids
            own = [row for row in page.rows("grid") if "this file" in row[0]]
            assert own[0][1] == tokens


def test_every_one_of_many_sources_can_be_chosen(tmp_path: Path) -> None:
    for i in range(201):
        write_corpus(tmp_path / "raw" / f"{i:03}.jsonl", [f"text {i}"])
    packtok.pack(input=tmp_path / "raw", output=tmp_path / "a.pbin", tokenizer="gpt2", origins=True)
    with served(site_of_file(tmp_path / "a.pbin")) as server:
        page = server.page("/documents/a.pbin")
        assert "source" in page.attributes("input", "name")
        assert "source" not in page.attributes("select", "name")
        answer = server.get("/documents/a.pbin?source=200")
        assert answer.headers["location"] == "/documents/a.pbin?document=200"


def test_dataset_with_many_tokenized_forms_shows_the_first_ones(tmp_path: Path) -> None:
    write_metadata(tmp_path / "x" / "data", name="D")
    described = {"tokenizer": "gpt2", "file_prefix": "a"}
    for i in range(103):
        folder = tmp_path / "x" / "data" / "tokenized" / "gpt2" / f"{i:03}"
        write_metadata(folder, name="t", tokenized_info=described)
    with served_folder(tmp_path) as server:
        page = server.page("/dataset/x/data")
    assert len([link for link in page.links() if "/tokenized/" in link]) == 100
    assert page.all("li", class_="muted") == ["and 3 more"]


def test_description_is_rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a *rare* text of test_description_is_rendered_once"
    first = markdown(text)
    monkeypatch.setattr(texts, "_markdown", None)
    assert markdown(text) is first


def test_label_after_an_item_that_ends_with_a_document_is_of_the_next_one(tmp_path: Path) -> None:
    with served(short_documents(tmp_path, 9)) as server:
        positions = server.page("/items/a.pbin?context_length=2&item=1").rows("positions")
        assert [row[3].endswith(" next document") for row in positions] == [False, True]
        positions = server.page("/items/a.pbin?context_length=3&item=1").rows("positions")
        assert [row[3].endswith(" next document") for row in positions] == [True, False, True]
