"""Items of datasets that fill whole batches, and how they become a batch.

A batch that ``__getitems__`` filled is returned unchanged. Separate items, which come from
`torch.utils.data.ConcatDataset` or a list, are stacked. Both types are registered with torch's default
collation, so a plain ``torch.utils.data.DataLoader(dataset, batch_size=...)`` gives the same batches.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import default_collate
from torch.utils.data._utils.collate import default_collate_fn_map

__all__ = ["Item", "ItemList", "collate", "without_rows"]

# Fields with values for documents and not for tokens: their rows have different lengths and cannot be
# stacked.
_OF_DOCUMENTS = ("cu_seqlens", "max_seqlen", "doc_lens")


class Item(dict[str, Any]):
    """One item of a dataset: its fields by name."""


class ItemList(Sequence[Item]):
    """Items that are rows of one batch; each item is created on access and consists of views.

    Args:
        batch: Tensors by field, as `collate` returns them.
        item_type: Class of the items.
        as_arrays: Whether the fields of items are NumPy arrays and not tensors.
    """

    def __init__(
        self, batch: dict[str, Any], *, item_type: type[Item] = Item, as_arrays: bool = False
    ) -> None:
        self.batch = batch
        self._item_type = item_type
        self._as_arrays = as_arrays

    def __len__(self) -> int:
        return len(self.batch[_ids_name(self.batch)])

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
        batch = self.batch
        item = self._item_type(
            {
                name: field[row].numpy() if self._as_arrays else field[row]
                for name, field in batch.items()
                if name not in _OF_DOCUMENTS
            }
        )
        if "cu_seqlens" in batch:
            len_tokens = batch[_ids_name(batch)].shape[1]
            segments = row_segments(batch["cu_seqlens"].numpy(), row, len_tokens)
            item["cu_seqlens"] = segments if self._as_arrays else torch.from_numpy(segments)
            item["max_seqlen"] = int((segments[1:] - segments[:-1]).max())
        if "doc_lens" in batch:
            lens = batch["doc_lens"][row]
            lens = lens[lens > 0]
            item["doc_lens"] = lens.numpy() if self._as_arrays else lens
        return item


def _ids_name(fields: Mapping[str, Any]) -> str:
    """Returns the name of the token ids: that of `TokenDataset`, or that of tatm."""
    return "input_ids" if "input_ids" in fields else "token_ids"


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

    Items of one ``__getitems__`` call already form a batch, which is returned without a copy. In a
    ``DataLoader`` worker, stacked fields are in shared memory. ``doc_lens`` is padded with 0.

    Args:
        items: Items with the same fields and the same length.
        collate_fn_map: Passed by torch's ``collate``. Unused, because the types of all fields are known.

    Raises:
        ValueError: If there are no items, or their fields or lengths differ.
    """
    if isinstance(items, ItemList):
        return items.batch
    _check_alike(items)
    first = items[0]
    # A sample of a stream is a plain dict, in which every other name is a column.
    apart = _OF_DOCUMENTS if isinstance(first, Item) else ("cu_seqlens", "max_seqlen")
    batch = {name: default_collate([item[name] for item in items]) for name in first if name not in apart}
    if "cu_seqlens" in first:
        batch["cu_seqlens"] = joined_segments([torch.as_tensor(item["cu_seqlens"]) for item in items])
        batch["max_seqlen"] = max(item["max_seqlen"] for item in items)
    if "doc_lens" in first and "doc_lens" in apart:
        rows = [torch.as_tensor(item["doc_lens"]) for item in items]
        batch["doc_lens"] = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    return batch


def _check_alike(items: Sequence[Item]) -> None:
    if not items:
        raise ValueError("no items to collate; give at least one")
    first = items[0]
    ids = _ids_name(first)
    for i, item in enumerate(items):
        if item.keys() != first.keys():
            raise ValueError(
                f"item {i} has the fields {', '.join(item)}, item 0 has {', '.join(first)}; request the "
                "same fields from both datasets"
            )
        if ids in first and len(item[ids]) != len(first[ids]):
            raise ValueError(
                f"item {i} has {len(item[ids])} tokens, item 0 has {len(first[ids])}; "
                "give both datasets the same context_length"
            )


def joined_segments(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """Concatenates rows of boundaries. Each row starts with 0 and ends with its length."""
    starts = [0]
    for row in rows:
        starts.append(starts[-1] + int(row[-1]))
    shifted = [row[:-1] + start for row, start in zip(rows, starts, strict=False)]
    return torch.cat([*shifted, torch.tensor([starts[-1]], dtype=rows[0].dtype)])


def without_rows(batch: Any) -> Any:
    """Returns the same fields without rows, for a rank that has no items in a batch.

    Lists, which torch's collation makes of lists, keep their tensors. Numbers stay as they are.
    """
    if isinstance(batch, Mapping):
        empty = {name: without_rows(value) for name, value in batch.items()}
        if "cu_seqlens" in batch:
            empty["cu_seqlens"], empty["max_seqlen"] = torch.zeros(1, dtype=torch.int32), 0
        return empty
    if isinstance(batch, tuple):
        return tuple(without_rows(value) for value in batch)
    if isinstance(batch, list):
        return [without_rows(value) for value in batch if isinstance(value, torch.Tensor)]
    return batch[:0] if hasattr(batch, "__getitem__") else batch


default_collate_fn_map[Item] = collate
