"""`TokenDataset`: rows of inputs and labels for a language model, from pbins.

The compiled module determines the tokens of an item and writes them. `packtok.data.fields` allocates batches.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, overload

import numpy as np
import torch
from torch.utils.data import Dataset

from packtok._packtok import fill_from
from packtok.choices import check_choice
from packtok.data.collate import Item, ItemList
from packtok.data.fields import Fields, check_pin_memory
from packtok.data.split import Split
from packtok.data.token_items import DocumentMask, Labels, Packing, common_pad_token_id, token_items
from packtok.fingerprint import digest
from packtok.sources import Source, StrPath

__all__ = ["TokenDataset"]


class TokenDataset(Dataset[Item]):
    """Rows of ``context_length`` inputs with labels, from one pbin or several.

    Items are dicts of tensors. A whole batch comes from one call of `__getitems__`, which
    ``torch.utils.data.DataLoader`` uses automatically, and is collated without a copy.
    docs/guides/token_dataset.md lists all fields, and describes labels and padding for each packing.

    Args:
        paths: One pbin, or several whose documents are concatenated: a list, a folder, a glob or a manifest.
            Also the folder, metadata file or name of a described dataset. The files of tatm have no header,
            and can be packed by ``"concat"`` only.
        context_length: Number of inputs per item.
        packing: ``"concat"`` cuts the stream of all tokens every ``context_length`` tokens. ``"document"``
            makes one item of each document, cut or padded. ``"best_fit"`` combines documents so that every
            document that fits stays whole and padding is small; a longer document is split into full items
            and a remainder.
        labels: With ``"shifted"``, label ``t`` is the token after input ``t``. With ``"aligned"``, it is
            input ``t``, for models that shift labels themselves.
        position_ids: Whether to include the position of each input in its document.
        document_ids: Whether to include the index of each input's document in the row.
        cu_seqlens: Whether to include document boundaries (``cu_seqlens``, ``max_seqlen``) in the format of
            FlashAttention's functions for sequences of variable length.
        document_mask: ``"compact"`` includes the document of each input, from which `document_mask` computes
            the attention mask where it is needed; ``"dense"`` includes the bool matrix itself, which is
            large.
        loss_mask: Whether to include a mask of the labels that count for the loss.
        loss_markers: The begin and the end marker of the labels that count for the loss, as ids or as tokens
            of the tokenizer next to the data. A label counts if the last marker before it in its document is
            the begin marker, and it is no marker itself; all others are -100. A row that begins inside an
            answer continues it. Default: all labels count. Labels that a loss mask of the files excludes are
            always -100. See docs/guides/instruction_tuning.md.
        pad_token_id: Token id of padding. Default: the EOD id of the files, or 0 if it is unknown.
        dtype: Dtype of ids, labels and positions: ``torch.int64`` or ``torch.int32``.
        by_file: Whether ``"concat"`` items stay within one file, so that each file drops its last partial
            item.
        split: The side of a train/validation split to use. Default: all documents. With it, exactly one of
            the next three arguments selects the validation documents.
        validation_fraction: Approximate fraction of documents, selected by a hash of the tokens and
            ``split_seed``. A document stays on its side when data is added.
        validation_last: The last documents: a number if it is an int, a fraction if it is a float.
        validation_from: Index of the first validation document; all later documents are for validation too.
        split_seed: Determines which documents ``validation_fraction`` selects.
        cache_dir: Folder of ``"best_fit"`` plans and of splits. Default: next to the data or, if that folder
            is not writable, in the user's cache.
        verify: Whether to verify the files' checksums when data is first read.
        pin_memory: Whether to pin batches created in the main process, which needs CUDA. The DataLoader pins
            those of workers.
        eos_token: Id that ends every document in files without a header, such as tatm's. Default: the one
            that ``tokenizer.json`` next to them appends.
        format: The format of the files, as ``packtok convert --to`` names it. Default: their content says it.
        input_dtype: Type of the ids in files that do not record it, such as ``"uint16"``.
        boundaries: Where documents start in files that do not record it: ``"eos=ID"``, ``"bos=ID"`` or
            ``"file=PATH"``.

    Raises:
        ValueError: If an option is invalid, memory is to be pinned without a CUDA device, or there is no
            complete item.
        PbinFormatError: If a file is damaged.

    Example:
        >>> dataset = packtok.TokenDataset("train.pbin", 128, cu_seqlens=True)
        >>> loader = torch.utils.data.DataLoader(dataset, batch_size=8)
        >>> next(iter(loader))["input_ids"].shape
        torch.Size([8, 128])
        >>> held_out = packtok.TokenDataset("train.pbin", 128, split="validation", validation_fraction=0.1)
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
        document_mask: DocumentMask | None = None,
        loss_mask: bool = False,
        loss_markers: tuple[int | str, int | str] | None = None,
        pad_token_id: int | None = None,
        dtype: torch.dtype = torch.int64,
        by_file: bool = False,
        split: Split | None = None,
        validation_fraction: float | None = None,
        validation_last: int | float | None = None,
        validation_from: int | None = None,
        split_seed: int = 0,
        cache_dir: StrPath | None = None,
        verify: bool = False,
        pin_memory: bool = False,
        eos_token: int | None = None,
        format: str | None = None,
        input_dtype: str | None = None,
        boundaries: str | None = None,
    ) -> None:
        check_choice("dtype", dtype, (torch.int64, torch.int32))
        check_pin_memory(pin_memory=pin_memory)
        items = token_items(
            paths,
            context_length,
            packing=packing,
            labels=labels,
            position_ids=position_ids,
            document_ids=document_ids,
            cu_seqlens=cu_seqlens,
            document_mask=document_mask,
            loss_mask=loss_mask,
            loss_markers=loss_markers,
            pad_token_id=pad_token_id,
            by_file=by_file,
            split=split,
            validation_fraction=validation_fraction,
            validation_last=validation_last,
            validation_from=validation_from,
            split_seed=split_seed,
            cache_dir=cache_dir,
            verify=verify,
            eos_token=eos_token,
            format=format,
            input_dtype=input_dtype,
            boundaries=boundaries,
        )
        self._identity = items.identity
        self.packing = packing
        self._blocks = items.blocks
        field_dtypes = {
            "input_ids": dtype,
            "labels": dtype,
            "position_ids": dtype if position_ids else None,
            "document_ids": torch.int32 if document_ids or document_mask else None,
            "loss_mask": torch.bool if loss_mask else None,
        }
        self._fields = Fields(
            context_length=items.context_length,
            dtypes={name: dtype for name, dtype in field_dtypes.items() if dtype is not None},
            pad_token_id=items.pad_token_id,
            aligned=items.aligned,
            segments=cu_seqlens,
            document_mask=document_mask,
            pin_memory=pin_memory,
            loss_markers=items.loss_markers,
        )

    def __len__(self) -> int:
        return len(self._blocks)

    @overload
    def __getitem__(self, i: int, /) -> Item: ...
    @overload
    def __getitem__(self, i: slice, /) -> Sequence[Item]: ...
    def __getitem__(self, i: int | slice, /) -> Item | Sequence[Item]:
        """Returns item ``i``, or the items of a slice; negative indices count from the end."""
        if isinstance(i, slice):
            return self.__getitems__(range(len(self))[i])
        return self.__getitems__((i,))[0]

    def __getitems__(self, items: Sequence[int]) -> ItemList:
        """Returns the items as rows of one batch; each array is written once."""
        return self._fields.filled(len(items), partial(self._blocks.fill, items))

    @property
    def context_length(self) -> int:
        """Number of inputs per item."""
        return self._fields.context_length

    @property
    def pad_token_id(self) -> int:
        """Token id of padding."""
        return self._fields.pad_token_id

    @property
    def num_tokens(self) -> int:
        """Number of tokens in the files."""
        return self._blocks.num_tokens

    @property
    def num_documents(self) -> int:
        """Number of documents in the files."""
        return self._blocks.num_documents

    @property
    def num_dropped_tokens(self) -> int:
        """Number of tokens that are in no item, neither as input nor as label."""
        return self._blocks.num_dropped_tokens

    @property
    def num_padding_tokens(self) -> int:
        """Total number of padding inputs in all items."""
        return self._blocks.num_padding_tokens

    @property
    def fingerprint(self) -> str:
        """SHA-256, as hex, of everything that determines the tokens of each item: files and packing."""
        return digest([self._blocks.fingerprint, *self._identity])

    def locate(self, i: int) -> list[tuple[str, int, int, int]]:
        """Returns the documents in item ``i`` as (path, document in the file, start token, stop token)."""
        return self._blocks.locate(i)

    def prefetch(self, items: Iterable[int]) -> None:
        """Asks the operating system to read the pages of ``items``; does not wait for them."""
        self._blocks.prefetch(items)

    def advise(self, pattern: str) -> None:
        """Tells the operating system the access pattern: ``"normal"``, ``"sequential"`` or ``"random"``."""
        self._blocks.advise(pattern)

    def __repr__(self) -> str:
        return (
            f"TokenDataset({self._blocks!r}, context_length={self.context_length}, packing={self.packing!r})"
        )


class RowsOfMany:
    """Creates batches with rows from several datasets, which must have the same fields.

    Raises:
        ValueError: If their fields differ.
    """

    def __init__(self, datasets: Sequence[TokenDataset]) -> None:
        pad_token_id = common_pad_token_id(
            dataset.pad_token_id for dataset in datasets if dataset.packing != "concat"
        )
        alike = [replace(dataset._fields, pad_token_id=pad_token_id) for dataset in datasets]
        for i, fields in enumerate(alike):
            if fields != alike[0]:
                raise ValueError(
                    f"dataset {i} gives {fields}, dataset 0 {alike[0]}; create both with the same options"
                )
        self._fields = alike[0]
        self._blocks = [dataset._blocks for dataset in datasets]

    def __call__(self, sources: np.ndarray[Any, Any], items: np.ndarray[Any, Any]) -> ItemList:
        """Returns a batch whose row ``i`` is item ``items[i]`` of dataset ``sources[i]``."""
        return self._fields.filled(len(items), partial(fill_from, self._blocks, sources, items))
