"""Resolves a dataset's source to pbins: one file, a list, a folder, a glob or a manifest."""

import glob
import os
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import TypedDict

from packtok import _packtok
from packtok.errors import ConfigError

StrPath = str | os.PathLike[str]
Source = StrPath | Sequence[StrPath]

_NPY_MAGIC = b"\x93NUMPY"


class Files(TypedDict, total=False):
    """Arguments that name files to the compiled module; exactly one of them is set."""

    paths: list[str]
    manifest: str


def find_files(source: Source) -> Files:
    """Returns the files of ``source``, or the manifest if it is one.

    A list keeps its order. A folder stands for every ``*.pbin`` below it, or, if there is none, for every NPY
    file, and a glob for every matching file, both in natural order. Shards of a run in a folder below it are
    left out: they have the same documents as the file that they are joined to. Lists can contain folders and
    globs, but no manifests.

    Raises:
        ConfigError: If a list is empty, a folder contains no pbin or a glob matches nothing.
    """
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        return {"manifest": path} if is_manifest(path) else {"paths": _expanded(path)}
    paths = [file for entry in source for file in _expanded(os.fspath(entry))]
    if not paths:
        raise ConfigError("the list of pbins is empty; give at least one")
    return {"paths": paths}


def plan_folders(files: Files, cache_dir: StrPath | None) -> list[str]:
    """Returns the folders in which plans of ``files`` are looked up and stored, in this order.

    This is ``cache_dir`` alone if it is given. Otherwise it is the folder of the first file or of the
    manifest, followed by the user's cache, for data in read-only folders.
    """
    if cache_dir is not None:
        return [os.fspath(cache_dir)]
    first = files["paths"][0] if "paths" in files else files["manifest"]
    cache = _packtok.user_cache()
    return [os.path.dirname(os.path.abspath(first)), *([] if cache is None else [cache])]


def is_manifest(path: str) -> bool:
    """Returns whether the file is a JSON manifest and not a pbin.

    A pbin starts with its data length. If its first bytes are JSON, that length exceeds the size of any file.
    """
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        start = file.read(8)
    return start[:1] == b"{" and int.from_bytes(start, "little") > os.path.getsize(path)


def _expanded(path: str) -> list[str]:
    if os.path.isdir(path):
        files = [str(file) for file in _pbins_below(Path(path)) or npy_files(Path(path))]
        if not files:
            raise ConfigError(
                f"{path}: no .pbin file in this folder; tokenize the corpus first, with packtok pack, or "
                "with packtok tokenize --to cepe-npy"
            )
    elif glob.has_magic(path) and not os.path.exists(path):
        files = [file for file in glob.glob(path, recursive=True) if os.path.isfile(file)]
        if not files:
            raise ConfigError(f"{path!r}: no file matches; globs skip hidden files, give those by name")
    else:
        return [path]
    return _packtok.natural_sorted(files)


def _pbins_below(folder: Path) -> list[Path]:
    """Returns the pbins below a folder, without the shards in a folder of shards below it."""

    def is_shard(path: Path) -> bool:
        below = takewhile(lambda parent: parent != folder, path.parents)
        return any((parent / _packtok.PLAN_NAME).exists() for parent in below)

    return [path for path in folder.rglob("*.pbin") if path.is_file() and not is_shard(path)]


def npy_files(folder: Path) -> list[Path]:
    """Returns the NPY files below a folder, but hidden ones and raw tokens, which have no header of NumPy."""

    def is_hidden(path: Path) -> bool:
        return any(part.startswith(".") for part in path.relative_to(folder).parts)

    return [path for path in folder.rglob("*.npy") if not is_hidden(path) and path.is_file() and is_npy(path)]


def is_npy(path: StrPath) -> bool:
    """Returns whether the file starts as arrays of NumPy do."""
    with Path(path).open("rb") as file:
        return file.read(len(_NPY_MAGIC)) == _NPY_MAGIC
