"""Modalities' datasets over pbins: the same arguments and items, in types that Modalities' models accept.

Responsible for torch's protocols and Modalities' names; which tokens an item has is worked out in the
compiled module.
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

# Where a plan lies and how items are given does not tell one dataset from another.
_CHANGES_ITEMS = ("packing", "overlap", "by_file")


class PackedMemMapDatasetBase(Dataset[dict[str, Tokens]]):
    """Documents: item i is ``{sample_key: document i, EOD included}``, a slice ``{sample_key: [documents]}``.

    Items are NumPy arrays of shape (tokens,): int32 copies, or int64 for files of four bytes a token. These
    are the types that Modalities' datasets return for files of two and four bytes, and that its collators and
    models accept. With ``zero_copy`` items are read-only views in the width of the file (uint8, uint16 or
    uint32), which an embedding does not accept. Indices and slices are those of a Python list. Pickles as
    paths and options; a process that unpickles the dataset reopens the files and reports replaced ones.

    Args:
        raw_data_path: A pbin; or many in a row: a list, a folder, a glob or a manifest of `packtok manifest`.
        sample_key: Key of the tokens in an item.
        load_index: Accepted for Modalities' sake; the index is always there and never loaded.
        dtype: Another integer type to copy items into: uint8, uint16, uint32, int32 or int64.
        zero_copy: Return read-only views of the mapped file instead of copies.
        verify: Check the data's checksums, each piece of 1 MiB when it is first read.

    Raises:
        OSError: If a file cannot be read.
        PbinFormatError: If a file is no pbin or is damaged.
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
        changes = {name: option for name, option in options.items() if name in _CHANGES_ITEMS}
        self.fingerprint = digest([self.blocks.fingerprint, self.block_size, changes])

    def __len__(self) -> int:
        """Number of items."""
        return len(self.blocks)

    @overload
    def __getitem__(self, idx: SupportsIndex) -> dict[str, Tokens]: ...
    @overload
    def __getitem__(self, idx: slice) -> dict[str, list[Tokens]]: ...
    def __getitem__(self, idx: Any) -> Any:
        """Item ``idx``, or the items of a slice in one list."""
        return {self.sample_key: self.blocks[idx]}

    def __getitems__(self, indices: Iterable[SupportsIndex]) -> list[dict[str, Tokens]]:
        """The items of ``indices``, as torch's fetcher asks for them."""
        sample_key, blocks = self.sample_key, self.blocks
        return [{sample_key: blocks[i]} for i in indices]

    def locate(self, idx: int) -> list[tuple[str, int, int, int]]:
        """The documents in item ``idx``: file, number in it, and start and stop in tokens of the document."""
        return self.blocks.locate(idx)


class PackedMemMapDatasetContinuous(PackedMemMapDatasetBase):
    """Blocks of ``block_size`` consecutive tokens, across documents; what is left at the end is not served.

    With ``reuse_last_target`` the last token of a block is the first of the next, so that a model, which is
    given all but a block's last token and is to predict all but its first, is given each token once. Of T
    tokens this makes ``(T - block_size) // (block_size - 1) + 1`` blocks, and ``T // block_size`` without.

    Args:
        raw_data_path: A pbin; or many: a list, a folder, a glob or a manifest of `packtok manifest`.
        sample_key: Key of the tokens in an item.
        block_size: Tokens of a block, at least 2.
        reuse_last_target: Whether blocks overlap by one token.
        load_index: Accepted for Modalities' sake; the index is always there and never loaded.
        dtype: As in `PackedMemMapDatasetBase`.
        zero_copy: As in `PackedMemMapDatasetBase`.
        by_file: Of many files: whether blocks stay within files, each of which then loses its tail; otherwise
            the files are one stream, and a block may end in the next file.
        verify: As in `PackedMemMapDatasetBase`.

    Raises:
        ValueError: If ``block_size`` is below 2 or exceeds the tokens there are.
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
    """Blocks of ``block_size`` consecutive tokens that start where a document starts.

    Whole documents are added to a block until the next would exceed ``block_size``; the block ends with as
    much of that document as fits, and the next block starts with the same document anew. A document longer
    than a block is cut after ``block_size`` tokens, and the next block starts with the document after it.
    Only blocks of ``block_size`` tokens are served: one that the end of the data would cut short is not.
    This is what Modalities' class of this name is meant to do; docs/packing.md has an example.

    Which tokens a block has is planned once, by one process while others wait, and kept in a file.

    Args:
        raw_data_path: A pbin; or many, which are one stream: a list, a folder, a glob or a manifest.
        sample_key: Key of the tokens in an item.
        block_size: Tokens of a block, at least 2.
        load_index: Accepted for the other classes' sake; the index is always there and never loaded.
        dtype: As in `PackedMemMapDatasetBase`.
        zero_copy: As in `PackedMemMapDatasetBase`.
        cache_dir: Where the plan is kept; otherwise beside the first file or, where that cannot be written
            to, in the user's cache.
        verify: As in `PackedMemMapDatasetBase`.

    Raises:
        ValueError: If ``block_size`` is below 2 or there is not one block.
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
        self.block_size = checked_integer("block_size", block_size, least=2)
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
        if not len(self):
            raise ValueError(
                f"{raw_data_path}: no document start is followed by block_size {block_size} tokens, the "
                f"data has {documents.num_tokens}"
            )


def _item_dtype(dtype: npt.DTypeLike | None, *, zero_copy: bool) -> npt.DTypeLike | None:
    """The ``dtype`` of `Blocks`: none for views, ``"index"`` for what embeddings accept."""
    if not zero_copy:
        return "index" if dtype is None else dtype
    if dtype is not None:
        raise ValueError(
            f"zero_copy=True returns views in the dtype of the file, but dtype={dtype!r} needs copies; "
            "remove one of them"
        )
    return None


class CombinedDataset(Dataset[Any]):
    """Datasets one behind the other: first all items of the first, then those of the second, and so on.

    Args:
        datasets: Map-style datasets; at least one.
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
        """What tells these datasets, in this order, from others.

        Raises:
            AttributeError: If one of them has no fingerprint.
        """
        return digest([dataset.fingerprint for dataset in self.datasets])  # type: ignore[attr-defined]

    def __len__(self) -> int:
        """Number of items of all datasets."""
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: SupportsIndex) -> Any:
        """Item ``idx``; a negative one counts from the end of the last dataset."""
        dataset, i = self._place(idx)
        return self.datasets[dataset][i]

    def __getitems__(self, indices: Iterable[SupportsIndex]) -> list[Any]:
        """The items of ``indices``, as torch's fetcher asks for them."""
        return [self[i] for i in indices]

    def locate(self, idx: int) -> list[tuple[str, int, int, int]]:
        """The documents in item ``idx``, as the dataset that it is of tells them."""
        dataset, i = self._place(idx)
        located: list[tuple[str, int, int, int]] = self.datasets[dataset].locate(i)  # type: ignore[attr-defined]
        return located

    def _place(self, idx: SupportsIndex) -> tuple[int, int]:
        """The dataset that holds item ``idx``, and which of its items that is."""
        i = idx.__index__()
        if i < 0:
            i += len(self)
        if not 0 <= i < len(self):
            raise IndexError(f"item {idx} is out of range, the dataset has {len(self)}")
        dataset = bisect_right(self.cumulative_sizes, i)
        return dataset, i - (self.cumulative_sizes[dataset - 1] if dataset else 0)
