"""Checks that a tool serves the corpus: its rows, labels shifted by one, and document boundaries."""

from typing import Any

import numpy as np
from loader_pbin import Array

IGNORED = -100
# Number of tokens of a row to search for; enough to occur in few places.
NEEDLE_TOKENS = 32


class Stream:
    """The tokens of a corpus, and the starts of its documents."""

    def __init__(self, data: Array, starts: Array) -> None:
        self._data = np.asarray(data)
        self._starts = starts
        self._is_start = np.zeros(len(data) + 1, dtype=bool)
        self._is_start[starts] = True

    def reordered(self, documents: Array) -> "Stream":
        """Returns the same documents in another order."""
        lengths = np.diff(self._starts)[documents]
        starts = np.append(0, np.cumsum(lengths))
        # Position p of the new stream has the same distance to its document's start as in the old one.
        places = np.arange(starts[-1]) + np.repeat(self._starts[:-1][documents] - starts[:-1], lengths)
        return Stream(self._data[places], starts)

    def find(self, row: Array) -> Array:
        """Returns all positions in the stream at which the row occurs."""
        places = np.flatnonzero(self._data[: len(self._data) - len(row) + 1] == row[0])
        for offset in range(1, min(NEEDLE_TOKENS, len(row))):
            places = places[self._data[places + offset] == row[offset]]
        starts = [place for place in places if np.array_equal(self._data[place : place + len(row)], row)]
        return np.asarray(starts, dtype=np.int64)

    def check_view(self, row: Array) -> None:
        """Raises ValueError unless the row is a part of the stream."""
        if not len(self.find(row)):
            raise ValueError(f"{len(row)} tokens that begin with {row[:4].tolist()} are not in the corpus")

    def check_batch(self, batch: dict[str, Array]) -> None:
        """Raises ValueError unless rows, labels, positions and boundaries agree with the stream."""
        rows = batch["input_ids"]
        if rows.dtype != np.int64:
            raise ValueError(f"input_ids are {rows.dtype}, expected int64")
        for i, row in enumerate(rows):
            places = self.find(row)
            if not any(self._row_is_at(place, i, batch) for place in places):
                raise ValueError(f"row {i}, found at {places.tolist()}, has other labels or boundaries there")

    def _row_is_at(self, place: int, i: int, batch: dict[str, Array]) -> bool:
        length = batch["input_ids"].shape[1]
        labels = batch["labels"][i].copy()
        expected = self._data[place + 1 : place + length + 1].astype(np.int64)
        if labels[-1] == IGNORED:
            labels[-1] = expected[-1]
        is_start = self._is_start[place : place + length].copy()
        is_start[0] = True
        matches = [np.array_equal(labels, expected)]
        if "position_ids" in batch:
            starts = np.maximum.accumulate(np.where(is_start, np.arange(length), 0))
            matches.append(np.array_equal(batch["position_ids"][i], np.arange(length) - starts))
        if "cu_seqlens" in batch:
            edges = np.append(np.flatnonzero(is_start), length) + i * length
            bounds: Any = batch["cu_seqlens"]
            bounds = bounds[(bounds >= i * length) & (bounds <= (i + 1) * length)]
            matches.append(np.array_equal(bounds, edges))
        return all(matches)
