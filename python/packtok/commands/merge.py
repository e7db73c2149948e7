"""Implements `packtok merge`: resolves files, folders and the tokenizer for the compiled module."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from packtok import _packtok
from packtok.commands.convert import Reading, check_formats, described_files
from packtok.commands.reshape import reshape
from packtok.errors import ConfigError, PacktokError
from packtok.progress import Progress
from packtok.remedies import entry_point
from packtok.sources import StrPath, token_files_at
from packtok.tokenizer.find import find_tokenizer


@entry_point()
def merge(
    parts: StrPath | Sequence[StrPath],
    output: str,
    *,
    format: str | None = None,
    input_dtype: str | None = None,
    boundaries: str | None = None,
    existing: Literal["error", "skip", "replace"] = "error",
    tokenizer: str | None = None,
    add_special_tokens_from_config: bool = False,
    accept_loss: str | Sequence[str] = (),
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Joins token files into one pbin, in the order given, and returns the counts.

    Args:
        parts: A file or a folder, or a list of them. A folder stands for every ``*.pbin`` below it, in
            natural order, or for its files of another format; a folder of tatm is the only part. If a file is
            no pbin, the counts are those of `packtok.reshape` without a step.
        output: The file to write. It is not a part, even if a folder contains it.
        format: As in `packtok.convert`, for parts that are no pbins.
        input_dtype: As in `packtok.convert`.
        boundaries: As in `packtok.convert`.
        existing: ``"error"``, ``"skip"`` or ``"replace"``.
        tokenizer: Tokenizer of the parts that do not record it themselves.
        add_special_tokens_from_config: As in `packtok.pack`, for ``tokenizer``.
        accept_loss: As in `packtok.reshape`, for parts that are no pbins.
        on_progress: As in `packtok.pack`.

    Raises:
        PacktokError: If a part is damaged, or parts are incompatible.
    """
    check_formats("pbin", format)
    adds = add_special_tokens_from_config
    loaded_tokenizer = find_tokenizer(tokenizer, adds).tokenizer if tokenizer is not None else None
    listed = [parts] if isinstance(parts, str | os.PathLike) else list(parts)
    given = Reading(format, input_dtype, boundaries)
    is_described = len(listed) == 1 and described_files(listed[0], lambda _: None, given)[1] != given
    files = []
    if not is_described:
        files = [file for part in listed for file in _files(Path(part), Path(output), format)]
    if is_described or given != Reading() or not all(map(_is_pbin, files)):
        return reshape(
            listed if is_described else files,
            output,
            **asdict(given),
            existing=existing,
            tokenizer=tokenizer,
            add_special_tokens_from_config=adds,
            accept_loss=accept_loss,
            on_progress=on_progress,
        )
    if accept_loss:
        raise ConfigError("--accept-loss (accept_loss): has no effect on pbins, of which nothing is lost")
    return _packtok.merge(
        parts=files, output=output, existing=existing, tokenizer=loaded_tokenizer, on_progress=on_progress
    )


def _files(part: Path, output: Path, format: str | None) -> list[str]:
    files = token_files_at(part, format)
    if not part.is_dir():
        return files
    files = [file for file in files if Path(file).resolve() != output.resolve()]
    if not files:
        raise ConfigError(f"{part}: no .pbin file in this folder")
    return files


def _is_pbin(file: str) -> bool:
    """Returns whether a file is a pbin, or none that can be read, which the compiled module reports."""
    try:
        return _packtok.PbinReader(file).dialect not in _packtok.TOKEN_FORMATS
    except (PacktokError, OSError):
        return True
