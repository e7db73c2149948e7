"""Streams: documents are read, tokenized, made into rows, shuffled and batched while training runs.

The interface is that of epochraft, over packtok's own readers, tokenizers and state (docs/streaming.md).
"""

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
