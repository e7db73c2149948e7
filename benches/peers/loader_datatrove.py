"""datatrove's side of `loaders.py`: `DatatroveFolderDataset` over a .ds file."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from datatrove.utils.dataset import DatatroveFolderDataset
from loader_pbin import boundaries, eod_id, tokens
from loader_worker import CONTEXT_LENGTH, Arrays, Batches
from torch.utils.data import default_collate


def prepare(corpus: Path, folder: Path) -> None:
    tokens(corpus).tofile(folder / "000_corpus.ds")
    boundaries(corpus)[1:].astype(np.uint64).tofile(folder / "000_corpus.ds.index")


def open_batches(corpus: Path, folder: Path, *, positions: bool = False) -> Batches:
    """Opens rows with one token more than the inputs; positions by EOD id are faster in random order."""
    dataset = DatatroveFolderDataset(
        str(folder),
        CONTEXT_LENGTH,
        filename_pattern="*.ds",
        return_positions=positions,
        positions_from_eos_token_id=eod_id(corpus) if positions else None,
    )

    def batch(items: Sequence[int]) -> dict[str, Any]:
        made = default_collate([dataset[i] for i in items])
        rows = made["input_ids"]
        split = {"input_ids": rows[:, :-1].contiguous(), "labels": rows[:, 1:].contiguous()}
        if positions:
            split["position_ids"] = made["positions"][:, :-1].contiguous()
        return split

    def show(batch: dict[str, Any]) -> Arrays:
        return {name: field.numpy() for name, field in batch.items()}

    return Batches(batch, len(dataset), show)


CASES = {"batches": open_batches, "with boundaries": partial(open_batches, positions=True)}
