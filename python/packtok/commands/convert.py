"""Implements `packtok convert`: writes the documents of a token file in another format."""

import os
from collections.abc import Sequence
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

# Endings of the files of a folder, by format; of Megatron's two files, one.
SUFFIXES = {"pbin": ".pbin", "cepe-npy": ".npy", "megatron": ".idx", "datatrove": ".ds"}
# Formats whose readers look at every file of a folder. What they do not know is kept in this folder.
DATASETS = ("megatron", "datatrove")
SIDECAR_FOLDER = ".packtok"
# The note on an error if some files of the folder exist already.
KEPT_FILES_NOTE = "finished files are kept; set --existing (existing) to skip to resume"


@entry_point()
def convert(
    input: StrPath,
    output: StrPath,
    *,
    to: str,
    format: str | None = None,
    link: bool = False,
    accept_loss: Sequence[str] = (),
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
        output: The file to write; of a format with several files, the name that they share; for a
            folder, the folder in which its tree is mirrored.
        to: The format to write: ``"pbin"``, ``"cepe-npy"``, ``"megatron"`` or ``"datatrove"``.
        format: The format to read. Default: the one that the content has; of a folder, pbins, or with
            ``to="pbin"`` the only other format that is in it.
        link: For ``"megatron"``: copy nothing. ``.bin`` becomes a link to the pbin, whose tokens the index
            finds after their header.
        accept_loss: What the input records and the output cannot hold: ``"sequences"``, ``"modes"``.
        dtype: For ``"cepe-npy"``, ``"int64"`` or ``"uint32"``. Default: ``"int64"``.
        tokenizer: The tokenizer of the ids. Default: what the trailer or the marker records.
        add_special_tokens_from_config: As in `packtok.pack`, for ``tokenizer``.
        existing: ``"error"``; ``"skip"``, which keeps a file after comparing its documents; ``"replace"``.
        on_progress: As in `packtok.pack`.

    Returns:
        ``output``, ``files``, ``documents``, ``tokens``, ``file_bytes`` and ``warnings``.

    Raises:
        ConfigError: If an argument is invalid.
        FileExistsError: If the output exists and ``existing`` is ``"error"``.
        PbinFormatError: If the input is damaged, or has ids that the tokenizer lacks.
    """
    for name, value in (("--to", to), ("--format", format)):
        if value is not None and value not in _packtok.TOKEN_FORMATS:
            raise ConfigError(f"{name}: is {value}; expected one of {', '.join(_packtok.TOKEN_FORMATS)}")
    if dtype is not None and to != "cepe-npy":
        raise ConfigError(f"--dtype: has no effect with --to {to}, whose width follows from the tokenizer")
    if link and to != "megatron":
        raise ConfigError(f"--link: has no effect with --to {to}; only Megatron's files can be links")
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
                link=link,
                accept_loss=list(accept_loss),
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
        "warnings": [note for report in reports for note in report["notes"]],
    }


def _pairs(source: Path, target: Path, to: str, format: str | None) -> list[tuple[Path, Path]]:
    """Returns the files to read and to write."""
    if not source.is_dir():
        return [(source, target)]
    files = _files_below(source)
    read = format or _format_of(source, files, to)
    if not files[read]:
        raise ConfigError(f"{source}: no {SUFFIXES[read]} file in this folder")
    return [
        (source / name, target / Path(name).with_suffix("" if to in DATASETS else SUFFIXES[to]))
        for name in _packtok.natural_sorted(files[read])
    ]


def _files_below(folder: Path) -> dict[str, list[str]]:
    """Returns the paths of the token files below a folder, relative to it, by their formats."""
    files: dict[str, list[str]] = {format: [] for format in SUFFIXES}
    formats = {suffix: format for format, suffix in SUFFIXES.items()}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        format = formats.get(path.suffix)
        if format is not None and path.is_file() and not any(part.startswith(".") for part in name.parts):
            files[format].append(os.fspath(name))
    return files


def _format_of(folder: Path, files: dict[str, list[str]], to: str) -> str:
    """Returns the format of the files to read: pbins, or for pbins the only other one that is there."""
    if to != "pbin":
        return "pbin"
    formats = [format for format, names in files.items() if names and format != "pbin"]
    if len(formats) > 1:
        raise ConfigError(f"{folder}: has files of {' and '.join(formats)}; set --format (format)")
    return formats[0] if formats else "cepe-npy"


def _copy_tokenizer(source: Path, target: Path, to: str, tokenizer: _packtok.Tokenizer | None) -> None:
    """Writes the tokenizer next to the output, so that data and tokenizer stay together."""
    content = None if tokenizer is None else tokenizer.to_json()
    if content is None and (file := tokenizer_beside(source)) is not None:
        content = Path(file).read_bytes()
    if content is not None:
        name = f"{target}.{TOKENIZER_FILE}" if to == "pbin" else target.with_name(TOKENIZER_FILE)
        if to in DATASETS:
            name = target.parent / SIDECAR_FOLDER / TOKENIZER_FILE
        if not os.path.lexists(name):
            _packtok.publish_bytes(name, content)


def tokenizer_beside(path: StrPath) -> str | None:
    """Returns the tokenizer file of a token file, or None.

    It is next to a pbin; in the sidecar folder of Megatron's and datatrove's files; for an NPY file with a
    marker, in a folder above it.

    Args:
        path: The token file.
    """
    file = Path(path)
    if (tokenizer := beside(os.fspath(path))) is not None:
        return tokenizer
    marker = _packtok.find_token_marker(file)
    if marker is None:
        return None
    fingerprint = (marker["plan"].get("tokenizer") or {}).get("fingerprint")
    levels = Path(marker["source"]["path"]).parts
    folders = list(Path(os.path.abspath(file)).parents)[: len(levels)]
    if marker["format"] in DATASETS:
        folders = [file.parent / SIDECAR_FOLDER]
    for folder in folders:
        candidate = folder / TOKENIZER_FILE
        if candidate.is_file() and find_tokenizer(os.fspath(candidate)).tokenizer.fingerprint == fingerprint:
            return os.fspath(candidate)
    return None
