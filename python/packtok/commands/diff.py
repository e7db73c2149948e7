"""Implements `packtok diff`: compares the documents of token files."""

import os
from pathlib import Path
from typing import Any

from packtok import _packtok
from packtok.progress import Progress
from packtok.remedies import entry_point
from packtok.sources import StrPath, token_files_at


@entry_point()
def diff(first: StrPath, second: StrPath, *, on_progress: Progress | None = None) -> dict[str, Any]:
    """Compares the documents of two token files or folders of them, of any formats and widths of ids.

    Args:
        first: A token file, or a folder of them, whose documents are in the order of its index, or of names.
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
    files, others = token_files_at(Path(first)), token_files_at(Path(second))
    return {
        "first": _described(first, files),
        "second": _described(second, others),
        "difference": _packtok.first_difference_of(files, others, on_progress),
    }


def _described(path: StrPath, files: list[str]) -> dict[str, Any]:
    readers = [_packtok.PbinReader(file) for file in files]
    return {
        "path": os.fspath(path),
        "documents": sum(map(len, readers)),
        "tokens": sum(reader.num_tokens for reader in readers),
    }
