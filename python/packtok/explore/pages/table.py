"""The table of documents: all documents of a file or dataset, in the order of their numbers or lengths."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from starlette.datastructures import QueryParams
from starlette.responses import Response

from packtok.explore.contents.packed import FileGroup, Packed
from packtok.explore.contents.tokenizers import Decoder
from packtok.explore.files import NotServedError
from packtok.explore.html.tokens import contents_of
from packtok.explore.pages.answers import answer
from packtok.explore.pages.documents import recorded_origin
from packtok.explore.pages.parameters import ParameterError, choice, integer
from packtok.explore.site import Site

ROWS = 50
# The lengths take 4 bytes of memory for each document, and as much again when they are sorted.
MAX_TABLE_DOCUMENTS = 20_000_000
# The bytes of a longer document are estimated from its first tokens.
MAX_DECODED_TOKENS = 2000
_START_CHARS = 100
_START_IDS = 12
_MAX_LENGTH = (1 << 64) - 1
_SORTS = {"number": "number", "longest": "length, longest first", "shortest": "length, shortest first"}
# 4 bytes are enough for all lengths but those of files with more than 2^32 tokens in one document.
_Array = npt.NDArray[Any]


class DocumentLengths:
    """The lengths of all documents, and the numbers of the documents in a part of an order.

    Args:
        lengths: Number of tokens of each document.
    """

    def __init__(self, lengths: npt.NDArray[np.uint64]) -> None:
        self._greatest = int(lengths.max(initial=0))
        is_short = self._greatest < 1 << 32
        self._lengths: _Array = lengths.astype(np.uint32) if is_short else lengths
        self._sorted: _Array | None = None

    def count(self, least: int, most: int) -> int:
        """Returns how many documents have from ``least`` to ``most`` tokens."""
        return int(np.count_nonzero(self._between(least, most)))

    def by_number(self, least: int, most: int, start: int, stop: int) -> list[int]:
        """Returns documents ``start`` to ``stop`` among those with ``least`` to ``most`` tokens."""
        numbers: list[int] = np.flatnonzero(self._between(least, most))[start:stop].tolist()
        return numbers

    def by_length(self, least: int, most: int, start: int, stop: int, *, longest_first: bool) -> list[int]:
        """Returns documents ``start`` to ``stop`` by length, those of one length by number.

        Only the lengths are sorted, once. The documents of a page are then looked up by the few lengths that
        the page has, which is faster than sorting their numbers too and takes half of the memory.
        """
        if self._sorted is None:
            self._sorted = np.sort(self._lengths)
        first, last = self._rank(least, "left"), self._rank(most, "right")
        part = self._sorted[first:last][::-1] if longest_first else self._sorted[first:last]
        stop = min(stop, len(part))
        if start >= stop:
            return []
        top, bottom = int(part[start]), int(part[stop - 1])
        # The documents of the page's first length may start on an earlier page.
        num_before = start - (
            last - self._rank(top, "right") if longest_first else self._rank(top, "left") - first
        )
        numbers = np.flatnonzero(self._lengths == top)[num_before : num_before + stop - start]
        if bottom != top:
            low, high = min(top, bottom), max(top, bottom)
            between = np.flatnonzero((self._lengths > low) & (self._lengths < high))
            lengths = self._lengths[between].astype(np.int64)
            between = between[np.argsort(-lengths if longest_first else lengths, kind="stable")]
            num_rest = stop - start - len(numbers) - len(between)
            numbers = np.concatenate([numbers, between, np.flatnonzero(self._lengths == bottom)[:num_rest]])
        result: list[int] = numbers.tolist()
        return result

    def _rank(self, length: int, side: Literal["left", "right"]) -> int:
        """Returns how many documents are shorter than ``length``, or with ``right``, not longer."""
        assert self._sorted is not None
        if length > self._greatest:
            return len(self._sorted)
        # A value of another type would make a copy of the lengths.
        return int(np.searchsorted(self._sorted, self._lengths.dtype.type(length), side))

    def _between(self, least: int, most: int) -> npt.NDArray[np.bool_]:
        if least > self._greatest:
            return np.zeros(len(self._lengths), np.bool_)
        inside: npt.NDArray[np.bool_] = self._lengths <= min(most, self._greatest)
        return inside & (self._lengths >= least)


@dataclass(frozen=True)
class Row:
    """A document in the table."""

    document: int
    tokens: int
    bytes: int | None
    """Bytes of the text; ``None`` without a tokenizer."""
    is_estimate: bool
    bytes_per_token: float | None
    """Bytes of the text for each token that is not special."""
    start: str
    """The start of the text, in one line, or the first ids."""
    origin: str | None
    """Where the document came from; ``None`` if the file does not record it."""


def table_page(site: Site, name: str, parameters: QueryParams) -> Response:
    """Returns a page of the table of the documents of a file or dataset."""
    group = site.group(name)
    sort = choice(parameters, "sort", tuple(_SORTS))
    least = integer(parameters, "least", 0, most=_MAX_LENGTH)
    most = integer(parameters, "most", -1, most=_MAX_LENGTH)
    if 0 <= most < least:
        raise ParameterError(f"most is {most:,}, expected at least {least:,}, the value of least")
    page = integer(parameters, "page", 1, least=1)
    total, numbers = _numbers(site, group, sort, (least, most), (page - 1) * ROWS)
    rows = [_row(site, group, number) for number in numbers]
    view: dict[str, Any] = {
        "sort": sort,
        "least": least,
        "most": None if most < 0 else most,
        "total": total,
        "page": page,
        "num_pages": max(1, -(-total // ROWS)),
    }

    def facts() -> dict[str, Any]:
        counts = {"name": name, "num_documents": group.num_documents}
        return {**counts, **view, "rows": [asdict(row) for row in rows]}

    return answer(parameters, facts, lambda: _html(site, group, rows, view))


def _html(site: Site, group: FileGroup, rows: Sequence[Row], view: dict[str, Any]) -> Response:
    links = {"sort": None if view["sort"] == "number" else view["sort"], "least": view["least"] or None}
    return site.pages.html(
        "table.html",
        group=group,
        trail=site.trail(group.name),
        rows=rows,
        has_origins=any(row.origin for row in rows),
        has_text=any(row.bytes is not None for row in rows),
        has_estimates=any(row.is_estimate for row in rows),
        max_decoded=MAX_DECODED_TOKENS,
        sorts=_SORTS,
        keep=links | {"most": view["most"]},
        **view,
    )


def _numbers(
    site: Site, group: FileGroup, sort: str, limits: tuple[int, int], start: int
) -> tuple[int, list[int]]:
    """Returns how many documents the table has, and the numbers of those on a page."""
    stop = start + ROWS
    least, most = limits
    if sort == "number" and least == 0 and most < 0:
        # No lengths are needed, so that a file may have any number of documents.
        return group.num_documents, list(range(start, min(stop, group.num_documents)))
    most = most if most >= 0 else _MAX_LENGTH
    lengths = _lengths(site, group)
    total = lengths.count(least, most)
    if sort == "number":
        return total, lengths.by_number(least, most, start, stop)
    return total, lengths.by_length(least, most, start, stop, longest_first=sort == "longest")


def _lengths(site: Site, group: FileGroup) -> DocumentLengths:
    if group.num_documents > MAX_TABLE_DOCUMENTS:
        raise NotServedError(
            f"{group.name} has {group.num_documents:,} documents, expected at most {MAX_TABLE_DOCUMENTS:,} "
            "to sort or filter them by length; open the table without both"
        )

    def read() -> DocumentLengths:
        parts = []
        for file in group.files:
            lengths = site.files.open(file).lengths()
            if lengths is None:
                raise NotServedError(f"{file}: the lengths of its documents are damaged; run packtok verify")
            parts.append(lengths)
        return DocumentLengths(np.concatenate(parts))

    return site.tables.value(group.identities, read)


def _row(site: Site, group: FileGroup, document: int) -> Row:
    file, number = group.place(document)
    packed = site.files.open(file)
    decoder = site.tokenizers.decoder(packed)
    tokens = packed.reader[number]
    origin = _origin(packed, number)
    if decoder.tokenizer is None:
        ids = ", ".join(map(str, tokens[:_START_IDS].tolist()))
        start = f"{ids} …" if len(tokens) > _START_IDS else ids
        return Row(document, len(tokens), None, False, None, start, origin)
    return _decoded(packed, decoder, document, tokens, origin)


def _origin(packed: Packed, document: int) -> str | None:
    """Returns where a document came from, as far as the file records it."""
    origin = recorded_origin(packed, document).text
    if origin is None and packed.sources.number == 1:
        return str(packed.sources.first[0]["path"])
    return origin


def _decoded(
    packed: Packed,
    decoder: Decoder,
    document: int,
    tokens: npt.NDArray[np.unsignedinteger],
    origin: str | None,
) -> Row:
    special = decoder.special_ids | ({packed.eod_id} if packed.eod_id is not None else set())
    ids = [token_id for token_id in tokens[:MAX_DECODED_TOKENS].tolist() if token_id not in special]
    assert decoder.tokenizer is not None
    contents, long = contents_of(decoder.tokenizer, ids)
    content = b"".join(contents)
    decoded_bytes = len(content) + sum(long[token_id].more_bytes for token_id in ids if token_id in long)
    ratio = decoded_bytes / len(ids) if ids else None
    is_estimate = len(tokens) > MAX_DECODED_TOKENS
    num_bytes = round((ratio or 0) * len(tokens)) if is_estimate else decoded_bytes
    text = " ".join(content[: 8 * _START_CHARS].decode("utf-8", "replace").split())
    start = (
        text if len(text) <= _START_CHARS and len(content) <= 8 * _START_CHARS else f"{text[:_START_CHARS]} …"
    )
    return Row(document, len(tokens), num_bytes, is_estimate, ratio, start, origin)
