"""How the samples of a batch become one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import default_collate

from packtok.collate import collate
from packtok.stream.tokens import tensors

__all__ = ["Batching", "Rows"]


@dataclass(frozen=True)
class Rows:
    """The samples of a batch as the core has them."""

    samples: list[Any]
    is_empty: bool
    """Whether the batch has no sample; ``samples`` then only show its fields."""
    columns: dict[str, Any]
    """Columns of the batch itself."""


@dataclass(frozen=True)
class Batching:
    """How batches are made."""

    collate_fn: Callable[[list[Any]], Any] | None = None
    """Called with the samples of a batch; by default they are stacked."""
    pin_memory: bool = False

    def batch_of(self, rows: Rows) -> Any:
        """Returns the batch."""
        samples = [tensors(sample) if isinstance(sample, dict) else sample for sample in rows.samples]
        batch = self._collated(samples, is_empty=rows.is_empty)
        return {**batch, **rows.columns} if rows.columns else batch

    def _collated(self, samples: list[Any], *, is_empty: bool) -> Any:
        if self.collate_fn is not None:
            return self.collate_fn([] if is_empty else samples)
        has_segments = isinstance(samples[0], dict) and "cu_seqlens" in samples[0]
        batch = collate(samples) if has_segments else default_collate(samples)
        return _without_rows(batch) if is_empty else batch


def _without_rows(batch: Any) -> Any:
    """The same fields without rows, for a rank that has none of the last ones."""
    if isinstance(batch, dict):
        empty = {name: _without_rows(value) for name, value in batch.items()}
        if "cu_seqlens" in batch:
            empty["cu_seqlens"], empty["max_seqlen"] = torch.zeros(1, dtype=torch.int32), 0
        return empty
    return batch[:0] if isinstance(batch, torch.Tensor | list) else batch
