"""The first page: a search over all datasets with facets."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape
from starlette.datastructures import QueryParams
from starlette.responses import RedirectResponse, Response

from packtok._packtok import natural_sorted
from packtok.catalog.facets import FACETS
from packtok.catalog.search import Query
from packtok.explore.html.rendering import link, summary
from packtok.explore.html.texts import MAX_TEXT_CHARS, shortened, visible
from packtok.explore.pages.answers import is_json, json_response
from packtok.explore.pages.parameters import choice, integer
from packtok.explore.site import Site

_NUMBER = re.compile(r"(\d{1,6})([KMBT]?)")
SORTS = {"best": "best match", "name": "name", "tokens": "tokens", "date": "date"}
PAGE_ENTRIES = 25
_MAX_CHOICES = 50
_FIRST_VALUES = 8
_MAX_PBINS = 100
_MAX_BROKEN = 50
_HARMLESS = re.compile(r"[\w .,:;/()-]*", re.ASCII)


def _pbins(site: Site) -> list[str]:
    """Returns the pbins in the base itself, for a folder without described datasets."""
    return natural_sorted([name for name in site.root.names("") if name.endswith(".pbin")])[:_MAX_PBINS]


@dataclass(frozen=True)
class Facet:
    """The values of a facet as HTML: the first ones, and those that are shown on request."""

    name: str
    first: Markup
    more: Markup
    num_more: int
    is_open: bool
    """Whether one of those that are shown on request is chosen."""


def _facet(name: str, values: list[tuple[str, int]], chosen: tuple[str, ...]) -> Facet:
    # A value that does not fit into an address cannot be chosen.
    ordered = _ordered(name, [pair for pair in values if len(pair[0]) <= MAX_TEXT_CHARS])
    boxes = [_box(name, i, *pair, pair[0] in chosen) for i, pair in enumerate(ordered, 1)]
    more = ordered[_FIRST_VALUES:]
    return Facet(
        name,
        Markup("".join(boxes[:_FIRST_VALUES])),
        Markup("".join(boxes[_FIRST_VALUES:])),
        len(more),
        any(value in chosen for value, _ in more),
    )


# The functions below format HTML without templates: a page has dozens of boxes and results, for which a
# template takes longer than the rest of a search.


def _box(facet: str, i: int, value: str, number: int, is_checked: bool) -> str:
    checked = " checked" if is_checked else ""
    box = f'<input type="checkbox" id="{facet}-{i}" name="{facet}" value="{escape(value)}"{checked}>'
    text = f'<span class="value">{_text(value or "none")}</span>'
    return f'<label for="{facet}-{i}">{box} {text} <span class="number">{number:,}</span></label>'


def _result(entry: Mapping[str, Any]) -> str:
    folder = entry["folder"]
    # A link without a text would be invisible.
    name = _text(entry["name"].strip() or folder)
    # The output of `quote` needs no escaping.
    title = name if folder is None else f'<a href="/dataset/{quote(folder)}">{name}</a>'
    labels = [("context", entry["context"]), ("tokenizer", entry["tokenizer"])]
    facts = [f'<span class="{kind}">{_text(value)}</span>' for kind, value in labels if value]
    numbers = [(entry["tokens"], "tokens"), (entry["documents"], "documents")]
    facts += [f"<span><b>{number:,}</b> {unit}</span>" for number, unit in numbers if number is not None]
    facts += [f"<span>{_text(entry[key])}</span>" for key in ("language", "license", "date") if entry[key]]
    text = summary(entry)
    description = f'<p class="summary">{_text(text)}</p>' if text else ""
    form = "" if entry["parent"] is None else ' class="form"'
    return f'<li{form}><h3>{title}</h3><p class="meta">{" ".join(facts)}</p>{description}</li>\n'


def _known_result(site: Site, entry: Mapping[str, Any]) -> str:
    # Results are cached: while a user types, most results were shown a moment ago.
    names = ("path", "modified_ns", "bytes", "name", "folder", "language", "license", "date")
    # A tokenized form inherits from its raw dataset, which may have changed alone.
    key = (*(entry[name] for name in names), hash(entry["entry"]))
    return site.results.value(key, lambda: _result(entry))


def _text(text: str) -> str:
    start = shortened(text)
    return start if _HARMLESS.fullmatch(start) else str(escape(visible(start)))


def entry_facts(site: Site, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an entry of the index as JSON, with the names of `packtok data list`."""
    names = ("name", "context", "tokenizer", "documents", "tokens", "language", "license", "date", "folder")
    path = None if entry["folder"] is None else str(site.root.folder / entry["path"])
    return {**{name: entry[name] for name in names}, "path": path, "description": summary(entry)}


