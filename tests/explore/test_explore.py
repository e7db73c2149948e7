"""The pages of `packtok explore`: datasets, documents and items, compared with the files."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import struct
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from command_line import PacktokCli
from explore_site import (
    SECOND_FILE,
    TEXTS,
    Page,
    Served,
    make_base,
    notes,
    served,
    served_folder,
    write_corpus,
    write_metadata,
)
from extent import extent

import packtok
from packtok.catalog.index import INDEX_NAME, build_index
from packtok.commands.convert import Reading
from packtok.commands.data import list_datasets, show_dataset
from packtok.commands.explore import site_to_serve
from packtok.explore.contents import catalog
from packtok.explore.files import NotServedError
from packtok.explore.html.tokens import pieces_of, tokens_html
from packtok.explore.pages import compare
from packtok.explore.pages.documents import first_of_source
from packtok.explore.site import Site, site_of_file, site_of_folder

GPT2 = "text/stories/tokenized/gpt2/all/tokenized.pbin"
TWO = "text/stories/tokenized/cl100k_base/two"
EOD = 50256


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(tmp_path_factory.mktemp("explore"))


@pytest.fixture(scope="module")
def site(base: Path) -> Site:
    return site_of_folder(base)


@pytest.fixture(scope="module")
def server(site: Site) -> Iterator[Served]:
    with served(site) as running:
        yield running


@pytest.fixture(scope="module")
def gpt2(site: Site) -> packtok.Tokenizer:
    return site.tokenizers.builtin("gpt2")


@pytest.fixture(scope="module")
def reader(base: Path) -> packtok.PbinReader:
    return packtok.PbinReader(base / GPT2)


def names(page: Page) -> list[str]:
    return [" ".join(text.split()) for text in page.all("h3")]


def facet_counts(page: Page, facet: str) -> dict[str, int]:
    """Returns the values of a facet with their numbers."""
    values = [
        attributes
        for tag, attributes, _ in page.elements
        if tag == "input" and attributes.get("name") == facet
    ]
    labels = {
        attributes.get("for"): text.split() for tag, attributes, text in page.elements if tag == "label"
    }
    return {
        str(attributes["value"]): int(labels[attributes["id"]][-1].replace(",", "")) for attributes in values
    }


def test_search_page_lists_datasets_with_counts_of_facets(server: Served) -> None:
    page = server.page("/")
    assert page.text_of("h2", id="total") == "43 datasets"
    assert len(names(page)) == 25
    assert facet_counts(page, "tokenizer") == {"not tokenized": 41, "cl100k_base": 1, "gpt2": 1}
    assert facet_counts(page, "language") == {"unknown": 40, "en": 3}
    assert facet_counts(page, "license") == {"unknown": 40, "CC0-1.0": 3}
    assert facet_counts(page, "content") == {"text": 43}
    second = server.page("/?page=2")
    assert len(names(second)) == 18
    assert not {*names(page)} & {*names(second)}


def test_words_and_facets_narrow_a_search(server: Served) -> None:
    assert names(server.page("/?q=short+stor&sort=name")) == [
        "Short stories",
        "Short stories-tokenized_cl100k_base_two",
        "Short stories-tokenized_gpt2_all",
    ]
    # A tokenized form has the language and the licence of its raw dataset.
    page = server.page("/?language=en&license=CC0-1.0&tokenizer=gpt2")
    assert names(page) == ["Short stories-tokenized_gpt2_all"]
    assert "Short texts of many kinds." in page.text_of("li", class_="form")
    page = server.page("/?q=short&tokenizer=gpt2&tokenizer=cl100k_base")
    assert page.text_of("h2", id="total") == "2 datasets"
    # The counts of a facet ignore the choice in that facet.
    assert facet_counts(page, "tokenizer") == {"cl100k_base": 1, "gpt2": 1, "not tokenized": 1}
    checked = [
        attributes["value"]
        for tag, attributes, _ in page.elements
        if tag == "input" and "checked" in attributes
    ]
    assert sorted(str(value) for value in checked) == ["cl100k_base", "gpt2"]
    typo = server.page("/?q=shrot+stor&tokenizer=gpt2")
    assert names(typo) == ["Short stories-tokenized_gpt2_all"]
    assert "No word starts with “shrot”. Searched instead: short." in notes(typo.html)
    without = "/?q=short&tokenizer=cl100k_base"
    assert without in page.links()
    assert server.page(without).text_of("h2", id="total") == "1 dataset"
    assert server.page("/?q=nothing+at+all").text_of("h2", id="total") == "0 datasets"


@pytest.mark.parametrize("words", ['"', "a OR", "*", "name:x", "%00", "é ü", "'; DROP", "x" * 5000, "%F0%9F"])
def test_any_words_can_be_searched(server: Served, words: str) -> None:
    assert server.get(f"/?q={urllib.parse.quote(words, safe='%')}").status == 200


def test_fragment_is_the_part_that_changes(server: Served) -> None:
    fragment = server.page("/?q=crawl&fragment=1")
    assert "<html" not in fragment.html
    assert fragment.html.lstrip().startswith('<div id="results"')
    assert fragment.html.strip() in server.page("/?q=crawl").html


@pytest.mark.parametrize("query", ["sort=worst", "page=0", "page=x", "page=-1"])
def test_wrong_parameter_is_an_error_that_names_it(server: Served, query: str) -> None:
    answer = server.get(f"/?{query}")
    assert answer.status == 400
    assert notes(answer.text)[0].startswith(f"{query.split('=')[0]} is '{query.split('=')[1]}', expected ")


def test_page_after_the_last_one_leads_back(server: Served) -> None:
    page = server.page("/?q=crawl&page=9")
    assert "after the last one" in page.text
    assert "/?q=crawl" in page.links()


def test_replaced_index_is_noticed_and_none_is_needed(tmp_path: Path) -> None:
    write_metadata(tmp_path / "a" / "one", name="One")
    with served_folder(tmp_path) as server:
        page = server.page("/")
        assert names(page) == ["One"]
        assert "There is no index" in page.text
        build_index(tmp_path)
        assert "There is no index" not in server.page("/").text
        write_metadata(tmp_path / "a" / "two", name="Two")
        assert names(server.page("/?sort=name")) == ["One"]
        build_index(tmp_path)
        assert names(server.page("/?sort=name")) == ["One", "Two"]
        (tmp_path / INDEX_NAME).write_bytes(b"no index")
        answer = server.get("/")
        assert answer.status == 500
        assert notes(answer.text)[0].endswith("run packtok data index")


def test_pages_are_served_while_folders_are_searched(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_search, search = threading.Event(), catalog.described_below

    def waiting(*arguments: Any) -> Iterator[Any]:
        assert may_search.wait(60)
        yield from search(*arguments)

    monkeypatch.setattr(catalog, "described_below", waiting)
    monkeypatch.setattr(catalog, "_WAIT_SECONDS", 0.0)
    write_metadata(tmp_path / "a" / "one", name="One")
    shutil.copy(base / GPT2, tmp_path / "a.pbin")
    with served_folder(tmp_path) as server:
        page = server.page("/?q=one")
        assert "the list of datasets is still being built. Look again." in page.text
        assert page.text_of("h2", id="total") == "0 datasets"
        assert server.page("/dataset/a/one").text_of("h1") == "One"
        assert server.page("/file/a.pbin").text_of("h1") == "a.pbin"
        assert server.page("/documents/a.pbin").tokens()
        may_search.set()
        # A list that was completed while a page was made is complete, and called incomplete.
        complete = "This list shows the folders as they were when the server started"
        page = until(lambda: server.page("/?q=one"), lambda page: complete in page.text)
        assert names(page) == ["One"]


def test_failed_search_of_folders_is_an_error_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = catalog.described_below

    def failing(*_: Any) -> Iterator[Any]:
        raise OSError(5, "Input/output error", str(tmp_path))

    write_metadata(tmp_path / "a" / "one", name="One")
    monkeypatch.setattr(catalog, "described_below", failing)
    with served_folder(tmp_path) as server:
        assert server.get("/").status == 500
        monkeypatch.setattr(catalog, "described_below", search)
        assert names(server.page("/")) == ["One"]


def until(get: Callable[[], Page], is_expected: Callable[[Page], bool]) -> Page:
    for _ in range(500):
        page = get()
        if is_expected(page):
            return page
    raise AssertionError(page.text)


def test_folder_without_datasets_lists_its_token_files(tmp_path: Path) -> None:
    for name in ("b10.pbin", "b9.pbin", "c.txt"):
        (tmp_path / name).write_bytes(b"")
    with served_folder(tmp_path) as server:
        page = server.page("/")
        assert [link for link in page.links() if link.startswith("/file/")] == [
            "/file/b9.pbin",
            "/file/b10.pbin",
        ]
        assert "No dataset is described here." in page.text
        assert "/file/b9.pbin" not in server.page("/?q=x").links()


def test_raw_dataset_shows_description_files_and_tokenizations(server: Served, base: Path) -> None:
    page = server.page("/dataset/text/stories")
    assert page.text_of("h1") == "Short stories"
    assert "Short texts of <em>many</em> kinds." in page.html
    assert "<h3>Heading</h3>" in page.html
    assert '<a href="https://example.org/" rel="noreferrer nofollow">home</a>' in page.html
    details = json.loads((base / "text/stories/metadata.packtok.json").read_text())
    assert len(details["files"]) == 2
    assert all(file["crc32c"] in page.text for file in details["files"])
    assert page.links().count("/dataset/text/stories/tokenized/gpt2/all") == 1
    reader = packtok.PbinReader(base / GPT2)
    assert f"{reader.num_tokens:,} tokens" in page.text
    num_text_tokens = reader.num_tokens - len(reader)
    assert f"{details['text_bytes'] / num_text_tokens:.2f} bytes per token" in page.text
    assert "CC0-1.0" in page.text


def test_tokenized_dataset_shows_parent_histogram_and_checksum(
    server: Served, base: Path, reader: packtok.PbinReader
) -> None:
    page = server.page("/dataset/text/stories/tokenized/gpt2/all")
    assert "/dataset/text/stories" in page.links()
    assert f"{reader.trailer_crc32c:08x} (trailer)" in page.text
    text_bytes = json.loads((base / "text/stories/metadata.packtok.json").read_text())["text_bytes"]
    ratio = text_bytes / (reader.num_tokens - len(reader))
    assert f"{ratio:.2f} bytes of text per token" in " ".join(page.text.split())
    buckets = [(a, b, n) for a, b, n in reader.document_lengths_histogram() if n]
    table = page.html.partition('<figure class="histogram">')[2].partition("</figure>")[0]
    rows = [tuple(row[:2]) for row in _rows(table)]
    assert [row for row in rows if row[1] != "0"] == [
        (f"{a:,}" if b == a + 1 else f"{a:,}–{b - 1:,}", f"{n:,}") for a, b, n in buckets
    ]
    lengths = [len(reader[i]) for i in range(len(reader))]
    assert page.text_of("figcaption").startswith(
        f"25 documents of {min(lengths)} to {max(lengths)} tokens (median {np.median(lengths):.0f}, mean "
        f"{np.mean(lengths):.1f}); most frequent are "
    )


def test_tokenized_dataset_shows_what_it_inherits_and_from_which_dataset(
    server: Served, tmp_path: Path
) -> None:
    path = "/dataset/text/stories/tokenized/gpt2/all"
    page = server.page(path)
    assert page.text_of("h2", id="description") == "Description inherited from Short stories"
    assert "Short texts of <em>many</em> kinds." in page.html
    values = page.all("dd")
    assert "en, inherited from Short stories" in values
    assert "CC0-1.0, inherited from Short stories" in values
    inherited = json_of(server, path)["inherited"]
    assert (inherited["language"], inherited["license"]) == ("en", "CC0-1.0")
    assert inherited["description"].startswith("Short texts of *many* kinds.")
    assert "inherited" not in server.page("/dataset/text/stories").text
    assert json_of(server, "/dataset/text/stories")["inherited"] == {}
    # A value of its own stays, and so does its own date.
    info = {"tokenizer": "gpt2", "file_prefix": "a", "file_extension": "pbin", "parent_datasets": ["Raw"]}
    raw = write_metadata(
        tmp_path / "x" / "data", name="Raw", date_downloaded="2020-01-01", description="Of raw"
    )
    form = write_metadata(
        tmp_path / "x" / "data" / "tokenized" / "gpt2" / "all",
        name="Form",
        date_downloaded="2021-01-01",
        description="Of its own",
        tokenized_info=info,
    )
    for file, language in ((raw, "en"), (form, "de")):
        details = {"packtok_metadata": 1, "language": language}
        file.with_name("metadata.packtok.json").write_text(json.dumps(details))
    build_index(tmp_path)
    with served_folder(tmp_path) as other:
        page = other.page("/dataset/x/data/tokenized/gpt2/all")
    assert page.text_of("h2", id="description") == "Description"
    assert "Of its own" in page.text
    shown = page.all("dd")
    assert {"de", "2021-01-01", "2020-01-01, inherited from Raw"} <= {*shown}
    assert not [value for value in shown if value.startswith("en")]


def _rows(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(<th scope=\"row\">.*?)</tr>", html, re.S)
    return [
        [text for text in (Page(cell).text for cell in re.findall(r">([^<>]+)<", row)) if text]
        for row in rows
    ]


def test_commands_load_the_dataset(
    server: Served, base: Path, reader: packtok.PbinReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACKTOK_BASE_DIR", "")
    page = server.page("/dataset/text/stories/tokenized/gpt2/all")
    commands = page.all("pre")
    # Headings of the description come before those of the commands.
    texts = dict(zip(page.all("h3")[-len(commands) :], commands, strict=True))
    shorter = "context_length=2048", "context_length=16"
    by_name: dict[str, Any] = {}
    exec(texts["Python, by name"].replace(*shorter), by_name)
    assert len(by_name["dataset"]) > 0
    with_labels: dict[str, Any] = {}
    exec(texts["Python, with labels"].replace("2048", "16"), with_labels)
    assert with_labels["dataset"].num_tokens == reader.num_tokens
    olmo = yaml.safe_load(texts["OLMo, in its config"])["data"]["custom_dataset"]
    assert olmo["args"]["metadata"] == "Short stories-tokenized_gpt2_all"
    modalities = yaml.safe_load(texts["Modalities, in its config"])["train_dataset"]
    assert modalities["config"]["raw_data_path"] == str(base / GPT2)
    assert f"packtok inspect {base / GPT2}" in texts["Command line"]


def test_command_that_loads_one_of_several_files_says_so(server: Served) -> None:
    page = server.page("/dataset/text/stories/tokenized/cl100k_base/two")
    assert "Modalities, in its config: the first of 2 files" in page.all("h3")


def test_dataset_in_several_files_sums_their_histograms(server: Served, base: Path) -> None:
    page = server.page("/dataset/text/stories/tokenized/cl100k_base/two")
    assert [link for link in page.links() if link.startswith("/file/")] == [
        f"/file/text/stories/tokenized/cl100k_base/two/shard-0000{k}-of-00002.pbin" for k in range(2)
    ]
    files = [packtok.PbinReader(path) for path in sorted((base / TWO).glob("*.pbin"))]
    lengths = [len(reader[i]) for reader in files for i in range(len(reader))]
    assert page.text_of("figcaption").startswith(
        f"25 documents of {min(lengths)} to {max(lengths)} tokens (median {np.median(lengths):.0f}, mean "
    )


def test_token_files_that_are_no_pbins_are_listed_without_links(tmp_path: Path) -> None:
    folder = tmp_path / "x" / "data"
    described = {"tokenizer": "gpt2", "file_prefix": "part", "file_extension": "bin"}
    write_metadata(folder, name=" ", tokenized_info=described)
    for i in range(2):
        (folder / f"part_{i}.bin").write_bytes(np.arange(100, dtype=np.uint16).tobytes())
    with served_folder(tmp_path) as server:
        # A link without a text is not shown either.
        assert server.page("/").all("h3") == ["x/data"]
        page = server.page("/dataset/x/data")
    assert page.text_of("h1") == "x/data"
    for i, row in enumerate(page.rows("grid")):
        assert row[0].startswith(f"part_{i}.bin ")
        assert row[0].endswith("this is not a pbin")
    assert not [link for link in page.links() if link.startswith("/file/")]
    assert page.all("li", class_="note") == ["the page reads no .bin files"]
    assert not page.all("li", class_="fault")


def test_file_page_shows_what_the_trailer_says(server: Served, reader: packtok.PbinReader) -> None:
    page = server.page(f"/file/{GPT2}")
    text = " ".join(page.text.split())
    assert f"{reader.num_tokens:,} tokens {len(reader)} documents" in text
    assert (reader.metadata or {})["tokenizer"]["fingerprint"] in text
    assert f"{reader.trailer_crc32c:08x}" in text
    assert "first.jsonl" in text


@pytest.mark.parametrize("i", range(len(TEXTS)))
def test_document_shows_every_token_of_the_file(server: Served, reader: packtok.PbinReader, i: int) -> None:
    page = server.page(f"/documents/{GPT2}?document={i}")
    assert [id_ for _, id_ in page.tokens()] == reader[i].tolist()
    assert page.details(len(reader[i]) - 1).startswith(
        f"token {len(reader[i]) - 1:,} · id 50,256 · EOD · 13 bytes: "
    )


def test_text_is_complete_and_white_space_is_marked(server: Served, reader: packtok.PbinReader) -> None:
    page = server.page(f"/documents/{GPT2}?document=0")
    assert "".join(text for text, _ in page.tokens()) == TEXTS[0] + "<|endoftext|>"
    assert '<i class="n">\n</i>' in page.html
    assert '<i class="h">\t</i>' in page.html
    assert "<i> </i>" in page.html
    hostile = server.page(f"/documents/{GPT2}?document=2").html
    for named in ("U+200B", "U+202E", "U+202C", "U+00A0"):
        assert f'<i class="x">{named}</i>' in hostile
    assert not {*"\u200b\u202e\u202c\u00a0"} & {*hostile}


def test_special_token_within_a_document_is_marked(server: Served, reader: packtok.PbinReader) -> None:
    page = server.page(f"/documents/{GPT2}?document=4")
    assert reader[4].tolist().count(EOD) == 2
    classes = [
        attributes.get("class") or ""
        for _, attributes, _ in page.elements
        if (attributes.get("id") or "")[:1] == "t"
    ]
    assert sum("eod" in value.split() for value in classes) == 2

    assert "&lt;script&gt;" in page.html or "script" in page.text
    assert "<script>alert" not in page.html


def test_bytes_of_tokens_are_shown_and_a_divided_character_is_in_the_first_of_them(
    gpt2: packtok.Tokenizer,
) -> None:
    ids = gpt2.encode("a🙂b").tolist()
    pieces = pieces_of(gpt2, ids)
    assert b"".join(piece.content for piece in pieces) == "a🙂b".encode()
    assert "".join(piece.text for piece in pieces) == "a🙂b"
    assert [piece.text for piece in pieces] == ["a", "🙂", *[""] * (len(ids) - 3), "b"]
    assert [piece.continues for piece in pieces] == [False, False, *[True] * (len(ids) - 3), False]
    html = tokens_html(pieces)
    assert '<i class="p">🙂</i>' in html
    # The mark of a continued character is no text, which would be copied.
    assert html.count('<i class="p r"></i>') == len(ids) - 3
    assert Page(html).text == "a🙂b"
    assert pieces[1].details.endswith(" · has a part of 🙂")


def test_bytes_that_belong_to_no_character_are_shown_as_bytes(gpt2: packtok.Tokenizer) -> None:
    pieces = pieces_of(gpt2, gpt2.encode("🙂").tolist()[:1] + gpt2.encode("é!").tolist())
    assert [piece.text for piece in pieces] == ["\udcf0\udc9f", "é", "!"]
    assert '<i class="x">F0</i><i class="x">9F</i>' in tokens_html(pieces)
    # An id that the vocabulary lacks has no bytes.
    assert '<i class="x">60000</i>' in tokens_html(pieces_of(gpt2, [60000]))


def test_long_document_is_shown_in_parts(server: Served, reader: packtok.PbinReader) -> None:
    i, length = 24, len(reader[24])
    seen: list[int] = []
    path: str | None = f"/documents/{GPT2}?document={i}&window=20"
    while path is not None:
        page = server.page(path)
        tokens = [id_ for _, id_ in page.tokens()]
        assert len(tokens) <= 20
        seen += tokens
        following = [link for link in page.links() if f"document={i}&from={len(seen)}&window=20" in link]
        path = following[0] if following else None
    assert seen == reader[i].tolist()
    assert [id_ for _, id_ in server.page(f"/documents/{GPT2}?document={i}&from={length - 1}").tokens()] == [
        EOD
    ]


@pytest.mark.parametrize(
    "query", ["document=25", "document=-1", "document=a", "from=100000", "window=0", "window=9999"]
)
def test_document_or_token_that_does_not_exist_is_an_error(server: Served, query: str) -> None:
    answer = server.get(f"/documents/{GPT2}?{query}")
    assert answer.status == 400
    assert notes(answer.text)[0].startswith(query.split("=")[0])


def test_random_document_depends_on_the_seed_only(server: Served) -> None:
    def target(query: str) -> str:
        answer = server.get(f"/documents/{GPT2}?{query}")
        assert answer.status == 303
        return answer.headers["location"]

    assert target("random=1&seed=7") == target("random=1&seed=7")
    assert len({target(f"random=1&seed={seed}") for seed in range(20)}) > 5
    assert len({target("random=1") for _ in range(20)}) > 1
    assert target("random=1&seed=1&compare=gpt2").endswith("&compare=gpt2")
    assert server.page(target("random=1")).tokens()


def test_same_text_under_another_tokenizer_has_the_ids_of_that_tokenizer(server: Served, site: Site) -> None:
    page = server.page(f"/documents/{GPT2}?document=1&compare=o200k_base&counts=1")
    other = site.tokenizers.builtin("o200k_base")
    assert [id_ for _, id_ in page.tokens("o")] == other.encode(TEXTS[1]).tolist()
    # Equal tokenizers with two names, gpt2 and r50k_base, are one.
    built_in = {name: site.tokenizers.builtin(name) for name in packtok.Tokenizer.builtin_names()}
    distinct = {tokenizer.fingerprint: name for name, tokenizer in reversed(built_in.items())}
    expected = {name: len(built_in[name].encode(TEXTS[1])) for name in distinct.values()}
    assert "r50k_base" not in expected
    counts = {row[0].split()[0]: int(row[1]) for row in page.rows("narrow")}
    assert counts == expected
    assert server.get(f"/documents/{GPT2}?compare=/etc/passwd").status == 404


def test_tokenizers_below_the_base_can_be_compared_with(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", ["hello world"])
    folder = tmp_path / "base" / "x" / "data" / "tokenized" / "own" / "all"
    folder.mkdir(parents=True)
    (tmp_path / "tokenizer.json").write_bytes(_own_tokenizer())
    packtok.pack(input=corpus, output=folder / "a.pbin", tokenizer=str(tmp_path / "tokenizer.json"), eod="h")
    (folder / "tokenizer.json").write_bytes(_own_tokenizer())
    write_metadata(folder.parents[2], name="D")
    write_metadata(folder, tokenized_info={"tokenizer": "own", "file_prefix": "a", "file_extension": "pbin"})
    build_index(tmp_path / "base")
    with served_folder(tmp_path / "base") as server:
        path = "x/data/tokenized/own/all/a.pbin"
        page = server.page(f"/documents/{path}?compare=file:x/data/tokenized/own/all/tokenizer.json")
        assert page.tokens("o") == [(text, id_) for text, id_ in page.tokens()[:-1]]
        assert "".join(text for text, _ in page.tokens()) == "hello worldh"


def test_tokenizers_are_told_apart_by_fingerprint_and_the_own_one_is_listed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Three datasets name their tokenizer "gpt2" and two "own". Two of the files are not what they are called.
    files = {
        "real": ("gpt2", packtok.Tokenizer.builtin("gpt2").to_json(), None),
        "foreign": ("gpt2", _own_tokenizer(), None),
        "own": ("own", _own_tokenizer(), None),
        "merging": ("own", _own_tokenizer(merges=["h e", "he l"]), None),
        "swapped": ("other", _own_tokenizer(merges=["l d"]), "sha256:0"),
    }
    corpus = write_corpus(tmp_path / "c.jsonl", ["hello world"])
    for place, (name, content, recorded) in files.items():
        folder = tmp_path / "base" / place / "data"
        folder.mkdir(parents=True)
        (folder / "tokenizer.json").write_bytes(content)
        packtok.pack(
            input=corpus,
            output=folder / "a.pbin",
            tokenizer="gpt2" if place == "real" else str(folder / "tokenizer.json"),
            eod="<|endoftext|>" if place == "real" else "h",
        )
        info = {"tokenizer": name, "file_prefix": "a", "file_extension": "pbin"}
        path = write_metadata(folder, name=place, tokenized_info=info)
        tokenizer = (packtok.PbinReader(folder / "a.pbin").metadata or {})["tokenizer"]
        details = {"packtok_metadata": 1, "tokenizer_fingerprint": recorded or tokenizer["fingerprint"]}
        path.with_name("metadata.packtok.json").write_text(json.dumps(details))
    only_gpt2 = SimpleNamespace(builtin_names=lambda: ["gpt2"], builtin=packtok.Tokenizer.builtin)
    monkeypatch.setattr(compare, "Tokenizer", only_gpt2)
    with served_folder(tmp_path / "base") as server:
        page = server.page("/documents/foreign/data/a.pbin?counts=1")
        choices = [
            text
            for tag, attributes, text in page.elements
            if tag == "option" and attributes.get("value", "") != ""
        ]
        rows = [[" ".join(cell.split()) for cell in row] for row in page.rows("narrow")]
        assert server.get("/documents/own/data/a.pbin?counts=1&compare=gpt2").status == 200
        compared = server.page("/documents/real/data/a.pbin?compare=file:merging/data/tokenizer.json")
        others = "".join(
            f"&compare=file:{place}/data/tokenizer.json" for place in ("own", "merging", "swapped")
        )
        kinds = json.loads(server.get(f"/kinds/foreign/data/a.pbin?format=json&compare=gpt2{others}").text)
    assert choices == ["gpt2", "gpt2 (foreign/data)", "own (merging/data)", "own (own/data)", "other"]
    # The tokenizer of the file is the one next to "own", too: single letters.
    name = (packtok.PbinReader(tmp_path / "base/foreign/data/a.pbin").metadata or {})["tokenizer"]["name"]
    assert rows[:3] == [
        ["gpt2", "2", "5.50"],
        ["own (merging/data)", "9", "1.22"],
        [f"{name} this file", "11", "1.00"],
    ]
    assert [row[0] for row in rows[3:]] == ["other"]
    assert rows[3][1].startswith("swapped/data/tokenizer.json has the fingerprint sha256:")
    assert rows[3][1].endswith("but the dataset next to it was tokenized with sha256:0")
    assert compared.text_of("h2", id="other") == "own (merging/data) 9 tokens"
    assert [(row["name"], row["is_own"], row["tokens"]) for row in kinds["tokenizers"]] == [
        ("gpt2", False, 2),
        ("own (merging/data)", False, 9),
        (name, True, 11),
        ("other", False, None),
    ]
    assert kinds["tokenizers"][3]["reason"] == rows[3][1]


def _own_tokenizer(merges: Sequence[str] = ()) -> bytes:
    """Returns a tokenizer of single letters, and of ``merges``, whose name is not that of a built-in one."""
    pieces = [*"abcdefghijklmnopqrstuvwxyzĠ", *(merge.replace(" ", "") for merge in merges)]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    model = {"type": "BPE", "vocab": vocabulary, "merges": list(merges), "dropout": None, "unk_token": None}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": None,
            "pre_tokenizer": byte_level,
            "post_processor": None,
            "decoder": byte_level,
            "model": model,
        }
    ).encode()


@pytest.fixture(scope="module")
def shards(base: Path) -> list[packtok.PbinReader]:
    """Returns the files of the dataset that has two."""
    return [packtok.PbinReader(path) for path in sorted((base / TWO).glob("*.pbin"))]


def test_documents_of_a_dataset_have_one_numbering_over_all_files(
    server: Served, shards: list[packtok.PbinReader]
) -> None:
    documents = [(reader, i) for reader in shards for i in range(len(reader))]
    assert len(shards) == 2
    assert all(len(reader) > 3 for reader in shards)
    first = len(shards[0])
    for number in (0, first - 1, first, first + 2, len(documents) - 1):
        page = server.page(f"/documents/{TWO}?document={number}")
        reader, i = documents[number]
        assert [id_ for _, id_ in page.tokens()] == reader[i].tolist()
        assert page.text_of("h1") == f"Document {number} (0–{len(documents) - 1})"
        assert f"/documents/{TWO}/{reader.path.name}?document={i}" in page.links()
    assert server.get(f"/documents/{TWO}?document={len(documents)}").status == 400
    assert server.get(f"/documents/{TWO}?source=0").status == 404
    targets = [server.get(f"/documents/{TWO}?random=1&seed={i}").headers["location"] for i in range(40)]
    numbers = [int(target.removeprefix(f"/documents/{TWO}?document=")) for target in targets]
    assert min(numbers) < first <= max(numbers)
    # The dataset's own page leads to all files.
    links = server.page(f"/dataset/{TWO}").links()
    assert {f"/documents/{TWO}", f"/documents/{TWO}?random=1", f"/items/{TWO}"} <= {*links}


def test_table_of_a_dataset_has_one_numbering_over_all_files(
    server: Served, shards: list[packtok.PbinReader]
) -> None:
    lengths = [len(document) for reader in shards for document in reader]
    query = f"/table/{TWO}?sort=longest&most=60"
    rows = server.page(query).rows("documents")
    expected = sorted((i for i, length in enumerate(lengths) if length <= 60), key=lambda i: -lengths[i])
    assert min(expected) < len(shards[0]) <= max(expected)
    assert [(int(row[0]), int(row[1])) for row in rows] == [(i, lengths[i]) for i in expected]
    facts = json.loads(server.get(f"{query}&format=json").text)
    assert [row["document"] for row in facts["rows"]] == expected


def test_tokens_by_kind_of_a_dataset_are_those_of_all_its_files(
    server: Served, shards: list[packtok.PbinReader]
) -> None:
    facts = json.loads(server.get(f"/kinds/{TWO}?format=json").text)
    assert facts["documents"] == sum(len(reader) for reader in shards)
    (row,) = facts["tokenizers"]
    assert row["tokens"] + row["special"] == sum(reader.num_tokens for reader in shards)


@pytest.mark.parametrize("packing", ["concat", "document", "best_fit", "chunks"])
@pytest.mark.parametrize("place", [GPT2, TWO, f"{TWO}/shard-00001-of-00002.pbin"])
def test_item_page_names_the_loader_that_gives_its_items(
    server: Served, base: Path, place: str, packing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    address = f"/items/{place}?context_length=32&packing={packing}"
    (call,) = [text for text in server.page(address).all("code") if text.startswith("packtok.")]
    assert call.startswith("packtok.get_dataset(" if packing == "chunks" else "packtok.TokenDataset(")
    # A plan must not be written next to the data, where a later test looks for none.
    if packing == "best_fit":
        call = call.removesuffix(")") + f", cache_dir={str(tmp_path)!r})"
    dataset = eval(call)
    for i in {0, len(dataset) // 2, len(dataset) - 1}:
        page = server.page(f"{address}&item={i}")
        rows = page.rows("positions")
        ids = [int(row[2].replace(",", "")) for row in rows if row[-1] != "–"]
        assert ids == _ids(dataset[i])[: len(ids)]
        assert page.text_of("h1") == f"Item {i} (0–{len(dataset) - 1:,})"
        if packing != "chunks":
            labels = [-100 if row[3] in ("none", "padding") else int(row[4].replace(",", "")) for row in rows]
            assert labels == dataset[i]["labels"].tolist()
    assert server.get(f"{address}&item={len(dataset)}").status == 400


@pytest.mark.parametrize("place", [GPT2, TWO])
def test_plan_is_used_again_whatever_the_descriptors_of_its_files_are(server: Served, place: str) -> None:
    address = f"/items/{place}?context_length=48&packing=best_fit&item=1"
    first = server.page(address).tokens()
    for _ in range(3):
        # The server is in this process, so its files get other descriptors.
        others = [os.open("/dev/null", os.O_RDONLY) for _ in range(9)]
        assert server.page(address).tokens() == first
        for other in others[::2]:
            os.close(other)
        assert server.page(address).tokens() == first
        for other in others[1::2]:
            os.close(other)


def _ids(item: Any) -> list[int]:
    values: list[int] = np.asarray(item.get("input_ids", item.get("token_ids"))).tolist()
    return values


def test_item_page_of_a_dataset_links_to_documents_by_their_numbers_in_it(
    server: Served, shards: list[packtok.PbinReader]
) -> None:
    page = server.page(f"/items/{TWO}?context_length=32&packing=document&item={len(shards[0]) + 1}")
    assert f"/documents/{TWO}?document={len(shards[0]) + 1}" in page.links()
    assert "shard-00001-of-00002.pbin" in page.text_of("h3")
    # The page of one of the files leads to that of the dataset.
    one = server.page(f"/items/{TWO}/shard-00001-of-00002.pbin?context_length=32&packing=document")
    assert f"/items/{TWO}?context_length=32&packing=document" in one.links()
    # A dataset of one file has no numbering of its own.
    links = server.page(f"/items/{GPT2}").links()
    assert {link.partition("?")[0] for link in links if link.startswith("/items/")} == {f"/items/{GPT2}"}


def test_dataset_without_one_of_its_files_has_no_numbering(base: Path, tmp_path: Path) -> None:
    folder = tmp_path / "x" / "data"
    shutil.copytree(base / TWO, folder)
    with served_folder(tmp_path) as server:
        assert server.get("/documents/x/data").status == 200
        lost = folder / "shard-00000-of-00002.pbin"
        lost.rename(tmp_path / "lost")
        for kind in ("documents", "items"):
            answer = server.get(f"/{kind}/x/data")
            assert answer.status == 404
            assert notes(answer.text)[0].startswith("x/data/shard-00000-of-00002.pbin: no such file")
        # A file that was replaced is counted again.
        (folder / "shard-00001-of-00002.pbin").rename(lost)
        (tmp_path / "lost").rename(folder / "shard-00001-of-00002.pbin")
        first = len(packtok.PbinReader(lost))
        ids = packtok.PbinReader(folder / "shard-00001-of-00002.pbin")[0].tolist()
        page = server.page(f"/documents/x/data?document={first}")
        assert [id_ for _, id_ in page.tokens()] == ids


@pytest.mark.parametrize("packing", ["concat", "document", "best_fit"])
def test_items_are_those_of_token_dataset(server: Served, base: Path, packing: Any, tmp_path: Path) -> None:
    dataset = packtok.TokenDataset(
        base / GPT2, 32, packing=packing, position_ids=True, document_ids=True, cache_dir=tmp_path
    )
    for i in (0, len(dataset) // 2, len(dataset) - 1):
        page = server.page(f"/items/{GPT2}?context_length=32&packing={packing}&item={i}")
        item = {name: np.asarray(value).tolist() for name, value in dataset[i].items()}
        rows = page.rows("positions")
        assert [int(row[0]) for row in rows] == list(range(32))
        assert [int(row[2].replace(",", "")) for row in rows] == item["input_ids"]
        labels = [-100 if row[3] in ("none", "padding") else int(row[4].replace(",", "")) for row in rows]
        assert labels == item["labels"]
        padding = [document_id < 0 for document_id in item["document_ids"]]
        assert [row[-1] == "–" for row in rows] == padding
        positions = zip(rows, item["position_ids"], padding, strict=True)
        assert all(is_padding or int(row[-1]) == position for row, position, is_padding in positions)
        located = dataset.locate(i)
        assert [heading for heading in page.all("h3") if heading.startswith("Document")] == [
            text for text in page.all("h3") if not text.startswith("Padding")
        ]
        for _, document, start, _ in located:
            assert (
                f"/documents/{GPT2}?document={document}" + (f"&from={start}" if start else "") in page.links()
            )
    assert not list((base / GPT2).parent.glob("*.plan"))


def test_concat_label_of_a_last_token_is_marked_as_of_the_next_document(
    server: Served, reader: packtok.PbinReader
) -> None:
    length = len(reader[0])
    page = server.page(f"/items/{GPT2}?context_length={length + 3}")
    row = page.rows("positions")[length - 1]
    assert row[4] == f"{int(reader[1][0]):,}"
    assert row[3].endswith("next document")
    assert page.details(length - 1).endswith(
        f"position {length - 1} of its document · label {int(reader[1][0]):,}"
    )


@pytest.mark.parametrize("packing", ["concat", "best_fit"])
@pytest.mark.parametrize("labels", ["shifted", "aligned"])
def test_labels_are_below_their_inputs_and_in_the_json(
    server: Served, base: Path, packing: Any, labels: Any, tmp_path: Path
) -> None:
    dataset = packtok.TokenDataset(
        base / GPT2,
        32,
        packing=packing,
        labels=labels,
        position_ids=True,
        document_ids=True,
        cache_dir=tmp_path,
    )
    address = f"/items/{GPT2}?context_length=32&packing={packing}&labels={labels}&item=2"
    facts = json.loads(server.get(f"{address}&format=json").text)
    item = {name: np.asarray(value).tolist() for name, value in dataset[2].items()}
    assert {name: facts[name] for name in item} == item
    assert facts["documents"] == [
        {"path": GPT2, "document": document, "start": start, "stop": stop}
        for _, document, start, stop in dataset.locate(2)
    ]
    page = server.page(address)
    (call,) = [text for text in page.all("code") if text.startswith("packtok.")]
    assert ('labels="aligned"' in call) == (labels == "aligned")
    num_inputs = sum(id_ >= 0 for id_ in item["document_ids"])
    tokens = packtok.Tokenizer.builtin("gpt2").pieces(item["labels"][:1])
    assert page.pairs()[0][1] == tokens[0].decode()
    assert [label is None for _, label in page.pairs()] == [
        label == -100 for label in item["labels"][:num_inputs]
    ]
    if labels == "aligned":
        assert all(label == text for text, label in page.pairs())
        assert any("item=3" in link and "labels=aligned" in link for link in page.links())
    padding = 32 - num_inputs
    assert page.all("p", class_="chip") == ([f"{padding} positions without label"] if padding else [])


def test_item_of_a_long_context_is_shown_in_parts(server: Served, reader: packtok.PbinReader) -> None:
    page = server.page(f"/items/{GPT2}?context_length=600&from=256")
    stream = np.concatenate([reader[i] for i in range(len(reader))]).tolist()
    assert [id_ for _, id_ in page.tokens()] == stream[256:512]


@pytest.mark.parametrize(
    "query", ["context_length=0", "context_length=2000000", "packing=none", "item=999999"]
)
def test_item_that_does_not_exist_is_an_error(server: Served, query: str) -> None:
    assert server.get(f"/items/{GPT2}?{query}").status == 400


def test_file_without_a_complete_item_or_a_document_says_so(tmp_path: Path) -> None:
    packtok.pack(
        input=write_corpus(tmp_path / "c.jsonl", ["a"]), output=tmp_path / "a.pbin", tokenizer="gpt2"
    )
    (tmp_path / "empty.pbin").write_bytes(struct.pack("<QI", 0, 2) + pickle.dumps([]))
    with served_folder(tmp_path) as server:
        assert notes(server.page("/items/a.pbin").html) == [
            "a.pbin: context_length 512 needs 513 tokens (the inputs and the last label), found 2; lower "
            "context_length, or add data"
        ]
        for kind in ("documents", "items", "file"):
            assert server.get(f"/{kind}/empty.pbin").status == 200
        assert "The file has no documents." in server.page("/documents/empty.pbin").text


def _plain_pbin(path: Path, ids: list[int]) -> None:
    data = np.array(ids, "<u2").tobytes()
    path.write_bytes(struct.pack("<QI", len(data), 2) + data + pickle.dumps([(0, len(data))]))


def test_file_that_names_no_tokenizer_shows_ids_or_the_tokenizer_that_is_given(
    tmp_path: Path, gpt2: packtok.Tokenizer
) -> None:
    _plain_pbin(tmp_path / "plain.pbin", [15496, 995])
    with served(site_of_file(tmp_path / "plain.pbin")) as server:
        page = server.page("/documents/plain.pbin")
        assert page.tokens() == [("15496", 15496), ("995", 995)]
        assert "does not say which tokenizer it was packed with; give --tokenizer" in notes(page.html)[0]
    with served(site_of_file(tmp_path / "plain.pbin", gpt2)) as server:
        assert [text for text, _ in server.page("/documents/plain.pbin").tokens()] == ["Hello", " world"]


@pytest.mark.parametrize(
    ("to", "output", "name"),
    [
        ("megatron", "x/a", "a.idx"),
        ("dolma", "x/a", "a.npy"),
        ("litdata", "x", "chunk-0-0.bin"),
        ("parquet", "x", "shard_00000.parquet"),
        ("raw", "x/a.bin", "a.bin"),
        *extent(
            [
                ("datatrove", "x/a", "a.ds"),
                ("llm-c", "x/a", "a.bin"),
                ("mds", "x", "shard.00000.mds"),
                ("npy", "x", "shard_00000.npy"),
                ("cepe-npy", "x/a.npy", "a.npy"),
            ],
            [],
        ),
    ],
)
def test_files_of_other_formats_are_shown_like_pbins(
    tmp_path: Path, gpt2: packtok.Tokenizer, to: str, output: str, name: str
) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", TEXTS)
    packtok.pack(input=corpus, output=tmp_path / "a.pbin", tokenizer="gpt2")
    # The name that the files of Megatron, datatrove and dolma share is one of the dataset, too.
    packtok.convert(tmp_path / "a.pbin", tmp_path / output, to=to, accept_loss="origins")
    shown = tmp_path / output if to in ("megatron", "datatrove", "dolma") else tmp_path / "x" / name
    site = site_to_serve(shown, None, None, False, Reading())
    with served(site_of_file(tmp_path / "a.pbin")) as server:
        documents = [server.page(f"/documents/a.pbin?document={i}").tokens() for i in (0, 3)]
    with served(site) as server:
        assert [server.page(f"/documents/{name}?document={i}").tokens() for i in (0, 3)] == documents
        for page in (f"/file/{name}", f"/items/{name}?context_length=16", f"/items/{name}?packing=best_fit"):
            assert server.get(page).status == 200
        # Nothing else in the folder is served.
        assert server.get("/file/other.bin").status == 404


def test_a_file_of_ids_is_shown_as_the_user_says(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    np.array([15496, 0, 995, 0], np.uint16).tofile(tmp_path / "train.bin")
    done = packtok_cli("explore", "train.bin", "--port", "0", cwd=tmp_path, code=1)
    assert "train.bin: " in done.stderr
    assert "set --input-dtype, as uint16" in done.stderr
    with served(
        site_to_serve(tmp_path / "train.bin", None, "gpt2", False, Reading(None, "uint16", "eos=0"))
    ) as server:
        assert [id_ for _, id_ in server.page("/documents/train.bin?document=1").tokens()] == [995, 0]
    done = packtok_cli("explore", tmp_path, "--input-dtype", "uint16", "--port", "0", code=2)
    assert "are for a token file" in done.stderr


def test_tokenizer_with_another_fingerprint_is_not_used(tmp_path: Path, gpt2: packtok.Tokenizer) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", ["hello"])
    (tmp_path / "tokenizer.json").write_bytes(_own_tokenizer())
    output = tmp_path / "a.pbin"
    packtok.pack(input=corpus, output=output, tokenizer=str(tmp_path / "tokenizer.json"), eod="h")
    with served(site_of_file(output)) as server:
        assert [text for text, _ in server.page("/documents/a.pbin").tokens()][:5] == [*"hello"]
    other = gpt2.to_json()
    for name in ("tokenizer.json", "a.pbin.tokenizer.json"):
        (tmp_path / name).write_bytes(other)
    with served(site_of_file(output)) as server:
        page = server.page("/documents/a.pbin")
        assert [text for text, _ in page.tokens()] == [str(id_) for _, id_ in page.tokens()]
        assert "but the file was packed with sha256:" in notes(page.html)[0]
        # A tokenizer that appears next to the file is used at once.
        (tmp_path / "tokenizer.json").write_bytes(_own_tokenizer())
        assert [text for text, _ in server.page("/documents/a.pbin").tokens()][:5] == [*"hello"]


def test_page_of_a_document_of_500_mb_reads_only_its_tokens(tmp_path: Path, gpt2: packtok.Tokenizer) -> None:
    num_bytes, path = 500_000_000, tmp_path / "long.pbin"
    with path.open("wb") as file:
        file.write(struct.pack("<QI", num_bytes, 2))
        # The tokens are a hole: zeros that take no space.
        file.truncate(12 + num_bytes)
        file.seek(0, 2)
        file.write(pickle.dumps([(0, num_bytes)]))
    with served(site_of_file(path, gpt2)) as server:
        server.page("/documents/long.pbin")
        before = _read_bytes()
        for start in (0, 123_456_789, num_bytes // 2 - 1000):
            page = server.page(f"/documents/long.pbin?from={start}")
            assert len(page.tokens()) == 1000
            assert f"Tokens {start:,}–{start + 999:,} of 250,000,000" in " ".join(page.text.split())
        assert _read_bytes() - before < 10_000_000


def _read_bytes() -> int:
    """Returns the bytes of mapped files that this process has read."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"^RssFile:\s+(\d+) kB$", status, re.M)[0]) * 1024


