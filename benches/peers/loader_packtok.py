"""packtok's side of `loaders.py`: reads the pbin itself, so nothing needs to be prepared."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from loader_pbin import tokens
from loader_worker import BATCH_ROWS, CONTEXT_LENGTH, Arrays, Batches, Items

from packtok import PackedMemMapDatasetBase, PackedMemMapDatasetContinuous, TokenDataset
from packtok.collate import collate
from packtok.data.batch_memory import reusable

KEY = "input_ids"


def open_blocks(corpus: Path, folder: Path, *, zero_copy: bool) -> Items:
    dataset = PackedMemMapDatasetContinuous(corpus, KEY, CONTEXT_LENGTH + 1, True, zero_copy=zero_copy)
    return Items(dataset, len(dataset), show_view)


def open_documents(corpus: Path, folder: Path, *, zero_copy: bool) -> Items:
    dataset = PackedMemMapDatasetBase(corpus, KEY, zero_copy=zero_copy)
    return Items(dataset, len(dataset), show_view)


def show_view(item: dict[str, Any]) -> Arrays:
    return {"tokens": item[KEY]}


def open_batches(corpus: Path, folder: Path, **fields: bool) -> Batches:
    dataset = TokenDataset(corpus, CONTEXT_LENGTH, **fields)  # type: ignore[arg-type]
    return Batches(
        # The calls of torch's fetcher and of `packtok.DataLoader`.
        lambda items: collate(dataset.__getitems__(items)),
        len(dataset),
        lambda batch: {name: torch.as_tensor(field).numpy() for name, field in batch.items()},
    )


def open_memcpy(corpus: Path, folder: Path) -> Batches:
    """Measures the bound: a memory copy of a batch, into memory that is allocated like that of a batch."""
    rows = torch.from_numpy(tokens(corpus)[: BATCH_ROWS * CONTEXT_LENGTH + 1].astype("int64"))
    source = torch.stack([rows[:-1], rows[1:]]).view(2, BATCH_ROWS, CONTEXT_LENGTH)

    def batch(items: Sequence[int]) -> torch.Tensor:
        memory = np.ndarray(source.shape, np.int64, reusable(source.nbytes))
        return torch.from_numpy(memory).copy_(source)

    return Batches(
        batch, BATCH_ROWS, lambda copy: dict(zip(("input_ids", "labels"), copy.numpy(), strict=True))
    )


def open_files(packed: str, corpus: Path, folder: Path, *, by_file: bool) -> Items:
    """Opens blocks, as views, of the corpus next to the tools' folders, in one file or in many."""
    dataset = PackedMemMapDatasetContinuous(
        folder.with_name(packed), KEY, CONTEXT_LENGTH + 1, True, by_file=by_file, zero_copy=True
    )
    return Items(dataset, len(dataset), show_view)


def open_file_batches(packed: str, corpus: Path, folder: Path) -> Batches:
    return open_batches(folder.with_name(packed), folder)


CASES = {
    "blocks": partial(open_blocks, zero_copy=True),
    "blocks as copies": partial(open_blocks, zero_copy=False),
    "documents": partial(open_documents, zero_copy=True),
    "documents as copies": partial(open_documents, zero_copy=False),
    "batches": open_batches,
    "memcpy": open_memcpy,
    "with boundaries": partial(open_batches, cu_seqlens=True, position_ids=True),
    "blocks of one file": partial(open_files, "one.pbin", by_file=True),
    "blocks of many files": partial(open_files, "many.manifest", by_file=True),
    "blocks across many files": partial(open_files, "many.manifest", by_file=False),
    "batches of one file": partial(open_file_batches, "one.pbin"),
    "batches of many files": partial(open_file_batches, "many.manifest"),
}
