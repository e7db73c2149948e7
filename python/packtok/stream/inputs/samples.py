"""Sources of samples that Python has: sequences and iterables.

The core calls ``new`` for each iterator, or ``lane`` for a part, and then ``next``; ``state`` returns the
source's own state before the next sample, if it has one, and ``seek`` goes to a sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import packtok

__all__ = ["IterableSamples", "SequenceSamples"]


class SequenceSamples:
    """The items of a sequence, perhaps in another order in every epoch."""

    def __init__(self, sequence: Sequence[Any], *, repeat: bool, seed: int | None) -> None:
        self._sequence = sequence
        self._repeat = repeat
        self._seed = seed
        self._number = 0

    def new(self) -> SequenceSamples:
        """Returns a copy at the start."""
        return SequenceSamples(self._sequence, repeat=self._repeat, seed=self._seed)

    def lane(self, index: int, count: int) -> SequenceSamples:
        """Returns one of ``count`` equal parts."""
        length = len(self._sequence)
        if length < count:
            raise ValueError(
                f"the sequence has {length} samples, too few for {count} lanes; lower lanes, or give more"
            )
        part = self._sequence[index * length // count : (index + 1) * length // count]
        return SequenceSamples(
            part, repeat=self._repeat, seed=None if self._seed is None else self._seed + index
        )

    def next(self, limit: int) -> list[Any]:
        """Returns the next samples, at most ``limit``; none at the end."""
        length = len(self._sequence)
        stop = self._number + limit if self._repeat else min(self._number + limit, length)
        if length == 0:
            return []
        samples = [self._sequence[self._index(number)] for number in range(self._number, stop)]
        self._number = max(self._number, stop)
        return samples

    def state(self) -> None:
        """Returns nothing: the number of a sample is enough."""

    def seek(self, number: int, state: None) -> None:
        """Goes to sample ``number``."""
        del state
        self._number = number

    def _index(self, number: int) -> int:
        epoch, position = divmod(number, len(self._sequence))
        if self._seed is None:
            return position
        return packtok.Permutation(len(self._sequence), self._seed, epoch)[position]


class IterableSamples:
    """The items of an iterable, which must be the same in every iteration."""

    def __init__(self, iterable: Iterable[Any], *, repeat: bool) -> None:
        self._iterable = iterable
        self._repeat = repeat
        self._iterator: Iterator[Any] | None = None
        self._is_empty = True

    def new(self) -> IterableSamples:
        """Returns a copy at the start."""
        return IterableSamples(self._iterable, repeat=self._repeat)

    def lane(self, index: int, count: int) -> IterableSamples:
        """Returns all samples as the only lane."""
        if count != 1:
            raise ValueError(
                f"an iterable cannot be divided into {count} lanes; set lanes=1, or give files or a sequence"
            )
        return self.new()

    def next(self, limit: int) -> list[Any]:
        """Returns the next samples, at most ``limit``; none at the end."""
        samples: list[Any] = []
        while len(samples) < limit:
            if self._iterator is None:
                self._iterator = iter(self._iterable)
                self._is_empty = True
            try:
                samples.append(next(self._iterator))
                self._is_empty = False
            except StopIteration:
                if not self._repeat:
                    break
                if self._is_empty:
                    raise ValueError(
                        "the iterable is empty at the start of an epoch, so repeating it would never end; "
                        "give one that can be iterated again, or set repeat=False"
                    ) from None
                self._iterator = None
        return samples

    def state(self) -> None:
        """Returns nothing: an iterable has no state."""

    def seek(self, number: int, state: None) -> None:
        """Goes to sample ``number`` by iterating and discarding."""
        del state
        for _ in range(number):
            if not self.next(1):
                raise ValueError(
                    f"the iterable has fewer samples than the {number} of the state; give the same data"
                )
