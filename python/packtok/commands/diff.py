"""Implements `packtok diff`: compares the documents of token files."""

import os
from dataclasses import astuple
from pathlib import Path
from typing import Any

from packtok import _packtok
from packtok.commands.convert import Reading, check_formats, described_files
from packtok.errors import PacktokError
from packtok.progress import Progress
from packtok.remedies import entry_point
from packtok.sources import StrPath, token_files_at


@entry_point()
def diff(
    first: StrPath,
    second: StrPath,
    *,
    format: str | None = None,
    input_dtype: str | None = None,
    boundaries: str | None = None,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Compares the documents of two token files or folders of them, of any formats and widths of ids.

    Args:
        first: A token file, or a folder of them, whose documents are in the order of its index, or of names;
            also a folder of tatm.
        second: Another one.
        format: As in `packtok.convert`, for the sides that are no pbins.
        input_dtype: As in `packtok.convert`, for these sides.
        boundaries: As in `packtok.convert`, for these sides.
        on_progress: As in `packtok.pack`.

    Returns:
        ``first`` and ``second``, each with ``path``, ``documents`` and ``tokens``; ``difference``, which is
        None if all documents are the same. Otherwise it is the first difference: ``document``; ``token``, the
        position in the document; and the ids there, ``first`` and ``second``. ``token`` is None if only one
        side has the document, and an id is None if that document is shorter.

    Raises:
        PbinFormatError: If a file is damaged.
    """
    check_formats("pbin", format)
    given = Reading(format, input_dtype, boundaries)
    (files, reading), (others, other_reading) = (_side(path, given) for path in (first, second))
    difference = _packtok.first_difference_of(
        files, others, astuple(reading), astuple(other_reading), on_progress
    )
    return {
        "first": _counts(first, files, reading),
        "second": _counts(second, others, other_reading),
        "difference": difference,
    }


def _side(path: StrPath, given: Reading) -> tuple[list[str], Reading]:
    """Returns the files of a side, and how they are read: other files than pbins as given."""
    as_it_is = given == Reading() or _is_of_pbins(path)
    return described_files(path, lambda _: None, Reading() if as_it_is else given)


def _is_of_pbins(path: StrPath) -> bool:
    try:
        readers = map(_packtok.PbinReader, token_files_at(Path(path)))
        return all(reader.dialect not in _packtok.TOKEN_FORMATS for reader in readers)
    except (PacktokError, OSError):
        return False


def _counts(path: StrPath, files: list[str], reading: Reading) -> dict[str, Any]:
    readers = [_packtok.PbinReader(file, *astuple(reading)) for file in files]
    return {
        "path": os.fspath(path),
        "documents": sum(map(len, readers)),
        "tokens": sum(reader.num_tokens for reader in readers),
    }
