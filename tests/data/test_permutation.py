"""The keyed permutation in Python, compared with its specification."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import reference_order
from hypothesis import given
from hypothesis import strategies as st

from packtok import Permutation

SEEDS = st.integers(0, 2**64 - 1)
LENGTHS = st.one_of(st.integers(1, 3000), st.integers(1, 2**63 - 1))


@given(num_items=LENGTHS, seed=SEEDS, epoch=SEEDS, data=st.data())
def test_numbers_follow_the_specification(num_items, seed, epoch, data):
    at = reference_order.permutation(num_items, seed, epoch)
    i = data.draw(st.integers(0, num_items - 1))
    permutation = Permutation(num_items, seed, epoch)
    assert permutation[i] == at(i)
    assert permutation[i - num_items] == at(i)


@given(num_items=LENGTHS, start=SEEDS, step=SEEDS, num=st.integers(0, 40))
def test_strided_numbers_wrap_around(num_items, start, step, num):
    at = reference_order.permutation(num_items, 3, 4)
    numbers = Permutation(num_items, 3, 4).fill(start, step, num)
    assert numbers.dtype == np.int64
    assert numbers.tolist() == [at((start + i * step) % num_items) for i in range(num)]


@pytest.mark.parametrize("num_items", [1, 2, 3, 1023, 1024, 1025, 1026, 65_537])
def test_every_number_occurs_once(num_items):
    numbers = Permutation(num_items, 5, 6).fill(0, 1, num_items)
    assert np.array_equal(np.sort(numbers), np.arange(num_items))


def test_order_is_stable():
    assert Permutation(10, 0, 0).fill(0, 1, 10).tolist() == [4, 7, 8, 9, 6, 1, 2, 0, 3, 5]
    assert Permutation(1025, 0, 0).fill(0, 1, 4).tolist() == [500, 1020, 557, 731]
    assert Permutation(1_000_000, 42, 7).fill(0, 1, 4).tolist() == [700_865, 611_053, 806_927, 76_009]


def test_positions_work_as_in_a_list():
    permutation = Permutation(10, 0, 0)
    assert list(permutation) == [4, 7, 8, 9, 6, 1, 2, 0, 3, 5]
    assert len(permutation) == 10
    for i in (10, -11, 2**62):
        with pytest.raises(IndexError, match=f"^position {i} is out of range, the permutation has 10 items$"):
            permutation[i]


def test_lengths_below_one_are_rejected():
    for num_items in (0, -1):
        with pytest.raises(ValueError, match=f"^num_items is {num_items}, expected at least 1$"):
            Permutation(num_items, 0, 0)


def test_more_numbers_than_memory_are_a_memory_error():
    with pytest.raises(MemoryError, match=f"^cannot allocate {2**60} items at once$"):
        Permutation(2**62, 0, 0).fill(0, 1, 2**60)


def test_pickled_permutation_is_equal():
    permutation = pickle.loads(pickle.dumps(Permutation(2000, 7, 8)))
    assert repr(permutation) == "Permutation(2000, seed=7, epoch=8)"
    assert np.array_equal(permutation.fill(0, 1, 2000), Permutation(2000, 7, 8).fill(0, 1, 2000))
