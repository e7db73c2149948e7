"""The function behind `packtok sample import`."""

import os
from collections.abc import Callable
from typing import Any

from packtok._packtok import import_mds
from packtok.remedies import entry_point
from packtok.resuming import LOST_NOTE, explaining

__all__ = ["import_samples"]


@entry_point()
def import_samples(
    old: str | os.PathLike[str],
    new: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    size_limit: int = 1 << 26,
    compression: str | None = None,
    on_progress: Callable[[dict[str, int]], None] | None = None,
) -> dict[str, Any]:
    """Rewrites MDS folders whose columns are pickles of number arrays, as CEPE's scripts write them.

    Pickles are parsed, never loaded: only NumPy arrays of numbers and lists of them are read. A list becomes
    an array of shape (k, L), padded with zeros, and a column with the lengths of its rows.

    Args:
        old: An MDS folder, or a folder with MDS folders below it.
        new: The folder to write to, with the same folders below it. It appears when all of it is written.
        dtype: Type of token ids: ``"uint16"``, ``"uint32"``, ``"int32"`` or ``"int64"``. Default: the
            narrower of the first two that holds the ids of a folder.
        size_limit: The largest size of a shard file in bytes.
        compression: ``"zstd"`` or ``"zstd:LEVEL"``.
        on_progress: Receives the counts of `packtok.pack`, with samples as documents.

    Returns:
        ``output``, and ``folders``: for each its path below the output, samples, columns with their
        encodings, and bytes before and after.

    Raises:
        FileExistsError: If ``new`` exists.
        ValueError: If there is no folder to rewrite, or an id does not fit ``dtype``.
        PacktokError: If a pickle holds anything else, such as a dask graph or code. The message names it and
            the sample.
    """
    with explaining(lambda: LOST_NOTE):
        folders = import_mds(
            old, new, dtype=dtype, size_limit=size_limit, compression=compression, on_progress=on_progress
        )
    for folder in folders:
        folder["columns"] = dict(folder["columns"])
    return {"output": os.fspath(new), "folders": folders}
