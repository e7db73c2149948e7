"""A naive reader of pbins, used to write peers' files and to check all items."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
HEADER_BYTES = 12


def tokens(path: Path) -> Array:
    """Returns all tokens of the file, mapped, in the width of the file."""
    data_bytes, token_bytes = header(path)
    dtype = np.dtype(f"<u{token_bytes}")
    return np.memmap(path, dtype=dtype, mode="r", offset=HEADER_BYTES, shape=(data_bytes // token_bytes,))


def boundaries(path: Path) -> Array:
    """Returns the starts of the documents in tokens, followed by the end of the last one."""
    data_bytes, token_bytes = header(path)
    with path.open("rb") as file:
        file.seek(HEADER_BYTES + data_bytes)
        pairs = np.asarray(pickle.load(file), dtype=np.int64)
    return np.append(pairs[:, 0], pairs[-1].sum()) // token_bytes


def eod_id(path: Path) -> int:
    """Returns the id that closes documents."""
    return int(tokens(path)[boundaries(path)[1] - 1])


def header(path: Path) -> tuple[int, int]:
    """Returns the bytes of the data, and of one token."""
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES)
    return int.from_bytes(head[:8], "little"), int.from_bytes(head[8:], "little")
