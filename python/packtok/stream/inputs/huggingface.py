"""Datasets of Hugging Face `datasets` as sources."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

__all__ = ["IterableDatasetSamples", "is_iterable_dataset"]


def is_iterable_dataset(dataset: Any) -> bool:
    """Returns whether a dataset is streamed: it has a state and no length."""
    return (
        hasattr(dataset, "state_dict")
        and hasattr(dataset, "load_state_dict")
        and not hasattr(dataset, "__len__")
    )


class IterableDatasetSamples:
    """The samples of an ``IterableDataset``, which resumes by its own state."""

    def __init__(self, dataset: Any, *, repeat: bool) -> None:
        self._original = dataset
        self._repeat = repeat
        # A copy, because the dataset itself holds the state, which iterators must not share.
        self._dataset = copy.deepcopy(dataset)
        self._epoch = 0
        self._iterator: Iterator[Any] | None = None
        self._is_empty = True
        # The loaded state, until the iterator starts at it.
        self._loaded: dict[str, Any] | None = None

    def new(self) -> IterableDatasetSamples:
        """Returns a copy at the start."""
        return IterableDatasetSamples(self._original, repeat=self._repeat)

    def lane(self, index: int, count: int) -> IterableDatasetSamples:
        """Returns one of ``count`` parts, which have whole shards of the dataset."""
        num_shards = self._original.num_shards
        if num_shards < count:
            raise ValueError(
                f"the dataset has {num_shards} shards, too few for {count} lanes; "
                "lower lanes, or give more files"
            )
        part = self._original.shard(num_shards=count, index=index)
        return IterableDatasetSamples(part, repeat=self._repeat)

    def next(self, limit: int) -> list[Any]:
        """Returns the next samples, at most ``limit``; none at the end."""
        samples: list[Any] = []
        while len(samples) < limit:
            if self._iterator is None:
                self._start_epoch()
            try:
                samples.append(next(self._iterator))  # type: ignore[arg-type]
                self._is_empty = False
            except StopIteration:
                if not self._repeat:
                    break
                if self._is_empty:
                    raise ValueError(
                        "the dataset has no sample, so repeating it would never end; set repeat=False"
                    ) from None
                self._epoch += 1
                self._iterator = None
                self._is_empty = True
        return samples

    def _start_epoch(self) -> None:
        self._dataset.set_epoch(self._epoch)
        self._iterator = iter(self._dataset)
        self._loaded = None

    def state(self) -> bytes:
        """Returns the epoch and the state of the dataset, as JSON."""
        state = self._loaded if self._iterator is None else self._dataset.state_dict()
        try:
            return json.dumps([self._epoch, state]).encode()
        except TypeError as error:
            raise TypeError(
                f"the state of the dataset is not JSON ({error}), so the stream cannot be saved; "
                "use from_iterable, which reads again from the start"
            ) from None

    def seek(self, number: int, state: bytes | None) -> None:
        """Goes to the position of ``state``; without a state, stays at the start."""
        del number
        if state is None:
            return
        self._epoch, saved = json.loads(bytes(state))
        self._dataset.set_epoch(self._epoch)
        self._loaded = saved
        if saved is not None:
            self._dataset.load_state_dict(saved)
            self._is_empty = False
