"""The bound of `loaders.py`: the bytes of a batch copied into memory that is asked for as packtok asks for it."""

from collections.abc import Sequence
from pathlib import Path

import torch
from loader_worker import BATCH_ROWS, CONTEXT_LENGTH, Arrays, Batches
from loader_pbin import tokens

FIELDS = 2


def open_memcpy(corpus: Path, folder: Path) -> Batches:
    num_tokens = BATCH_ROWS * CONTEXT_LENGTH
    source = torch.from_numpy(tokens(corpus)[:num_tokens].astype("int64")).repeat(FIELDS).view(torch.uint8)

    def batch(items: Sequence[int]) -> torch.Tensor:
        return torch.empty(source.numel(), dtype=torch.uint8).copy_(source)

    def show(copy: torch.Tensor) -> Arrays:
        input_ids = copy.view(torch.int64)[:num_tokens].view(BATCH_ROWS, CONTEXT_LENGTH)
        return {"input_ids": input_ids.numpy()}

    return Batches(batch, BATCH_ROWS, show)


CASES = {"memcpy": open_memcpy}
