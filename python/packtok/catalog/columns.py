"""The facets and orders of all datasets of an index as arrays, with which a search counts and sorts.

They are read once from the table ``facets``. SQL alone is too slow for the search itself: counting each of
the five facets is a pass over all matches, which takes four to ten times as long (benches/README.md).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packtok.catalog.facets import FACETS

# Number of values listed for a facet.
MAX_VALUES = 50

Choices = Mapping[str, Sequence[str]]
"""For each facet, the chosen values; none of them if there is no choice."""
Mask = NDArray[np.bool_]
"""Whether each dataset is selected."""
Rows = NDArray[np.intp]
"""Datasets, counted from 0 in the order of their folders."""


def rows_of_ids(text: str) -> Rows:
    """Returns the rows with the ids in a text, which are separated by commas."""
    return np.fromstring(text, np.intp, sep=",") - 1 if text else np.empty(0, np.intp)


def others_last(first: Rows, rows: Rows) -> Rows:
    """Returns ``first``, then all other ``rows``."""
    return np.concatenate([first, np.setdiff1d(rows, first, assume_unique=True)])


class Columns:
    """The arrays of an index.

    Args:
        rows: The table ``facets`` in the order of its ids.

    Raises:
        ValueError: If rows are missing.
    """

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        if rows and (rows[0][0], rows[-1][0]) != (1, len(rows)):
            raise ValueError("rows are missing")
        self._size = len(rows)
        # A table without rows has no columns to transpose.
        columns = list(zip(*rows, strict=True)) or [()] * (len(FACETS) + 4)
        self._facets = {facet: _Facet.of(columns[i]) for i, facet in enumerate(FACETS, 1)}
        ranks = zip(("name", "tokens", "date"), columns[len(FACETS) + 1 :], strict=True)
        self._orders = {sort: np.argsort(np.array(rank, np.intp)) for sort, rank in ranks}

    def mask(self, rows: Rows | None) -> Mask:
        """Returns the mask of some rows; ``None`` stands for all.

        Raises:
            IndexError: If there are no such rows.
        """
        if rows is None:
            return np.ones(self._size, np.bool_)
        mask = np.zeros(self._size, np.bool_)
        mask[rows] = True
        return mask

    def order(self, sort: str) -> Rows:
        """Returns all datasets in the order of a sort; ``best`` is that of their folders."""
        return np.arange(self._size) if sort == "best" else self._orders[sort]

    def select(self, matched: Mask, choices: Choices) -> tuple[Mask, dict[str, list[tuple[str, int]]]]:
        """Returns which of the matches have the chosen values, and the counts of each facet.

        The counts of a facet ignore the values that are chosen from it.
        """
        masks = {facet: self._facets[facet].mask(values) for facet, values in choices.items() if values}
        counts = {
            facet: values.counts(_all_of(matched, masks, facet), choices[facet])
            for facet, values in self._facets.items()
        }
        return _all_of(matched, masks), counts


@dataclass(frozen=True)
class _Facet:
    values: list[str]
    """The most frequent value first."""
    codes: Rows
    """For each dataset, the position of its value in ``values``."""

    @staticmethod
    def of(column: Sequence[str]) -> "_Facet":
        num_datasets = Counter(column)
        values = sorted(num_datasets, key=lambda value: (-num_datasets[value], value))
        codes = {value: code for code, value in enumerate(values)}
        return _Facet(values, np.array([codes[value] for value in column], np.intp))

    def mask(self, chosen: Sequence[str]) -> Mask:
        is_chosen = np.array([value in chosen for value in self.values], np.bool_)
        mask: Mask = is_chosen[self.codes]
        return mask

    def counts(self, selected: Mask, chosen: Sequence[str]) -> list[tuple[str, int]]:
        """Returns the most frequent values, and always the chosen ones."""
        counts = np.bincount(self.codes[selected], minlength=len(self.values))
        # The sort is stable: values with equal counts keep their order among all datasets.
        order = np.argsort(-counts, kind="stable")[: MAX_VALUES + len(chosen)]
        codes = [i for i, value in enumerate(self.values) if value in chosen] if chosen else []
        codes += [int(i) for i in order if counts[i] and self.values[i] not in chosen]
        pairs = ((self.values[i], int(counts[i])) for i in codes[:MAX_VALUES])
        return sorted(pairs, key=lambda pair: -pair[1])


def _all_of(matched: Mask, masks: Mapping[str, Mask], ignored: str | None = None) -> Mask:
    for facet, mask in masks.items():
        if facet != ignored:
            matched = matched & mask
    return matched