def test_origin_of_a_document_is_shown_and_leads_to_the_documents_of_a_source(
    server: Served, reader: packtok.PbinReader
) -> None:
    page = server.page(f"/documents/{GPT2}?document=1")
    line = json.dumps({"text": TEXTS[0]}) + "\n"
    assert page.text_of("li", class_="origin") == f"from first.jsonl, byte {len(line):,}"
    options = [(attributes["value"], text) for tag, attributes, text in page.elements if tag == "option"]
    assert ("1", "second.jsonl") in options
    answer = server.get(f"/documents/{GPT2}?source=1")
    assert (answer.status, answer.headers["location"]) == (303, f"/documents/{GPT2}?document={SECOND_FILE}")
    assert server.get(f"/documents/{GPT2}?source=2").status == 400


def test_first_document_of_a_source_is_found_by_binary_search() -> None:
    sources = [0, 0, 0, 2, 2, 5]
    looked_up: list[int] = []

    def origin(i: int) -> Any:
        looked_up.append(i)
        return SimpleNamespace(source_index=sources[i])

    packed: Any = SimpleNamespace(reader=SimpleNamespace(origin=origin), num_documents=6, name="a.pbin")
    assert [first_of_source(packed, source) for source in (0, 2, 5)] == [0, 3, 5]
    for missing in (1, 3, 6):
        with pytest.raises(NotServedError, match=f"no document of a.pbin came from its source {missing}"):
            first_of_source(packed, missing)
    assert len(looked_up) < 30
    packed.reader.origin = {}.get
    with pytest.raises(NotServedError, match=r"a\.pbin does not record where its documents came from"):
        first_of_source(packed, 0)


