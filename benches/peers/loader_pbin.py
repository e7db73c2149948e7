"""A naive reader of pbins, from which peers' files are written and against which all items are checked."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
HEADER_BYTES = 12


def tokens(path: Path) -> Array:
    """All tokens of the file, mapped, in the width that they have there."""
    data_bytes, token_bytes = header(path)
    dtype = np.dtype(f"<u{token_bytes}")
    return np.memmap(path, dtype=dtype, mode="r", offset=HEADER_BYTES, shape=(data_bytes // token_bytes,))


def boundaries(path: Path) -> Array:
    """Where documents start, in tokens, and last where the last one ends."""
    data_bytes, token_bytes = header(path)
    with path.open("rb") as file:
        file.seek(HEADER_BYTES + data_bytes)
        pairs = np.asarray(pickle.load(file), dtype=np.int64)
    return np.append(pairs[:, 0], pairs[-1].sum()) // token_bytes


def eod_id(path: Path) -> int:
    """The id that closes documents."""
    return int(tokens(path)[boundaries(path)[1] - 1])


def header(path: Path) -> tuple[int, int]:
    """Bytes of the data, and of a token."""
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES)
    return int.from_bytes(head[:8], "little"), int.from_bytes(head[8:], "little")
