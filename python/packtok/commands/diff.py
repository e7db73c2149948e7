"""Implements `packtok diff`: compares the documents of two token files."""

import os
from typing import Any

from packtok import _packtok
from packtok.progress import Progress
from packtok.remedies import entry_point
from packtok.sources import StrPath


@entry_point()
def diff(first: StrPath, second: StrPath, *, on_progress: Progress | None = None) -> dict[str, Any]:
    """Compares the documents of two token files, of any formats and widths of ids.

    Args:
        first: A token file.
        second: Another one.
        on_progress: As in `packtok.pack`.

    Returns:
        ``first`` and ``second``, each with ``path``, ``documents`` and ``tokens``; ``difference``, which is
        None if all documents are the same. Otherwise it is the first difference: ``document``; ``token``, the
        position in the document; and the ids there, ``first`` and ``second``. ``token`` is None if only one
        file has the document, and an id is None if that document is shorter.

    Raises:
        PbinFormatError: If a file is damaged.
    """
    return {
        "first": _described(first),
        "second": _described(second),
        "difference": _packtok.first_difference_of(first, second, on_progress),
    }


def _described(path: StrPath) -> dict[str, Any]:
    reader = _packtok.PbinReader(path)
    return {"path": os.fspath(path), "documents": len(reader), "tokens": reader.num_tokens}