def test_only_the_given_file_is_served(base: Path) -> None:
    with served(site_of_file(base / GPT2)) as server:
        answer = server.get("/")
        assert (answer.status, answer.headers["location"]) == (303, "/file/tokenized.pbin")
        assert server.get("/documents/tokenized.pbin").status == 200
        for path in ("tokenizer.json", "metadata.json", "../all/tokenized.pbin", "./tokenized.pbin", GPT2):
            assert server.get(f"/documents/{path}").status == 404
        assert server.get("/dataset/").status == 404


def test_site_of_a_folder_opens_links_within_it(base: Path, tmp_path: Path) -> None:
    folder = tmp_path / "base"
    folder.mkdir()
    packtok.pack(input=write_corpus(tmp_path / "c.jsonl", ["a"]), output=folder / "a.pbin", tokenizer="gpt2")
    (folder / "inner").mkdir()
    (folder / "inner" / "link.pbin").symlink_to("../a.pbin")
    site = site_of_folder(folder)
    assert site.files.open("inner/link.pbin").num_documents == 1


def json_of(server: Served, path: str) -> Any:
    """Returns the JSON of a page."""
    answer = server.get(path + ("&" if "?" in path else "?") + "format=json")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    return json.loads(answer.text)


def test_json_of_a_search_has_the_datasets_and_facets_of_the_page(server: Served, base: Path) -> None:
    path = "/?language=en&sort=name"
    page, facts = server.page(path), json_of(server, path)
    assert [dataset["name"] for dataset in facts["datasets"]] == names(page)
    assert facts["total"] == 3
    assert (facts["page"], facts["pages"]) == (1, 1)
    assert [f"/dataset/{dataset['folder']}" for dataset in facts["datasets"]] == [
        link for link in page.links() if link.startswith("/dataset/")
    ]
    for facet in ("tokenizer", "language", "license", "content"):
        counts = {row["value"]: row["datasets"] for row in facts["facets"][facet]}
        assert counts == facet_counts(page, facet)
    # The names and values of packtok data list.
    listed = {dataset["name"]: dataset for dataset in _listed(base)}
    for dataset in facts["datasets"]:
        assert listed[dataset["name"]].items() <= dataset.items()
    assert json_of(server, "/?q=crawl&page=2")["page"] == 2
    assert json_of(server, "/?q=shrot")["corrections"] == {"shrot": ["short"]}


