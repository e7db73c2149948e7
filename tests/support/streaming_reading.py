"""Prints the samples of MDS folders as mosaicml-streaming reads them, from an empty cache, hashes checked.

    python tests/support/streaming_reading.py FOLDER

Prints the samples of each MDS folder in FOLDER, by its path. With uncompressed shards, `LocalDataset` must
read the same.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from streaming import LocalDataset, StreamingDataset


def plain(value: Any) -> Any:
    """Returns a value that JSON can store."""
    if isinstance(value, np.ndarray):
        return [value.dtype.name, value.tolist()]
    if isinstance(value, bytes):
        return value.hex()
    return value.item() if isinstance(value, np.generic) else value


def samples_of(folder: Path) -> list[dict[str, Any]]:
    """Returns the samples of a folder, which both datasets read."""
    with tempfile.TemporaryDirectory() as cache:
        dataset = StreamingDataset(
            remote=str(folder), local=f"{cache}/local", validate_hash="sha256", batch_size=1, shuffle=False
        )
        samples = [{key: plain(value) for key, value in dataset[i].items()} for i in range(len(dataset))]
    if list(folder.glob("*.mds")):
        local = LocalDataset(str(folder))
        if samples != [{key: plain(value) for key, value in local[i].items()} for i in range(len(local))]:
            raise SystemExit(f"{folder}: LocalDataset reads other samples")
    return samples


def main() -> None:
    root = Path(sys.argv[1])
    folders = sorted(path.parent for path in root.rglob("index.json"))
    print(json.dumps({str(folder.relative_to(root)): samples_of(folder) for folder in folders}))


if __name__ == "__main__":
    main()
