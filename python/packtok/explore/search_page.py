"""The first page: a search over all datasets with facets."""

import math
import re
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import RedirectResponse, Response

from packtok.catalog.search import Query
from packtok.explore.pages import link
from packtok.explore.parameters import choice, integer
from packtok.explore.site import Site

_NUMBER = re.compile(r"(\d{1,6})([KMBT]?)")
FACETS = ("content", "language", "tokenizer", "tokens", "date")
SORTS = {"best": "best match", "name": "name", "tokens": "tokens", "date": "date"}
PAGE_ENTRIES = 25
_MAX_CHOICES = 50
_FIRST_VALUES = 8


def _ordered(facet: str, values: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Returns the values of a facet in the order of the page: ranges by size, years from the last one."""
    if facet == "tokens":
        return sorted(values, key=lambda pair: _magnitude(pair[0]))
    return sorted(values, reverse=True, key=lambda pair: _magnitude(pair[0])) if facet == "date" else values


def _magnitude(value: str) -> tuple[int, int]:
    """Returns a key that sorts numbers with a unit, such as the start of ``10M-100M``."""
    found = _NUMBER.match(value)
    return (-1, 0) if found is None else (" KMBT".find(found[2] or " "), int(found[1]))


def search_page(site: Site, parameters: QueryParams) -> Response:
    """Returns the page of a search; with ``fragment``, only the part that changes with it."""
    if site.catalog is None:
        return RedirectResponse(str(link("file", site.single or "").unescape()), 303)
    number = integer(parameters, "page", 1, least=1, most=1_000_000)
    words = parameters.get("q", "")[:500]
    sort = choice(parameters, "sort", tuple(SORTS))
    chosen = {facet: tuple(dict.fromkeys(parameters.getlist(facet)))[:_MAX_CHOICES] for facet in FACETS}
    query = Query(words=words, **chosen, sort=sort, offset=(number - 1) * PAGE_ENTRIES, limit=PAGE_ENTRIES)
    found = site.catalog.search(query)
    num_pages = max(1, math.ceil(found.total / PAGE_ENTRIES))
    state: dict[str, Any] = {"q": words, **chosen, "sort": "" if sort == "best" else sort}
    return site.pages.html(
        "results.html" if "fragment" in parameters else "search.html",
        query=query,
        found=found,
        facets=[(facet, _ordered(facet, found.facets[facet]), chosen[facet]) for facet in FACETS],
        first_values=_FIRST_VALUES,
        sorts=SORTS,
        state=state,
        page=number,
        num_pages=num_pages,
        has_index=site.catalog.has_index,
        without=[
            (facet, value, {**state, facet: tuple(one for one in values if one != value)})
            for facet, values in chosen.items()
            for value in values
        ],
    )
