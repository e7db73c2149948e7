"""Ranks as separate processes, joined by gloo, and the small dataset that they read."""

from __future__ import annotations

import datetime
import functools
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

# Long enough that a slow machine does not look like a hang.
JOIN_SECONDS = 600


class Numbers(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Item ``i`` is the number ``i`` and comes from document ``i`` of a file."""

    def __init__(self, num_items: int, fingerprint: str = "numbers") -> None:
        self.num_items = num_items
        self.fingerprint = fingerprint

    def __len__(self) -> int:
        return self.num_items

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        if not 0 <= i < self.num_items:
            raise IndexError(i)
        return {"x": torch.tensor(i)}

    def locate(self, i: int) -> list[tuple[str, int, int, int]]:
        return [("numbers.pbin", i, 10 * i, 10 * i + 10)]


def rows(batch: dict[str, torch.Tensor]) -> list[int]:
    numbers: list[int] = batch["x"].tolist()
    return numbers


def run_ranks(num_ranks: int, folder: Path, work: Callable[..., Any], *arguments: object) -> Any:
    """Returns rank 0's result of ``work(*arguments)`` on ``num_ranks`` new processes; fails on a hang."""
    folder.mkdir(exist_ok=True)
    _importer().submit(_fork, num_ranks, str(folder), work, arguments).result()
    return torch.load(folder / "result", weights_only=True)


@functools.cache
def _importer() -> ProcessPoolExecutor:
    """Returns a process that imports everything once and forks all ranks; an import takes seconds."""
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def _fork(num_ranks: int, *arguments: object) -> None:
    mp.start_processes(_run, (num_ranks, *arguments), nprocs=num_ranks, start_method="fork")


def _run(
    rank: int, num_ranks: int, folder: str, work: Callable[..., Any], arguments: Sequence[object]
) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        os.environ.pop(name, None)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/store",
        rank=rank,
        world_size=num_ranks,
        timeout=datetime.timedelta(seconds=JOIN_SECONDS),
    )
    result = work(*arguments)
    if rank == 0:
        torch.save(result, f"{folder}/result")
    dist.barrier()
    dist.destroy_process_group()


def gathered(value: object) -> list[Any]:
    """Returns the values of all ranks, on each of them."""
    values: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values
