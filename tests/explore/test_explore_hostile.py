"""`packtok explore` with hostile paths, links, metadata, texts and files: nothing outside is served."""

from __future__ import annotations

import codecs
import json
import os
import pickle
import re
import sqlite3
import struct
import subprocess
import threading
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from explore_site import Page, Served, notes, served, served_folder, write_corpus, write_metadata
from hypothesis import given, settings
from hypothesis import strategies as st

import packtok
from packtok.catalog import discovery
from packtok.catalog.index import INDEX_NAME, build_index
from packtok.data.run import open_run
from packtok.explore import files
from packtok.explore.contents import catalog
from packtok.explore.files import NotServedError, Root
from packtok.explore.html.texts import markdown, visible
from packtok.explore.html.tokens import Piece, tokens_html
from packtok.explore.pages.loading import commands_of_file
from packtok.explore.site import site_of_file, site_of_folder

SECRET = "very secret words"
KINDS = ("documents", "items", "file", "dataset")
_TOKENIZED = {"tokenizer": "gpt2", "file_prefix": "a", "file_extension": "pbin"}


@dataclass(frozen=True)
class World:
    """A base directory, and a folder next to it that is not served."""

    base: Path
    outside: Path


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    corpus = write_corpus(folder / "c.jsonl", [SECRET, "b"])
    packtok.pack(input=corpus, output=folder / "a.pbin", tokenizer="gpt2")
    return folder


@pytest.fixture
def world(template: Path, tmp_path: Path) -> World:
    made = World(tmp_path / "base", tmp_path / "outside")
    for folder in (made.base, made.outside / "data"):
        folder.mkdir(parents=True)
    (made.outside / "a.pbin").write_bytes((template / "a.pbin").read_bytes())
    write_metadata(made.outside / "data", name=SECRET, description=SECRET, tokenized_info=_TOKENIZED)
    (made.outside / "data" / "a.pbin").write_bytes((template / "a.pbin").read_bytes())
    return made


def refused(server: Served, path: str) -> None:
    """Checks that the answer to a path shows nothing from outside."""
    answer = server.get(path)
    assert answer.status in (400, 404), (path, answer.status)
    assert SECRET not in answer.text
    assert "token 0" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


PATHS = [
    "../outside/a.pbin",
    "%2e%2e/outside/a.pbin",
    "..%2foutside%2fa.pbin",
    "%2e%2e%2foutside%2fa.pbin",
    "x/../../outside/a.pbin",
    "./../outside/a.pbin",
    "..//outside/a.pbin",
    "..%5coutside%5ca.pbin",
    "%252e%252e%252foutside/a.pbin",
    "..%c0%afoutside/a.pbin",
    "a.pbin%00",
    "%00",
    "a.pbin%0a",
    "{outside}/a.pbin",
    "/{outside}/a.pbin",
    "%2f{outside}/a.pbin",
    "../outside/data",
    "{outside}/data",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "/proc/self/environ",
    "",
    ".",
    "..",
    "/",
    "x" * 5000,
    "x/" * 3000,
]


def test_paths_that_lead_outside_are_refused(world: World) -> None:
    with served_folder(world.base) as server:
        for path in PATHS:
            for kind in (*KINDS, "static"):
                refused(server, f"/{kind}/{path.replace('{outside}', str(world.outside).lstrip('/'))}")


def test_static_files_are_a_fixed_list(world: World) -> None:
    with served_folder(world.base) as server:
        assert server.get("/static/style.css").headers["content-type"] == "text/css; charset=utf-8"
        for path in ("../application.py", "..%2fapplication.py", "style.css/", "style.css%00", "", "x"):
            refused(server, f"/static/{path}")


