"""`TokenDataset`: token files as rows of inputs and labels for a language model.

Which tokens an item has, and what is written for it, is the compiled module's matter; here memory for a whole
batch is asked for once, filled by one call, and given out as tensors.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, overload

import numpy as np
import torch
from torch.utils.data import Dataset, get_worker_info

from packtok._packtok import Blocks, fill_from
from packtok.collate import Item, ItemList
from packtok.sources import Source, find_files

__all__ = ["TokenDataset", "document_mask"]

Packing = Literal["concat", "document", "best_fit"]
Labels = Literal["shifted", "aligned"]

# Fields begin where a cache line does, so that none is written by two cores' vector stores.
_ALIGNMENT_BYTES = 64


@dataclass(frozen=True)
class _Fields:
    """Which arrays a batch has and how they are written."""

    context_length: int
    dtypes: dict[str, torch.dtype]
    pad_token_id: int
    aligned: bool
    segments: bool
    document_mask: Literal["compact", "dense"] | None
    pin_memory: bool

    def filled(self, num_rows: int, fill: Callable[..., tuple[np.ndarray[Any, Any], int] | None]) -> ItemList:
        """A batch in new memory.

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
        """Unfilled tensors ``(num_rows, context_length)`` that share one new piece of memory."""
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
        """New memory: what a worker fills is shared, so that the batch is not copied on its way."""
        if get_worker_info() is not None:
            shared: torch.UntypedStorage = torch.UntypedStorage._new_shared(num_bytes)  # type: ignore[no-untyped-call]
            return shared
        return torch.empty(num_bytes, dtype=torch.uint8, pin_memory=self.pin_memory).untyped_storage()


