"""Items of `TatmMemmapDataset`, and tatm's name of the function that makes batches of them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.data._utils.collate import default_collate_fn_map

from packtok._packtok import mask_of_item
from packtok.data.collate import Item, collate

__all__ = ["TatmItem", "torch_collate_fn"]


class TatmItem(Item):
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
    """Returns a batch of items, as `packtok.collate.collate`, which torch's default collation uses."""
    return collate(batch, collate_fn_map=collate_fn_map)


# torch would also find the entry of the base class, but more slowly.
default_collate_fn_map[TatmItem] = collate
