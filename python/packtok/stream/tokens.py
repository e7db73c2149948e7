"""Converts columns of tokens that a function returned."""

from typing import Any

import numpy as np
import torch

__all__ = ["ids_of", "padded"]


def ids_of(value: Any) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Returns the ids of a column: ``None``, an int, a list, an array or a tensor of integers.

    Shape (n,) or (1, n).

    Raises:
        ValueError: If it is anything else, or an id is negative or above 2**32 - 1.
    """
    if value is None:
        value = []
    if isinstance(value, torch.Tensor):
        if value.dtype != torch.int64:
            raise ValueError(f"ids are a tensor of {value.dtype}, expected torch.int64")
        value = value.detach().cpu().numpy()
    ids = np.asarray(value if not isinstance(value, int) else [value])
    if ids.size == 0:
        ids = ids.astype(np.int64)
    if not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"ids are of type {ids.dtype}, expected integers")
    if ids.ndim == 2 and ids.shape[0] == 1:
        ids = ids[0]
    if ids.ndim != 1:
        raise ValueError(f"ids have shape {ids.shape}, expected (n,) or (1, n)")
    if ids.size and (ids.min() < 0 or ids.max() >= 2**32):
        raise ValueError(f"ids are from {ids.min()} to {ids.max()}, expected 0 to 4294967295")
    return ids.astype(np.uint32)


def padded(sample: dict[str, Any], column: str, value: int, length: int) -> dict[str, Any]:
    """Returns a copy of the sample whose ``column`` has ``length`` elements, the last of them ``value``.

    Raises:
        ValueError: If the sample has no such column, or it is longer.
    """
    if column not in sample:
        raise ValueError(f"a sample has no column {column!r} to pad; it has {', '.join(sample)}")
    row = torch.as_tensor(sample[column], dtype=torch.int64)
    if len(row) > length:
        raise ValueError(f"column {column!r} has {len(row)} tokens, expected at most chunk_length {length}")
    return {**sample, column: torch.nn.functional.pad(row, (0, length - len(row)), value=value)}
