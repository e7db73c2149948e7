"""The function of `packtok manifest`: a list of pbins by which datasets open without touching them."""

import os
from collections.abc import Sequence
from pathlib import Path

from packtok import _packtok
from packtok.errors import ConfigError
from packtok.sources import StrPath, find_files


def write_manifest(
    files: StrPath | Sequence[StrPath], output: StrPath, *, existing: str = "error"
) -> dict[str, int]:
    """Writes the manifest of ``files`` in one step and returns ``files``, ``documents`` and ``tokens``.

    A line for each file, in this order: its path relative to the manifest, ``file_bytes``, ``token_bytes``,
    ``documents``, ``tokens``, and ``trailer_crc32c``, which stands for the whole content.

    Args:
        files: A pbin, a folder of ``*.pbin``, a glob, or a list of them.
        output: The manifest.
        existing: ``"error"``, or ``"replace"`` to put it in the place of a file of its name.

    Raises:
        PacktokError: If files have different token widths or tokenizers, or one is damaged.
        FileExistsError: If the manifest is there already.
    """
    if existing not in ("error", "replace"):
        raise ConfigError(f"existing is {existing!r}, expected 'error' or 'replace'")
    # A list: a single path may be a manifest, which is no pbin.
    listed = [files] if isinstance(files, str | os.PathLike) else list(files)
    paths = find_files(listed)["paths"]
    # Links are not followed, so that a tree of links can be moved as a whole.
    folder = os.path.dirname(os.path.abspath(output))
    names = [Path(os.path.relpath(path, folder)).as_posix() for path in paths]
    counts = _packtok.write_manifest(paths=paths, names=names, output=output, replace=existing == "replace")
    return dict(zip(("files", "documents", "tokens"), counts, strict=True))
