"""Items of `TatmMemmapDataset`, and batches of them."""

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import torch
from torch.utils.data import default_collate
from torch.utils.data._utils.collate import default_collate_fn_map

from packtok._packtok import mask_of_item
from packtok.data.collate import joined_segments, row_segments

__all__ = ["TatmItem", "TatmItems", "torch_collate_fn"]

# Values that have no row for each item.
_OF_DOCUMENTS = ("cu_seqlens", "max_seqlen", "doc_lens")


class TatmItem(dict[str, Any]):
    """One item: its fields by key and as attributes.

    ``document_mask`` is computed from ``document_ids`` when it is first read. It is bool, of shape
    ``(context_length, context_length)``; queries precede keys. A token attends to itself and to the tokens
    before it in its document.
    """

    def __missing__(self, name: str) -> Any:
        if name != "document_mask" or "document_ids" not in self:
            raise KeyError(name)
        ids = self["document_ids"]
        if isinstance(ids, torch.Tensor):
            self[name] = torch.from_numpy(mask_of_item(ids.numpy()))
        else:
            self[name] = mask_of_item(ids)
        return self[name]

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the item has no field {name!r}, only {', '.join(self)}") from None


class TatmItems(Sequence[TatmItem]):
    """Items that are rows of one batch of tensors; each item is created on access and consists of views.

    Args:
        batch: Tensors by field, as `torch_collate_fn` returns them.
        is_torch: Whether the fields of items are tensors and not arrays.
    """

    def __init__(self, batch: dict[str, Any], *, is_torch: bool) -> None:
        self.batch = batch
        self._is_torch = is_torch

    def __len__(self) -> int:
        return len(self.batch["token_ids"])

    @overload
    def __getitem__(self, i: int, /) -> TatmItem: ...
    @overload
    def __getitem__(self, i: slice, /) -> list[TatmItem]: ...
    def __getitem__(self, i: int | slice, /) -> TatmItem | list[TatmItem]:
        if isinstance(i, slice):
            return [self._item(row) for row in range(len(self))[i]]
        return self._item(range(len(self))[i])

    def _item(self, row: int) -> TatmItem:
        item = TatmItem(
            (name, field[row] if self._is_torch else field[row].numpy())
            for name, field in self.batch.items()
            if name not in _OF_DOCUMENTS
        )
        if "cu_seqlens" in self.batch:
            len_tokens = self.batch["token_ids"].shape[1]
            segments = row_segments(self.batch["cu_seqlens"].numpy(), row, len_tokens)
            item["cu_seqlens"] = torch.from_numpy(segments) if self._is_torch else segments
            item["max_seqlen"] = int(np.diff(segments).max())
        if "doc_lens" in self.batch:
            lens = self.batch["doc_lens"][row]
            lens = lens[lens > 0]
            item["doc_lens"] = lens if self._is_torch else lens.numpy()
        return item


def doc_lens_of_rows(cu_seqlens: torch.Tensor, len_tokens: int) -> torch.Tensor:
    """Returns the lengths of the documents of each row, padded with 0.

    Args:
        cu_seqlens: Boundaries of the documents in the concatenated rows; every start of a row is one.
        len_tokens: Tokens of a row.

    Returns:
        int32 tensor of shape ``(rows, documents of the row with most)``.
    """
    starts = cu_seqlens[:-1].long()
    rows = starts.div(len_tokens, rounding_mode="floor")
    num_rows = int(cu_seqlens[-1]) // len_tokens
    if not num_rows:
        return torch.zeros((0, 0), dtype=torch.int32)
    first_of_row = torch.searchsorted(rows, torch.arange(num_rows))
    columns = torch.arange(len(rows)) - first_of_row[rows]
    lens = torch.zeros((num_rows, int(columns.max()) + 1), dtype=torch.int32)
    lens[rows, columns] = cu_seqlens.diff().int()
    return lens


def torch_collate_fn(batch: Sequence[TatmItem], *, collate_fn_map: object = None) -> dict[str, Any]:
    """Returns a batch of items: a dict of stacked tensors, with the dtypes of the items.

    Torch's default collation uses it for items of `TatmMemmapDataset`. ``cu_seqlens`` covers the concatenated
    rows, and ``doc_lens`` is padded with 0.

    Args:
        batch: Items with the same fields. Those of one ``__getitems__`` call are a batch already, which is
            returned without a copy.
        collate_fn_map: Passed by torch's ``collate``. Unused, because the types of all fields are known.

    Raises:
        ValueError: If there are no items, or their fields differ.
    """
    if isinstance(batch, TatmItems):
        return batch.batch
    if not batch:
        raise ValueError("no items to collate; give at least one")
    first = batch[0]
    for i, item in enumerate(batch):
        if item.keys() != first.keys():
            raise ValueError(
                f"item {i} has the fields {', '.join(item)}, item 0 has {', '.join(first)}; request the "
                "same fields from both datasets"
            )
    collated: dict[str, Any] = {
        name: default_collate([item[name] for item in batch]) for name in first if name not in _OF_DOCUMENTS
    }
    if "cu_seqlens" in first:
        cu_seqlens = joined_segments([torch.as_tensor(item["cu_seqlens"]) for item in batch])
        collated["cu_seqlens"] = cu_seqlens
        collated["max_seqlen"] = max(item["max_seqlen"] for item in batch)
    if "doc_lens" in first:
        rows = [torch.as_tensor(item["doc_lens"]) for item in batch]
        collated["doc_lens"] = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    return collated


default_collate_fn_map[TatmItem] = torch_collate_fn