def test_links_that_lead_outside_are_not_followed(world: World) -> None:
    (world.base / "file.pbin").symlink_to(world.outside / "a.pbin")
    (world.base / "relative.pbin").symlink_to("../outside/a.pbin")
    (world.base / "folder").symlink_to(world.outside)
    (world.base / "chain.pbin").symlink_to("file.pbin")
    (world.base / "circle.pbin").symlink_to("circle.pbin")
    (world.base / "inner").mkdir()
    (world.base / "inner" / "metadata.json").symlink_to(world.outside / "data" / "metadata.json")
    with served_folder(world.base) as server:
        for kind in ("documents", "items", "file"):
            for path in ("file.pbin", "relative.pbin", "folder/a.pbin", "chain.pbin", "circle.pbin"):
                refused(server, f"/{kind}/{path}")
        for path in ("folder/data", "folder", "inner"):
            refused(server, f"/dataset/{path}")


def test_datasets_outside_show_only_that_they_exist(world: World) -> None:
    (world.base / "x").mkdir()
    (world.base / "x" / "data").symlink_to(world.outside / "data")
    write_metadata(world.base / "x" / "own", name="Own")
    with served_folder(world.base) as server:
        # Without an index, datasets outside are left out.
        assert server.page("/").all("h3") == ["Own"]
        build_index(world.base)
        page = server.page("/")
        assert sorted(page.all("h3")) == ["A dataset outside the base directory", "Own"]
        assert SECRET not in page.html


