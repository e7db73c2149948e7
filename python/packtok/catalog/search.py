"""The words and the result of a search with facets. `packtok.catalog.index.Index` runs it."""

import re
from dataclasses import dataclass
from typing import Any
from unicodedata import combining, normalize

from packtok.choices import check_choice

SORTS = ("best", "name", "tokens", "date")
# The limits on the words of a search and their characters. A page passes on whatever its clients send.
_MAX_WORDS, _MAX_CHARACTERS = 32, 1000
_PART = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Query:
    """The words and filters of a search.

    Values of one facet are alternatives; different facets must all apply.
    """

    words: str = ""
    """Starts of words that must all occur in the name, description, source, corpora or context."""
    content: tuple[str, ...] = ()
    language: tuple[str, ...] = ()
    license: tuple[str, ...] = ()
    tokenizer: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    """Ranges such as ``1M-10M``."""
    date: tuple[str, ...] = ()
    """Years of the download."""
    sort: str = "best"
    """``best``: words in the name count most, then folder order; or ``name``, ``tokens``, ``date``."""
    is_grouped: bool = False
    """Whether the tokenized forms of a raw dataset follow it, or each other, whatever their own places."""
    offset: int = 0
    limit: int = 25

    def __post_init__(self) -> None:
        check_choice("sort", self.sort, SORTS)
        if self.offset < 0 or self.limit < 0:
            raise ValueError(
                f"offset is {self.offset} and limit is {self.limit}, expected no negative number"
            )


@dataclass(frozen=True)
class SearchResult:
    """The result of a search."""

    total: int
    """Number of all matches."""
    entries: list[dict[str, Any]]
    """The matches from ``offset``, at most ``limit``: rows of the index."""
    facets: dict[str, list[tuple[str, int]]]
    """For each facet the most frequent values, at most 50, with the number of matches.

    The numbers of a facet ignore the values chosen from it, since they tell what another choice would find.
    """


def match_expression(words: str) -> str | None:
    """Returns the FTS5 expression for starts of words; ``None`` if there is no word."""
    # NUL would end the expression; halves of surrogate pairs are in no text.
    cleaned = words[:_MAX_CHARACTERS].encode(errors="replace").decode().replace("\0", " ")
    quoted: dict[tuple[str, ...], str] = {}
    num_parts = 0
    for word in cleaned.split():
        parts = _parts(word)
        # A repeated word adds no match, but SQLite would look it up and rank it again.
        if parts in quoted or num_parts == _MAX_WORDS:
            continue
        used_parts = parts[: _MAX_WORDS - num_parts]
        text = word if used_parts == parts else " ".join(used_parts)
        quoted[parts] = f'"{text.replace(chr(34), chr(34) * 2)}"*'
        num_parts += len(used_parts)
    return " ".join(quoted.values()) or None


def _parts(word: str) -> tuple[str, ...]:
    """Returns the parts that the index sees in a word such as ``Café-3``, about as it compares them."""
    plain = "".join(char for char in normalize("NFKD", word.casefold()) if not combining(char))
    return tuple(_PART.findall(plain))
