"""tatm's dataset: items of tokens with the document of each, over files of tatm or packtok.

The compiled module determines the tokens and documents of an item and writes them.
"""

import difflib
import math
import operator
import os
from collections.abc import Mapping, Sequence
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
import torch
from torch.utils.data import Dataset

from packtok._packtok import Blocks, mask_of_item
from packtok.choices import check_choice
from packtok.compat.tatm.items import TatmItem, doc_lens_of_rows
from packtok.data.collate import ItemList
from packtok.data.fields import Fields
from packtok.data.raw_files import files_with_prefix, report_padding, separator_id, with_last_separator
from packtok.errors import ConfigError
from packtok.fingerprint import digest
from packtok.integers import checked_integer
from packtok.sources import StrPath

__all__ = ["ItemOptions", "TatmMemmapDataset"]

Split = Literal["train", "validation", "val"]
TokenOutputFormat = Literal["numpy", "torch"]

_TORCH_DTYPES = {"uint16": torch.uint16, "uint32": torch.uint32, "int64": torch.int64}
# The number of documents of an item that 16 bits can distinguish.
_MOST_SHORT_IDS = 1 << 16
# Fields by their names in the compiled module.
_NAMES = {"input_ids": "token_ids"}


class ItemOptions(TypedDict, total=False):
    """Options that select items and their fields; see `TatmMemmapDataset`."""

    chunked: bool
    eos_token: int | None
    token_output_format: TokenOutputFormat
    vocab_size: int | None
    create_doc_ids: bool
    create_doc_mask: bool
    position_ids: bool
    cu_seqlens: bool
    doc_lens: bool
    by_file: bool
    split: Split | None
    val_split_size: int | float | None


_FLAGS = ("chunked", "create_doc_ids", "create_doc_mask", "position_ids", "cu_seqlens", "doc_lens", "by_file")


def check_options(function: str, options: Mapping[str, Any]) -> None:
    """Checks the names of the options of a function, and those that are true or false.

    Raises:
        TypeError: If there is no such option; names the function and all options.
        ConfigError: If an option that is true or false is something else.
    """
    known = list(ItemOptions.__annotations__)
    for name, value in options.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{function}() has no option {name!r}, expected one of {', '.join(known)}{hint}")
        if name in _FLAGS and not isinstance(value, bool | np.bool_):
            raise ConfigError(f"{name} is {value!r}, expected True or False")


def _integer(i: object) -> int:
    """Returns the number of an item.

    Raises:
        TypeError: If it is no integer.
    """
    try:
        return operator.index(i)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"an item of get_dataset is selected by an integer, found {i!r}; for several, call "
            "dataset.__getitems__([0, 1]), or use torch.utils.data.Subset"
        ) from None


