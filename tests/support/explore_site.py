"""Base directories for the page of `packtok explore`, and servers of it in this process."""

from __future__ import annotations

import http.client
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import uvicorn

import packtok
from packtok.catalog.index import build_index
from packtok.commands.data import create_metadata
from packtok.explore.application import application
from packtok.explore.server import bound_socket, configuration
from packtok.explore.site import Site, site_of_folder

TEXTS = [
    "The quick brown fox\njumps over\tthe lazy dog.",
    "Grüße aus Köln: 🙂 naïve café",
    "zero\u200bwidth and \u202ereversed\u202c text, no\u00a0break",
    'def f(x):\n    return {"a": x < 1 & 2 > 0}\n',
    "<script>alert(1)</script> <|endoftext|> after",
    *(f"Document {i} has {'very ' * (3 * i)}little to say." for i in range(20)),
]
# Number of texts in the first of two files.
SECOND_FILE = 15
DESCRIPTION = "Short texts of *many* kinds.\n\n# Heading\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n[home](https://example.org/)"


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    text: str


@dataclass(frozen=True)
class Served:
    """A running server."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(
        self,
        path: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: str | None = None,
    ) -> Answer:
        """Sends the path exactly as it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host="Host" in (headers or {}))
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(None if body is None else body.encode())
            answer = connection.getresponse()
            text = answer.read().decode("utf-8")
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, text)
        finally:
            connection.close()

    def page(self, path: str) -> Page:
        """Returns a page that must exist."""
        answer = self.get(path)
        assert answer.status == 200, (path, answer.status, notes(answer.text))
        return Page(answer.text)


@contextmanager
def served(site: Site, *, host: str = "127.0.0.1", **options: Any) -> Iterator[Served]:
    """Runs a server on a free port in a thread; ``options`` are those of `application`."""
    with bound_socket("127.0.0.1", 0) as listener:
        server = uvicorn.Server(configuration(application(site, host=host, **options)))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield Served(listener.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join()


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._open: list[list[str]] = []
        self._tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        text: list[str] = []
        self.elements.append((tag, dict(attrs), text))
        if tag not in ("meta", "link", "input", "br", "hr", "img"):
            self._open.append(text)
            self._tags.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        if tag in self._tags:
            while self._tags.pop() != tag:
                self._open.pop()
            self._open.pop()

    def handle_data(self, data: str) -> None:
        for text in self._open:
            text.append(data)


class Page:
    """The elements of a page."""

    def __init__(self, html: str) -> None:
        self.html = html
        parser = _Parser()
        parser.feed(html)
        self.elements = [(tag, attributes, "".join(text)) for tag, attributes, text in parser.elements]

    def all(self, tag: str, **attributes: str) -> list[str]:
        """Returns the texts of the elements with a tag and these attributes."""
        wanted = {key.rstrip("_"): value for key, value in attributes.items()}
        return [
            text
            for name, values, text in self.elements
            if name == tag
            and all(value in (values.get(key) or "").split(" ") for key, value in wanted.items())
        ]

    def text_of(self, tag: str, **attributes: str) -> str:
        """Returns the text of the only element with a tag and these attributes."""
        (text,) = self.all(tag, **attributes)
        return " ".join(text.split())

    def attributes(self, tag: str, name: str) -> list[str]:
        return [values[name] or "" for other, values, _ in self.elements if other == tag and name in values]

    def links(self) -> list[str]:
        return self.attributes("a", "href")

    def tokens(self, target: str = "t") -> list[tuple[str, int]]:
        """Returns the tokens with the focus as (text as it would be copied, id)."""
        tokens = []
        for tag, attributes, text in self.elements:
            if tag == "span" and re.fullmatch(rf"{target}\d+", attributes.get("id") or ""):
                number = re.search(r" · id ([\d,]+)", attributes["data-d"] or "")
                assert number is not None
                tokens.append((text, int(number[1].replace(",", ""))))
        return tokens

    def pairs(self) -> list[tuple[str, str | None]]:
        """Returns the text of each input with that of the label below it."""
        classes = [values.get("class", "").split() for tag, values, _ in self.elements if tag == "span"]
        has_label = ["none" not in names for names in classes if "pair" in names]
        labels = [
            text if is_labelled else None
            for text, is_labelled in zip(self.all("span", class_="label"), has_label, strict=True)
        ]
        return [(text, label) for (text, _), label in zip(self.tokens(), labels, strict=True)]

    def details(self, i: int, target: str = "t") -> str:
        (detail,) = [values["data-d"] for _, values, _ in self.elements if values.get("id") == f"{target}{i}"]
        return detail or ""

    def rows(self, css_class: str) -> list[list[str]]:
        """Returns the cells of the bodies of tables with a class."""
        (table,) = re.findall(rf'<table class="[^"]*\b{css_class}\b[^"]*">(.*?)</table>', self.html, re.S)
        body = table.partition("<tbody>")[2]
        rows = re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.S)
        return [
            [Page(cell).text for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)] for row in rows
        ]

    @property
    def text(self) -> str:
        """Returns the text without tags."""
        parser = _Parser()
        collected: list[str] = []
        parser._open.append(collected)
        parser.feed(self.html)
        return "".join(collected)


def notes(html: str) -> list[str]:
    """Returns the remarks on a page."""
    return [" ".join(text.split()) for text in Page(html).all("p", class_="note")]


def write_corpus(path: Path, texts: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    return path


def make_base(base: Path) -> Path:
    """Makes a base directory with a raw dataset, two tokenized forms of it, and some without data."""
    raw = base / "text" / "stories"
    write_corpus(raw / "raw" / "first.jsonl", TEXTS[:SECOND_FILE])
    write_corpus(raw / "raw" / "second.jsonl", TEXTS[SECOND_FILE:])
    create_metadata(
        {
            "name": "Short stories",
            "description": DESCRIPTION,
            "language": "en",
            "license": "CC0-1.0",
            "dataset_path": str(raw / "raw"),
            "output": str(raw / "metadata.json"),
            "download_source": "https://example.org/stories",
        }
    )
    for tokenizer, subset, options in (
        ("gpt2", "all", {"origins": True}),
        ("cl100k_base", "two", {"parts": 2}),
    ):
        packtok.tokenize([str(raw)], tokenizer, raw / "tokenized" / tokenizer / subset, **options)
    for i in range(40):
        write_metadata(
            base / "web" / f"crawl-{i:02}",
            name=f"Crawl {i:02}",
            description=f"Pages of month {i % 12}",
            date_downloaded=f"{2020 + i % 4}-01-01",
        )
    build_index(base)
    return base


def write_metadata(folder: Path, file: str = "metadata.json", **values: Any) -> Path:
    """Writes a metadata file with simple values for all keys but the given ones."""
    folder.mkdir(parents=True, exist_ok=True)
    known = {
        "name": "n",
        "description": "",
        "date_downloaded": "",
        "download_source": "",
        "data_content": "text",
    }
    path = folder / file
    path.write_text(
        json.dumps({**known, "data_content": "text", **values}), encoding="utf-8", errors="surrogatepass"
    )
    return path


@contextmanager
def served_folder(folder: Path) -> Iterator[Served]:
    with served(site_of_folder(folder)) as server:
        yield server


def environment() -> dict[str, str]:
    """The environment of a server in another process, without a base directory."""
    return {
        key: value for key, value in os.environ.items() if key not in ("PACKTOK_BASE_DIR", "TATM_BASE_DIR")
    }
