"""A search with facets over an index: matches as an array, counts by one pass over it for each facet."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unicodedata import combining, normalize

import numpy as np
from numpy.typing import NDArray

from packtok.catalog.facets import FACETS
from packtok.choices import check_choice

if TYPE_CHECKING:
    from packtok.catalog.index import Index

SORTS = ("best", "name", "tokens", "date")
# Values of one facet that are returned.
MAX_VALUES = 50
# Words that are looked up, and their characters; a page passes on what anybody sends it.
_MAX_WORDS, _MAX_CHARACTERS = 32, 1000
_PART = re.compile(r"[^\W_]+")
# With more matches than this, scores cost more than they tell: words that are everywhere rank nothing.
_MAX_SCORED = 2_000

_Mask = NDArray[np.bool_]
_Numbers = NDArray[np.intp]


@dataclass(frozen=True)
class Query:
    """What is searched for.

    Values of one facet are alternatives; different facets must all apply.
    """

    words: str = ""
    """Starts of words that must all occur in the name, description, source, corpora or context."""
    content: tuple[str, ...] = ()
    language: tuple[str, ...] = ()
    tokenizer: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    """Ranges such as ``1M-10M``."""
    date: tuple[str, ...] = ()
    """Years of the download."""
    sort: str = "best"
    """``best``: words in the name count most, then folder order; or ``name``, ``tokens``, ``date``."""
    offset: int = 0
    limit: int = 25

    def __post_init__(self) -> None:
        check_choice("sort", self.sort, SORTS)
        if self.offset < 0 or self.limit < 0:
            raise ValueError(
                f"offset is {self.offset} and limit is {self.limit}, expected no negative number"
            )


@dataclass(frozen=True)
class Found:
    """What a search found."""

    total: int
    """Number of all matches."""
    entries: list[dict[str, Any]]
    """The matches from ``offset``, at most ``limit``: rows of the index."""
    facets: dict[str, list[tuple[str, int]]]
    """For each facet the most frequent values, at most 50, with the number of matches.

    The numbers of a facet ignore the values chosen from it, since they tell what another choice would find.
    """


@dataclass(frozen=True)
class Columns:
    """The arrays of an index."""

    values: dict[str, list[str]]
    """For each facet its values, by code."""
    codes: dict[str, _Numbers]
    """For each facet the code of each dataset."""
    orders: dict[str, _Numbers]
    """For each sort, all datasets counted from 0."""

    def __len__(self) -> int:
        return len(self.codes[FACETS[0]])


def columns_of(values: list[tuple[str, int, str]], numbers: dict[str, bytes]) -> Columns:
    """Returns the arrays of an index from the rows of its tables ``facet`` and ``numbers``.

    Raises:
        ValueError: If they do not fit together.
    """
    arrays = {name: np.frombuffer(each, "<u4").astype(np.intp) for name, each in numbers.items()}
    expected = {*FACETS, *(f"by {sort}" for sort in SORTS[1:])}
    named = {facet: [value for name, _, value in values if name == facet] for facet in FACETS}
    found = Columns(
        named,
        {facet: arrays[facet] for facet in FACETS if facet in arrays},
        {sort: arrays[f"by {sort}"] for sort in SORTS[1:] if f"by {sort}" in arrays},
    )
    sizes = {len(each) for each in arrays.values()}
    limits = {name: len(named[name]) if name in named else len(each) for name, each in arrays.items()}
    if {*arrays} != expected or len(sizes) != 1:
        raise ValueError("its arrays are incomplete")
    if any(each.max(initial=-1) >= limits[name] for name, each in arrays.items()):
        raise ValueError("its arrays contain numbers that are too large")
    return found


def find(index: "Index", query: Query) -> Found:
    """Returns the datasets that a query finds, and the values of the facets among them."""
    columns = index.columns()
    expression = match_expression(query.words)
    rows = None if expression is None else _ids(index.matches(expression)) - 1
    matched: _Mask = np.ones(len(columns), np.bool_) if rows is None else np.zeros(len(columns), np.bool_)
    if rows is not None:
        matched[rows] = True
    chosen = {facet: _chosen(columns, facet, getattr(query, facet)) for facet in FACETS}
    selected = _all_of(matched, chosen)
    if query.sort != "best":
        order = columns.orders[query.sort]
        found = order[selected[order]]
    elif expression is None or rows is None:
        found = np.flatnonzero(selected)
    else:
        order = _best_first(index, expression, rows)
        found = order[selected[order]]
    shown = found[query.offset : query.offset + query.limit]
    return Found(
        len(found),
        index.entries_of_ids([int(i) + 1 for i in shown]),
        {facet: _counts(columns, facet, matched, chosen, getattr(query, facet)) for facet in FACETS},
    )


def match_expression(words: str) -> str | None:
    """Returns the FTS5 expression for starts of words; ``None`` if there is no word."""
    # NUL would end the expression; halves of surrogate pairs are in no text.
    cleaned = words[:_MAX_CHARACTERS].encode(errors="replace").decode().replace("\0", " ")
    found: dict[tuple[str, ...], str] = {}
    num_parts = 0
    for word in cleaned.split():
        parts = _parts(word)
        # A word that is repeated finds nothing else, but is looked up and ranked again.
        if parts in found or num_parts == _MAX_WORDS:
            continue
        kept = parts[: _MAX_WORDS - num_parts]
        found[parts] = word if kept == parts else " ".join(kept)
        num_parts += len(kept)
    quoted = [f'"{word.replace(chr(34), chr(34) * 2)}"*' for word in found.values()]
    return " ".join(quoted) or None


def _parts(word: str) -> tuple[str, ...]:
    """Returns the words that the index sees in a word such as ``Café-3``, about as it compares them."""
    plain = "".join(char for char in normalize("NFKD", word.casefold()) if not combining(char))
    return tuple(_PART.findall(plain))


def _ids(text: str) -> _Numbers:
    """Returns the numbers in a text with commas: SQLite joins them faster than Python receives rows."""
    return np.fromstring(text, np.intp, sep=",") if text else np.empty(0, np.intp)


def _best_first(index: "Index", expression: str, rows: _Numbers) -> _Numbers:
    """Returns matches by score; too many, in folder order, but those with all words in the name first."""
    if len(rows) <= _MAX_SCORED:
        return np.array(index.matches_by_score(expression), np.intp) - 1
    in_name = _ids(index.matches(f"name : ({expression})")) - 1
    return np.concatenate([in_name, np.setdiff1d(rows, in_name, assume_unique=True)])


def _chosen(columns: Columns, facet: str, values: tuple[str, ...]) -> _Mask | None:
    """Returns which datasets have one of the chosen values; ``None`` if there is no choice."""
    if not values:
        return None
    wanted = set(values)
    is_wanted = np.array([value in wanted for value in columns.values[facet]], np.bool_)
    mask: _Mask = is_wanted[columns.codes[facet]]
    return mask


def _all_of(matched: _Mask, chosen: dict[str, _Mask | None], ignored: str | None = None) -> _Mask:
    for facet, mask in chosen.items():
        if mask is not None and facet != ignored:
            matched = matched & mask
    return matched


def _counts(
    columns: Columns,
    facet: str,
    matched: _Mask,
    chosen: dict[str, _Mask | None],
    values: tuple[str, ...],
) -> list[tuple[str, int]]:
    """Returns the most frequent values of a facet; those chosen are always among them."""
    names = columns.values[facet]
    counts = np.bincount(columns.codes[facet][_all_of(matched, chosen, facet)], minlength=len(names))
    # Stable, and codes are by frequency among all datasets: equal counts have the order that is familiar.
    order = np.argsort(-counts, kind="stable")[: MAX_VALUES + len(values)]
    wanted = set(values)
    kept = [i for i, name in enumerate(names) if name in wanted] if wanted else []
    kept += [int(i) for i in order if counts[i] and names[i] not in wanted]
    return sorted(((names[i], int(counts[i])) for i in kept[:MAX_VALUES]), key=lambda pair: -pair[1])
