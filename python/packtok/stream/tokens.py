"""Converts columns of tokens that a function returned."""

from typing import Any

import numpy as np
import torch

__all__ = ["ids_in"]

_MAX_ID = 2**32 - 1


def ids_in(sample: Any, column: str) -> np.ndarray[Any, np.dtype[np.int64]] | str | None:
    """Returns the ids in a column: those of ``None``, an int, a list, an array or a tensor of integers.

    The column has shape (n,) or (1, n). Returns ``None`` if there is no such column. If the column has
    anything else, returns the type found and the type expected, as a predicate of the column.
    """
    if not hasattr(sample, "keys"):
        return f"cannot be read: the sample is of type {type(sample).__name__}, expected a dict"
    try:
        value = sample[column]
    except KeyError:
        return None
    if value is None:
        value = []
    if isinstance(value, torch.Tensor):
        if value.dtype != torch.int64:
            return f"is a tensor of {value.dtype}, expected torch.int64"
        value = value.detach().cpu().numpy()
    try:
        ids = np.asarray([value] if isinstance(value, int) else value)
    except ValueError:
        return "has rows of unequal lengths, expected one row of integers"
    return _checked(ids.astype(np.int64) if ids.size == 0 else ids)


def _checked(ids: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.int64]] | str:
    """Returns the ids in one dimension, or a predicate that describes their fault."""
    if not np.issubdtype(ids.dtype, np.integer):
        return f"has values of type {ids.dtype}, expected integers"
    if ids.ndim == 2 and ids.shape[0] == 1:
        ids = ids[0]
    if ids.ndim != 1:
        return f"has shape {ids.shape}, expected (n,) or (1, n)"
    if ids.size and ids.max() > _MAX_ID:
        return f"has the id {ids.max()}, expected at most {_MAX_ID}"
    return ids.astype(np.int64)
