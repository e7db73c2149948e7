"""Finds token files below a folder: pbins, or the NPY files of CEPE's scripts."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from packtok import _packtok
from packtok.errors import ConfigError
from packtok.sources import StrPath, find_files
from packtok.tokenizer.find import TOKENIZER_FILE

_ENDINGS = (".pbin", ".npy")


def files_below(folder: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields each token file below a folder in natural order, with the names on its way, without its ending.

    Raises:
        ConfigError: If it is not a folder, there is none, or there are pbins and npys.
    """
    if not folder.is_dir():
        raise ConfigError(f"--tokens: {folder} is not a folder; give the folder with the token files")
    arrays = [os.fspath(path) for path in folder.rglob("*.npy") if path.is_file()]
    has_pbins = next(folder.rglob("*.pbin"), None) is not None
    if arrays and has_pbins:
        raise ConfigError(
            f"{folder}: has pbins and npys; give a folder with one of them, or files in a recipe"
        )
    files = _packtok.natural_sorted(arrays) if arrays else find_files(folder)["paths"]
    for path in files:
        parts = Path(path).relative_to(folder).parts
        yield path, (*parts[:-1], Path(parts[-1]).stem)


def expanded(listed: Sequence[str], root: StrPath | None) -> list[str]:
    """Returns the files that paths, folders and globs stand for; relative ones are relative to ``root``."""
    base = "" if root is None else os.fspath(root)
    paths = [os.path.join(base, path) for path in listed]
    files: list[str] = []
    for path in paths:
        if os.path.isdir(path):
            files += [file for file, _ in files_below(Path(path))]
        elif path.endswith(".npy"):
            files.append(path)
        else:
            files += find_files([path])["paths"]
    return files


def tokenizer_beside(files: Sequence[str], tokens: StrPath | None) -> str | None:
    """Returns the tokenizer file next to the token files or in their folder, or ``None``."""
    candidates = [f"{file}.{TOKENIZER_FILE}" for file in files[:1]]
    folders = [os.path.dirname(file) for file in files[:1]] + ([] if tokens is None else [os.fspath(tokens)])
    candidates += [os.path.join(folder, TOKENIZER_FILE) for folder in folders]
    return next((path for path in candidates if os.path.isfile(path)), None)
