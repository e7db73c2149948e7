"""A typical self-written loader, for `loaders.py`: rows of a NumPy memory map, widened and stacked."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from loader_pbin import tokens
from loader_worker import CONTEXT_LENGTH, Arrays, Batches, Items

Pair = tuple[torch.Tensor, torch.Tensor]


class Views:
    """Slices of the map."""

    def __init__(self, corpus: Path) -> None:
        self._data = tokens(corpus)

    def __len__(self) -> int:
        return (len(self._data) - 1) // CONTEXT_LENGTH

    def __getitem__(self, i: int) -> np.ndarray:  # type: ignore[type-arg]
        start = i * CONTEXT_LENGTH
        return self._data[start : start + CONTEXT_LENGTH + 1]


def open_blocks(corpus: Path, folder: Path) -> Items:
    views = Views(corpus)
    return Items(views, len(views), lambda view: {"tokens": view})


def open_batches(corpus: Path, folder: Path) -> Batches:
    data = tokens(corpus)

    def rows(starts: list[int]) -> torch.Tensor:
        return torch.stack(
            [torch.from_numpy(data[start : start + CONTEXT_LENGTH].astype(np.int64)) for start in starts]
        )

    def batch(items: Sequence[int]) -> Pair:
        starts = [i * CONTEXT_LENGTH for i in items]
        return rows(starts), rows([start + 1 for start in starts])

    def show(pair: Pair) -> Arrays:
        return {"input_ids": pair[0].numpy(), "labels": pair[1].numpy()}

    return Batches(batch, (len(data) - 1) // CONTEXT_LENGTH, show)


CASES = {"blocks": open_blocks, "batches": open_batches}
