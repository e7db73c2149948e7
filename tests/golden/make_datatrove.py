"""Writes `tests/golden/datatrove` with datatrove 0.10.1: a file of two and one of four bytes a token.

    python tests/golden/make_datatrove.py FOLDER

Writes into a new folder, because golden files never change.
"""

import json
import sys
from pathlib import Path

import numpy as np
from datatrove.pipeline.tokens.tokenizer import TokenizedFile

DOCUMENT_LENGTHS = [5, 0, 7, 1, 9, 0, 17]


def main(folder: Path) -> None:
    """Writes both files, and the ids of their documents as JSON."""
    random = np.random.default_rng(20261127)
    documents = {
        "two": write(folder, "two", 2, random, np.dtype("<u2")),
        "four": write(folder, "four", 4, random, np.dtype("<u4")),
    }
    (folder / "documents.json").write_text(json.dumps(documents) + "\n")
    write_with_loss(folder / "loss", random)


def write_with_loss(folder: Path, random: np.random.Generator) -> None:
    """Writes one file with a loss mask, and as JSON the ids and the masks of its documents."""
    folder.mkdir()
    file = TokenizedFile(
        str(folder),
        "masked.ds",
        tokenizer_name_or_path="gpt2",
        save_loss_metadata=True,
        save_final_metadata=True,
        token_size=2,
    )
    documents, masks = [], []
    for length in DOCUMENT_LENGTHS:
        documents.append(random.integers(0, 1000, length).tolist())
        masks.append(random.integers(0, 2, length).astype(bool).tolist())
        file.write(documents[-1], np.array(masks[-1]))
    file.close()
    (folder / "documents.json").write_text(json.dumps({"masked": documents}) + "\n")
    (folder / "masks.json").write_text(json.dumps({"masked": masks}) + "\n")


def write(
    folder: Path, name: str, token_bytes: int, random: np.random.Generator, dtype: np.dtype
) -> list[list[int]]:
    """Writes one file, with metadata, and returns the ids of its documents."""
    file = TokenizedFile(
        str(folder),
        f"{name}.ds",
        tokenizer_name_or_path="gpt2",
        save_final_metadata=True,
        token_size=token_bytes,
    )
    documents = [random.integers(0, 256**token_bytes, length).astype(dtype) for length in DOCUMENT_LENGTHS]
    for ids in documents:
        file.write_bytes(ids.tobytes())
    file.close()
    return [ids.tolist() for ids in documents]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
