"""A stream whose samples are kept in memory for the next iteration."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from packtok.stream.iterator import CheckpointableIterator

__all__ = ["CachedSamples"]


class _Cache:
    """The computed samples and the iterator for the others; shared by all iterators over one dataset."""

    def __init__(self, start: Callable[[], CheckpointableIterator]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._samples: list[Any] = []
        self._iterator: CheckpointableIterator | None = None
        self._is_complete = False

    def samples(self, start: int, stop: int) -> list[Any]:
        """Returns copies of the samples with these numbers; fewer at the end."""
        with self._lock:
            while len(self._samples) < stop and not self._is_complete:
                if self._iterator is None:
                    self._iterator = self._start()
                    self._iterator.skip(len(self._samples))
                try:
                    self._samples.append(next(self._iterator))
                except StopIteration:
                    self._is_complete = True
                    self._iterator.close()
                except BaseException:
                    # A new iterator lets the next iteration try again.
                    self._iterator.close()
                    self._iterator = None
                    raise
            samples = self._samples[start:stop]
        return [dict(sample) if isinstance(sample, dict) else sample for sample in samples]


class CachedSamples:
    """The samples of a finite dataset: computed once, then returned from memory."""

    def __init__(self, start: Callable[[], CheckpointableIterator]) -> None:
        self._cache = _Cache(start)
        self._number = 0

    def new(self) -> CachedSamples:
        """Returns a copy at the start, with the same memory."""
        other = CachedSamples.__new__(CachedSamples)
        other._cache, other._number = self._cache, 0
        return other

    def lane(self, index: int, count: int) -> CachedSamples:
        """Returns all samples as the only lane."""
        if count != 1:
            raise ValueError(f"a cache cannot be divided into {count} lanes; set lanes=1")
        del index
        return self.new()

    def next(self, limit: int) -> list[Any]:
        """Returns the next samples, at most ``limit``; none at the end."""
        samples = self._cache.samples(self._number, self._number + limit)
        self._number += len(samples)
        return samples

    def state(self) -> None:
        """Returns nothing: the number of a sample is enough."""

    def seek(self, number: int, state: None) -> None:
        """Goes to sample ``number``; those before it are computed when it is read."""
        del state
        self._number = number
