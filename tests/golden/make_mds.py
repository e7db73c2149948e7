"""Writes the golden MDS folders with mosaicml-streaming 0.13.0 and NumPy 2.1, in an environment with both.

PYTHONPATH=tests/support python tests/golden/make_mds.py
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mds_samples import COLUMNS, pickled_sample, retrieved_sample, sample
from streaming import MDSWriter

FOLDER = Path(__file__).parent / "mds"
PICKLED = {"token_ids": "pkl", "prev_token_ids": "pkl", "domain": "str"}
RETRIEVED = dict.fromkeys(("retrieved_token_ids", "retrieved_neighbor_token_ids", "retrieval_scores"), "pkl")


def write(
    name: str, columns: dict[str, str], sample_of: Callable[[int], dict[str, Any]], count: int, **options: Any
) -> None:
    """Writes ``count`` samples into the folder ``name``."""
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    with MDSWriter(out=str(folder), columns=columns, **options) as writer:
        for i in range(count):
            writer.write(sample_of(i))


if __name__ == "__main__":
    write("plain", COLUMNS, sample, 13, size_limit=3000, hashes=["sha256", "xxh64"])
    write(
        "no_hashes",
        {"tokens": "ndarray:uint16"},
        lambda i: {"tokens": sample(i)["tokens"]},
        3,
        size_limit=None,
    )
    write("zstd", COLUMNS, sample, 13, size_limit=3000, hashes=["xxh64"], compression="zstd:7")
    write("pickled", PICKLED, pickled_sample, 5, size_limit=1500)
    write("retrieved", RETRIEVED, retrieved_sample, 5)
