"""Writes `tests/golden/litdata` with litdata 0.2.76: one folder of chunks for each type of ids.

    python tests/golden/make_litdata.py FOLDER

Writes into a new folder, because golden files never change. Also checks that litdata's own loader gives the
ids that were written.
"""

import json
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from litdata import StreamingDataset
from litdata.streaming.cache import Cache
from litdata.streaming.item_loader import TokensLoader

# Tokens of the documents; some have none.
LENGTHS = [5, 0, 7, 1, 9, 0, 17, 3]
# Each type, and the number of ids that are used.
TYPES = {"uint8": 2**8, "uint16": 2**16, "int32": 2**31, "int64": 2**32}
ARRAY_TYPES = {"array_uint16": np.uint16, "array_uint32": np.uint32}


def main(folder: Path) -> None:
    """Writes all folders, and their documents as JSON."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(20261128)
    documents = {}
    for name, num_ids in TYPES.items():
        ids = [random.integers(0, num_ids, length) for length in LENGTHS]
        dtype = getattr(torch, name)
        documents[name] = write(folder / name, [torch.from_numpy(item).to(dtype) for item in ids])
    for name, array_type in ARRAY_TYPES.items():
        ids = [random.integers(0, np.iinfo(array_type).max, length) for length in LENGTHS]
        documents[name] = write(folder / name, [item.astype(array_type) for item in ids])
    # Of several chunks; an item without ids ends none.
    ids = [random.integers(0, 1000, length) for length in LENGTHS if length]
    documents["chunks"] = write(folder / "chunks", [torch.from_numpy(item).int() for item in ids])
    (folder / "documents.json").write_text(json.dumps(documents) + "\n")


def write(folder: Path, items: list[torch.Tensor] | list[np.ndarray]) -> list[list[int]]:
    """Writes one folder, and returns the ids of its documents."""
    cache = Cache(str(folder), chunk_size=24, item_loader=TokensLoader())
    for number, item in enumerate(items):
        cache[number] = item
    cache.done()
    cache.merge()
    chunks = json.loads((folder / "index.json").read_text())["chunks"]
    left = iter(items)
    joined = [[id for item in islice(left, chunk["chunk_size"]) for id in item.tolist()] for chunk in chunks]
    # The loader drops the rest of each chunk.
    samples = [ids[i : i + 4] for ids in joined for i in range(0, len(ids) - 3, 4)]
    dataset = StreamingDataset(str(folder), item_loader=TokensLoader(block_size=4))
    assert [dataset[i].tolist() for i in range(len(dataset))] == samples
    return [item.tolist() for item in items]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
