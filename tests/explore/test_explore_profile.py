"""The page of a profile and the search in documents, over a corpus that is dirty on purpose."""

from __future__ import annotations

import json
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pbins
import pytest
from dirty_corpus import COPIES, EMAILS, FIRST, PLAIN, SCRIPTS, SECOND, SPAM, write_dirty_files
from explore_site import Page, Served, notes, served, write_metadata

from packtok.commands.profile import profile_documents
from packtok.explore.contents import profiles
from packtok.explore.contents.profiles import Profiles
from packtok.explore.pages import find, profile
from packtok.explore.site import Site, site_of_folder

TEXTS = [*FIRST, *SECOND]
ONE = "dirty/dirty-1.pbin"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("profile")
    info = {"tokenizer": "gpt2", "file_prefix": "dirty", "file_extension": "pbin"}
    write_metadata(write_dirty_files(folder), name="Dirty", tokenized_info=info)
    pbins.write(folder / "ids.pbin", [[5, 6, 7], [5, 6, 7], [8]])
    return folder


@pytest.fixture(scope="module")
def site(folder: Path) -> Site:
    return site_of_folder(folder)


@pytest.fixture(scope="module")
def server(site: Site) -> Iterator[Served]:
    with served(site) as running:
        yield running


def finished(server: Served, name: str) -> Page:
    """Returns the page of a profile when it is computed."""
    while (answer := server.get(f"/profile/{name}")).status == 202:
        assert answer.headers["refresh"] == "1"
    assert answer.status == 200, notes(answer.text)
    return Page(answer.text)


def address(text: str, **parameters: Any) -> str:
    return f"/find/dirty?{urllib.parse.urlencode({'text': text, **parameters})}"


def places(text: str, *, ignore_case: bool = False) -> list[int]:
    """Returns the documents that contain a text."""
    if ignore_case:
        return [i for i, other in enumerate(TEXTS) if text.lower() in other.lower()]
    return [i for i, other in enumerate(TEXTS) if text in other]


def test_profile_of_a_dataset_is_that_of_the_command(server: Served, folder: Path) -> None:
    finished(server, "dirty")
    facts = json.loads(server.get("/profile/dirty?format=json").text)
    expected = profile_documents(folder / "dirty")
    del expected["tokenizer"]
    assert facts == {**expected, "files": ["dirty/dirty-0.pbin", "dirty/dirty-1.pbin"]}


def test_figures_link_to_their_documents(server: Served) -> None:
    page = finished(server, "dirty")
    links = {
        name: [attributes["href"] for tag, attributes, _ in Page(row).elements if tag == "a"]
        for row in page.html.split("<tr>")
        if (name := next(iter(Page(row).all("th", scope="row")), ""))
    }
    number = TEXTS.index
    second = len(FIRST)

    def documents(*numbers: int) -> list[str]:
        return [f"/documents/dirty?document={number}" for number in numbers]

    assert links["Secret keys"] == documents(second, second + 1, second + 2)
    assert links["E-mail addresses"] == documents(number(EMAILS[0]), number(EMAILS[1]))
    copied = [place for text in (COPIES[0], PLAIN[0], COPIES[1]) for place in places(text)[:2]]
    assert links["Equal to an earlier document"] == documents(*copied)
    assert links["Cyrillic"] == documents(number(SCRIPTS[1]))
    assert documents(number(SPAM))[0] in links["Repeated n-grams, above 20%"]
    assert links["Without text"] == documents(number(""), number(" \n "))
    # The links lead to the documents.
    assert "QWERTY" in "".join(text for text, _ in server.page(links["Secret keys"][0]).tokens())
    assert Page(page.html).links().count("/profile/dirty") == 1


def test_profile_without_a_tokenizer_says_why(server: Served) -> None:
    page = finished(server, "ids.pbin")
    assert len(notes(page.html)) == 1
    assert notes(page.html)[0].startswith("There are no figures about texts: the file does not say")
    assert "Scripts of letters" not in page.text
    assert "/documents/ids.pbin?document=1" in page.links()


def test_page_shows_how_much_is_computed_and_others_are_served(
    server: Served, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile, "_WAIT_SECONDS", 0)
    monkeypatch.setattr(Site, "document_texts", lambda *_: Slow)
    released, started = threading.Event(), threading.Event()

    class Slow:
        @staticmethod
        def profile(*, sample_tokens: int, on_progress: Callable[[dict[str, int]], None]) -> dict[str, Any]:
            on_progress({"bytes_read": 42, "total_bytes": 100})
            started.set()
            assert released.wait(30)
            raise ValueError("the file is damaged")

    try:
        server.get(f"/profile/{ONE}")
        assert started.wait(30)
        answer = server.get(f"/profile/{ONE}")
        assert (answer.status, answer.headers["refresh"]) == (202, "1")
        assert "42 % of the file was read" in Page(answer.text).text
        answer = server.get(f"/profile/{ONE}?format=json")
        assert (answer.status, json.loads(answer.text)) == (202, {"progress": 0.42})
        assert server.get(f"/documents/{ONE}").status == 200
    finally:
        released.set()
    while (answer := server.get(f"/profile/{ONE}")).status == 202:
        pass
    assert answer.status == 500
    assert "the file is damaged" in answer.text


