"""One tool's side of `loaders.py`: writes the tool's files, or serves its items and reports their cost.

Runs in the tool's own environment, which needs NumPy and the tool, but not packtok. Everything specific to a
tool is in `loader_TOOL.py` next to this file: a function ``prepare(corpus, folder)`` if the tool has its own
files, and a dict ``CASES`` from names to functions that open what is measured.

    python loader_worker.py TOOL prepare PBIN FOLDER     writes the tool's files into FOLDER
    python loader_worker.py TOOL serve PBIN FOLDER       answers requests, JSON lines on standard input

Requests are ``{"open": CASE}``, ``{"run": CASE, "seconds": ...}`` and ``{"show": CASE, "items": [...],
"to": NPZ}``.
"""

import gc
import importlib
import itertools
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STARTED = time.perf_counter()
BATCH_ROWS = 64
CONTEXT_LENGTH = 2048
# Number of single items between two clock readings, so that the cost of the readings is negligible.
STRETCH_ITEMS = 1000

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Items:
    """Measures ``dataset[i]``; `show` returns the arrays of an item."""

    dataset: Any
    num_items: int
    show: Callable[[Any], Arrays]


@dataclass(frozen=True)
class Batches:
    """Measures ``batch(items)`` for `BATCH_ROWS` items; `show` returns the arrays of a batch.

    `documents` is the order of documents in the stream that the tool cuts, if it uses its own order.
    """

    batch: Callable[[Sequence[int]], Any]
    num_items: int
    show: Callable[[Any], Arrays]
    documents: Callable[[], Any] | None = None


Case = Items | Batches


def main() -> None:
    tool, command, corpus, folder = sys.argv[1:]
    # Keeps prints of the tool out of the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module = importlib.import_module(f"loader_{tool}")
    if command == "prepare":
        module.prepare(Path(corpus), Path(folder))
        return
    imported_seconds = time.perf_counter() - STARTED
    served = Served(module.CASES, Path(corpus), Path(folder))
    print(
        json.dumps({"import_seconds": imported_seconds, "cases": list(module.CASES)}),
        file=answers,
        flush=True,
    )
    for line in sys.stdin:
        print(json.dumps(served.answer(json.loads(line))), file=answers, flush=True)


class Served:
    """The open cases, and the order in which each is read."""

    def __init__(self, cases: dict[str, Callable[[Path, Path], Case]], corpus: Path, folder: Path) -> None:
        self._openers = cases
        self._corpus = corpus
        self._folder = folder
        self._open: dict[str, Case] = {}
        self._orders: dict[str, Iterator[list[int]]] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if "open" in request:
            return self._opened(request["open"])
        if "run" in request:
            return self._measured(request["run"], request["seconds"])
        return self._saved(request["show"], request["items"], request["to"])

    def _opened(self, name: str) -> dict[str, Any]:
        started = time.perf_counter()
        case = self._openers[name](self._corpus, self._folder)
        seconds = time.perf_counter() - started
        self._open[name] = case
        self._orders[name] = itertools.cycle(shuffled(case))
        return {"num_items": case.num_items, "open_seconds": seconds}

    def _measured(self, name: str, seconds: float) -> dict[str, Any]:
        case, order = self._open[name], self._orders[name]
        gc.collect()
        cpu_started, started = time.process_time(), time.perf_counter()
        num_items = 0
        if isinstance(case, Items):
            dataset = case.dataset
            while time.perf_counter() - started < seconds:
                stretch = next(order)
                for i in stretch:
                    item = dataset[i]  # noqa: F841 - kept until the next is there, as in a loop over a loader
                num_items += len(stretch)
        else:
            make = case.batch
            while time.perf_counter() - started < seconds:
                stretch = next(order)
                batch = make(stretch)  # noqa: F841 - kept until the next is there, as in a loop over a loader
                num_items += len(stretch)
        wall = time.perf_counter() - started
        return {"items": num_items, "cpu_seconds": time.process_time() - cpu_started, "wall_seconds": wall}

    def _saved(self, name: str, items: list[int], to: str) -> dict[str, Any]:
        import numpy as np

        case = self._open[name]
        if isinstance(case, Items):
            loaded_items = [case.show(case.dataset[i]) for i in items]
            arrays = {
                f"{i}.{field}": array for i, item in enumerate(loaded_items) for field, array in item.items()
            }
        else:
            arrays = case.show(case.batch(items))
            if case.documents is not None:
                arrays["documents"] = case.documents()
        np.savez(to, **arrays)
        return {"shown": len(items)}


def shuffled(case: Case) -> list[list[int]]:
    """Returns all items in random order, in lists of equal length; depends only on the number of items."""
    order = list(range(case.num_items))
    random.Random(0).shuffle(order)
    length = BATCH_ROWS if isinstance(case, Batches) else STRETCH_ITEMS
    return [order[at : at + length] for at in range(0, len(order) - length + 1, length)]


if __name__ == "__main__":
    # The tools' modules import this module and must get this instance.
    sys.modules["loader_worker"] = sys.modules["__main__"]
    main()