def _listed(base: Path) -> list[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PACKTOK_BASE_DIR", str(base))
        return list_datasets()


@pytest.mark.parametrize("folder", ["text/stories", "text/stories/tokenized/gpt2/all", TWO])
def test_json_of_a_dataset_has_the_facts_of_the_page(server: Served, base: Path, folder: str) -> None:
    page, facts = server.page(f"/dataset/{folder}"), json_of(server, f"/dataset/{folder}")
    assert facts["name"] == page.text_of("h1")
    shown = show_dataset(str(base / folder))
    assert (facts["path"], facts["metadata"]) == (shown["path"], shown["metadata"])
    assert facts["details"] == {key: value for key, value in shown["details"].items() if key != "files"}
    checks = [
        (status, text)
        for status in ("good", "note", "fault")
        for text in page.all("li", class_=status)
        if text in [check["text"] for check in facts["health"]]
    ]
    assert sorted(checks) == sorted((check["status"], check["text"]) for check in facts["health"])
    assert len(checks) >= 1
    assert [(command["title"], command["text"]) for command in facts["commands"]] == [
        *zip(page.all("h3")[-len(facts["commands"]) :], page.all("pre"), strict=True)
    ]
    linked = [form["folder"] for form in [facts["raw"], *facts["tokenized"]] if form is not None]
    assert {f"/dataset/{linked_folder}" for linked_folder in linked} <= {*page.links()}
    assert len(linked) == (2 if folder == "text/stories" else 1)
    assert all(file["name"] in page.text and f"{file['documents']:,}" in page.text for file in facts["files"])
    assert facts["num_files"] == len(facts["files"]) > 0
    if folder == "text/stories":
        assert (facts["document_tokens"], facts["numbered"], facts["bytes_per_token"]) == (None, None, None)
    else:
        ratio = f"{facts['bytes_per_token']:.2f} bytes of text per token"
        assert ratio in " ".join(page.text.split())
        assert facts["is_estimate"] is False
        assert f"/documents/{facts['numbered']}" in page.links()
        assert sum(bucket["documents"] for bucket in facts["document_tokens"]) == 25
        lengths = facts["lengths"]
        assert f"of {lengths['least']} to {lengths['greatest']} tokens" in page.text


def test_json_of_a_file_has_what_packtok_inspect_shows(
    server: Served, base: Path, packtok_cli: PacktokCli
) -> None:
    facts = json_of(server, f"/file/{GPT2}")
    inspected = json.loads(packtok_cli("inspect", base / GPT2, "--json").stdout)
    assert inspected.pop("path") == str(base / facts["path"])
    buckets = {(row["from"], row["below"]): row["documents"] for row in facts.pop("document_tokens")}
    assert {key: number for key, number in buckets.items() if number} == {
        (row["from"], row["below"]): row["documents"]
        for row in inspected.pop("document_tokens")
        if row["documents"]
    }
    assert inspected.items() <= facts.items()
    page = server.page(f"/file/{GPT2}")
    checks = [(check["status"], check["text"]) for check in facts["health"]]
    assert sorted(checks) == sorted(
        (status, text) for status in ("good", "note") for text in page.all("li", class_=status)
    )
    assert f"{facts['trailer_crc32c']:08x}" in page.text
    assert [command["text"] for command in facts["commands"]] == page.all("pre")
    assert (facts["num_sources"], facts["dataset"]) == (2, GPT2.rpartition("/")[0])
    assert f"{facts['bytes_per_token']:.2f} bytes of text per token" in " ".join(page.text.split())


def test_json_of_a_document_has_the_tokens_of_the_page_and_what_packtok_cat_prints(
    server: Served, base: Path, reader: packtok.PbinReader, packtok_cli: PacktokCli
) -> None:
    path = f"/documents/{GPT2}?document=1&compare=cl100k_base&counts=1"
    page, facts = server.page(path), json_of(server, path)
    (document,) = json.loads(packtok_cli("cat", base / GPT2, "-d", "1", "--json").stdout)
    assert document.items() <= facts.items()
    assert facts["ids"] == reader[1].tolist() == [id_ for _, id_ in page.tokens()]
    assert bytes.fromhex("".join(facts["pieces"])).decode() == facts["text"] == f"{TEXTS[1]}<|endoftext|>"
    assert (facts["from"], facts["until"], facts["documents"]) == (0, len(facts["ids"]), len(reader))
    assert f"{facts['bytes']} bytes of decoded text" in page.all("li")
    assert f"{facts['special']} special" in page.all("li")
    assert facts["compare"]["ids"] == [id_ for _, id_ in page.tokens("o")]
    rows = [(row[0].split()[0], row[1]) for row in page.rows("narrow")]
    assert [(count["name"], f"{count['tokens']:,}") for count in facts["counts"]] == rows
    part = json_of(server, f"/documents/{GPT2}?document=24&from=20&window=20")
    assert (part["from"], part["until"], part["ids"]) == (20, 40, reader[24][20:40].tolist())
    assert json_of(server, f"/documents/{TWO}?document=20")["file"] == {
        "path": f"{TWO}/shard-00001-of-00002.pbin",
        "document": 20 - len(packtok.PbinReader(base / TWO / "shard-00000-of-00002.pbin")),
    }
    # A random document is JSON too.
    target = server.get(f"/documents/{GPT2}?random=1&format=json").headers["location"]
    assert target.endswith("&format=json")
    error = server.get(f"/documents/{GPT2}?document=99&format=json")
    assert (error.status, json.loads(error.text)) == (
        400,
        {"error": "document is '99', expected a number from 0 to 24"},
    )


@pytest.mark.parametrize("packing", ["concat", "document", "best_fit", "chunks"])
def test_json_of_an_item_is_the_item_of_the_loader(
    server: Served, base: Path, packing: str, tmp_path: Path
) -> None:
    path = f"/items/{TWO}?context_length=32&packing={packing}&item=1"
    facts, page = json_of(server, path), server.page(path)
    assert facts["call"] in page.all("code")
    call = facts["call"]
    if packing == "best_fit":
        call = call.removesuffix(")") + f", cache_dir={str(tmp_path)!r})"
    dataset = eval(call)
    assert (facts["item"], facts["num_items"], facts["packing"]) == (1, len(dataset), packing)
    ids = _ids(dataset[1])
    assert facts["input_ids"][: len(ids)] == ids
    if packing != "chunks":
        assert facts["labels"] == dataset[1]["labels"].tolist()
        assert facts["num_labels"] == sum(label != -100 for label in facts["labels"])
        located = [tuple(row.values()) for row in facts["documents"]]
        assert located == [(f"{TWO}/{Path(place).name}", *place_in) for place, *place_in in dataset.locate(1)]
    assert facts["num_documents"] == len(facts["documents"]) > 0
    assert facts["num_padding"] == sum(document < 0 for document in facts["document_ids"])
    assert facts["first_position"] == 0


def test_json_of_a_page_without_items_has_the_reason(tmp_path: Path) -> None:
    _plain_pbin(tmp_path / "a.pbin", [1, 2])
    (tmp_path / "empty.pbin").write_bytes(struct.pack("<QI", 0, 2) + pickle.dumps([]))
    with served_folder(tmp_path) as server:
        facts = json_of(server, "/items/a.pbin")
        assert facts["num_items"] == 0
        assert facts["reason"] == notes(server.page("/items/a.pbin").html)[0]
        assert json_of(server, "/items/empty.pbin?packing=document")["num_items"] == 0
        assert json_of(server, "/documents/empty.pbin")["documents"] == 0
        facts = json_of(server, "/documents/a.pbin")
        assert (facts["ids"], facts["text"], facts["pieces"]) == ([1, 2], None, ["", ""])
        assert facts["no_text"] in notes(server.page("/documents/a.pbin").html)[0]


def test_damaged_origin_is_a_note_of_the_page(base: Path, tmp_path: Path) -> None:
    content = bytearray((base / GPT2).read_bytes())
    # The entry of the table of sections: type, flags, offset, bytes.
    entry = content.rindex(struct.pack("<II", 5, 0))
    offset, num_bytes = struct.unpack_from("<QQ", content, entry + 8)
    content[offset : offset + num_bytes] = b"\xff" * num_bytes
    (tmp_path / "a.pbin").write_bytes(content)
    with served_folder(tmp_path) as server:
        page = server.page("/documents/a.pbin?document=1")
        (note,) = notes(page.html)
        assert note.startswith("The origin of the document cannot be read: a.pbin: ")
        assert "".join(text for text, _ in page.tokens()) == f"{TEXTS[1]}<|endoftext|>"
        assert json_of(server, "/documents/a.pbin?document=1")["origin"]["error"] in note
