"""Finds the metadata files below a base directory, and names the datasets that they describe.

A base directory is laid out as tatm's "data garden"::

    BASE/<context>/<dataset>/{metadata.*, raw/, tokenized/<tokenizer>/<subset>/metadata.*}

Folders between the base and a dataset are contexts, at any depth. A dataset has the name in its metadata. A
tokenized one is named after its parent and its folders: ``<parent>-tokenized_<tokenizer>_<subset>``.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packtok import _packtok
from packtok.catalog.schema import DETAILS_NAME, METADATA_NAMES

TOKENIZED_FOLDER = "tokenized"
_SKIPPED = ("raw", "config")


@dataclass(frozen=True)
class Described:
    """A metadata file below a base directory."""

    path: str
    """Relative to the base, with slashes."""
    modified_ns: int
    """The later time of the file and of the one with packtok's details."""
    bytes: int
    """Length of the two files."""
    parent: str | None = None
    """The metadata file of the dataset that it is a tokenized form of."""

    @property
    def context(self) -> str:
        """The folders between the base and the dataset, with slashes."""
        return "/".join((self.parent or self.path).split("/")[:-2])


def described_below(base: Path) -> Iterator[Described]:
    """Yields the metadata files below ``base``, in natural order of their folders.

    Below a dataset, only its tokenized forms are looked for, so that folders of data are not listed.

    Raises:
        OSError: If the base itself cannot be read.
    """
    os.scandir(base).close()
    yield from _in_folder(base, "")


def _in_folder(base: Path, folder: str) -> Iterator[Described]:
    names = _entries(base / folder)
    found = _metadata_in(base, folder, names)
    if found is not None and folder:
        yield found
        yield from _tokenized(base, folder, found.path)
        return
    for name in names:
        if name not in _SKIPPED and (base / folder / name).is_dir():
            yield from _in_folder(base, f"{folder}{name}/")


def _tokenized(base: Path, folder: str, parent: str) -> Iterator[Described]:
    top = f"{folder}{TOKENIZED_FOLDER}/"
    for tokenizer in _entries(base / top):
        for subset in _entries(base / top / tokenizer):
            inner = f"{top}{tokenizer}/{subset}/"
            found = _metadata_in(base, inner, _entries(base / inner), parent)
            if found is not None:
                yield found


def _entries(folder: Path) -> list[str]:
    """Returns the names in a folder in natural order; none if it is no folder or cannot be read."""
    try:
        names = [name for name in os.listdir(folder) if not name.startswith(".")]
    except OSError:
        return []
    return _packtok.natural_sorted(names)


def _metadata_in(base: Path, folder: str, names: list[str], parent: str | None = None) -> Described | None:
    for name in METADATA_NAMES:
        if name in names:
            files = [name, DETAILS_NAME] if DETAILS_NAME in names else [name]
            found = [(base / folder / file).stat() for file in files]
            modified_ns = max(one.st_mtime_ns for one in found)
            return Described(f"{folder}{name}", modified_ns, sum(one.st_size for one in found), parent)
    return None


def dataset_name(described: Described, own_name: str, parent_name: str | None) -> str:
    """Returns the name of a dataset, given those in its metadata and in its parent's."""
    if described.parent is None or parent_name is None:
        return own_name
    tokenizer, subset = described.path.split("/")[-3:-1]
    return f"{parent_name}-tokenized_{tokenizer}_{subset}"
