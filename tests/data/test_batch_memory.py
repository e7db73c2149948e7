"""Memory of batches is reused, but never while something refers to it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
import pbins
import torch
from extent import extent

from packtok import TokenDataset
from packtok.data import batch_memory
from packtok.data.batch_memory import reusable

BATCH_BYTES = 1 << 20


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    batch_memory._pool.clear()


def tensor(num_bytes: int = BATCH_BYTES) -> Any:
    return torch.from_numpy(reusable(num_bytes))


def test_unreferenced_memory_is_reused() -> None:
    first = tensor()
    place = first.data_ptr()
    del first
    assert tensor().data_ptr() == place


@pytest.mark.parametrize(
    "keep",
    [
        lambda batch: batch,
        lambda batch: batch[5:9],
        lambda batch: batch.view(torch.int64)[3],
        lambda batch: batch.numpy(),
        lambda batch: batch.numpy()[10:20],
        lambda batch: memoryview(batch.numpy()),
        lambda batch: batch.untyped_storage(),
        lambda batch: batch.detach(),
    ],
    ids=["tensor", "view", "other dtype", "array", "part of array", "buffer", "storage", "detached"],
)
def test_referenced_memory_is_not_reused(keep: Callable[[Any], Any]) -> None:
    first = tensor()
    place = first.data_ptr()
    kept = keep(first)
    del first
    assert tensor().data_ptr() != place
    del kept
    assert place in {batch.data_ptr() for batch in [tensor(), tensor()]}


def test_derived_arrays_keep_the_memory() -> None:
    first = reusable(BATCH_BYTES)
    place = first.ctypes.data
    kept = np.ndarray((3, 5), np.int64, first, 64)[1:, 2]
    del first
    assert reusable(BATCH_BYTES).ctypes.data != place
    del kept
    assert place in {array.ctypes.data for array in [reusable(BATCH_BYTES), reusable(BATCH_BYTES)]}


def test_most_recently_used_memory_is_reused_first() -> None:
    batches = [tensor() for _ in range(3)]
    places = [batch.data_ptr() for batch in batches]
    batches.clear()
    first, second = tensor(), tensor()
    assert [first.data_ptr(), second.data_ptr()] == places[:0:-1]
    del first
    assert tensor().data_ptr() == places[2]


def test_live_batches_stay_unchanged_beyond_the_cache_size() -> None:
    batches = [tensor().fill_(i) for i in range(50)]
    assert all(bool((batch == i).all()) for i, batch in enumerate(batches))
    assert len(batch_memory._pool) <= batch_memory._POOL_SIZE


def test_smaller_batch_reuses_memory_up_to_twice_its_size() -> None:
    place = tensor(2 * BATCH_BYTES).data_ptr()
    assert tensor(BATCH_BYTES + 1).data_ptr() == place
    assert tensor(BATCH_BYTES - 1).data_ptr() != place
    assert tensor(2 * BATCH_BYTES + 1).data_ptr() != place


def test_kept_batches_never_change(tmp_path: Path) -> None:
    documents = [[i % 60_000] * 1500 for i in range(700)]
    dataset = TokenDataset(pbins.write(tmp_path / "a.pbin", documents), 1024, position_ids=True)
    stream = torch.tensor([token for document in documents for token in document])
    batches = [dataset.__getitems__(range(i, i + 16)).batch for i in range(len(dataset) - 16)]
    labels = [batch["labels"].numpy()[3:] for batch in batches]
    for i, batch in enumerate(batches):
        start = i * 1024
        assert torch.equal(batch["input_ids"].flatten(), stream[start : start + 16 * 1024])
        assert torch.equal(torch.from_numpy(labels[i]).flatten(), stream[start + 3073 :][: 13 * 1024])


def test_one_field_keeps_the_memory_of_all(tmp_path: Path) -> None:
    dataset = TokenDataset(pbins.write(tmp_path / "a.pbin", [[7] * 40_000]), 1024)
    kept = dataset.__getitems__(range(16)).batch["labels"][2:3]
    for i in range(20):
        dataset.__getitems__(range(i, i + 16)).batch["input_ids"].zero_()
        dataset.__getitems__(range(i, i + 16)).batch["labels"].zero_()
    assert bool((kept == 7).all())


def test_small_memory_is_not_kept() -> None:
    assert tensor(1000).numel() == 1000
    assert not batch_memory._pool


def test_threads_never_get_the_same_memory() -> None:
    spoiled = []

    def work(thread: int) -> None:
        for _ in range(extent(500, 25)):
            batch = tensor().fill_(thread)
            if not bool((batch == thread).all()):
                spoiled.append(thread)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not spoiled
