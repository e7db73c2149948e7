"""Modalities' datasets over pbins: the same arguments and items, with dtypes that Modalities' models accept.

This module implements torch's protocols and Modalities' names. The compiled module determines the tokens of
an item.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, SupportsIndex, overload

import numpy.typing as npt
from torch.utils.data import Dataset

from packtok._packtok import Blocks, find_or_plan
from packtok.fingerprint import digest
from packtok.integers import checked_integer
from packtok.sources import Files, Source, StrPath, find_files, plan_folders

__all__ = [
    "CombinedDataset",
    "PackedMemMapDatasetBase",
    "PackedMemMapDatasetContinuous",
    "PackedMemMapDatasetMegatron",
]

Tokens = npt.NDArray[Any]

# Options that change the items. The path of the plan and the dtype do not identify a dataset.
_CHANGES_ITEMS = ("packing", "overlap", "by_file")


class PackedMemMapDatasetBase(Dataset[dict[str, Tokens]]):
    """Documents as items: ``dataset[i]`` is ``{sample_key: document i, with EOD}``.

    A slice is ``{sample_key: [documents]}``.

    Items are NumPy arrays of shape ``(tokens,)``. By default they are copies as int32, or as int64 for files
    with four bytes per token. Modalities' datasets return the same dtypes for files with two and four bytes
    per token, and its collators and models accept them. With ``zero_copy``, items are read-only views in the
    dtype of the file (uint8, uint16 or uint32), which embeddings do not accept. Indices and slices work as in
    a Python list. Pickles as paths and options; unpickling reopens the files and reports files that were
    replaced.

    Args:
        raw_data_path: One pbin, or several in a row: a list, a folder, a glob or a manifest of `packtok
            manifest`.
        sample_key: Key of the tokens in an item.
        load_index: Ignored; accepted for compatibility with Modalities.
        dtype: Integer dtype of the copies: uint8, uint16, uint32, int32 or int64.
        zero_copy: Whether to return read-only views of the mapped file instead of copies.
        verify: Whether to verify the checksum of each 1 MiB of data when it is first read.

    Raises:
        OSError: If a file cannot be read.
        PbinFormatError: If a file is not a pbin or is damaged.
        ValueError: If ``dtype`` and ``zero_copy`` are both given.
    """

    blocks: Blocks
    block_size: int | None = None

    def __init__(
        self,
        raw_data_path: Source,
        sample_key: str,
        load_index: bool | None = True,
        *,
        dtype: npt.DTypeLike | None = None,
        zero_copy: bool = False,
        verify: bool = False,
    ) -> None:
        files = find_files(raw_data_path)
        self._open(
            raw_data_path,
            sample_key,
            files,
            packing="whole",
            dtype=_item_dtype(dtype, zero_copy=zero_copy),
            verify=verify,
        )

    def _open(self, raw_data_path: Source, sample_key: str, files: Files, **options: Any) -> None:
        self.raw_data_path = raw_data_path
        self.sample_key = sample_key
        self.blocks = Blocks(**files, **options)
        self.blocks.check_loss_columns()
        changes = {name: option for name, option in options.items() if name in _CHANGES_ITEMS}
        self.fingerprint = digest([self.blocks.fingerprint, self.block_size, changes])

    @property
    def token_size_in_bytes(self) -> int:
        """Bytes per token in the files: 1, 2 or 4."""
        return self.blocks.token_bytes

    def __len__(self) -> int:
        """Number of items."""
        return len(self.blocks)

    @overload
    def __getitem__(self, idx: SupportsIndex) -> dict[str, Tokens]: ...
    @overload
    def __getitem__(self, idx: slice) -> dict[str, list[Tokens]]: ...
    def __getitem__(self, idx: Any) -> Any:
        """Returns item ``idx``, or the items of a slice in one list."""
        return {self.sample_key: self.blocks[idx]}

    def __getitems__(self, indices: Iterable[SupportsIndex]) -> list[dict[str, Tokens]]:
        """Returns the items of ``indices``; called by torch's fetcher."""
        sample_key, blocks = self.sample_key, self.blocks
        return [{sample_key: blocks[i]} for i in indices]

    def locate(self, idx: int) -> list[tuple[str, int, int, int]]:
        """Returns the documents in item ``idx`` as (path, document in the file, start token, stop token)."""
        return self.blocks.locate(idx)


class PackedMemMapDatasetContinuous(PackedMemMapDatasetBase):
    """Blocks of ``block_size`` consecutive tokens, across documents; the last partial block is dropped.

    With ``reuse_last_target``, the last token of a block is the first of the next. A model that gets all but
    the last token of a block and predicts all but the first then predicts each token once. A file of T tokens
    has ``(T - block_size) // (block_size - 1) + 1`` blocks with it, and ``T // block_size`` without.

    Args:
        raw_data_path: One pbin, or several: a list, a folder, a glob or a manifest of `packtok manifest`.
        sample_key: Key of the tokens in an item.
        block_size: Tokens per block, at least 2.
        reuse_last_target: Whether blocks overlap by one token.
        load_index: Ignored; accepted for compatibility with Modalities.
        dtype: As in `PackedMemMapDatasetBase`.
        zero_copy: As in `PackedMemMapDatasetBase`.
        by_file: Whether blocks of several files stay within one file, so that each file drops its last
            partial block. Otherwise the files form one stream, and a block may continue in the next file.
        verify: As in `PackedMemMapDatasetBase`.

    Raises:
        ValueError: If ``block_size`` is below 2 or exceeds the number of tokens.
    """

    def __init__(
        self,
        raw_data_path: Source,
        sample_key: str,
        block_size: int,
        reuse_last_target: bool,
        load_index: bool | None = False,
        *,
        dtype: npt.DTypeLike | None = None,
        zero_copy: bool = False,
        by_file: bool = False,
        verify: bool = False,
    ) -> None:
        self.block_size = checked_integer("block_size", block_size, least=2)
        self.reuse_last_target = reuse_last_target
        self._open(
            raw_data_path,
            sample_key,
            find_files(raw_data_path),
            packing="fixed",
            block_size=self.block_size,
            overlap=int(reuse_last_target),
            by_file=by_file,
            dtype=_item_dtype(dtype, zero_copy=zero_copy),
            verify=verify,
        )


