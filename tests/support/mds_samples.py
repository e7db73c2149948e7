"""The samples of the golden MDS folders, shared by the programs that write them and the tests."""

from typing import Any

import numpy as np

# Every encoding that packtok writes, with static and dynamic dtypes and shapes.
COLUMNS = {
    "tokens": "ndarray:uint16",
    "any": "ndarray",
    "grid": "ndarray:float32:2,3",
    "domain": "str",
    "raw": "bytes",
    "number": "int",
    "flag": "uint8",
    "digits": "str_int",
    "extra": "json",
}
DTYPES = (
    "uint8",
    "int8",
    "uint16",
    "int16",
    "float16",
    "uint32",
    "int32",
    "float32",
    "uint64",
    "int64",
    "float64",
)


def sample(i: int) -> dict[str, Any]:
    """Returns sample ``i`` of the folders ``plain`` and ``zstd``."""
    shape = ((3,), (2, 2), (300, 1), (1, 1, 5))[i % 4]
    numbers = np.arange(np.prod(shape)) * (i + 1)
    return {
        "tokens": (np.arange(1 + 40 * (i % 3)) * 7 + i).astype(np.uint16),
        "any": numbers.reshape(shape).astype(DTYPES[i % len(DTYPES)]),
        "grid": (np.arange(6).reshape(2, 3) / (i + 1)).astype(np.float32),
        "domain": ("arxiv", "büch \U0001d11e", "")[i % 3],
        "raw": bytes(range(i)),
        "number": (-1) ** i * 3**i,
        "flag": np.uint8(200 + i),
        "digits": 10**20 + i,
        "extra": {"i": [i, None, "é"]},
    }


def pickled_sample(i: int) -> dict[str, Any]:
    """Returns sample ``i`` of the folder ``pickled``, as CEPE's scripts write samples."""
    return {
        "token_ids": np.arange(4, dtype=np.int64) + 100 * i,
        "prev_token_ids": np.arange(6, dtype=np.int64) * (i + 1),
        "domain": "arxiv",
    }


def retrieved_sample(i: int) -> dict[str, Any]:
    """Returns sample ``i`` of the folder ``retrieved``: lists of passages, whose lengths differ."""
    return {
        "retrieved_token_ids": [np.arange(5, dtype=np.int64) + i + k for k in range(3)],
        "retrieved_neighbor_token_ids": [np.arange(1 + k, dtype=np.int64) * 2 + i for k in range(3)],
        "retrieval_scores": [0.5 * k + i for k in range(3)],
    }
