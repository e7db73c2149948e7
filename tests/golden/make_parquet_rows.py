"""Writes `tests/golden/parquet_rows` with datasets 5.2.0 and pyarrow: documents as rows.

    python tests/golden/make_parquet_rows.py FOLDER

Writes into a new folder, because golden files never change.
"""

import json
import sys
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
from pyarrow import parquet

DOCUMENT_LENGTHS = [5, 0, 7, 1, 9, 0, 17]


def main(folder: Path) -> None:
    """Writes both files, and the ids of their documents as JSON."""
    random = np.random.default_rng(20261127)
    documents = {name: made(random) for name in ("datasets", "required")}
    dataset = datasets.Dataset.from_dict({"input_ids": documents["datasets"]})
    dataset.to_parquet(str(folder / "datasets.parquet"))
    # Lists that cannot be null, in small row groups.
    ids = pa.list_(pa.field("element", pa.int32(), nullable=False))
    schema = pa.schema([pa.field("input_ids", ids, nullable=False)])
    table = pa.table({"input_ids": documents["required"]}, schema=schema)
    parquet.write_table(table, folder / "required.parquet", row_group_size=3, compression="zstd")
    (folder / "documents.json").write_text(json.dumps(documents) + "\n")


def made(random: np.random.Generator) -> list[list[int]]:
    """Returns the ids of documents."""
    return [random.integers(0, 1 << 31, length).tolist() for length in DOCUMENT_LENGTHS]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
