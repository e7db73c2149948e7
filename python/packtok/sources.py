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

# Describes a folder of several datasets that Hugging Face's `save_to_disk` wrote.
_SPLITS_FILE = "dataset_dict.json"
_NPY_MAGIC = b"\x93NUMPY"
# Endings of the files of a folder, by format; of Megatron's two files, one.
FORMAT_SUFFIXES = {
    "pbin": ".pbin",
    "cepe-npy": ".npy",
    "megatron": ".idx",
    "datatrove": ".ds",
    "dolma": ".npy",
    "llm-c": ".bin",
    "litdata": ".bin",
    "mds": ".mds",
    "npy": ".npy",
    "raw": ".bin",
    "tatm": ".bin",
    "parquet": ".parquet",
    "arrow": ".arrow",
}
# What other formats do not know is kept in this folder beside their files.
SIDECAR_FOLDER = ".packtok"
# Completes a folder of litdata or MDS.
INDEX_FILE = "index.json"


class Files(TypedDict, total=False):
    """Arguments that name files to the compiled module; exactly one of the first two is set."""

    paths: list[str]
    manifest: str
    read_as: tuple[str | None, str | None, str | None]
    """Format, type of ids and boundaries, of files that do not record them."""


def find_files(source: Source) -> Files:
    """Returns the files of ``source``, or the manifest if it is one.

    A list keeps its order. A folder stands for every ``*.pbin`` below it, or, if there is none, for every NPY
    file, or else for the token files of another format; and a glob for every matching file, both in natural
    order. Files that an index in the folder lists are in its order. Shards of a run in a folder below it are
    left out: they have the same documents as the file that they are joined to. Lists can contain folders and
    globs, but no manifests.

    Raises:
        ConfigError: If a list is empty, a folder contains no token file or a glob matches nothing.
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
        folder = Path(path)
        files = [str(file) for file in _pbins_below(folder) or npy_files(folder)]
        if not files:
            files, is_indexed = _other_files(folder)
            if is_indexed:
                return files
        if not files:
            raise ConfigError(
                f"{path}: no .pbin file in this folder; tokenize the corpus first, with packtok pack, or "
                "with packtok tokenize --to cepe-npy"
            )
    elif glob.has_magic(path) and not os.path.exists(path):
        files = [file for file in glob.glob(path, recursive=True) if os.path.isfile(file)]
        files = without_loss_masks(files)
        if not files:
            raise ConfigError(f"{path!r}: no file matches; globs skip hidden files, give those by name")
    else:
        return [path]
    return _packtok.natural_sorted(files)


def token_files_below(folder: Path, format: str | None, *, reads_pbins: bool) -> list[str]:
    """Returns the paths of the token files to read below a folder, relative to it, in natural order.

    Files that an index in the folder lists are in its order.

    Args:
        folder: The folder.
        format: The format of the files. Default: pbins if there are some, otherwise the only other format.
        reads_pbins: Whether pbins are read without being named as the format.

    Raises:
        ConfigError: If there are no such files, or files of several other formats.
    """
    indexed = indexed_files(folder)
    if indexed is not None and format in (None, indexed[0]):
        return indexed[1]
    by_suffix = _names_by_suffix(folder)
    pbins = by_suffix[FORMAT_SUFFIXES["pbin"]]
    if format is not None:
        suffix = FORMAT_SUFFIXES[format]
    elif reads_pbins and pbins:
        suffix = FORMAT_SUFFIXES["pbin"]
    else:
        suffixes = [
            suffix for suffix, names in by_suffix.items() if names and suffix != FORMAT_SUFFIXES["pbin"]
        ]
        if len(suffixes) > 1:
            raise ConfigError(f"{folder}: has {' and '.join(suffixes)} files; set --format (format)")
        suffix = suffixes[0] if suffixes else FORMAT_SUFFIXES["pbin" if reads_pbins else "cepe-npy"]
    if not by_suffix[suffix]:
        of_format = "token file" if reads_pbins else "token file of a format other than pbin"
        kind = of_format if format is None else f"{suffix} file"
        raise ConfigError(f"{folder}: no {kind} in this folder")
    return _packtok.natural_sorted(by_suffix[suffix])


def indexed_files(folder: Path) -> tuple[str, list[str]] | None:
    """Returns the format and the token files that an index in a folder lists; None if there is no index.

    Raises:
        ConfigError: If the index lists no files, or the folder has several datasets.
    """
    if (folder / _SPLITS_FILE).is_file():
        names = ", ".join(sorted(path.parent.name for path in folder.glob("*/state.json")))
        raise ConfigError(f"{folder}: has several splits ({names}); give the folder of one of them")
    indexed = _packtok.indexed_files(folder)
    if indexed is not None and not indexed[1]:
        raise ConfigError(f"{folder}: its index lists no files, so that there are no documents")
    return indexed


def token_files_at(path: Path, format: str | None = None) -> list[str]:
    """Returns the token file at ``path``, or those of a folder in the order of `token_files_below`."""
    if not path.is_dir():
        return [os.fspath(path)]
    return [os.fspath(path / name) for name in token_files_below(path, format, reads_pbins=True)]


def _names_by_suffix(folder: Path) -> dict[str, list[str]]:
    """Returns the paths of files below a folder, relative to it, by the endings of token files."""
    by_suffix: dict[str, list[str]] = {suffix: [] for suffix in FORMAT_SUFFIXES.values()}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        is_hidden = any(part.startswith(".") for part in name.parts)
        # Of Megatron's files, the index is named.
        is_data = path.suffix == ".bin" and path.with_suffix(".idx").exists()
        is_described = is_data or path.name.endswith(".bos.idx")
        if path.suffix in by_suffix and path.is_file() and not is_hidden and not is_described:
            by_suffix[path.suffix].append(os.fspath(name))
    by_suffix[".npy"] = without_loss_masks(by_suffix[".npy"])
    return by_suffix


def without_loss_masks(names: list[str]) -> list[str]:
    """Returns the names without those of loss masks of others, which are no tokens."""
    masks = {os.fspath(_packtok.loss_mask_path(name.removesuffix(".npy"))) for name in names}
    return [name for name in names if name not in masks]


def _other_files(folder: Path) -> tuple[list[str], bool]:
    """Returns the token files below a folder that has neither pbins nor NPY files.

    Also returns whether an index lists them, in whose order they are.
    """
    indexed = indexed_files(folder)
    if indexed is not None:
        return [str(folder / name) for name in indexed[1]], True
    by_suffix = {suffix: names for suffix, names in _names_by_suffix(folder).items() if names}
    if len(by_suffix) > 1:
        endings = " and ".join(by_suffix)
        raise ConfigError(f"{folder}: has {endings} files; give those of one format, as a glob")
    return [str(folder / name) for names in by_suffix.values() for name in names], False


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
