"""A histogram of document lengths as bars of a picture, whose numbers are in a table too."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

Bucket = tuple[int, int, int]


@dataclass(frozen=True)
class Bar:
    """The documents with lengths from ``start`` to less than ``stop`` tokens."""

    start: int
    stop: int
    documents: int
    width: float
    """Length of the bar, from 0 to 100."""

    @property
    def label(self) -> str:
        """The lengths."""
        return f"{self.start:,}" if self.stop == self.start + 1 else f"{self.start:,}–{self.stop - 1:,}"


@dataclass(frozen=True)
class Histogram:
    """The lengths of all documents."""

    bars: list[Bar]
    documents: int

    @property
    def summary(self) -> str:
        """The content of the picture, in one sentence."""
        most = max(self.bars, key=lambda bar: bar.documents)
        return (
            f"{self.documents:,} documents of {self.bars[0].start:,} to {self.bars[-1].stop - 1:,} tokens; "
            f"most frequent are {most.label} tokens, with {most.documents:,} documents."
        )


def histogram_of(parts: Sequence[Sequence[Bucket]]) -> Histogram | None:
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
        bars.append(Bar(start, stop, documents, width))
    return Histogram(bars, sum(counts.values()))