class TokenDataset(Dataset[Item]):
    """Rows of ``context_length`` inputs with labels, from one pbin or many.

    Items are dicts of tensors; a whole batch comes from one call (`__getitems__`, which
    ``torch.utils.data.DataLoader`` uses by itself) and collates without a copy. docs/token_dataset.md has a
    table of all fields, and what labels and padding are for each packing.

    Args:
        paths: A pbin; or many, whose documents follow each other: a list, a folder, a glob or a manifest.
        context_length: Inputs of an item.
        packing: ``"concat"`` cuts the stream of all tokens every ``context_length`` tokens. ``"document"``
            makes one item of each document, cut or padded.
        labels: ``"shifted"``: label ``t`` is the token after input ``t``. ``"aligned"``: it is input ``t``,
            for models that shift inside.
        position_ids: Whether items tell the place of each input in its document.
        document_ids: Whether items tell which document of the row each input is of.
        cu_seqlens: Whether items tell the boundaries of documents (``cu_seqlens``, ``max_seqlen``), as
            FlashAttention's functions for sequences of variable length take them.
        document_mask: ``"compact"`` gives the document of each input, from which `document_mask` makes the
            matrix where it is needed; ``"dense"`` the boolean matrix itself, which is large.
        loss_mask: Whether items tell which labels are ones.
        pad_token_id: Input that fills rows up; the files' EOD id, or 0 if they do not say.
        dtype: ``torch.int64`` or ``torch.int32``, of ids, labels and positions.
        by_file: Whether with ``"concat"`` items stay within files, each losing its tail.
        verify: Whether data is compared with the files' checksums when it is first read.
        pin_memory: Whether batches made in the main process are pinned; those of workers the DataLoader pins.

    Raises:
        ValueError: If an option is wrong, or there is not one whole item.
        PbinFormatError: If a file is damaged.

    Example:
        >>> dataset = packtok.TokenDataset("train.pbin", 2048, cu_seqlens=True)  # doctest: +SKIP
        >>> loader = torch.utils.data.DataLoader(dataset, batch_size=8)  # doctest: +SKIP
    """

    def __init__(
        self,
        paths: Source,
        context_length: int,
        *,
        packing: Packing = "concat",
        labels: Labels = "shifted",
        position_ids: bool = False,
        document_ids: bool = False,
        cu_seqlens: bool = False,
        document_mask: Literal["compact", "dense"] | None = None,
        loss_mask: bool = False,
        pad_token_id: int | None = None,
        dtype: torch.dtype = torch.int64,
        by_file: bool = False,
        verify: bool = False,
        pin_memory: bool = False,
    ) -> None:
        _check_choice("packing", packing, ("concat", "document"))
        _check_choice("labels", labels, ("shifted", "aligned"))
        _check_choice("document_mask", document_mask, (None, "compact", "dense"))
        _check_choice("dtype", dtype, (torch.int64, torch.int32))
        if context_length < 1:
            raise ValueError(f"context_length is {context_length}, expected at least 1")
        self.packing = packing
        self._by_file = by_file
        self._blocks = Blocks(
            **find_files(paths),
            packing="fixed" if packing == "concat" else packing,
            block_size=context_length + 1,
            overlap=1 if packing == "concat" else 0,
            by_file=by_file,
            verify=verify,
        )
        asked = {
            "input_ids": dtype,
            "labels": dtype,
            "position_ids": dtype if position_ids else None,
            "document_ids": torch.int32 if document_ids or document_mask else None,
            "loss_mask": torch.bool if loss_mask else None,
        }
        self._fields = _Fields(
            context_length=context_length,
            dtypes={name: dtype for name, dtype in asked.items() if dtype is not None},
            pad_token_id=self._pad_token_id(pad_token_id),
            aligned=labels == "aligned",
            segments=cu_seqlens,
            document_mask=document_mask,
            pin_memory=pin_memory,
        )

    def __len__(self) -> int:
        return len(self._blocks)

    @overload
    def __getitem__(self, i: int, /) -> Item: ...
    @overload
    def __getitem__(self, i: slice, /) -> Sequence[Item]: ...
    def __getitem__(self, i: int | slice, /) -> Item | Sequence[Item]:
        """Item ``i``, or the items of a slice; negative ones count from the end."""
        if isinstance(i, slice):
            return self.__getitems__(range(len(self))[i])
        return self.__getitems__((i,))[0]

    def __getitems__(self, items: Sequence[int]) -> ItemList:
        """The items as rows of one batch, each array of which is written once."""
        return self._fields.filled(len(items), partial(self._blocks.fill, items))

    @property
    def context_length(self) -> int:
        """Inputs of an item."""
        return self._fields.context_length

    @property
    def pad_token_id(self) -> int:
        """Input that fills rows up."""
        return self._fields.pad_token_id

    @property
    def num_tokens(self) -> int:
        """Tokens of the files."""
        return self._blocks.num_tokens

    @property
    def num_documents(self) -> int:
        """Documents of the files."""
        return self._blocks.num_documents

    @property
    def num_dropped_tokens(self) -> int:
        """Tokens that are in no item, neither as input nor as label."""
        return self._blocks.num_dropped_tokens

    @property
    def num_padding_tokens(self) -> int:
        """Inputs of all items together that are padding."""
        return self._blocks.num_padding_tokens

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of what decides which tokens each item has: the files and how they are packed."""
        told = [self._blocks.fingerprint, self.packing, self.context_length, self._by_file]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    def locate(self, i: int) -> list[tuple[str, int, int, int]]:
        """The documents that item ``i`` has tokens of: (path, document in the file, start, stop)."""
        return self._blocks.locate(i)

    def prefetch(self, items: Iterable[int]) -> None:
        """Asks the system to read the pages of ``items``, and does not wait for them."""
        self._blocks.prefetch(items)

    def advise(self, pattern: str) -> None:
        """Tells the system how the files will be read: ``"normal"``, ``"sequential"`` or ``"random"``."""
        self._blocks.advise(pattern)

    def __repr__(self) -> str:
        return (
            f"TokenDataset({self._blocks!r}, context_length={self.context_length}, packing={self.packing!r})"
        )

    def _pad_token_id(self, asked: int | None) -> int:
        if asked is not None:
            return asked
        # Nothing is padded in "concat"; asking for the EOD id would open a file that only a manifest names.
        return 0 if self.packing == "concat" else self._blocks.eod_id or 0


class RowsOfMany:
    """Rows of one batch from several datasets, which must have the same fields.

    Raises:
        ValueError: If they do not.
    """

    def __init__(self, datasets: Sequence[TokenDataset]) -> None:
        pads = {dataset.pad_token_id for dataset in datasets if dataset.packing != "concat"}
        if len(pads) > 1:
            raise ValueError(f"the datasets pad with the ids {sorted(pads)}; give all the same pad_token_id")
        alike = [replace(dataset._fields, pad_token_id=max(pads, default=0)) for dataset in datasets]
        for i, fields in enumerate(alike):
            if fields != alike[0]:
                raise ValueError(
                    f"dataset {i} gives {fields}, dataset 0 {alike[0]}; make both with the same options"
                )
        self._fields = alike[0]
        self._blocks = [dataset._blocks for dataset in datasets]

    def __call__(self, sources: np.ndarray[Any, Any], items: np.ndarray[Any, Any]) -> ItemList:
        """A batch whose row ``i`` is item ``items[i]`` of dataset ``sources[i]``."""
        return self._fields.filled(len(items), partial(fill_from, self._blocks, sources, items))


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


def _check_choice(name: str, found: object, choices: Sequence[object]) -> None:
    if found not in choices:
        raise ValueError(f"{name} is {found!r}, expected {' or '.join(map(repr, choices))}")
