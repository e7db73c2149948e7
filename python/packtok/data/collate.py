"""Collates items of `TokenDataset` into batches.

A batch that `TokenDataset.__getitems__` filled is returned unchanged. Separate items, which come from
`torch.utils.data.ConcatDataset` or a list, are stacked. Both types are registered with torch's default
collation, so a plain ``torch.utils.data.DataLoader(dataset, batch_size=...)`` gives the same batches.
"""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import default_collate
from torch.utils.data._utils.collate import default_collate_fn_map

__all__ = ["Item", "ItemList", "collate"]


class Item(dict[str, Any]):
    """One item of a `TokenDataset`: its fields by name."""


class ItemList(Sequence[Item]):
    """Items that are rows of one batch; each item is created on access and consists of views."""

    def __init__(self, batch: dict[str, Any]) -> None:
        self.batch = batch

    def __len__(self) -> int:
        return len(self.batch["input_ids"])

    @overload
    def __getitem__(self, i: int, /) -> Item: ...
    @overload
    def __getitem__(self, i: slice, /) -> list[Item]: ...
    def __getitem__(self, i: int | slice, /) -> Item | list[Item]:
        if isinstance(i, slice):
            return [self._item(row) for row in range(len(self))[i]]
        return self._item(range(len(self))[i])

    def __iter__(self) -> Iterator[Item]:
        return map(self._item, range(len(self)))

    def _item(self, row: int) -> Item:
        item = Item({name: field[row] for name, field in self.batch.items() if name not in _OVER_ALL_ROWS})
        if "cu_seqlens" in self.batch:
            len_tokens = self.batch["input_ids"].shape[1]
            segments = row_segments(self.batch["cu_seqlens"].numpy(), row, len_tokens)
            item["cu_seqlens"] = torch.from_numpy(segments)
            item["max_seqlen"] = int((segments[1:] - segments[:-1]).max())
        return item


_OVER_ALL_ROWS = ("cu_seqlens", "max_seqlen")


def row_segments(cu_seqlens: npt.NDArray[np.int32], row: int, len_tokens: int) -> npt.NDArray[np.int32]:
    """Returns the document boundaries of one row, starting at 0; both ends of a row are boundaries.

    Uses NumPy, because torch's default collation accesses the first item of each batch, and torch would need
    50 us for this.
    """
    start = row * len_tokens
    first, last = cu_seqlens.searchsorted(np.asarray([start, start + len_tokens], dtype=np.int32))
    return cu_seqlens[first : last + 1] - np.int32(start)


def collate(items: Sequence[Item], *, collate_fn_map: object = None) -> dict[str, Any]:
    """Returns the batch of ``items``: fields are stacked, ``cu_seqlens`` covers the concatenated rows.

    Items of one `TokenDataset.__getitems__` call already form a batch, which is returned without a copy. In a
    ``DataLoader`` worker, stacked fields are in shared memory.

    Args:
        items: Items with the same fields and the same length.
        collate_fn_map: Passed by torch's ``collate``. Unused, because the types of all fields are known.

    Raises:
        ValueError: If there are no items, or their fields or lengths differ.
    """
    if isinstance(items, ItemList):
        return items.batch
    _check_alike(items)
    batch = {
        name: default_collate([item[name] for item in items])
        for name in items[0]
        if name not in _OVER_ALL_ROWS
    }
    if "cu_seqlens" in items[0]:
        batch["cu_seqlens"] = joined_segments([item["cu_seqlens"] for item in items])
        batch["max_seqlen"] = max(item["max_seqlen"] for item in items)
    return batch


def _check_alike(items: Sequence[Item]) -> None:
    if not items:
        raise ValueError("no items to collate; give at least one")
    first = items[0]
    for i, item in enumerate(items):
        if item.keys() != first.keys():
            raise ValueError(
                f"item {i} has the fields {', '.join(item)}, item 0 has {', '.join(first)}; request the "
                "same fields from both datasets"
            )
        if len(item["input_ids"]) != len(first["input_ids"]):
            raise ValueError(
                f"item {i} has {len(item['input_ids'])} tokens, item 0 has {len(first['input_ids'])}; "
                "give both datasets the same context_length"
            )


def joined_segments(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """Concatenates rows of boundaries. Each row starts with 0 and ends with its length."""
    starts = [0]
    for row in rows:
        starts.append(starts[-1] + int(row[-1]))
    shifted = [row[:-1] + start for row, start in zip(rows, starts, strict=False)]
    return torch.cat([*shifted, torch.tensor([starts[-1]], dtype=rows[0].dtype)])


default_collate_fn_map[Item] = collate
