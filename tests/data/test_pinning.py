"""Pinned batches: every tensor is pinned; without a CUDA device, one message says what to do instead."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pbins
import pytest

pytest.importorskip("torch", reason="needs torch (pip install '.[torch]')")
import torch

import packtok
from packtok.data import fields
from packtok.stream import CheckpointableDataset

MESSAGE = (
    "pin_memory is True, but PyTorch finds no CUDA device, which pinned memory needs; use "
    "pin_memory=torch.cuda.is_available(), or remove pin_memory"
)
FIELDS: dict[str, Any] = {"position_ids": True, "cu_seqlens": True}


@pytest.fixture
def pbin(tmp_path: Path) -> Path:
    return pbins.write(tmp_path / "train.pbin", [[1, 2, 3, 9], [4, 5, 9], [6, 7, 8, 10, 11, 9]], eod_id=9)


def stream(pbin: Path, **options: Any) -> CheckpointableDataset:
    rows = CheckpointableDataset.from_pbin(pbin).concat_chunk(3, labels=True, **FIELDS)
    return rows.batch(2, **options)


# The makers of batches in the main process.
MAKERS: dict[str, Callable[[Path], Any]] = {
    "TokenDataset": lambda pbin: packtok.TokenDataset(pbin, 3, pin_memory=True),
    "Mixture": lambda pbin: packtok.Mixture({pbin: 1}, context_length=3, pin_memory=True),
    "stream": lambda pbin: stream(pbin, pin_memory=True),
    "stream with collate_fn": lambda pbin: stream(pbin, pin_memory=True, collate_fn=dict),
}


@pytest.fixture
def _no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    if hasattr(torch, "accelerator"):
        monkeypatch.setattr(torch.accelerator, "is_available", lambda *_: False)


@pytest.mark.usefixtures("_no_device")
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_pinning_without_a_device_is_refused_at_construction(make: Callable[[Path], Any], pbin: Path) -> None:
    with pytest.raises(ValueError, match=r"^pin_memory is True") as raised:
        make(pbin)
    assert str(raised.value) == MESSAGE


def test_dataset_from_a_machine_with_a_device_is_refused_at_its_first_batch(
    pbin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: Any, **options: Any) -> torch.Tensor:
        assert options["pin_memory"]
        raise RuntimeError("Need to provide pin_memory allocator to use pin memory.")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    pickled = pickle.dumps(packtok.TokenDataset(pbin, 3, pin_memory=True))
    dataset = pickle.loads(pickled)
    with monkeypatch.context() as changed:
        changed.setattr(torch, "empty", no_memory)
        # With a device, the error has another reason.
        with pytest.raises(RuntimeError, match="pin_memory allocator"):
            dataset[0]
        changed.setattr(torch.cuda, "is_available", lambda: False)
        if hasattr(torch, "accelerator"):
            changed.setattr(torch.accelerator, "is_available", lambda *_: False)
        with pytest.raises(ValueError, match=r"^pin_memory is True") as raised:
            dataset[0]
    assert str(raised.value) == MESSAGE


@pytest.mark.usefixtures("_no_device")
def test_loader_warns_as_torch_does(pbin: Path) -> None:
    dataset = packtok.TokenDataset(pbin, 3)
    messages = []
    for loader in (packtok.DataLoader, torch.utils.data.DataLoader):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            batches = list(loader(dataset, batch_size=2, pin_memory=True))
        assert len(batches) == 2
        messages.append([str(warning.message) for warning in caught])
    # The oldest versions of torch give no warning.
    assert messages[0] == messages[1]


@pytest.fixture
def _pinning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records which memory is requested as pinned, where there is no device to pin it for."""
    if torch.cuda.is_available():
        return
    # The list keeps the memory, so that no later tensor has one of its addresses.
    kept: list[torch.UntypedStorage] = []

    def storage(num_bytes: int, *, pin_memory: bool) -> torch.UntypedStorage | None:
        if not pin_memory:
            return None
        kept.append(torch.empty(num_bytes, dtype=torch.uint8).untyped_storage())
        return kept[-1]

    def is_pinned(tensor: torch.Tensor) -> bool:
        return tensor.untyped_storage().data_ptr() in {memory.data_ptr() for memory in kept}

    def pin_memory(tensor: torch.Tensor) -> torch.Tensor:
        if is_pinned(tensor):
            return tensor
        copied = tensor.clone()
        kept.append(copied.untyped_storage())
        return copied

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(fields, "_storage", storage)
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin_memory)
    monkeypatch.setattr(torch.Tensor, "is_pinned", is_pinned)


def check_pinned(batch: dict[str, Any], expected: dict[str, Any]) -> None:
    assert batch.keys() == expected.keys()
    for name, value in batch.items():
        if isinstance(value, torch.Tensor):
            assert value.is_pinned(), name
            assert not expected[name].is_pinned(), name
            assert torch.equal(value, expected[name]), name


@pytest.mark.usefixtures("_pinning")
def test_every_tensor_of_a_batch_is_pinned(pbin: Path) -> None:
    for mask in ("compact", "dense"):
        plain, dataset = (
            packtok.TokenDataset(pbin, 3, **FIELDS, document_mask=mask, pin_memory=pin_memory)
            for pin_memory in (False, True)
        )
        check_pinned(dataset.__getitems__([0, 2]).batch, plain.__getitems__([0, 2]).batch)


@pytest.mark.usefixtures("_pinning")
@pytest.mark.parametrize("collate_fn", [None, torch.utils.data.default_collate])
def test_every_tensor_of_a_batch_of_a_stream_is_pinned(pbin: Path, collate_fn: Any) -> None:
    rows = CheckpointableDataset.from_pbin(pbin)
    fields = {**FIELDS, "cu_seqlens": collate_fn is None}
    for chunked in (rows.concat_chunk(3, labels=True, **fields), rows.chunk(3, labels=True, **fields)):
        plain, batches = (
            list(chunked.batch(2, collate_fn, pin_memory=pin_memory)) for pin_memory in (False, True)
        )
        assert len(batches) == len(plain) > 0
        for batch, expected in zip(batches, plain, strict=True):
            check_pinned(batch, expected)
