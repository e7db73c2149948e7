"""Prints the samples of an MDS folder as mosaicml-streaming reads them, from an empty cache, hashes checked.

    python tests/streaming_reading.py FOLDER

With uncompressed shards, `LocalDataset` must read the same.
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


def main() -> None:
    folder = sys.argv[1]
    with tempfile.TemporaryDirectory() as cache:
        dataset = StreamingDataset(
            remote=folder, local=f"{cache}/local", validate_hash="sha256", batch_size=1, shuffle=False
        )
        samples = [{key: plain(value) for key, value in dataset[i].items()} for i in range(len(dataset))]
    if list(Path(folder).glob("*.mds")):
        local = LocalDataset(folder)
        if samples != [{key: plain(value) for key, value in local[i].items()} for i in range(len(local))]:
            raise SystemExit("LocalDataset reads other samples")
    print(json.dumps(samples))


if __name__ == "__main__":
    main()
