"""What all methods of a stream share: its node, and how its samples are batched."""

from __future__ import annotations

from typing import Any, Self

from torch.utils.data import IterableDataset

from packtok.stream import recipe
from packtok.stream.batching import Batching

__all__ = ["Base"]

_DEFAULT_BATCHING = Batching()
# What has no buffer, so that a state is the same for any number of ranks.
_AFTER_DISTRIBUTE = frozenset({"call", "ends", "pad", "batch", "take", "stride", "enumerate"})
# Steps with a buffer, which is computed again when a state is loaded.
_BUFFERS = frozenset({"shuffle", "chunk", "concat_chunk", "pack_chunk"})


class Base(IterableDataset[Any]):
    """A stream as a recipe."""

    def __init__(self, node: recipe.Node, batching: Batching = _DEFAULT_BATCHING) -> None:
        """Use the class methods instead."""
        self._node = node
        self._batching = batching

    def _with(self, node: recipe.Node) -> Self:
        if node.op not in _AFTER_DISTRIBUTE and any(recipe.share_of(one) for one in node.upstream):
            raise ValueError(
                f"{node.op} cannot follow distribute, because ranks would have other buffers; put it before"
            )
        if node.op in _BUFFERS and recipe.keeps_outputs(self._node):
            raise ValueError(
                f"{node.op} cannot follow a function with keep_outputs, because its buffer is computed again "
                "when a state is loaded; put it before the function"
            )
        return type(self)(node, self._batching)
