"""Writes `tests/golden/dolma` with dolma 1.2.1: files of two and of four bytes a token, with their documents.

    python tests/golden/make_dolma.py FOLDER

Writes into a new folder, because golden files never change.
"""

import json
import sys
from pathlib import Path

import numpy as np
from dolma.tokenizer.data_types import TokenizerOutput
from dolma.tokenizer.memmap_writer import MemmapWriter

DOCUMENT_LENGTHS = [5, 7, 1, 9, 17]
# A path with the characters that CSV quotes.
SOURCE = 'corpus/a, "b".jsonl.gz'


def main(folder: Path) -> None:
    """Writes both files, and the ids of their documents as JSON."""
    random = np.random.default_rng(20261127)
    documents = {
        "two": write(folder, "two", np.dtype(np.uint16), random),
        "four": write(folder, "four", np.dtype(np.uint32), random),
    }
    (folder / "documents.json").write_text(json.dumps(documents) + "\n")


def write(folder: Path, name: str, dtype: np.dtype, random: np.random.Generator) -> list[list[int]]:
    """Writes one file and returns the ids of its documents."""
    documents = [random.integers(0, 256**dtype.itemsize, length).tolist() for length in DOCUMENT_LENGTHS]
    with MemmapWriter(str(folder / name), dtype=dtype, max_tokens=1000) as writer:
        for i, ids in enumerate(documents):
            output = TokenizerOutput.from_tokens(id=f"id-{i}", src=SOURCE, loc=i + 1, tokens=ids)
            assert writer.write(output)
    return documents


if __name__ == "__main__":
    main(Path(sys.argv[1]))
