"""`TokenDataset`: token files as rows of inputs and labels for a language model.

Which tokens an item has, and what is written for it, is the compiled module's matter; the memory of a batch
that of `packtok.data.fields`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, overload

import numpy as np
import torch
from torch.utils.data import Dataset

from packtok._packtok import Blocks, fill_from, find_or_plan
from packtok.collate import Item, ItemList
from packtok.data.fields import Fields
from packtok.data.split import Split, held_out, side_of
from packtok.fingerprint import digest
from packtok.integers import checked_integer
from packtok.sources import Source, StrPath, find_files, plan_folders

__all__ = ["TokenDataset"]

Packing = Literal["concat", "document", "best_fit"]
Labels = Literal["shifted", "aligned"]


class TokenDataset(Dataset[Item]):
    """Rows of ``context_length`` inputs with labels, from one pbin or many.

    Items are dicts of tensors; a whole batch comes from one call (`__getitems__`, which
    ``torch.utils.data.DataLoader`` uses by itself) and collates without a copy. docs/token_dataset.md has a
    table of all fields, and what labels and padding are for each packing.

    Args:
        paths: A pbin; or many, whose documents follow each other: a list, a folder, a glob or a manifest.
        context_length: Inputs of an item.
        packing: ``"concat"`` cuts the stream of all tokens every ``context_length`` tokens. ``"document"``
            makes one item of each document, cut or padded. ``"best_fit"`` puts documents together so that
            none is cut that fits and little is padded; longer ones become full items and a rest.
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
        split: Which side of a split of the documents to take; all documents if left out. One of the next
            three says what is held out for validation.
        validation_fraction: About this fraction, each document by a hash of its tokens and ``split_seed``: a
            document stays on its side whatever is added to the data.
        validation_last: The last documents: a number if it is an int, a share if it is a float.
        validation_from: All documents from this one on.
        split_seed: Decides which documents ``validation_fraction`` takes.
        cache_dir: Where plans of ``"best_fit"`` and splits are kept; beside the data, or in the user's cache
            where that cannot be written, if left out.
        verify: Whether data is compared with the files' checksums when it is first read.
        pin_memory: Whether batches made in the main process are pinned; those of workers the DataLoader pins.

    Raises:
        ValueError: If an option is wrong, or there is not one whole item.
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
        document_mask: Literal["compact", "dense"] | None = None,
        loss_mask: bool = False,
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
    ) -> None:
        _check_choice("packing", packing, ("concat", "document", "best_fit"))
        _check_choice("labels", labels, ("shifted", "aligned"))
        _check_choice("document_mask", document_mask, (None, "compact", "dense"))
        _check_choice("dtype", dtype, (torch.int64, torch.int32))
        _check_choice("split", split, (None, "train", "validation"))
        # Boundaries of segments are int32.
        context_length = checked_integer("context_length", context_length, least=1, below=1 << 31)
        if by_file and packing != "concat":
            raise ValueError(f"by_file needs packing 'concat', but packing is {packing!r}; remove by_file")
        rule = held_out(
            split,
            validation_fraction=validation_fraction,
            validation_last=validation_last,
            validation_from=validation_from,
            split_seed=split_seed,
        )
        self._told = [packing, context_length, by_file, split, rule]
        self.packing = packing
        files = find_files(paths)
        folders = plan_folders(files, cache_dir)
        documents: dict[str, Any] = {
            **files,
            "verify": verify,
            **side_of(files, split, rule, folders),
        }
        self._blocks = _packed(documents, packing, context_length, by_file, folders)
        if not len(self._blocks):
            raise ValueError(f"{self._blocks.paths[0]}: no documents to make items of; pack some first")
        asked = {
            "input_ids": dtype,
            "labels": dtype,
            "position_ids": dtype if position_ids else None,
            "document_ids": torch.int32 if document_ids or document_mask else None,
            "loss_mask": torch.bool if loss_mask else None,
        }
        self._fields = Fields(
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
        return digest([self._blocks.fingerprint, *self._told])

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
            return checked_integer("pad_token_id", asked, below=1 << 31)
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
            raise ValueError(
                f"the datasets pad with different ids {sorted(pads)}; use the same pad_token_id for all"
            )
        alike = [replace(dataset._fields, pad_token_id=max(pads, default=0)) for dataset in datasets]
        for i, fields in enumerate(alike):
            if fields != alike[0]:
                raise ValueError(
                    f"dataset {i} gives {fields}, dataset 0 {alike[0]}; create both with the same options"
                )
        self._fields = alike[0]
        self._blocks = [dataset._blocks for dataset in datasets]

    def __call__(self, sources: np.ndarray[Any, Any], items: np.ndarray[Any, Any]) -> ItemList:
        """A batch whose row ``i`` is item ``items[i]`` of dataset ``sources[i]``."""
        return self._fields.filled(len(items), partial(fill_from, self._blocks, sources, items))


def _packed(
    documents: dict[str, Any], packing: Packing, context_length: int, by_file: bool, folders: list[str]
) -> Blocks:
    """Items of ``documents``, which are arguments of `Blocks`; a plan is found or made if they need one."""
    if packing == "best_fit":
        whole = Blocks(**documents, packing="whole")
        plan_path = find_or_plan(whole, planner="best_fit", block_size=context_length, folders=folders)
        return Blocks(**documents, packing="planned", plan_path=str(plan_path))
    if packing == "document":
        # One token more than inputs: the label of the last.
        return Blocks(**documents, packing="document", block_size=context_length + 1)
    return Blocks(**documents, packing="rows", context_length=context_length, by_file=by_file)


def _check_choice(name: str, found: object, choices: Sequence[object]) -> None:
    if found not in choices:
        raise ValueError(f"{name} is {found!r}, expected {' or '.join(map(repr, choices))}")
