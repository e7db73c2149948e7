"""MosaicML Streaming's side of `loaders.py`: rows as samples of MDS shards on local disk."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from loader_pbin import tokens
from loader_worker import CONTEXT_LENGTH, Arrays, Batches, Items
from streaming import LocalDataset, MDSWriter
from torch.utils.data import default_collate

KEY = "tokens"


def prepare(corpus: Path, folder: Path) -> None:
    data = tokens(corpus)
    with MDSWriter(
        out=str(folder / "shards"), columns={KEY: f"ndarray:uint16:{CONTEXT_LENGTH + 1}"}
    ) as writer:
        for start in range(0, len(data) - CONTEXT_LENGTH, CONTEXT_LENGTH):
            writer.write({KEY: np.array(data[start : start + CONTEXT_LENGTH + 1])})


def open_blocks(corpus: Path, folder: Path) -> Items:
    dataset = LocalDataset(str(folder / "shards"))
    return Items(dataset, len(dataset), lambda item: {"tokens": item[KEY]})


def open_batches(corpus: Path, folder: Path) -> Batches:
    dataset = LocalDataset(str(folder / "shards"))

    def batch(items: Sequence[int]) -> Any:
        # As in LLM Foundry's text dataset: each sample is widened separately.
        rows = default_collate([torch.from_numpy(dataset[i][KEY].astype(np.int64)) for i in items])
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()

    def show(pair: Any) -> Arrays:
        return {"input_ids": pair[0].numpy(), "labels": pair[1].numpy()}

    return Batches(batch, len(dataset), show)


CASES = {"blocks": open_blocks, "batches": open_batches}
