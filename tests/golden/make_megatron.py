"""Writes `tests/golden/megatron` with megatron-core 0.16.1: one dataset for each type of tokens.

    python tests/golden/make_megatron.py FOLDER

Writes into a new folder, because golden files never change. Also checks that Megatron's own reader gives the
documents that were written.
"""

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import torch
from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder

# Tokens of the sequences of each document; some documents have none.
SEQUENCE_LENGTHS = [[5], [], [3, 4], [1], [2, 1, 6], [], [17]]
# Each type, and the number of ids that are used. Ids of packtok have at most 32 bits.
TYPES = {"uint8": 2**8, "int8": 2**7, "int16": 2**15, "uint16": 2**16, "int32": 2**31, "int64": 2**32}


def main(folder: Path) -> None:
    """Writes all datasets, and their documents as JSON."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(20261127)
    documents = {
        name: write(folder / name, np.dtype(name), draw(random, num_ids), multimodal=False)
        for name, num_ids in TYPES.items()
    }
    documents["modes"] = write(folder / "modes", np.dtype("int32"), draw(random, 1000), multimodal=True)
    (folder / "documents.json").write_text(json.dumps(documents) + "\n")


def draw(random: np.random.Generator, num_ids: int) -> list[list[list[int]]]:
    """Returns random ids for each sequence of each document."""
    return [
        [random.integers(0, num_ids, length).tolist() for length in lengths] for lengths in SEQUENCE_LENGTHS
    ]


def write(
    prefix: Path, dtype: np.dtype, documents: list[list[list[int]]], *, multimodal: bool
) -> list[list[int]]:
    """Writes one dataset and returns the ids of its documents."""
    builder = IndexedDatasetBuilder(f"{prefix}.bin", dtype=dtype.type, multimodal=multimodal)
    joined = [[id for sequence in document for id in sequence] for document in documents]
    for document, ids in zip(documents, joined, strict=True):
        lengths = [len(sequence) for sequence in document]
        modes = [number % 2 for number in range(len(lengths))] if multimodal else None
        builder.add_document(torch.tensor(ids, dtype=torch.int64), lengths, modes)
    builder.finalize(f"{prefix}.idx")
    if not multimodal:
        dataset = IndexedDataset(str(prefix))
        bounds = dataset.document_indices
        read = [
            [id for number in range(first, stop) for id in dataset[number].tolist()]
            for first, stop in itertools.pairwise(bounds)
        ]
        assert read == joined
    return joined


if __name__ == "__main__":
    main(Path(sys.argv[1]))