def _ordered(facet: str, values: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Returns the values of a facet in the order of the page: ranges by size, years from the last one."""
    if facet == "tokens":
        return sorted(values, key=lambda pair: _magnitude(pair[0]))
    return sorted(values, reverse=True, key=lambda pair: _magnitude(pair[0])) if facet == "date" else values


def _magnitude(value: str) -> tuple[int, int]:
    """Returns a key that sorts numbers with a unit, such as the start of ``10M-100M``."""
    match = _NUMBER.match(value)
    return (-1, 0) if match is None else (" KMBT".find(match[2] or " "), int(match[1]))


def search_page(site: Site, parameters: QueryParams) -> Response:
    """Returns the page of a search; with ``fragment``, only the part that changes with it."""
    if site.catalog is None:
        first = link("batch") if site.single is None else link("file", site.single)
        return RedirectResponse(str(first.unescape()), 303)
    number = integer(parameters, "page", 1, least=1, most=1_000_000)
    words = parameters.get("q", "")[:500]
    sort = choice(parameters, "sort", tuple(SORTS))
    chosen = {facet: tuple(dict.fromkeys(parameters.getlist(facet)))[:_MAX_CHOICES] for facet in FACETS}
    offset = (number - 1) * PAGE_ENTRIES
    query = Query(words=words, **chosen, sort=sort, is_grouped=True, offset=offset, limit=PAGE_ENTRIES)
    site.catalog.index()
    # Asked before the search: if it is false, the search has all datasets.
    is_building = site.catalog.is_building
    result = site.catalog.search(query)
    num_pages = max(1, math.ceil(result.total / PAGE_ENTRIES))
    is_all = not words and not any(chosen.values()) and number == 1
    broken, num_broken = site.catalog.broken(_MAX_BROKEN) if is_all else ([], 0)
    if is_json(parameters):
        return json_response(
            {
                "total": result.total,
                "page": number,
                "pages": num_pages,
                "datasets": [entry_facts(site, entry) for entry in result.entries],
                "facets": {
                    facet: [{"value": value, "datasets": count} for value, count in result.facets[facet]]
                    for facet in FACETS
                },
                "corrections": result.corrections,
                "broken": [{"path": file.path, "reason": file.reason} for file in broken],
                "has_index": site.catalog.has_index,
                "is_building": is_building,
                "is_cut": site.catalog.is_cut,
            }
        )
    state: dict[str, Any] = {"q": words, **chosen, "sort": "" if sort == "best" else sort}
    return site.pages.html(
        "results.html" if "fragment" in parameters else "search.html",
        query=query,
        result=result,
        results=Markup("".join(_known_result(site, entry) for entry in result.entries)),
        facets=[_facet(facet, result.facets[facet], chosen[facet]) for facet in FACETS],
        sorts=SORTS,
        state=state,
        page=number,
        num_pages=num_pages,
        has_index=site.catalog.has_index,
        broken=broken,
        num_broken=num_broken,
        is_building=is_building,
        is_cut=site.catalog.is_cut,
        pbins=[] if result.total or words or any(chosen.values()) else _pbins(site),
        without=[
            (facet, value, {**state, facet: tuple(other for other in values if other != value)})
            for facet, values in chosen.items()
            for value in values
        ],
    )
