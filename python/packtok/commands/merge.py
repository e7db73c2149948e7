"""Implements `packtok merge`: resolves files, folders and the tokenizer for the compiled module."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from packtok import _packtok
from packtok.errors import ConfigError
from packtok.progress import Progress
from packtok.remedies import entry_point
from packtok.sources import StrPath
from packtok.tokenizer.find import TOKENIZER_FILE, find_tokenizer


@entry_point()
def merge(
    parts: StrPath | Sequence[StrPath],
    output: str,
    *,
    existing: str = "error",
    tokenizer: str | None = None,
    add_special_tokens_from_config: bool = False,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Joins pbins into one, in the order given, and returns the counts.

    Args:
        parts: A file or a folder, or a list of them. A folder stands for every ``*.pbin`` below it, in
            natural order.
        output: The file to write. It is not a part, even if a folder contains it.
        existing: ``"error"``, ``"skip"`` or ``"replace"``.
        tokenizer: Tokenizer of the parts that do not record it themselves.
        add_special_tokens_from_config: As in `packtok.pack`, for ``tokenizer``.
        on_progress: As in `packtok.pack`.

    Raises:
        PacktokError: If a part is damaged, or parts are incompatible.
    """
    adds = add_special_tokens_from_config
    loaded_tokenizer = find_tokenizer(tokenizer, adds).tokenizer if tokenizer is not None else None
    listed = [parts] if isinstance(parts, str | os.PathLike) else parts
    files = [file for part in listed for file in _files(Path(part), Path(output))]
    return _packtok.merge(
        parts=files, output=output, existing=existing, tokenizer=loaded_tokenizer, on_progress=on_progress
    )


def _files(part: Path, output: Path) -> list[str]:
    if not part.is_dir():
        return [str(part)]
    files = [file for file in part.rglob("*.pbin") if file.is_file() and file.resolve() != output.resolve()]
    if not files:
        raise ConfigError(f"{part}: no .pbin file in this folder")
    return _packtok.natural_sorted([str(file) for file in files])


def beside(path: str) -> str | None:
    """Returns the tokenizer file next to a pbin, or ``None``."""
    file = Path(f"{path}.{TOKENIZER_FILE}")
    return str(file) if file.is_file() else None
