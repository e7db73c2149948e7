"""The facets and orders of all datasets of an index as arrays, with which a search counts and sorts.

They are read once from the table ``facets``. SQL alone is too slow for the search itself: counting each of
the facets is a pass over all matches, which takes four to ten times as long (benches/README.md).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packtok.catalog.facets import FACETS, values_of

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
        columns = list(zip(*rows, strict=True)) or [()] * (len(FACETS) + 5)
        self._facets = {facet: _Facet.of(facet, columns[i]) for i, facet in enumerate(FACETS, 1)}
        raw, *by_rank = columns[len(FACETS) + 1 :]
        self._raw = np.array(raw, np.intp) - 1
        ranks = zip(("name", "tokens", "date"), by_rank, strict=True)
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

    def grouped(self, rows: Rows) -> Rows:
        """Returns rows with each raw dataset followed by its tokenized forms.

        Such a group stands where its first row stood. Forms keep their order, also if the raw dataset is not
        among the rows.
        """
        raw = self._raw[rows]
        first = np.empty(self._size, np.intp)
        # The last of several assignments counts.
        first[raw[::-1]] = np.arange(len(rows))[::-1]
        return rows[np.argsort(2 * first[raw] + (raw != rows), kind="stable")]

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
    texts: Rows
    """For each dataset, the number of its text; datasets with the same values have the same text."""
    num_texts: int
    text_of: Rows
    """For each value of each text, the number of the text."""
    value_of: Rows
    """For each value of each text, the position of the value in ``values``."""

    @staticmethod
    def of(facet: str, column: Sequence[str]) -> "_Facet":
        num_datasets = Counter(column)
        pairs = [(i, value) for i, text in enumerate(num_datasets) for value in values_of(facet, text)]
        counts = list(num_datasets.values())
        num_with: Counter[str] = Counter()
        for i, value in pairs:
            num_with[value] += counts[i]
        values = sorted(num_with, key=lambda value: (-num_with[value], value))
        numbers = {text: i for i, text in enumerate(num_datasets)}
        codes = {value: code for code, value in enumerate(values)}
        return _Facet(
            values,
            np.array([numbers[text] for text in column], np.intp),
            len(numbers),
            np.array([i for i, _ in pairs], np.intp),
            np.array([codes[value] for _, value in pairs], np.intp),
        )

    def mask(self, chosen: Sequence[str]) -> Mask:
        is_chosen = np.array([value in chosen for value in self.values], np.bool_)
        is_text_chosen = np.zeros(self.num_texts, np.bool_)
        is_text_chosen[self.text_of[is_chosen[self.value_of]]] = True
        mask: Mask = is_text_chosen[self.texts]
        return mask

    def counts(self, selected: Mask, chosen: Sequence[str]) -> list[tuple[str, int]]:
        """Returns the most frequent values, and always the chosen ones."""
        of_texts = np.bincount(self.texts[selected], minlength=self.num_texts)
        counts = np.bincount(self.value_of, of_texts[self.text_of], len(self.values)).astype(np.intp)
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
