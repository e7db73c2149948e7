"""MosaicML's ``StreamingDataset`` as a source."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

__all__ = ["StreamingDatasetSamples"]


class StreamingDatasetSamples:
    """The samples of a ``StreamingDataset``, which resumes by its own state.

    The dataset has one position, so only one iterator at a time may read it.
    """

    def __init__(self, dataset: Any, *, repeat: bool) -> None:
        self._dataset = dataset
        self._repeat = repeat
        self._iterator: Iterator[Any] | None = None
        self._num_samples = 0
        self._is_ended = False

    def new(self) -> StreamingDatasetSamples:
        """Returns a copy at the start."""
        return StreamingDatasetSamples(self._dataset, repeat=self._repeat)

    def lane(self, index: int, count: int) -> StreamingDatasetSamples:
        """Returns all samples as the only lane."""
        if count != 1:
            raise ValueError(f"a StreamingDataset cannot be divided into {count} lanes; set lanes=1")
        del index
        return self.new()

    def next(self, limit: int) -> list[Any]:
        """Returns the next samples, at most ``limit``; none at the end."""
        samples: list[Any] = []
        while len(samples) < limit and not self._is_ended:
            if self._iterator is None:
                self._iterator = iter(self._dataset)
            try:
                samples.append(next(self._iterator))
                self._num_samples += 1
            except StopIteration:
                self._iterator = None
                self._is_ended = not self._repeat or self._num_samples == 0
                self._num_samples = 0
        return samples

    def state(self) -> bytes:
        """Returns the number of samples of the epoch and the state of the dataset, as JSON."""
        # The number is that of the samples returned by this iterator, because the dataset reads ahead.
        state = self._dataset.state_dict(self._num_samples, True)
        return json.dumps([self._num_samples, self._is_ended, state]).encode()

    def seek(self, number: int, state: bytes | None) -> None:
        """Goes to the position of ``state``; without a state, stays at the start."""
        del number
        if state is None:
            return
        self._num_samples, self._is_ended, saved = json.loads(bytes(state))
        self._dataset.load_state_dict(saved)
