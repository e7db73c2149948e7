"""The fields of a batch: their memory, asked for once and filled by one call of the compiled module."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch.utils.data import get_worker_info

from packtok.batch_memory import reusable
from packtok.collate import ItemList

__all__ = ["Fields", "document_mask"]

# Fields begin where a cache line does, so that none is written by two cores' vector stores.
_ALIGNMENT_BYTES = 64


@dataclass(frozen=True)
class Fields:
    """Which arrays a batch has and how they are written."""

    context_length: int
    dtypes: dict[str, torch.dtype]
    pad_token_id: int
    aligned: bool
    segments: bool
    document_mask: Literal["compact", "dense"] | None
    pin_memory: bool

    def filled(self, num_rows: int, fill: Callable[..., tuple[np.ndarray[Any, Any], int] | None]) -> ItemList:
        """A batch in memory of its own.

        Args:
            num_rows: Items of the batch.
            fill: `Blocks.fill` or its like, with the items bound.
        """
        batch: dict[str, Any] = self._allocate(num_rows)
        segments = fill(
            **{name: field.numpy() for name, field in batch.items()},
            pad_token_id=self.pad_token_id,
            aligned=self.aligned,
            segments=self.segments,
        )
        if segments is not None:
            batch["cu_seqlens"], batch["max_seqlen"] = torch.from_numpy(segments[0]), segments[1]
        if self.document_mask == "compact":
            batch["document_mask"] = batch["document_ids"]
        elif self.document_mask == "dense":
            batch["document_mask"] = document_mask(batch["document_ids"])
        return ItemList(batch)

    def _allocate(self, num_rows: int) -> dict[str, torch.Tensor]:
        """Unfilled tensors ``(num_rows, context_length)`` that share one piece of memory."""
        num_tokens = num_rows * self.context_length
        starts, total_bytes = [], 0
        for dtype in self.dtypes.values():
            starts.append(total_bytes)
            total_bytes += -(-num_tokens * dtype.itemsize // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        storage = self._storage(total_bytes)
        shape, strides = (num_rows, self.context_length), (self.context_length, 1)
        return {
            name: torch.empty(0, dtype=dtype).set_(storage, start // dtype.itemsize, shape, strides)
            for (name, dtype), start in zip(self.dtypes.items(), starts, strict=True)
        }

    def _storage(self, num_bytes: int) -> torch.UntypedStorage:
        """Memory that nothing refers to; a worker's is shared, so that the batch is not copied on its way."""
        if get_worker_info() is not None:
            shared: torch.UntypedStorage = torch.UntypedStorage._new_shared(num_bytes)  # type: ignore[no-untyped-call]
            return shared
        if self.pin_memory:
            return torch.empty(num_bytes, dtype=torch.uint8, pin_memory=True).untyped_storage()
        return reusable(num_bytes)


def document_mask(document_ids: torch.Tensor) -> torch.Tensor:
    """Which inputs each input may attend to: those before it in its document, and itself.

    Padding is a document of its own here, so that no row of the matrix is empty.

    Args:
        document_ids: The document of each input, ``(..., context_length)``, on any device.

    Returns:
        Booleans ``(..., context_length, context_length)``, queries before keys.
    """
    same_document = document_ids.unsqueeze(-1) == document_ids.unsqueeze(-2)
    return same_document.tril_()
