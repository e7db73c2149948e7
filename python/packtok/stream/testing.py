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
            found = list(islice(iterator, stop - number))
            _compare(expected[:stop], number, found, f"after a stop at {number}")
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
                found = list(islice(iterator, 1))
                _compare(expected[: number + 1], number, found, f"on rank {rank} of {count}")
                number += len(found)
        state = merge_states(iterator.state_dict() for iterator in iterators)
        for iterator in iterators:
            iterator.close()


def _through_json(state: StateDict | None) -> StateDict | None:
    return None if state is None else json.loads(json.dumps(state))


def _compare(expected: list[Any], start: int, found: list[Any], where: str) -> None:
    """Checks that samples from number ``start`` on are ``found``; those after ``expected`` are unknown."""
    for number, (own, other) in enumerate(zip(expected[start:], found, strict=False), start):
        assert _is_equal(own, other), f"sample {number} differs {where}: found {other}, expected {own}"
    num_found = start + len(found)
    assert num_found >= len(expected), f"the stream ends at sample {num_found} {where}"


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(_is_equal(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    return bool(one == other)
