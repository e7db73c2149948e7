"""The words and the result of a search with facets. `packtok.catalog.index.Index` runs it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unicodedata import combining, normalize

from packtok.catalog.words import Vocabulary, text_to_find
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
    """Starts of words that must all occur in the name, description, source, corpora or folders.

    If nothing matches, a word that starts none of the indexed words stands for those that differ by one typo.
    """
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
    corrections: dict[str, list[str]] = field(default_factory=dict)
    """For each word that was taken for a typo, the words that were searched instead."""


def match_expression(words: str) -> str | None:
    """Returns the FTS5 expression for starts of words; ``None`` if there is no word."""
    quoted: dict[tuple[str, ...], str] = {}
    num_parts = 0
    for word in _cleaned(words).split():
        parts = _parts(word)
        # A repeated word adds no match, but SQLite would look it up and rank it again.
        if parts in quoted or num_parts == _MAX_WORDS:
            continue
        used_parts = parts[: _MAX_WORDS - num_parts]
        text = word if used_parts == parts else " ".join(used_parts)
        quoted[parts] = f"{_quoted(text)}*"
        num_parts += len(used_parts)
    return " ".join(quoted.values()) or None


def _cleaned(words: str) -> str:
    # NUL would end the expression; halves of surrogate pairs are in no text.
    return text_to_find(words[:_MAX_CHARACTERS].encode(errors="replace").decode().replace("\0", " "))


def corrections_of(words: str, vocabulary: Vocabulary) -> dict[str, list[str]]:
    """Returns the words that start no word of an index, each with the indexed words that it may stand for.

    It is empty if there is no such word, or none that one of them may stand for.
    """
    parts = dict.fromkeys(part for word in _cleaned(words).split() for part in _parts(word))
    unknown = [part for part in list(parts)[:_MAX_WORDS] if not vocabulary.has_start(part)]
    corrections = {part: vocabulary.neighbours(part) for part in unknown}
    return corrections if all(corrections.values()) else {}


def corrected_expression(words: str, corrections: Mapping[str, Sequence[str]]) -> str:
    """Returns the FTS5 expression for words, some of which stand for others."""
    parts = dict.fromkeys(part for word in _cleaned(words).split() for part in _parts(word))
    terms = (
        f"({' OR '.join(_quoted(word) for word in corrections[part])})"
        if part in corrections
        else f"{_quoted(part)}*"
        for part in list(parts)[:_MAX_WORDS]
    )
    return " AND ".join(terms)


def _quoted(text: str) -> str:
    return f'"{text.replace(chr(34), chr(34) * 2)}"'


def _parts(word: str) -> tuple[str, ...]:
    """Returns the parts that the index sees in a word such as ``Café-3``, about as it compares them."""
    plain = "".join(char for char in normalize("NFKD", word.casefold()) if not combining(char))
    return tuple(_PART.findall(plain))
