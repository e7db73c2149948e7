"""Implements `packtok diff`: compares the documents of token files."""

import os
from dataclasses import astuple
from typing import Any

from packtok import _packtok
from packtok.commands.convert import Reading, described_files
from packtok.progress import Progress
from packtok.remedies import entry_point
from packtok.sources import StrPath


@entry_point()
def diff(first: StrPath, second: StrPath, *, on_progress: Progress | None = None) -> dict[str, Any]:
    """Compares the documents of two token files or folders of them, of any formats and widths of ids.

    Args:
        first: A token file, or a folder of them, whose documents are in the order of its index, or of names;
            also a folder of tatm.
        second: Another one.
        on_progress: As in `packtok.pack`.

    Returns:
        ``first`` and ``second``, each with ``path``, ``documents`` and ``tokens``; ``difference``, which is
        None if all documents are the same. Otherwise it is the first difference: ``document``; ``token``, the
        position in the document; and the ids there, ``first`` and ``second``. ``token`` is None if only one
        side has the document, and an id is None if that document is shorter.

    Raises:
        PbinFormatError: If a file is damaged.
    """
    sides = [described_files(path, lambda _: None) for path in (first, second)]
    (files, reading), (others, other_reading) = sides
    difference = _packtok.first_difference_of(
        files, others, astuple(reading), astuple(other_reading), on_progress
    )
    return {
        "first": _counts(first, files, reading),
        "second": _counts(second, others, other_reading),
        "difference": difference,
    }


def _counts(path: StrPath, files: list[str], reading: Reading) -> dict[str, Any]:
    readers = [_packtok.PbinReader(file, *astuple(reading)) for file in files]
    return {
        "path": os.fspath(path),
        "documents": sum(map(len, readers)),
        "tokens": sum(reader.num_tokens for reader in readers),
    }
