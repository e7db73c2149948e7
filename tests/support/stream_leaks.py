"""Measures the resources that iterators of a stream do not release, for test_stream_faults.py.

``python stream_leaks.py PATH ROUNDS COUNT`` reads the JSON lines of PATH with COUNT iterators in each round,
and prints one line of JSON: iterators, threads, descriptors and resident bytes, before the first round and
after each. It is a process of its own, because the memory of a process that has run other tests grows and
shrinks by megabytes.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from pathlib import Path
from typing import Any

from processes import wait_for
from stories import TOKENIZER

from packtok.stream import CheckpointableDataset

# Growth until the allocator has memory for the threads and buffers of an iterator.
WARM_UP = 100


def measured() -> dict[str, int]:
    """Returns the resources of this process."""
    iterator = type(CheckpointableDataset.from_sequence([0]).iter())
    return {
        "iterators": sum(type(each) is iterator for each in gc.get_objects()),
        "threads": len(os.listdir("/proc/self/task")),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "bytes": int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
    }


def cycles(dataset: CheckpointableDataset, count: int, state: Any) -> Any:
    """Starts iterators, closes every second one and drops the others; returns a state."""
    for i in range(count):
        iterator = dataset.iter(state)
        next(iterator)
        state = iterator.state_dict() if i % 10 else None
        if i % 2:
            iterator.close()
        del iterator
    return state


def main(path: str, num_rounds: int, count: int) -> None:
    """Prints the resources before the first round of ``count`` iterators and after each."""
    source = CheckpointableDataset.from_files([path], repeat=True)
    dataset = (
        source.parallel_map(dict, 1, executor_type="thread").tokenize(TOKENIZER).concat_chunk(8).shuffle(2)
    )
    # A measurement allocates memory too.
    measured()
    state = cycles(dataset, WARM_UP, None)
    gc.collect()
    before = measured()
    results = [before]
    names = ("threads", "descriptors")
    for _ in range(num_rounds):
        cycles(dataset, count, state)
        gc.collect()
        wait_for(
            lambda: all(measured()[name] <= before[name] for name in names),
            "threads and files are closed",
            seconds=10,
            describe=lambda: f"{measured()}, before {before}",
        )
        results.append(measured())
    print(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
