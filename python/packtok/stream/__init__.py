"""Streams: documents are read, tokenized, made into rows, shuffled and batched while training runs.

The interface is that of epochraft, over packtok's own readers, tokenizers and state (docs/streaming.md).
Names are imported on first use, because processes that run a user's functions import a module of this
package, and need no torch.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from packtok.stream.braces import braceexpand
    from packtok.stream.dataset import (
        CheckpointableDataset,
        FileFormat,
        ParallelExecutorType,
        Sample,
        TokenArray,
        concat_datasets,
        interleave_datasets,
    )
    from packtok.stream.iterator import CheckpointableIterator
    from packtok.stream.state import StateDict, merge_states

__all__ = [
    "CheckpointableDataset",
    "CheckpointableIterator",
    "FileFormat",
    "ParallelExecutorType",
    "Sample",
    "StateDict",
    "TokenArray",
    "braceexpand",
    "concat_datasets",
    "interleave_datasets",
    "merge_states",
]

_HOME = {
    "CheckpointableIterator": "packtok.stream.iterator",
    "StateDict": "packtok.stream.state",
    "braceexpand": "packtok.stream.braces",
    "merge_states": "packtok.stream.state",
}


def __getattr__(name: str) -> Any:
    import importlib

    from packtok.extras import needing_torch

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing_torch(f"packtok.stream.{name}"):
        value = getattr(importlib.import_module(_HOME.get(name, "packtok.stream.dataset")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
