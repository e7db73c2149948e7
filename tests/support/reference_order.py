"""A naive implementation of docs/reference/order_of_items.md that shares no code with packtok.

The oracle for everything that shuffles, cuts epochs into global batches and divides them among ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

_U64 = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15


def _mixed(word: int) -> int:
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & _U64
    word = (word ^ word >> 27) * 0x94D049BB133111EB & _U64
    return word ^ word >> 31


def _keys(num_items: int, seed: int, epoch: int) -> Iterator[int]:
    """Yields the numbers that determine the order of an epoch, as the specification does."""
    state = 0
    for word in (seed, epoch, num_items):
        state = _mixed(state + word + _GAMMA & _U64)
    while True:
        state = state + _GAMMA & _U64
        yield _mixed(state)


def permutation(num_items: int, seed: int, epoch: int) -> Callable[[int], int]:
    """Returns the function from positions of a shuffled epoch to items, as the specification does."""
    keys = _keys(num_items, seed, epoch)
    if num_items <= 1024:
        table = list(range(num_items))
        for last in range(num_items - 1, 0, -1):
            other = next(keys) * (last + 1) >> 64
            table[last], table[other] = table[other], table[last]
        return table.__getitem__
    left_radix = math.isqrt(num_items - 1) + 1
    right_radix = -(-num_items // left_radix)
    rounds = [(next(keys), next(keys) | 1) for _ in range(8)]

    def turn(other: int, key: tuple[int, int], radix: int) -> int:
        product = (other ^ key[0]) * key[1]
        return ((product & _U64) ^ product >> 64) * radix >> 64

    def at(i: int) -> int:
        while True:
            left, right = divmod(i, right_radix)
            for number, key in enumerate(rounds):
                if number % 2 == 0:
                    left = (left + turn(right, key, left_radix)) % left_radix
                else:
                    right = (right + turn(left, key, right_radix)) % right_radix
            i = left * right_radix + right
            if i < num_items:
                return i

    return at


def global_batches(
    num_items: int, global_batch_size: int, *, seed: int | None, at_epoch_end: str, epochs: int
) -> list[list[list[int]]]:
    """Returns every epoch's global batches, using plain lists."""
    carried: list[int] = []
    every_epoch = []
    for epoch in range(epochs):
        order = list(range(num_items)) if seed is None else shuffled(num_items, seed, epoch)
        items, carried = carried + order, []
        batches = [items[i : i + global_batch_size] for i in range(0, len(items), global_batch_size)]
        if batches and len(batches[-1]) < global_batch_size:
            if at_epoch_end == "pad":
                batches[-1] = [*batches[-1], *(order * global_batch_size)][:global_batch_size]
            elif at_epoch_end != "short":
                rest = batches.pop()
                carried = rest if at_epoch_end == "carry" else []
        every_epoch.append(batches)
    return every_epoch


def shuffled(num_items: int, seed: int, epoch: int) -> list[int]:
    """Returns the items of a shuffled epoch in order."""
    at = permutation(num_items, seed, epoch)
    return [at(i) for i in range(num_items)]
