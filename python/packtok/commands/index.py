"""Implements `packtok index`: writes where the lines of a JSONL file start, in the format of Modalities."""

from pathlib import Path
from typing import Any

from packtok import _packtok
from packtok.config.options import OPTIONS
from packtok.progress import Progress
from packtok.remedies import entry_point


@entry_point()
def index(
    src: str,
    index_path: str | None = None,
    *,
    on_bad_document: str = "fail",
    existing: str = "error",
    max_document_bytes: int = OPTIONS["max_document_bytes"].default,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Writes the raw index of a JSONL file and returns its counts.

    Args:
        src: The JSONL file.
        index_path: The index to write. Default: ``src`` with the suffix ``.idx``.
        on_bad_document: ``"fail"``, or ``"skip"`` to leave out bad lines.
        existing: ``"error"``, ``"skip"`` or ``"replace"``.
        max_document_bytes: A longer line is a bad document.
        on_progress: As in `packtok.pack`.

    Raises:
        DocumentError: If a line is bad and ``on_bad_document`` is ``"fail"``.
    """
    target = index_path if index_path is not None else str(Path(src).with_suffix(".idx"))
    if Path(target).resolve() == Path(src).resolve():
        raise ValueError(f"{src}: source and index are the same file; give another --index-path (index_path)")
    return _packtok.write_raw_index(
        src=src,
        index_path=target,
        on_bad_document=on_bad_document,
        existing=existing,
        max_document_bytes=max_document_bytes,
        on_progress=on_progress,
    )
