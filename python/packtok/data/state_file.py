"""Reads the state of a loader from JSON, or from a checkpoint that contains it, which alone needs torch."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from packtok.data.state import check_form
from packtok.errors import ConfigError

__all__ = ["naming", "read_state"]

_STATE_KEYS = {"version", "order", "data", "global_batch_size", "at_epoch_end", "num_global_samples"}
# A state is some hundred bytes long; a larger file is a checkpoint.
_MAX_STATE_BYTES = 16 << 20


def read_state(path: str) -> Mapping[str, Any]:
    """Returns the only loader state in a JSON file or a checkpoint.

    Raises:
        ConfigError: If the file contains no state, or several different ones.
        ValueError: If a field of the state is invalid.
    """
    with Path(path).open("rb") as file:
        # A checkpoint can be many GB large, but only the state in it is needed.
        content = file.read(_MAX_STATE_BYTES + 1)
    try:
        tree = _checkpoint(path) if len(content) > _MAX_STATE_BYTES else json.loads(content)
    except (ValueError, RecursionError):
        tree = _checkpoint(path)
    states = list(_states(tree))
    if not states or any(state != states[0] for state in states):
        problem = "several different states" if states else "no state"
        raise ConfigError(f"{path}: contains {problem} of a packtok.DataLoader; save one as JSON")
    with naming(path):
        return check_form(states[0])


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Prefixes the message of a ValueError with the path of the state's file."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _checkpoint(path: str) -> Any:
    from packtok.extras import needing_torch

    with needing_torch(f"{path}: reading a checkpoint"):
        import torch

    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (RuntimeError, EOFError, UnpicklingError) as error:
        raise ConfigError(f"{path}: neither JSON nor a torch.save checkpoint") from error


def _states(tree: Any) -> Iterator[Mapping[str, Any]]:
    """Yields every mapping in ``tree`` that has the keys of a state."""
    if isinstance(tree, Mapping):
        if tree.keys() >= _STATE_KEYS:
            yield tree
        for value in tree.values():
            yield from _states(value)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from _states(value)