def test_search_of_folders_stays_below_the_base_and_is_limited(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (world.base / "machine").symlink_to("/")
    raw = world.base / "x" / "plain"
    write_metadata(raw, name="Raw")
    (raw / "tokenized").mkdir()
    (raw / "tokenized" / "machine").symlink_to("/")
    write_metadata(world.base / "real" / "linked", name="Linked")
    (world.base / "link").symlink_to("real")
    read: list[str] = []
    folders = discovery._folders

    def counted(folder: str) -> list[str]:
        read.append(os.path.realpath(folder))
        return folders(folder)

    monkeypatch.setattr(discovery, "_folders", counted)
    with served_folder(world.base) as server:
        page = server.page("/")
        assert page.all("h3") == ["Linked", "Linked", "Raw"]
        assert "Folders are missing" not in page.text
    assert all(Path(folder).is_relative_to(world.base.resolve()) for folder in read)
    monkeypatch.setattr(catalog, "_MAX_FOLDERS", 3)
    with served_folder(world.base) as server:
        page = server.page("/")
        assert page.all("h3") == ["Linked"]
        assert "Folders are missing in the list, because they are too many or too deep." in page.text


def test_folders_nested_1200_levels_end_no_search(world: World) -> None:
    write_metadata(world.base / "z" / "data", name="Some")
    descriptor = os.open(world.base, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    try:
        with served_folder(world.base) as server:
            page = server.page("/")
    finally:
        # Python's own functions, with which pytest cleans up, do not descend as far.
        subprocess.run(["rm", "-rf", world.base / "d"], check=True)
    assert page.all("h3") == ["Some"]
    assert "too many or too deep" in page.text


def test_form_of_a_raw_dataset_outside_shows_nothing_of_it(world: World) -> None:
    raw = world.base / "x" / "data"
    write_metadata(raw / "tokenized" / "gpt2" / "all", tokenized_info=_TOKENIZED)
    (raw / "metadata.json").symlink_to(world.outside / "data" / "metadata.json")
    build_index(world.base)
    with served_folder(world.base) as server:
        for path in ("/", "/dataset/x/data/tokenized/gpt2/all"):
            assert SECRET not in server.page(path).html.replace(f"{SECRET}-tokenized", "")


def test_index_that_is_a_link_to_another_place_is_not_read(world: World) -> None:
    build_index(world.outside)
    (world.base / INDEX_NAME).symlink_to(world.outside / INDEX_NAME)
    with served_folder(world.base) as server:
        page = server.page("/")
        assert page.text_of("h2", id="total") == "0 datasets"
        assert SECRET not in page.html


def test_index_that_becomes_a_link_after_the_check_is_not_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_index(world.outside)
    write_metadata(world.base / "x" / "own", name="Own")
    build_index(world.base)
    path, kept = world.base / INDEX_NAME, world.base / "kept"
    connect = sqlite3.connect
    num_swaps = 0

    def swapped(*arguments: Any, **options: Any) -> sqlite3.Connection:
        nonlocal num_swaps
        num_swaps += 1
        path.rename(kept)
        path.symlink_to(world.outside / INDEX_NAME)
        try:
            return connect(*arguments, **options)
        finally:
            kept.rename(path)

    with served_folder(world.base) as server:
        with monkeypatch.context() as patched:
            patched.setattr(sqlite3, "connect", swapped)
            refused(server, "/")
        assert num_swaps == 1
        assert server.page("/").all("h3") == ["Own"]


@pytest.mark.parametrize("swapped", ["file", "folder"])
def test_link_that_is_made_after_the_check_is_not_followed(
    world: World, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    inner = world.base / "x" / "data"
    inner.mkdir(parents=True)
    (inner / "a.pbin").write_bytes(b"harmless")
    root, resolve = Root(world.base), os.path.realpath

    def resolve_then_swap(path: str) -> str:
        resolved = resolve(path)
        if swapped == "file":
            (inner / "a.pbin").unlink()
            (inner / "a.pbin").symlink_to(world.outside / "a.pbin")
        else:
            inner.rename(world.base / "old")
            inner.symlink_to(world.outside / "data")
        return resolved

    monkeypatch.setattr(files.os.path, "realpath", resolve_then_swap)
    with pytest.raises(NotServedError):
        root.open("x/data/a.pbin")
    assert (inner / "a.pbin").read_bytes() == (world.outside / "a.pbin").read_bytes()


def test_link_that_is_swapped_all_the_time_never_leads_outside(world: World) -> None:
    good, link = world.base / "good", world.base / "data"
    good.mkdir()
    (good / "a.pbin").write_bytes(b"harmless")
    root, done = Root(world.base), threading.Event()

    def swap() -> None:
        places = [good, world.outside / "data"]
        while not done.is_set():
            (world.base / "new").symlink_to(places[0])
            os.replace(world.base / "new", link)
            places.reverse()

    thread = threading.Thread(target=swap)
    thread.start()
    contents = []
    try:
        for _ in range(1000):
            try:
                contents.append(root.open("data/a.pbin").content(100_000))
            except NotServedError:
                continue
    finally:
        done.set()
        thread.join()
    assert {*contents} <= {b"harmless"}


def test_file_that_is_replaced_after_it_was_opened_is_still_the_same_file(world: World) -> None:
    path = world.base / "a.txt"
    path.write_bytes(b"first")
    opened = Root(world.base).open("a.txt")
    path.unlink()
    path.symlink_to(world.outside / "a.pbin")
    assert opened.content(100) == b"first"
    assert Path(opened.path).read_bytes() == b"first"


def test_what_is_no_regular_file_is_refused_at_once(world: World) -> None:
    os.mkfifo(world.base / "pipe.pbin")
    (world.base / "folder.pbin").mkdir()
    os.mkfifo(world.base / "folder.pbin" / "metadata.json")
    (world.base / "null.pbin").symlink_to("/dev/null")
    (world.base / "zero.pbin").symlink_to("/dev/zero")
    with served_folder(world.base) as server:
        for kind in KINDS:
            for name in ("pipe.pbin", "folder.pbin", "null.pbin", "zero.pbin"):
                refused(server, f"/{kind}/{name}")


@pytest.mark.parametrize(
    "prefix",
    [
        "../../outside/a",
        "../../outside/",
        "/{outside}/a",
        "/{outside}/data/",
        "../../outside/data/a",
        "",
        "/",
        "..",
        "\0",
        "a\0",
        "*",
        "x/../../../outside/a",
        "/proc/self/fd/",
        "~/",
        "\ud800",
        "[a]",
    ],
)
def test_token_files_named_by_metadata_stay_below_the_base(world: World, prefix: str) -> None:
    prefix = prefix.replace("/{outside}", str(world.outside))
    info = {**_TOKENIZED, "file_prefix": prefix}
    write_metadata(world.base / "x" / "data", name="D", dataset_path=str(world.outside), tokenized_info=info)
    (world.base / "x" / "data" / "link").symlink_to(world.outside)
    with served_folder(world.base) as server:
        page = server.page("/dataset/x/data")
        assert not [link for link in page.links() if link.startswith(("/file/", "/documents/"))]
        assert "a.pbin" not in "".join(page.all("table"))


def test_folder_of_token_files_that_is_a_link_to_another_place_is_not_listed(world: World) -> None:
    info = {**_TOKENIZED, "file_prefix": "link/a"}
    write_metadata(world.base / "x" / "data", name="D", tokenized_info=info)
    (world.base / "x" / "data" / "link").symlink_to(world.outside)
    with served_folder(world.base) as server:
        assert "a.pbin" not in "".join(server.page("/dataset/x/data").all("table"))


def test_tokenizers_named_by_files_are_not_opened(world: World, template: Path) -> None:
    json_text = packtok.Tokenizer.builtin("gpt2").to_json()
    (world.outside / "tokenizer.json").write_bytes(json_text)
    (world.base / "own.json").write_bytes(json_text.replace(b'"<|endoftext|>"', b'"<|end|>"', 1))
    output = world.base / "a.pbin"
    own = world.base / "own.json"
    packtok.pack(input=template / "c.jsonl", output=output, tokenizer=str(own), eod="<|endoftext|>")
    own.unlink()
    for beside in world.base.glob("*.tokenizer.json"):
        beside.unlink()
        beside.symlink_to(world.outside / "tokenizer.json")
    (world.base / "tokenizer.json").symlink_to(world.outside / "tokenizer.json")
    with served_folder(world.base) as server:
        page = server.page("/documents/a.pbin")
        assert "is neither built in nor next to the file; give --tokenizer" in notes(page.html)[0]
        compare = f"/documents/a.pbin?compare=file:{urllib.parse.quote('../outside/tokenizer.json')}"
        assert server.get(compare).status in (200, 404)
        assert '"o0"' not in server.get(compare).text


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"model": {}}', b"\xff" * 100, b"[" * 100_000])
def test_tokenizer_file_that_is_none_leaves_the_ids(world: World, content: bytes) -> None:
    data = struct.pack("<HH", 15496, 995)
    (world.base / "a.pbin").write_bytes(struct.pack("<QI", 4, 2) + data + pickle.dumps([(0, 4)]))
    (world.base / "tokenizer.json").write_bytes(content)
    with served(site_of_file(world.base / "a.pbin")) as server:
        page = server.page("/documents/a.pbin")
        assert [id_ for _, id_ in page.tokens()] == [15496, 995]
        assert notes(page.html)[0].startswith(
            "The text is not shown: a tokenizer next to the file cannot be "
        )


def write_tokenizer(path: Path, tokens: list[str]) -> None:
    """Writes a byte-level tokenizer with these tokens."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    model = {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": []}
    path.write_text(json.dumps({"model": model, "pre_tokenizer": byte_level, "decoder": byte_level}))


def test_text_of_a_token_is_limited(world: World) -> None:
    # "é" as byte-level tokenizers write it; the last token starts inside a character.
    tokens = ["a" * 300, "b" * 128, "c" * 400_000, "Ã©" * 100_000, "©" + "d" * 4000]
    write_tokenizer(world.base / "tokenizer.json", tokens)
    for name, token_ids in (("long", [0, 1]), ("longer", [2] * 400), ("mixed", [1, 3, 4, 1])):
        content = struct.pack(f"<{len(token_ids)}B", *token_ids)
        index = pickle.dumps([(0, len(content))])
        (world.base / f"{name}.pbin").write_bytes(struct.pack("<QI", len(content), 1) + content + index)
    with served_folder(world.base) as server:
        page = server.page("/documents/long.pbin")
        assert [text for text, _ in page.tokens()] == ["a" * 128 + "and 172 more characters", "b" * 128]
        assert "300 bytes: 61 61" in page.details(0)
        for path in ("/documents/longer.pbin", "/items/longer.pbin?context_length=100"):
            page = server.page(path)
            assert len(page.html) < 300_000
            assert {*page.tokens()} == {("c" * 128 + "and 399,872 more characters", 2)}
            assert "400,000 bytes: 63 63" in page.details(0)
        assert "160,000,000 bytes" in server.page("/documents/longer.pbin").text
        page = server.page("/documents/mixed.pbin")
        assert [text for text, _ in page.tokens()] == [
            "b" * 128,
            "é" * 128 + "and 99,872 more characters",
            "A9" + "d" * 127 + "and 3,873 more characters",
            "b" * 128,
        ]
        note = "token 3 has 200,000 bytes, too many to compare the text"
        assert notes(server.page("/documents/mixed.pbin?compare=gpt2&counts=1").html) == [note]
        (row,) = json.loads(server.get("/table/longer.pbin?format=json").text)["rows"]
        assert (row["tokens"], row["bytes"], row["bytes_per_token"]) == (400, 160_000_000, 400_000)
        answer = server.get("/kinds/longer.pbin")
        assert len(answer.text) < 10_000
        assert notes(answer.text) == [
            "tokenizer tokenizer.json: token 2 has 400,000 characters, too many for a page; the limit is "
            "4,096"
        ]


def test_names_and_values_are_shown_up_to_a_length(world: World) -> None:
    def long(char: str) -> str:
        return char * 300_000

    info = {**_TOKENIZED, "tokenizer": long("t"), "parent_datasets": [long("p")] * 3}
    values = {"language": long("l"), "corpuses": [long("c")] * 3, "download_source": long("s")}
    write_metadata(world.base / "x" / "data", name=long("n"), tokenized_info=info, **values)
    (world.base / "x" / "data" / "a.pbin").write_bytes((world.outside / "a.pbin").read_bytes())
    # With an index, the commands have the name and not the path.
    build_index(world.base)
    with served_folder(world.base) as server:
        for path in ("/", "/dataset/x/data"):
            page = server.page(path)
            assert len(page.html) < 200_000, path
            assert f"{'n' * 4096} … (300,000 characters)" in page.text
        assert "too long for a page: 300," in server.page("/dataset/x/data").text


NAMES = [
    'quote".pbin',
    "apostrophe'.pbin",
    "<img src=x onerror=alert(1)>.pbin",
    "</title><script>alert(1)</script>.pbin",
    "new\nline\rand\ttab.pbin",
    "\u202ereversed\u2066\u200b.pbin",
    "per%2fcent%00?query=1#hash.pbin",
    "{{ 7 * 7 }}{% raw %}.pbin",
    "back\\slash;&amp;.pbin",
    "$(touch x)`touch y`.pbin",
]


def test_names_are_shown_escaped_and_can_be_opened(world: World) -> None:
    quoted_names = []
    for i, name in enumerate([*NAMES, os.fsdecode(b"not utf-8 \xff\xfe.pbin")]):
        folder = world.base / "x" / f"{i}{name.replace('.pbin', '').replace('/', '')}"
        description = f"*{name}*".encode(errors="replace").decode()
        write_metadata(folder, name=description, description=description, tokenized_info=_TOKENIZED)
        path = folder / f"a{name}".replace("/", "")
        path.write_bytes((world.outside / "a.pbin").read_bytes())
        quoted_names.append(urllib.parse.quote(os.path.relpath(path, world.base), errors="surrogateescape"))
    with served_folder(world.base) as server:
        assert_harmless(server.page("/").html)
        for quoted in quoted_names:
            for kind in ("documents", "items", "file"):
                assert_harmless(server.page(f"/{kind}/{quoted}").html)
            facts = json.loads(server.get(f"/items/{quoted}?context_length=1&format=json").text)
            file = facts["documents"][0]["path"]
            assert urllib.parse.quote(file, errors="surrogateescape") == quoted
            assert json.loads(server.get(f"/items/{quoted}?format=json").text)["num_items"] == 0
            page = server.page(f"/dataset/{quoted.rpartition('/')[0]}")
            assert_harmless(page.html)
            (link,) = [link for link in page.links() if link.startswith("/file/")]
            assert link == f"/file/{quoted}"
    # A config cannot contain a name that is not UTF-8.
    paths = [str(world.base / urllib.parse.unquote(quoted)) for quoted in quoted_names[:-1]]
    config = world.base / "run.yaml"
    dataset = {"type": "Mixture", "sources": dict.fromkeys(paths, 1), "context_length": 1}
    config.write_text(json.dumps({"dataset": dataset, "loader": {"global_batch_size": 2 * len(paths)}}))
    with served(site_of_folder(world.base).with_run(open_run(str(config)))) as server:
        for address in ("/batch", "/batch?from=16", "/batch?row=1"):
            page = server.page(address)
            assert_harmless(page.html)
            links = [link for link in page.links() if link.startswith("/documents/")]
            assert {link.removeprefix("/documents/").partition("?")[0] for link in links} <= {*quoted_names}


_ALLOWED_SCRIPT = '<script src="/static/script.js" defer></script>'


def assert_harmless(html: str) -> None:
    """Checks that a page contains no code, loads nothing from other hosts, and hides no character."""
    assert html.count("<script") == html.count(_ALLOWED_SCRIPT) <= 1
    page = Page(html)
    for tag, attributes, _ in page.elements:
        assert tag not in ("iframe", "object", "embed", "img", "base", "style", "audio", "video"), tag
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in ("style", "srcdoc"), (tag, name)
            if name in ("src", "action") or (name == "href" and tag != "a"):
                assert re.match(r"[/#](?!/)", value or ""), (tag, value)
            if tag == "a" and name == "href":
                assert re.match(r"([/#](?!/)|https?://|mailto:)", value or ""), value
    for char in html:
        assert char in "\n\t" or visible(char) == char, hex(ord(char))


HOSTILE_MARKDOWN = """
<script>alert(1)</script> <img src=x onerror=alert(1)> <b onclick=x>bold</b>
[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) [c](data:text/html,x) [d](vbscript:x) [e](//evil.example/)
[f](/logout) [g](&#106;avascript:alert(1)) [h](java\nscript:alert(1)) ![i](https://evil.example/x.png)
<https://good.example/> <javascript:alert(1)> [j]( javascript:alert(1)) [k](file:///etc/passwd)
[l]: javascript:alert(1)
[l] <style>*{}</style> <!-- x --> <a href="javascript:x">y</a> \u202egnirts

# One <script>
"""


def test_markdown_has_no_code_pictures_or_other_links() -> None:
    html = markdown(HOSTILE_MARKDOWN)
    assert_harmless(html)
    assert re.findall(r'href="([^"]*)"', html) == ["https://evil.example/x.png", "https://good.example/"]
    assert "&lt;script&gt;" in html
    assert "<h3>" in html


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters() | st.sampled_from("<>[]()!`*_#&:/\\\"'\n")))
def test_any_text_is_harmless_as_markdown_and_as_tokens(text: str) -> None:
    assert_harmless(markdown(text))
    content = text.encode("utf-8", "surrogatepass")
    html = tokens_html([Piece(1, content, text=content.decode("utf-8", "surrogateescape"))])
    assert_harmless(html)
    assert not {*re.findall(r"<(\w+)", html)} - {"span", "i"}


@pytest.mark.parametrize(
    "description", ["[" * 50_000, "*" * 60_000, "> " * 30_000, "`" * 60_000, "a" * 3_000_000]
)
def test_markdown_that_is_expensive_is_rendered_in_time(description: str) -> None:
    thread = threading.Thread(target=markdown, args=(description,), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def test_table_does_not_grow_with_the_product_of_its_rows_and_columns() -> None:
    columns = 300
    table = "|" + "a|" * columns + "\n|" + "-|" * columns + "\n" + "a\n" * 3000
    assert len(markdown(table)) < 100 * len(table)


def test_headings_of_a_description_skip_no_level_and_wide_parts_are_reached_by_keyboard() -> None:
    html = markdown("#### a\n\n# b\n\n##### c\n\n```\nx\n```\n\n    y\n\n|a|\n|-|\n|b|")
    assert re.findall(r"<(h\d)>(\w)</\1>", html) == [("h3", "a"), ("h3", "b"), ("h4", "c")]
    assert re.findall(r"<(?:pre|table)[^>]*>", html) == ['<pre tabindex="0">'] * 2 + ['<table tabindex="0">']


def test_hostile_description_is_harmless_on_all_pages(world: World) -> None:
    write_metadata(world.base / "x" / "data", name="<script>x</script>", description=HOSTILE_MARKDOWN)
    build_index(world.base)
    with served_folder(world.base) as server:
        for path in ("/", "/dataset/x/data", "/?q=%3Cscript%3E&language=%22%3E%3Cscript%3E"):
            assert_harmless(server.page(path).html)


def test_details_that_are_a_link_to_the_outside_are_not_shown(world: World) -> None:
    details = {"packtok_metadata": 1, "license": SECRET, "tokens": 123_456}
    (world.outside / "secret.json").write_text(json.dumps(details))
    write_metadata(world.base / "x" / "data", name="Some")
    (world.base / "x" / "data" / "metadata.packtok.json").symlink_to(world.outside / "secret.json")
    with served_folder(world.base) as server:
        for path in ("/", f"/?q={SECRET.split()[0]}", "/dataset/x/data"):
            text = server.page(path).text
            assert SECRET not in text
            assert "123,456" not in text


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("metadata.json", b"{" + b'"a": ' * 10),
        ("metadata.json", b"[" * 200_000),
        ("metadata.json", b'{"name": ["x"]}'),
        ("metadata.json", b"\xff\xfe"),
        ("metadata.json", b'{"name": "' + b"x" * (5 << 20) + b'"}'),
        ("metadata.json", b'{"name": ' + b"9" * 10_000 + b"}"),
        ("metadata.yaml", b"a: &a [x, x]\nb: &b [*a, *a]\n"),
        ("metadata.yaml", b"!!python/object/apply:os.system ['touch hacked']"),
        ("metadata.yaml", b"a: " + b"[" * 500),
        ("metadata.yaml", b"# b\n" * 70_000),
        ("metadata.yaml", b"a: !!bool x"),
        ("metadata.yaml", b"a: 0x" + b"f" * 5000),
    ],
)
def test_metadata_that_cannot_be_read_is_an_error_of_its_page(
    world: World, file: str, content: bytes
) -> None:
    folder = world.base / "x" / "data"
    folder.mkdir(parents=True)
    (folder / file).write_bytes(content)
    write_metadata(world.base / "x" / "other", name="Other")
    with served_folder(world.base) as server:
        answer = server.get("/dataset/x/data")
        assert answer.status == 404
        assert len(answer.text) < 5000
        assert server.page("/").all("h3") == ["Other"]
    assert not list(world.base.rglob("hacked"))


def test_metadata_with_aliases_that_multiply_is_refused(world: World) -> None:
    lines = [f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in pairwise("abcdefghijklmnopqrst")]
    folder = world.base / "x" / "data"
    folder.mkdir(parents=True)
    (folder / "metadata.yaml").write_text("a: &a [x]\n" + "\n".join(lines) + "\nself: &self [*self]\n")
    with served_folder(world.base) as server:
        assert server.page("/").text_of("h2", id="total") == "0 datasets"
        answer = server.get("/dataset/x/data")
        expected = "x/data/metadata.yaml: stands for more than 1,000,000 values; remove aliases from it"
        assert (answer.status, notes(answer.text)) == (404, [expected])


@pytest.mark.parametrize(
    "details",
    [
        {"files": 1},
        {"files": [1, None, {}, {"path": 1}, {"path": "a.pbin", "bytes": "x"}]},
        {"documents": "x"},
        {"tokens": [1]},
        {"files": {"path": "x"}},
        {"corpora": [1]},
        {"corpora": {"c": 1, "d": {"documents": "x"}}},
        {"tokens": 10**30, "documents": -5, "text_bytes": True, "source_bytes": 10**400},
        {"files": [{"path": f"{i}", "crc32c": "<b>" * 100, "trailer_crc32c": -1} for i in range(5000)]},
    ],
)
def test_details_of_any_shape_make_a_page(world: World, details: dict[str, object]) -> None:
    for folder, info in (("raw", None), ("raw/tokenized/gpt2/all", _TOKENIZED)):
        path = world.base / "x" / folder
        write_metadata(path, name="D", corpuses=["c", "d", "../.."], tokenized_info=info)
        (path / "metadata.packtok.json").write_text(json.dumps({"packtok_metadata": 1, **details}))
    with served_folder(world.base) as server:
        for folder in ("raw", "raw/tokenized/gpt2/all"):
            assert_harmless(server.page(f"/dataset/x/{folder}").html)


@pytest.mark.parametrize("details", [b"", b"[]", b"{", b"\xff", b'{"packtok_metadata": 2}', b"[" * 100_000])
def test_broken_details_do_not_end_the_server(world: World, details: bytes) -> None:
    path = write_metadata(world.base / "x" / "data", name="D")
    path.with_name("metadata.packtok.json").write_bytes(details)
    with served_folder(world.base) as server:
        assert server.get("/dataset/x/data").status in (200, 404)
        assert server.page("/").text_of("h2", id="total")


def test_broken_pbins_are_errors_of_their_pages(world: World) -> None:
    content = (world.outside / "a.pbin").read_bytes()
    lengths = [0, 1, 11, 12, 13, 20, len(content) // 2, len(content) - 1]
    broken = {f"short-{i}": content[:i] for i in lengths}
    broken |= {
        f"flipped-{i}": content[:i] + bytes([content[i] ^ 255]) + content[i + 1 :]
        for i in range(0, len(content), 37)
    }
    broken["zeros"], broken["text"] = bytes(1000), b"hello\n" * 100
    broken["pickle"] = struct.pack("<QI", 0, 2) + b"cos\nsystem\n(S'touch hacked'\ntR."
    for name, damaged in broken.items():
        (world.base / f"{name}.pbin").write_bytes(damaged)
    with served_folder(world.base) as server:
        for name in broken:
            for kind in ("file", "documents", "items"):
                answer = server.get(f"/{kind}/{name}.pbin")
                assert "default-src 'none'" in answer.headers["content-security-policy"], name
                assert answer.status in (200, 404, 500)
                assert "/proc/self/fd" not in answer.text
                if answer.status != 200:
                    assert notes(answer.text)[0].startswith(f"{name}.pbin: "), notes(answer.text)
        assert server.get("/file/short-20.pbin").status == 404
    assert not list(world.base.rglob("hacked"))


def test_other_methods_and_large_requests_are_refused(world: World) -> None:
    with served_folder(world.base) as server:
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            answer = server.get("/", method=method)
            assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
        assert server.get("/login", method="POST", body="token=x").status == 405
        head = server.get("/", method="HEAD")
        assert (head.status, head.text) == (200, "")
        assert server.get("/?q=" + "x" * 100_000).status == 414
        assert server.page("/").text_of("h2", id="total") == "0 datasets"


def test_copied_commands_keep_hostile_names_in_quotes(template: Path, tmp_path: Path) -> None:
    site = site_of_folder(tmp_path)
    for name in [*NAMES, os.fsdecode(b"\xff.pbin")]:
        path = tmp_path / name.replace("/", "")
        path.write_bytes((template / "a.pbin").read_bytes())
        packed = site.files.open(path.name)
        commands = {command.title: command.text for command in commands_of_file(site, packed)}
        for text in commands.values():
            assert all(char == "\n" or visible(char) == char for char in text)
        line = commands["Command line"].splitlines()[0].replace("packtok inspect", "printf %s")
        with os.popen(f"bash -c {_quoted(line)} | od -An -v -tx1") as output:
            assert codecs.decode("".join(output.read().split()), "hex") == os.fsencode(path)
        namespace: dict[str, object] = {}
        source = commands["Python"].partition("TokenDataset(")[2].rpartition(",")[0]
        exec(f"path = {source}", namespace)
        assert namespace["path"] == str(path)


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)


@pytest.fixture(autouse=True)
def _no_descriptor_is_left(world: World) -> Iterator[None]:
    """Checks that requests do not leak file descriptors."""
    before = len(os.listdir("/proc/self/fd"))
    yield
    # Caches of a site keep some files open as long as it exists.
    assert len(os.listdir("/proc/self/fd")) - before < 200
