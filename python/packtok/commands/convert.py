"""Implements `packtok convert`: writes the documents of a token file in another format."""

import os
from pathlib import Path
from typing import Any, Literal

from packtok import _packtok
from packtok.commands.merge import beside
from packtok.commands.tokenize_npy import checked_dtype
from packtok.errors import ConfigError
from packtok.progress import Progress
from packtok.remedies import entry_point, worded_here
from packtok.resuming import KEPT_NOTE, LOST_NOTE, explaining
from packtok.sources import StrPath
from packtok.tokenizer.find import TOKENIZER_FILE, find_tokenizer

# Endings of the files of a folder, by format.
SUFFIXES = {"pbin": ".pbin", "cepe-npy": ".npy"}
# The note on an error if some files of the folder exist already.
KEPT_FILES_NOTE = "finished files are kept; set --existing (existing) to skip to resume"


@entry_point()
def convert(
    input: StrPath,
    output: StrPath,
    *,
    to: str,
    format: str | None = None,
    dtype: str | None = None,
    tokenizer: str | None = None,
    add_special_tokens_from_config: bool = False,
    existing: Literal["error", "skip", "replace"] = "error",
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Writes the documents of a token file, or of all files below a folder, in another format.

    Documents and ids stay as they are, BOS and EOD included; converting back gives the same bytes.

    Args:
        input: A token file, or a folder.
        output: The file to write; for a folder, the folder in which its tree is mirrored.
        to: The format to write: ``"pbin"`` or ``"cepe-npy"``.
        format: The format to read. Default: the one that the content has; of a folder, the other one.
        dtype: For ``"cepe-npy"``, ``"int64"`` or ``"uint32"``. Default: ``"int64"``.
        tokenizer: The tokenizer of the ids. Default: what the trailer or the marker records.
        add_special_tokens_from_config: As in `packtok.pack`, for ``tokenizer``.
        existing: ``"error"``; ``"skip"``, which keeps a file after comparing its documents; ``"replace"``.
        on_progress: As in `packtok.pack`.

    Returns:
        ``output``, ``files``, ``documents``, ``tokens`` and ``file_bytes``.

    Raises:
        ConfigError: If an argument is invalid.
        FileExistsError: If the output exists and ``existing`` is ``"error"``.
        PbinFormatError: If the input is damaged, or has ids that the tokenizer lacks.
    """
    for name, value in (("--to", to), ("--format", format)):
        if value is not None and value not in _packtok.TOKEN_FORMATS:
            raise ConfigError(f"{name}: is {value}; expected one of {', '.join(_packtok.TOKEN_FORMATS)}")
    if dtype is not None and to != "cepe-npy":
        raise ConfigError("--dtype: has no effect with --to pbin, whose width follows from the tokenizer")
    loaded_tokenizer = None
    if tokenizer is not None:
        loaded_tokenizer = find_tokenizer(tokenizer, add_special_tokens_from_config).tokenizer
    pairs = _pairs(Path(input), Path(output), to, format)
    reports: list[dict[str, Any]] = []

    def note() -> str:
        if not reports:
            return LOST_NOTE
        return KEPT_NOTE if existing == "skip" else worded_here(KEPT_FILES_NOTE)

    with explaining(note):
        for source, target in pairs:
            report = _packtok.convert_tokens(
                input=source,
                format=format,
                output=target,
                to=to,
                dtype=checked_dtype(dtype),
                tokenizer=loaded_tokenizer,
                existing=existing,
                on_progress=on_progress,
            )
            _copy_tokenizer(source, target, to, loaded_tokenizer)
            reports.append(report)
    return {
        "output": os.fspath(output),
        "files": len(reports),
        **{name: sum(report[name] for report in reports) for name in ("documents", "tokens", "file_bytes")},
    }


def _pairs(source: Path, target: Path, to: str, format: str | None) -> list[tuple[Path, Path]]:
    """Returns the files to read and to write."""
    if not source.is_dir():
        return [(source, target)]
    read = format or next(name for name in SUFFIXES if name != to)
    suffix = SUFFIXES[read]
    names = [
        os.path.relpath(path, source)
        for path in source.rglob(f"*{suffix}")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(source).parts)
    ]
    if not names:
        raise ConfigError(f"{source}: no {suffix} file in this folder")
    return [
        (source / name, target / Path(name).with_suffix(SUFFIXES[to]))
        for name in _packtok.natural_sorted(names)
    ]


def _copy_tokenizer(source: Path, target: Path, to: str, tokenizer: _packtok.Tokenizer | None) -> None:
    """Writes the tokenizer next to the output, so that data and tokenizer stay together."""
    content = None if tokenizer is None else tokenizer.to_json()
    if content is None and (file := tokenizer_beside(source)) is not None:
        content = Path(file).read_bytes()
    if content is not None:
        name = f"{target}.{TOKENIZER_FILE}" if to == "pbin" else target.with_name(TOKENIZER_FILE)
        if not os.path.lexists(name):
            _packtok.publish_bytes(name, content)


def tokenizer_beside(path: StrPath) -> str | None:
    """Returns the tokenizer file of a token file: next to it, or in a folder above an NPY file with a marker.

    Args:
        path: The token file.
    """
    file = Path(path)
    if (tokenizer := beside(os.fspath(path))) is not None:
        return tokenizer
    marker = _packtok.find_token_marker(file) if file.suffix == ".npy" else None
    if marker is None:
        return None
    fingerprint = (marker["plan"].get("tokenizer") or {}).get("fingerprint")
    levels = Path(marker["source"]["path"]).parts
    for folder in list(Path(os.path.abspath(file)).parents)[: len(levels)]:
        candidate = folder / TOKENIZER_FILE
        if candidate.is_file() and find_tokenizer(os.fspath(candidate)).tokenizer.fingerprint == fingerprint:
            return os.fspath(candidate)
    return None