class PackedMemMapDatasetMegatron(PackedMemMapDatasetBase):
    """Blocks of ``block_size`` consecutive tokens, each of which starts at the start of a document.

    Whole documents are added to a block until the next one would exceed ``block_size``. The block ends with
    as much of that document as fits, and the next block starts with the same document again. A document
    longer than a block is cut after ``block_size`` tokens, and the next block starts with the following
    document. A block that the end of the data would cut short is dropped, so that a ``block_size`` beyond
    the data gives a dataset without items, as in Modalities. This is the intended behavior of Modalities'
    class of the same name; docs/reference/packings_and_splits.md has an example.

    The assignment of tokens to blocks is planned once, by one process while others wait, and stored in a
    file.

    Args:
        raw_data_path: One pbin, or several that form one stream: a list, a folder, a glob or a manifest.
        sample_key: Key of the tokens in an item.
        block_size: Tokens per block, at least 1.
        load_index: Ignored; accepted for compatibility with the other classes.
        dtype: As in `PackedMemMapDatasetBase`.
        zero_copy: As in `PackedMemMapDatasetBase`.
        cache_dir: Folder of the plan. Default: next to the first file or, if that folder is not writable, in
            the user's cache.
        verify: As in `PackedMemMapDatasetBase`.

    Raises:
        ValueError: If ``block_size`` is below 1.
    """

    def __init__(
        self,
        raw_data_path: Source,
        sample_key: str,
        block_size: int,
        load_index: bool | None = False,
        *,
        dtype: npt.DTypeLike | None = None,
        zero_copy: bool = False,
        cache_dir: StrPath | None = None,
        verify: bool = False,
    ) -> None:
        self.block_size = checked_integer("block_size", block_size, least=1)
        files = find_files(raw_data_path)
        documents = Blocks(**files, packing="whole")
        folders = plan_folders(files, cache_dir)
        plan_path = find_or_plan(documents, planner="megatron", block_size=self.block_size, folders=folders)
        self._open(
            raw_data_path,
            sample_key,
            files,
            packing="planned",
            plan_path=str(plan_path),
            dtype=_item_dtype(dtype, zero_copy=zero_copy),
            verify=verify,
        )


def _item_dtype(dtype: npt.DTypeLike | None, *, zero_copy: bool) -> npt.DTypeLike | None:
    """Returns the ``dtype`` of `Blocks`: ``None`` for views, ``"index"`` for what embeddings accept."""
    if not zero_copy:
        return "index" if dtype is None else dtype
    if dtype is not None:
        raise ValueError(
            f"zero_copy=True returns views in the dtype of the file, but dtype={dtype!r} needs copies; "
            "remove one of them"
        )
    return None


class CombinedDataset(Dataset[Any]):
    """Concatenates datasets: all items of the first, then those of the second, and so on.

    Args:
        datasets: Map-style datasets, at least one.
    """

    def __init__(self, datasets: Sequence[Dataset[Any]]) -> None:
        if isinstance(datasets, Dataset):
            raise TypeError(f"datasets is one {type(datasets).__name__}, expected a list of datasets")
        if not datasets:
            raise ValueError("the list of datasets is empty; give at least one")
        self.datasets = list(datasets)
        self.cumulative_sizes = list(accumulate(len(dataset) for dataset in self.datasets))  # type: ignore[arg-type]

    @property
    def fingerprint(self) -> str:
        """Digest of the fingerprints of the datasets, in their order.

        Raises:
            AttributeError: If one of them has no fingerprint.
        """
        return digest([dataset.fingerprint for dataset in self.datasets])  # type: ignore[attr-defined]

    def __len__(self) -> int:
        """Total number of items."""
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: SupportsIndex) -> Any:
        """Returns item ``idx``; negative indices count from the end of the last dataset."""
        dataset, i = self._place(idx)
        return self.datasets[dataset][i]

    def __getitems__(self, indices: Iterable[SupportsIndex]) -> list[Any]:
        """Returns the items of ``indices``; called by torch's fetcher."""
        return [self[i] for i in indices]

    def locate(self, idx: int) -> list[tuple[str, int, int, int]]:
        """Returns the documents in item ``idx``, in the format of its dataset's ``locate``."""
        dataset, i = self._place(idx)
        located: list[tuple[str, int, int, int]] = self.datasets[dataset].locate(i)  # type: ignore[attr-defined]
        return located

    def _place(self, idx: SupportsIndex) -> tuple[int, int]:
        """Returns the index of the dataset that contains item ``idx``, and the item's index in it."""
        i = idx.__index__()
        if i < 0:
            i += len(self)
        if not 0 <= i < len(self):
            raise IndexError(f"item {idx} is out of range, the dataset has {len(self)}")
        dataset = bisect_right(self.cumulative_sizes, i)
        return dataset, i - (self.cumulative_sizes[dataset - 1] if dataset else 0)
