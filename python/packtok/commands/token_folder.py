"""Verifies and inspects folders of NPY files: what `packtok verify` and `packtok inspect` do with one."""

import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from packtok import _packtok
from packtok.commands.convert import Reading, described_files
from packtok.commands.npy_folder import FORMAT
from packtok.errors import ConfigError, PacktokError
from packtok.progress import Progress
from packtok.remedies import entry_point
from packtok.sources import StrPath, without_loss_masks
from packtok.tokenizer.find import TOKENIZER_FILE, find_tokenizer

SUFFIX = ".npy"
MARKER_SUFFIX = ".done.json"
CHUNK_TOKENS = 4096
_CHECKED = {
    "lengths": "the lengths cover the ids",
    "ids": "every id fits in 32 bits",
    "vocabulary": "every id is in the vocabulary",
    "markers": "counts and checksums of the markers",
    "list": "every file of the list is there",
}


def _all_files(folder: Path) -> Iterator[Path]:
    """Yields all files with the name of an NPY file, so that files of other formats among them are faults."""
    for file in folder.rglob(f"*{SUFFIX}"):
        is_hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if file.is_file() and not is_hidden:
            yield file


def _sorted_files(folder: Path) -> list[Path]:
    names = [os.path.relpath(file, folder) for file in _all_files(folder)]
    return [folder / name for name in _packtok.natural_sorted(without_loss_masks(names))]


@entry_point()
def verify_folder(
    folder: StrPath,
    *,
    against: StrPath | None = None,
    root: StrPath | None = None,
    tokenizer: str | None = None,
    add_special_tokens_from_config: bool = False,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Checks all token files below a folder and returns what is wrong.

    These are its NPY files; if it has none, the files that `packtok.TokenDataset` finds in it.

    Args:
        folder: The folder.
        against: A list of the corpus files, whose NPY files must be there; the corpus itself is not read.
        root: The folder that relative lines of the list start at. Default: the folder of the list.
        tokenizer: The tokenizer of the ids. Default: ``tokenizer.json`` in the folder, if it exists.
        add_special_tokens_from_config: As in `packtok.pack`, for ``tokenizer``.
        on_progress: As in `packtok.pack`.

    Returns:
        ``files``, ``documents``, ``tokens``, what was ``checked`` and what could not be (``unchecked``), the
        ``missing`` files, each with ``npy`` and ``reason``, and the ``faults``, each with ``path`` and
        ``error``.

    Raises:
        ConfigError: If the folder is none, or has no token file.
    """
    base = Path(folder)
    if not base.is_dir():
        raise ConfigError(f"{base}: is not a folder; give a folder of token files")
    files = _sorted_files(base)
    reading = Reading(None, None, None)
    if not files and against is None:
        names, reading = described_files(base, lambda _: None)
        files = list(map(Path, names))
    own = base / TOKENIZER_FILE
    name = tokenizer or (os.fspath(own) if own.is_file() else None)
    loaded_tokenizer = (
        None if name is None else find_tokenizer(name, add_special_tokens_from_config).tokenizer
    )
    faults, documents, tokens, unmarked = [], 0, 0, 0
    for file in files:
        try:
            counts = _packtok.verify(
                path=file, **asdict(reading), tokenizer=loaded_tokenizer, on_progress=on_progress
            )
            documents, tokens = documents + counts["documents"], tokens + counts["tokens"]
            unmarked += not _check_marker(file)
        except (PacktokError, OSError) as error:
            faults.append({"path": os.fspath(file), "error": _message(error)})
    missing = [*_without_file(base), *_not_there(base, against, root)]
    proven = {
        "lengths": True,
        "ids": True,
        "vocabulary": loaded_tokenizer is not None,
        "markers": unmarked == 0,
        "list": against is not None,
    }
    return {
        "folder": os.fspath(base),
        "files": len(files),
        "documents": documents,
        "tokens": tokens,
        "checked": [_CHECKED[key] for key, is_proven in proven.items() if is_proven],
        "unchecked": [_CHECKED[key] for key, is_proven in proven.items() if not is_proven],
        "missing": missing,
        "faults": faults,
    }


def check_marked(path: StrPath) -> bool:
    """Compares a token file with its marker; returns whether that has a checksum of the tokens.

    Raises:
        PacktokError: If a count or the checksum differs.
    """
    file = Path(path)
    marker = _packtok.find_token_marker(file)
    # The markers of other formats have a checksum of the index.
    return _check_marker(file) and marker is not None and marker["format"] == FORMAT


def _check_marker(file: Path) -> bool:
    marker = _packtok.find_token_marker(file)
    if marker is None:
        return False
    facts = _packtok.token_facts(file, chunk_tokens=0, has_crc32c=True)
    for name in ("documents", "tokens", "file_bytes", "crc32c"):
        if facts[name] != marker[name]:
            raise PacktokError(
                f"{file}: {name} is {facts[name]}, but the marker records {marker[name]}; the file was "
                "changed or is damaged; remove it and its marker, and write it again"
            )
    return True


def _without_file(folder: Path) -> Iterator[dict[str, str]]:
    """Yields the files that have a marker but do not exist any more."""
    for marker in folder.rglob(f"*{SUFFIX}{MARKER_SUFFIX}"):
        file = marker.with_name(marker.name.removesuffix(MARKER_SUFFIX))
        if not file.exists():
            yield {"npy": os.path.relpath(file, folder), "reason": "it has a marker, but the file is gone"}


def _not_there(folder: Path, against: StrPath | None, root: StrPath | None) -> Iterator[dict[str, str]]:
    """Yields the files that a list names but that have no NPY file."""
    if against is None:
        return
    for line, npy in _packtok.listed_files(against, root=root):
        if not (folder / npy).exists():
            yield {"npy": npy, "reason": f"line {line} of {os.fspath(against)}"}


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


@entry_point()
def inspect_folder(folder: StrPath, *, chunk_tokens: int = CHUNK_TOKENS) -> dict[str, Any]:
    """Counts the documents, tokens and chunks below a folder of NPY files, by domain; reads no ids.

    Args:
        folder: The folder; its folders are the domains.
        chunk_tokens: Length of a chunk. Each document has as many as fit into it.

    Returns:
        ``path``, ``chunk_tokens``, ``domains``, each with ``domain``, ``files``, ``documents``, ``tokens``
        and ``chunks``, and ``total`` with the sums.

    Raises:
        ConfigError: If there is no NPY file.
        PbinFormatError: If a file is damaged.
    """
    base = Path(folder)
    files = _sorted_files(base)
    if not files:
        raise ConfigError(f"{base}: no {SUFFIX} file in this folder")
    names = ("files", "documents", "tokens", "chunks")
    domains: dict[str, dict[str, Any]] = {}
    for file in files:
        parts = file.relative_to(base).parts
        domain = parts[0] if len(parts) > 1 else "."
        counts = domains.setdefault(domain, {"domain": domain, **dict.fromkeys(names, 0)})
        facts = _packtok.token_facts(file, chunk_tokens=chunk_tokens, has_crc32c=False)
        for name in names:
            counts[name] += facts.get(name, 1)
    return {
        "path": os.fspath(base),
        "chunk_tokens": chunk_tokens,
        "domains": list(domains.values()),
        "total": {name: sum(domain[name] for domain in domains.values()) for name in names},
    }
