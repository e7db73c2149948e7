"""Checks for tests of a user's streams: that they resume exactly, and on any number of ranks."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from packtok.extras import needing_torch

with needing_torch("packtok.stream.testing"):
    import torch

    from packtok.stream.dataset import CheckpointableDataset
from packtok.stream.state import StateDict, merge_states

__all__ = ["check_ranks", "check_resumption"]


def check_resumption(
    dataset: CheckpointableDataset, num_samples: int = 100, num_stops: int = 5, seed: int = 0
) -> None:
    """Checks that stopping and resuming, again and again, gives the samples of one uninterrupted iteration.

    Each state goes through JSON, and is loaded twice.

    Args:
        dataset: The stream.
        num_samples: How many of its samples to compare, at least 1; all of them if there are fewer.
        num_stops: How often to stop, at random samples.
        seed: The seed of the stops.

    Raises:
        AssertionError: If a sample differs; the message names the first one.
    """
    with dataset.iter() as iterator:
        expected = list(islice(iterator, num_samples))
    generator = random.Random(seed)
    stops = sorted(generator.randint(0, len(expected)) for _ in range(num_stops))
    number, state = 0, None
    for stop in [*stops, len(expected)]:
        with dataset.iter(_through_json(state)) as iterator:
            samples = list(islice(iterator, stop - number))
            _compare(expected[:stop], number, samples, f"after a stop at {number}")
            state, number = iterator.state_dict(), stop
        with dataset.iter(_through_json(state)) as iterator:
            _compare(expected[: stop + 1], stop, list(islice(iterator, 1)), f"after a stop at {stop}")


def check_ranks(
    make: Callable[[int, int], CheckpointableDataset],
    num_replicas: Sequence[int] = (1, 2, 4),
    num_rounds: int = 5,
) -> None:
    """Checks that all ranks together have the same rows for any number of ranks, even if it changes.

    Args:
        make: Returns the stream of a rank, given the rank and the number of ranks: one that ends with
            ``distribute``, and perhaps operations that keep samples single, but not with ``batch``.
        num_replicas: The numbers of ranks, one after the other; the ranks load the merged states of those
            before them.
        num_rounds: How many multiples of the least common multiple of ``num_replicas`` the ranks read
            before their number changes; at least 1.

    Raises:
        AssertionError: If a row differs; the message names the first one.
    """
    num_rows = num_rounds * math.lcm(*num_replicas)
    with make(0, 1).iter() as iterator:
        expected = list(islice(iterator, num_rows * len(num_replicas)))
    number, state = 0, None
    for count in num_replicas:
        iterators = [make(rank, count).iter(_through_json(state)) for rank in range(count)]
        for _ in range(num_rows // count):
            for rank, iterator in enumerate(iterators):
                samples = list(islice(iterator, 1))
                _compare(expected[: number + 1], number, samples, f"on rank {rank} of {count}")
                number += len(samples)
        state = merge_states(iterator.state_dict() for iterator in iterators)
        for iterator in iterators:
            iterator.close()


def _through_json(state: StateDict | None) -> StateDict | None:
    return None if state is None else json.loads(json.dumps(state))


def _compare(expected: list[Any], start: int, samples: list[Any], where: str) -> None:
    """Checks ``samples``, the first of which has number ``start``, as far as ``expected`` goes."""
    for number, (own, other) in enumerate(zip(expected[start:], samples, strict=False), start):
        assert _is_equal(own, other), f"sample {number} differs {where}: found {other}, expected {own}"
    stop = start + len(samples)
    assert stop >= len(expected), f"the stream ends at sample {stop} {where}"


def _is_equal(left: Any, right: Any) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(_is_equal(left[name], right[name]) for name in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_is_equal, left, right))
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return bool(np.array_equal(left, right))
    return bool(left == right)
