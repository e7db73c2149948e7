"""Makes a batch of samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import default_collate

from packtok.data.collate import collate, without_rows

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
    """The way in which batches are made."""

    collate_fn: Callable[[list[Any]], Any] | None = None
    """Called with the samples of a batch; by default they are stacked."""
    pin_memory: bool = False

    def batch_of(self, rows: Rows) -> Any:
        """Returns the batch."""
        batch = self._collated(rows.samples, is_empty=rows.is_empty)
        return {**batch, **rows.columns} if rows.columns else batch

    def _collated(self, samples: list[Any], *, is_empty: bool) -> Any:
        if self.collate_fn is not None:
            return self.collate_fn([] if is_empty else samples)
        if isinstance(samples[0], dict):
            _check_lengths(samples)
        has_segments = isinstance(samples[0], dict) and "cu_seqlens" in samples[0]
        batch = collate(samples) if has_segments else default_collate(samples)
        return without_rows(batch) if is_empty else batch


def _check_lengths(samples: list[dict[str, Any]]) -> None:
    """Checks that samples can be stacked."""
    for name, first in samples[0].items():
        if name == "cu_seqlens" or not isinstance(first, torch.Tensor | list):
            continue
        for sample in samples:
            other = sample.get(name, first)
            if isinstance(other, type(first)) and _length(other) != _length(first):
                raise ValueError(
                    f"samples of a batch have {_length(first)} and {_length(other)} elements in column "
                    f"{name!r}; pad them first, with pad, or give a collate_fn"
                )


def _length(value: torch.Tensor | list[Any]) -> int:
    return len(value) if isinstance(value, list) or value.ndim else 1