class TatmMemmapDataset(Dataset[TatmItem]):
    """Chunks of ``context_length`` tokens with the document of each token, as tatm's class of this name.

    Items are dicts whose keys are attributes too. All arrays have shape ``(context_length,)``:

    - ``token_ids``: uint16, or uint32 for files with four bytes per token.
    - ``document_ids``: number of the token's document in the item, from 0; uint16, or uint32 if
      ``context_length`` exceeds 65,536. The separator belongs to the document that it ends.
    - ``document_mask``: see `TatmItem`. It is computed when it is read.

    With ``token_output_format="torch"`` they are tensors, and ids are int64, which embeddings accept. An item
    at the end of its file is padded with token 0, whose document is the one after the last.

    Pickles as paths and sizes. Items can be read by several threads at once.

    Args:
        file_prefix: Start of the paths of the files; they are read in natural order.
        context_length: Number of tokens per item.
        dtype: Dtype of the tokens in files without a header: ``"uint8"``, ``"uint16"`` or ``"uint32"``.
        chunked: Whether items follow each other. If false, an item starts at every token.
        file_suffix: ``"bin"`` for files of tatm, which have no header; ``"pbin"`` for those of packtok.
        eos_token: Id that ends every document in files without a header. Default: the one that
            ``tokenizer.json`` next to the files appends.
        token_output_format: ``"numpy"`` or ``"torch"``.
        vocab_size: Value of the attribute of this name.
        create_doc_ids: Whether items have ``document_ids`` and ``document_mask``.
        create_doc_mask: Whether ``document_mask`` is computed with the item, so that it is collated too.
        position_ids: Whether items have the position of each token in its document, int64.
        cu_seqlens: Whether items have document boundaries, int32, and ``max_seqlen``, in the format of
            FlashAttention's functions for sequences of variable length. Padding is a sequence too.
        doc_lens: Whether items have the lengths of their documents, int32. Padding is a document too.
        by_file: Whether items stay within one file, as in tatm. If false, only the last item is padded.
        split: ``"train"``, or ``"validation"`` (or ``"val"``) for the last items. Needs ``val_split_size``.
        val_split_size: Number of validation items or, below 1, their fraction.

    Raises:
        ConfigError: If there are no files, or an option is invalid.
        PbinFormatError: If a file is damaged.

    Example:
        >>> dataset = packtok.get_dataset("train.pbin", 128, val_split_size=0.1, split="train")
        >>> dataset[0].token_ids.shape, dataset[0]["document_ids"].dtype
        ((128,), dtype('uint16'))
    """

    def __init__(
        self,
        file_prefix: StrPath,
        context_length: int,
        dtype: str = "uint16",
        *,
        file_suffix: str = "bin",
        **options: Unpack[ItemOptions],
    ) -> None:
        check_options(type(self).__name__, options)
        self._open(files_with_prefix(os.fspath(file_prefix), dtype, file_suffix), context_length, **options)

    @classmethod
    def of_files(
        cls, files: dict[str, Any], context_length: int, **options: Unpack[ItemOptions]
    ) -> "TatmMemmapDataset":
        """Returns the dataset of files that are known.

        Args:
            files: The arguments ``paths``, ``manifest`` or ``entries`` of `packtok._packtok.Blocks`.
            context_length: Number of tokens per item.
            **options: As those of the class.
        """
        dataset = cls.__new__(cls)
        dataset._open(files, context_length, **options)
        return dataset

    def _open(
        self,
        files: dict[str, Any],
        context_length: int,
        *,
        chunked: bool = True,
        eos_token: int | None = None,
        token_output_format: TokenOutputFormat = "numpy",
        vocab_size: int | None = None,
        create_doc_ids: bool = True,
        create_doc_mask: bool = False,
        position_ids: bool = False,
        cu_seqlens: bool = False,
        doc_lens: bool = False,
        by_file: bool = True,
        split: Split | None = None,
        val_split_size: int | float | None = None,
    ) -> None:
        # Document boundaries are int32.
        context_length = checked_integer("context_length", context_length, least=1, below=1 << 31)
        if vocab_size is not None:
            vocab_size = checked_integer("vocab_size", vocab_size)
        check_choice("token_output_format", token_output_format, ("numpy", "torch"), ConfigError)
        if create_doc_mask and not create_doc_ids:
            raise ConfigError("create_doc_mask needs create_doc_ids, from which it is computed")
        wants_documents = create_doc_ids or position_ids or cu_seqlens or doc_lens
        separator = separator_id(files, eos_token) if wants_documents and "entries" in files else None
        if separator == 0:
            files = with_last_separator(files)
        self._num_cut_tokens = report_padding(files)
        self._packing: dict[str, Any] = {
            "context_length": context_length,
            "overlap": 0 if chunked else context_length - 1,
            "by_file": by_file,
            "separator": separator,
        }
        self._blocks = Blocks(**files, packing="chunks", **self._packing)
        self._blocks.check_loss_columns()
        if not len(self._blocks):
            raise ConfigError(f"{self._blocks.paths[0]}: the files contain no tokens; tokenize some first")
        self.context_length = context_length
        self.vocab_size = vocab_size
        self._is_torch = token_output_format == "torch"
        self._create_doc_mask = create_doc_mask
        self._cu_seqlens, self._doc_lens = cu_seqlens, doc_lens
        self._wants_segments = cu_seqlens or doc_lens
        # Items of files with one byte per token are uint16 too.
        ids = "int64" if self._is_torch else "uint32" if self._blocks.dtype.itemsize == 4 else "uint16"
        documents = "int64" if self._is_torch else "uint16" if context_length <= _MOST_SHORT_IDS else "uint32"
        self._arrays = {"input_ids": np.dtype(ids)}
        if create_doc_ids:
            self._arrays["document_ids"] = np.dtype(documents)
        if position_ids:
            self._arrays["position_ids"] = np.dtype("int64")
        self._fields = Fields(
            context_length=context_length,
            dtypes={name: _TORCH_DTYPES[dtype.name] for name, dtype in self._arrays.items()},
            pad_token_id=0,
            aligned=False,
            segments=self._wants_segments,
            document_mask=None,
            pin_memory=False,
        )
        self._first_validation: int | None = None
        self.split: Literal["train", "validation"] | None = None
        if val_split_size is not None:
            self.create_split(val_split_size)
        self.set_split(split)

    def __len__(self) -> int:
        return len(self._range())

    def __getitem__(self, i: int) -> TatmItem:
        """Returns item ``i`` of the split; negative indices count from the end.

        Raises:
            IndexError: If the split has no such item.
            TypeError: If ``i`` is no integer, such as a slice.
        """
        ordinals = self._ordinals((i,))
        arrays: dict[str, Any] = {
            name: np.empty((1, self.context_length), dtype) for name, dtype in self._arrays.items()
        }
        segments = self._blocks.fill(ordinals, **arrays, segments=self._wants_segments, number_padding=True)
        item = TatmItem()
        for name, array in arrays.items():
            row = array[0]
            item[_NAMES.get(name, name)] = torch.from_numpy(row) if self._is_torch else row
        if segments is not None:
            self._add_documents(item, *segments)
        if self._create_doc_mask:
            _ = item["document_mask"]
        return item

    def __getitems__(self, items: Sequence[int]) -> ItemList:
        """Returns the items as rows of one batch; each array is written once."""
        ordinals = self._ordinals(items)
        fill = partial(self._blocks.fill, ordinals, number_padding=True)
        filled = self._fields.filled(len(ordinals), fill).batch
        batch = {_NAMES.get(name, name): field for name, field in filled.items()}
        if self._doc_lens:
            batch["doc_lens"] = doc_lens_of_rows(batch["cu_seqlens"], self.context_length)
        if self._wants_segments and not self._cu_seqlens:
            del batch["cu_seqlens"], batch["max_seqlen"]
        if self._create_doc_mask:
            masks = [mask_of_item(ids) for ids in batch["document_ids"].numpy()]
            batch["document_mask"] = torch.from_numpy(np.stack(masks))
        return ItemList(batch, item_type=TatmItem, as_arrays=not self._is_torch)

    def num_tokens(self) -> int:
        """Returns the number of tokens in the files, without padding."""
        return self._blocks.num_tokens

    def num_files(self) -> int:
        """Returns the number of files."""
        return len(self._blocks.paths)

    @property
    def paths(self) -> list[Path]:
        """Paths of the files, in order."""
        return self._blocks.paths

    @property
    def num_cut_tokens(self) -> int:
        """Number of zeros at the ends of files that are padding of tatm and are not read."""
        return self._num_cut_tokens

    @property
    def num_padding_tokens(self) -> int:
        """Number of padding tokens in all items."""
        return self._blocks.num_padding_tokens

    @property
    def fingerprint(self) -> str:
        """SHA-256, as hex, of what determines the tokens of each item.

        Files without a header have no checksum, so only their names and lengths count.
        """
        return digest([self._blocks.fingerprint, self._packing, self.split, self._first_validation])

    def create_split(self, split_size: int | float = 0.1) -> None:
        """Makes the last items those for validation; `set_split` selects a side.

        Args:
            split_size: Their number or, below 1, their fraction, rounded up.

        Raises:
            ConfigError: If it is negative, or exceeds the number of items.
        """
        num_items = len(self._blocks)
        is_number = isinstance(split_size, Real) and not isinstance(split_size, bool)
        size = -1
        if is_number and math.isfinite(split_size):
            size = math.ceil(num_items * split_size) if split_size < 1 else int(split_size)
        if not 0 <= size <= num_items or split_size < 0 or (split_size >= 1 and size != split_size):
            raise ConfigError(
                f"val_split_size is {split_size!r}, expected a number of items up to {num_items:,}, or a "
                "fraction from 0 to 1"
            )
        self._first_validation = num_items - size

    def set_split(self, split: Split | None = None) -> None:
        """Selects the items of one side; ``None`` selects all.

        Raises:
            ConfigError: If there is no such side, or the dataset is not split.
        """
        check_choice("split", split, ("train", "validation", "val", None), ConfigError)
        if split is not None and self._first_validation is None:
            raise ConfigError(
                f"split is {split!r}, but val_split_size is missing; give it, or call create_split"
            )
        self.split = "validation" if split == "val" else split

    def locate(self, i: int) -> list[tuple[str, int, int, int]]:
        """Returns the documents in item ``i`` as (path, document in the file, start token, stop token).

        A file without a header counts as one document.
        """
        return self._blocks.locate(self._ordinals((i,))[0])

    def __repr__(self) -> str:
        return (
            f"TatmMemmapDataset({self._blocks!r}, context_length={self.context_length}, split={self.split})"
        )

    def _add_documents(self, item: TatmItem, segments: np.ndarray[Any, Any], max_seqlen: int) -> None:
        """Adds the fields that follow from the boundaries ``segments`` of the documents."""
        if self._cu_seqlens:
            item["cu_seqlens"] = torch.from_numpy(segments) if self._is_torch else segments
            item["max_seqlen"] = max_seqlen
        if self._doc_lens:
            lens = np.diff(segments)
            item["doc_lens"] = torch.from_numpy(lens) if self._is_torch else lens

    def _range(self) -> range:
        """Returns the range that the split has in all items."""
        num_items = len(self._blocks)
        if self.split is None or self._first_validation is None:
            return range(num_items)
        if self.split == "train":
            return range(self._first_validation)
        return range(self._first_validation, num_items)

    def _ordinals(self, items: Sequence[int]) -> list[int]:
        """Returns the numbers that items of the split have among all items.

        Raises:
            IndexError: If the split has no such item.
        """
        of_split = self._range()
        ordinals = []
        for i in items:
            try:
                ordinals.append(of_split[_integer(i)])
            except IndexError:
                raise IndexError(f"item {i} is out of range, there are {len(of_split):,} items") from None
        return ordinals
