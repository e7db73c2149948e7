"""Measures the private memory of torch workers, for test_memory.py.

``python worker_memory.py METHOD PATH FUNCTION`` prints one line of JSON: private bytes of a worker over an
empty dataset, and of the largest worker over what FUNCTION of packtok returns. The
top of this file imports nothing of packtok, because spawned workers import the file.
"""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from extent import extent
from torch.utils.data import DataLoader, Dataset, RandomSampler

CONTEXT_LENGTH = 2048
BATCH_SIZE = 8
# Spawned workers import torch, which takes two seconds each.
NUM_WORKERS = extent(8, 2)


class Nothing(Dataset[dict[str, torch.Tensor]]):
    """A dataset of the requested number of items, which have the shape of TokenDataset's."""

    def __init__(self, num_items: int) -> None:
        self.num_items = num_items

    def __len__(self) -> int:
        return self.num_items

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        zeros = torch.zeros(CONTEXT_LENGTH, dtype=torch.int64)
        return {"input_ids": zeros, "labels": zeros}


def private_bytes(pid: int, besides: Path) -> int:
    """Returns the bytes of pages private to this process, without those of the file in the page cache."""
    total, counts = 0, True
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        name, *rest = line.split()
        if not name.endswith(":"):
            counts = str(besides) not in line
        elif counts and name in ("Private_Clean:", "Private_Dirty:"):
            total += int(rest[0]) * 1024
    return total


def largest_worker(dataset: Any, num_workers: int, method: str, pbin: Path) -> int:
    """Returns the private bytes of the largest of some workers that have served 25 batches each."""
    sampler = RandomSampler(dataset, generator=torch.Generator().manual_seed(0))
    loader = DataLoader(
        dataset,
        BATCH_SIZE,
        sampler=sampler,
        num_workers=num_workers,
        multiprocessing_context=method,
        persistent_workers=True,
    )
    batches = iter(loader)
    for _ in range(25 * num_workers):
        next(batches)
    workers = multiprocessing.active_children()
    if len(workers) != num_workers:
        raise RuntimeError(f"{len(workers)} workers are alive, expected {num_workers}")
    return max(private_bytes(worker.pid or 0, pbin) for worker in workers)


def measured(method: str, path: Path, function: str = "TokenDataset") -> dict[str, int]:
    """Returns what this program prints, after running it."""
    done = subprocess.run(
        [sys.executable, __file__, method, path, function],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, int] = json.loads(done.stdout)
    return report


def main(method: str, path: Path, function: str) -> None:
    """Measures and prints."""
    import packtok

    dataset = getattr(packtok, function)(path, CONTEXT_LENGTH)
    num_tokens = dataset.num_tokens
    sizes = {
        "nothing": largest_worker(Nothing(len(dataset)), 1, method, path),
        "dataset": largest_worker(dataset, NUM_WORKERS if function == "TokenDataset" else 1, method, path),
        "num_tokens": num_tokens() if callable(num_tokens) else num_tokens,
    }
    print(json.dumps(sizes))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
