"""A histogram of document lengths as bars of a picture, whose numbers are in a table too."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Bucket = tuple[int, int, int]


@dataclass(frozen=True)
class Bar:
    """The documents with lengths from ``start`` to less than ``stop`` tokens."""

    start: int
    stop: int
    documents: int
    width: float
    """Length of the bar, from 0 to 100."""
    share: float | None
    """Percentage of all tokens that is in these documents; ``None`` if the exact lengths are unknown."""

    @property
    def label(self) -> str:
        """The lengths."""
        return f"{self.start:,}" if self.stop == self.start + 1 else f"{self.start:,}–{self.stop - 1:,}"


@dataclass(frozen=True)
class Lengths:
    """The least, median, mean and greatest number of tokens of a document."""

    least: int
    median: float
    mean: float
    greatest: int
    starts: npt.NDArray[np.uint64]
    """Limits of ranges of lengths: each is the start of its range, which ends at the next."""
    tokens: npt.NDArray[np.uint64]
    """Tokens of the documents in each range."""

    def share(self, start: int) -> float:
        """Returns the percentage of all tokens that is in documents of the range from ``start``."""
        total = int(self.tokens.sum())
        return 100 * int(self.tokens[np.searchsorted(self.starts, start)]) / total if total else 0.0

    @property
    def facts(self) -> dict[str, float]:
        """The statistics as JSON."""
        return {name: getattr(self, name) for name in ("least", "median", "mean", "greatest")}

    @property
    def text(self) -> str:
        """The numbers, as part of a sentence."""
        median = f"{self.median:,.1f}".removesuffix(".0")
        return f"of {self.least:,} to {self.greatest:,} tokens (median {median}, mean {self.mean:,.1f})"


def lengths_of(parts: Sequence[npt.NDArray[np.uint64]], limits: Collection[int]) -> Lengths | None:
    """Returns the statistics of the lengths of documents; ``None`` if there are none.

    Args:
        parts: Lengths of documents.
        limits: The starts of the ranges whose tokens are counted.
    """
    lengths = np.concatenate(parts)
    if not len(lengths):
        return None
    lengths.sort()
    half = (len(lengths) - 1) // 2
    median = float(lengths[half : len(lengths) - half].mean())
    starts = np.array(sorted(limits), np.uint64)
    positions = np.append(np.searchsorted(lengths, starts), len(lengths))
    tokens = [int(lengths[start:stop].sum()) for start, stop in pairwise(positions.tolist())]
    mean = float(lengths.mean())
    return Lengths(int(lengths[0]), median, mean, int(lengths[-1]), starts, np.array(tokens, np.uint64))


@dataclass(frozen=True)
class Histogram:
    """The lengths of all documents."""

    bars: list[Bar]
    documents: int
    lengths: Lengths | None
    """Exact lengths; ``None`` if there are too many documents."""

    @property
    def has_tokens(self) -> bool:
        """Whether the bars have shares of the tokens."""
        return self.lengths is not None

    @property
    def facts(self) -> dict[str, Any]:
        """The lengths as JSON, with the names of `packtok inspect`."""
        buckets = [
            {"from": bar.start, "below": bar.stop, "documents": bar.documents, "share_of_tokens": bar.share}
            for bar in self.bars
        ]
        return {"document_tokens": buckets, "lengths": None if self.lengths is None else self.lengths.facts}

    @property
    def summary(self) -> str:
        """The content of the picture, in one sentence."""
        most = max(self.bars, key=lambda bar: bar.documents)
        documents = "1 document" if self.documents == 1 else f"{self.documents:,} documents"
        exact = "" if self.lengths is None else f" {self.lengths.text}"
        return f"{documents}{exact}; most frequent are {most.label} tokens, with {most.documents:,} of them."


def histogram_of(parts: Sequence[Sequence[Bucket]], lengths: Lengths | None) -> Histogram | None:
    """Returns the sum of histograms with the same buckets; ``None`` if there are no documents."""
    counts: Counter[tuple[int, int]] = Counter()
    for part in parts:
        for start, stop, documents in part:
            counts[start, stop] += documents
    if not counts or not max(counts.values()):
        return None
    filled = [limits for limits, documents in counts.items() if documents]
    buckets = sorted(limits for limits in counts if min(filled) <= limits <= max(filled))
    most = max(counts.values())
    bars = []
    for start, stop in buckets:
        documents = counts[start, stop]
        # The minimum makes the bar of a bucket that is not empty visible.
        width = max(100 * documents / most, 0.5) if documents else 0.0
        share = None if lengths is None else lengths.share(start)
        bars.append(Bar(start, stop, documents, width, share))
    return Histogram(bars, sum(counts.values()), lengths)
