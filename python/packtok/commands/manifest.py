"""Implements `packtok manifest`: lists token files, so that datasets open without opening the files."""

import os
from collections.abc import Sequence
from pathlib import Path

from packtok import _packtok
from packtok.choices import check_choice
from packtok.errors import ConfigError
from packtok.remedies import entry_point
from packtok.sources import StrPath, find_files


@entry_point()
def write_manifest(
    files: StrPath | Sequence[StrPath],
    output: StrPath,
    *,
    format: str | None = None,
    input_dtype: str | None = None,
    boundaries: str | None = None,
    existing: str = "error",
) -> dict[str, int]:
    """Writes the manifest of ``files`` atomically and returns ``files``, ``documents`` and ``tokens``.

    The manifest has one line per file, in the order given: its path relative to the manifest, ``file_bytes``,
    ``token_bytes``, ``documents``, ``tokens`` and ``trailer_crc32c``, which identifies the contents.

    Args:
        files: A token file, a folder of them, a glob, or a list of them.
        output: The manifest to write.
        format: As in `packtok.convert`. Datasets of the manifest need the same argument; and so for the next
            two.
        input_dtype: As in `packtok.convert`.
        boundaries: As in `packtok.convert`.
        existing: ``"error"``, or ``"replace"`` to replace an existing file.

    Raises:
        PacktokError: If files have different token widths or tokenizers, or one is damaged.
        FileExistsError: If the manifest exists.
    """
    check_choice("existing", existing, ("error", "replace"), ConfigError)
    # Always a list, because a single path could be a manifest, which is not a pbin.
    listed = [files] if isinstance(files, str | os.PathLike) else list(files)
    paths = find_files(listed)["paths"]
    # Symbolic links are not resolved, so that a tree of links can be moved as a whole.
    folder = os.path.dirname(os.path.abspath(output))
    names = [Path(os.path.relpath(path, folder)).as_posix() for path in paths]
    counts = _packtok.write_manifest(
        paths=paths,
        names=names,
        output=output,
        replace=existing == "replace",
        read_as=(format, input_dtype, boundaries),
    )
    return dict(zip(("files", "documents", "tokens"), counts, strict=True))
