"""Finds datasets by name: in the index of the base directory, or in its folders if there is no index."""

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from packtok.catalog.base import BASE_VARIABLES, Base, find_base, stored_metadata
from packtok.catalog.discovery import dataset_name, described_at, described_below
from packtok.catalog.entries import Broken, entries_of, with_inherited
from packtok.catalog.index import INDEX_NAME, Index
from packtok.catalog.schema import DatasetMetadata, load_metadata
from packtok.choices import suggestion
from packtok.errors import ConfigError, PacktokError, UnknownNameError

# Receives a remark for the user.
Remark = Callable[[str], None]


def find_dataset(text: str, remark: Remark = lambda _: None) -> DatasetMetadata:
    """Returns the metadata of a dataset at a path, or with a name.

    A text that starts with ``/`` or ``.``, or is an existing path, is a path.

    Raises:
        ConfigError: If there are several datasets with the name.
        FileNotFoundError: If it is a path without metadata.
        UnknownNameError: If there is no such dataset.
    """
    if text.startswith(("/", ".")) or os.path.exists(text):
        return load_metadata(text)
    base = find_base()
    if base is None:
        raise UnknownNameError(
            f"{text!r} is not a path, and no base directory is set to look it up as a name; set "
            f"{BASE_VARIABLES[0]}"
        )
    stored = None if base.store is None else stored_metadata(base.store, text)
    return stored if stored is not None else load_metadata(path_of_name(base, text, remark))


def path_of_name(base: Base, name: str, remark: Remark = lambda _: None) -> Path:
    """Returns the metadata file of the dataset with a name.

    Raises:
        ConfigError: If there are several.
        UnknownNameError: If there is none.
    """
    paths, names = _paths_and_names(base, name, remark)
    files = [base.folder / path for path in paths]
    if len(files) > 1:
        raise ConfigError(
            f"{name!r} names {len(files)} datasets, {' and '.join(map(str, files))}; rename one, or give "
            "a path"
        )
    if not files:
        raise UnknownNameError(
            f"no dataset is named {name!r} in {base.folder}{suggestion(name, names)}; packtok data list "
            "shows all, and packtok data index adds new ones"
        )
    return files[0]


def _paths_and_names(base: Base, name: str, remark: Remark) -> tuple[list[str], list[str]]:
    """Returns the metadata files of the datasets with a name and, if there are none, all names."""
    index = base.folder / INDEX_NAME
    if index.exists():
        with closing(Index(index)) as opened:
            paths = opened.paths_of(name)
            return paths, [] if paths else opened.names()
    entries = all_entries(base, remark)
    return [entry["path"] for entry in entries if entry["name"] == name], [entry["name"] for entry in entries]


def all_entries(base: Base, remark: Remark = lambda _: None) -> list[dict[str, Any]]:
    """Returns the entries of all datasets below the base directory, in the order of their folders."""
    index = base.folder / INDEX_NAME
    if index.exists():
        with closing(Index(index)) as opened:
            return opened.entries()
    remark(f"{base.folder} has no index, so its folders are searched; packtok data index writes one")
    all_entries = entries_of(base.folder, described_below(base.folder))
    entries = {entry["path"]: entry for entry in all_entries if not isinstance(entry, Broken)}
    return [with_inherited(entry, entries.get(entry["parent"])) for entry in entries.values()]


def indexed_name(folder: Path) -> str | None:
    """Returns the name under which `packtok data index` lists the dataset in a folder.

    ``None`` if no base directory is set, or the folder is not below it where the index looks.
    """
    base = find_base()
    described = None if base is None else described_at(base.folder, folder)
    if base is None or described is None:
        return None
    parent = None if described.parent is None else load_metadata(base.folder / described.parent).name
    return dataset_name(described, load_metadata(base.folder / described.path).name, parent)


def search_entries(base: Base, words: str) -> list[dict[str, Any]]:
    """Returns the entries that match ``words``, best first.

    Raises:
        PacktokError: If there is no index.
    """
    index = base.folder / INDEX_NAME
    if not index.exists():
        raise PacktokError(f"{index}: there is no index to search; run packtok data index")
    with closing(Index(index)) as opened:
        return opened.search(words)


def required_base() -> Base:
    """Returns the base directory.

    Raises:
        ConfigError: If no variable names one.
    """
    base = find_base()
    if base is None:
        raise ConfigError(
            f"no base directory is set; set {' or '.join(BASE_VARIABLES)} to that of the datasets"
        )
    return base