def test_profile_that_no_page_asks_for_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    computed, ended = Profiles(), threading.Event()

    def endless(show: Callable[[dict[str, int]], None]) -> dict[str, Any]:
        try:
            while True:
                show({"bytes_read": 1, "total_bytes": 2})
                time.sleep(0.001)
        finally:
            ended.set()

    job = computed.job("a", endless)
    assert computed.job("a", endless) is job
    monkeypatch.setattr(profiles, "_ABANDONED_SECONDS", 0.0)
    assert ended.wait(30)
    assert job.profile.exception(30) is not None
    monkeypatch.undo()
    assert computed.job("a", lambda _: {"documents": 1}).profile.result(30) == {"documents": 1}


@pytest.mark.parametrize(
    ("text", "ignore_case"),
    [
        ("hens", False),
        ("JANE", True),
        ("小説", False),
        ("й", False),
        ("wORLD", False),
        ("\0", False),
        ("\n", False),
    ],
)
def test_hits_are_those_of_a_plain_search(server: Served, text: str, ignore_case: bool) -> None:
    path = address(text, ignore_case="1" if ignore_case else "", format="json")
    facts = json.loads(server.get(path).text)
    assert sorted({hit["document"] for hit in facts["hits"]}) == places(text, ignore_case=ignore_case)
    assert facts["next"] is None
    for hit in facts["hits"]:
        assert hit["before"] + hit["text"] + hit["after"] in TEXTS[hit["document"]]


def test_search_continues_where_it_stopped(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "_MAX_HITS", 4)
    # A search stops after the first document, too.
    for seconds in (2.0, 0.0):
        monkeypatch.setattr(find, "_SECONDS", seconds)
        documents: list[int] = []
        num_pages = 0
        path: str | None = address("fox met")
        while path:
            page = server.page(path)
            num_pages += 1
            hits = [link for link in page.links() if link.startswith("/documents/dirty?document=")]
            assert len(hits) <= 4
            documents += [
                int(urllib.parse.parse_qs(urllib.parse.urlsplit(hit).query)["document"][0]) for hit in hits
            ]
            following = [values["href"] for _, values, _ in page.elements if values.get("rel") == "next"]
            path = following[0] if following else None
        assert documents == places("fox met")
        assert num_pages == (7 if seconds else len(TEXTS))


def test_hit_is_marked_and_leads_to_its_token(server: Served) -> None:
    page = server.page(address("WORLD today", ignore_case=1))
    assert page.all("mark") == ["world today"] * 6
    link = page.links()[-1]
    shown = server.page(link)
    assert "today" in "".join(text for text, _ in shown.tokens()[:60])
    assert " ".join(page.all("p", role="status")[0].split()) == "6 hits – searched to the end"
    assert [values.get("name") for _, values, _ in page.elements if "checked" in values] == ["ignore_case"]


def test_first_visit_searches_nothing_and_overviews_have_the_form(server: Served) -> None:
    for path in ("/find/dirty", "/dataset/dirty", f"/file/{ONE}"):
        page = server.page(path)
        assert page.attributes("form", "action")[-1].startswith("/find/dirty")
        assert not page.all("mark")
    assert json.loads(server.get("/find/dirty?format=json").text)["hits"] == []


def test_text_has_a_limited_length(server: Served) -> None:
    assert server.get(address("é" * 200)).status == 200
    answer = server.get(address("a" * 201))
    assert answer.status == 400
    assert "text has 201 characters, expected at most 200" in answer.text
    assert server.get(address("a", document=len(TEXTS))).status == 400


def test_ids_cannot_be_searched(server: Served) -> None:
    page = server.page("/find/ids.pbin?text=a")
    assert notes(page.html)[0].startswith(
        "Documents cannot be searched without their text: the file does not"
    )
    assert not page.all("form", role="search")


def test_replaced_file_is_profiled_again(server: Served, folder: Path) -> None:
    path = folder / "replaced.pbin"
    for documents in ([[1, 2]], [[1, 2], [3, 4], [3, 4]]):
        pbins.write(folder / "new.pbin", documents)
        (folder / "new.pbin").rename(path)
        finished(server, "replaced.pbin")
        facts = json.loads(server.get("/profile/replaced.pbin?format=json").text)
        assert facts["documents"] == len(documents)
