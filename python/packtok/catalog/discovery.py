"""Finds the metadata files below a base directory, and names the datasets that they describe.

A base directory is laid out as tatm's "data garden"::

    BASE/<context>/<dataset>/{metadata.*, raw/, tokenized/<tokenizer>/<subset>/metadata.*}

Folders between the base and a dataset are contexts, at any depth. A dataset has the name in its metadata. A
tokenized one is named after its parent and its folders: ``<parent>-tokenized_<tokenizer>_<subset>``. The
folder of the subset can be missing, which tatm does not allow.
"""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from packtok import _packtok
from packtok.catalog.schema import METADATA_NAMES, details_name

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
    """The metadata file of the dataset of which this one is a tokenized form."""

    @property
    def context(self) -> str:
        """The folders between the base and the dataset, with slashes."""
        return "/".join((self.parent or self.path).split("/")[:-2])


# Receives the path of a folder below the base, with slashes and one at its end, before it is read; returns
# whether to read it.
Enters = Callable[[str], bool]


def described_below(base: Path, enters: Enters = lambda _: True) -> Iterator[Described]:
    """Yields the metadata files below ``base``, in natural order of their folders.

    Below a dataset, the search finds only its tokenized forms, so that folders of data are not listed.

    Raises:
        OSError: If the base itself cannot be read.
    """
    os.scandir(base).close()
    yield from _in_folder(f"{base}/", "", frozenset(), enters)


def _in_folder(
    base: str, folder: str, above: frozenset[tuple[int, int]], enters: Enters
) -> Iterator[Described]:
    """Yields the metadata files below a folder, unless it is a link to a folder ``above`` it."""
    described = _metadata_in(base, folder) if folder else None
    if described is not None:
        yield described
        yield from _tokenized(base, folder, described.path, enters)
        return
    here = _identity(base + folder)
    if here is None or here in above:
        return
    for name in _folders(base + folder):
        inner = f"{folder}{name}/"
        if name not in _SKIPPED and enters(inner):
            yield from _in_folder(base, inner, above | {here}, enters)


def _tokenized(base: str, folder: str, parent: str, enters: Enters) -> Iterator[Described]:
    forms = f"{folder}{TOKENIZED_FOLDER}/"
    if not enters(forms):
        return
    for tokenizer in _entered(base, forms, enters):
        for form in (tokenizer, *_entered(base, tokenizer, enters)):
            described = _metadata_in(base, form, parent)
            if described is not None:
                yield described


def _entered(base: str, folder: str, enters: Enters) -> Iterator[str]:
    """Yields the paths of the folders in a folder that are entered."""
    for name in _folders(base + folder):
        if enters(inner := f"{folder}{name}/"):
            yield inner


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _folders(folder: str) -> list[str]:
    """Returns the names of the folders in a folder in natural order; none if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir()]
    except OSError:
        return []
    try:
        return _packtok.natural_sorted(names)
    except UnicodeEncodeError:
        # Names that are not UTF-8 have no natural order.
        return sorted(names)


def _metadata_in(base: str, folder: str, parent: str | None = None) -> Described | None:
    """Returns the metadata file in a folder. The folder is not listed: it may contain a million files."""
    for name in METADATA_NAMES:
        file = _stat(f"{base}{folder}{name}")
        if file is None:
            continue
        details = _stat(f"{base}{folder}{details_name(name)}")
        if details is None:
            return Described(f"{folder}{name}", file.st_mtime_ns, file.st_size, parent)
        modified_ns = max(file.st_mtime_ns, details.st_mtime_ns)
        return Described(f"{folder}{name}", modified_ns, file.st_size + details.st_size, parent)
    return None


def _stat(path: str) -> os.stat_result | None:
    """Returns the status of a file; ``None`` if there is no regular file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def described_at(base: Path, folder: Path) -> Described | None:
    """Returns the metadata file in a folder if `described_below` yields it; other folders are not read."""
    try:
        parts = folder.resolve().relative_to(base.resolve()).parts
    except ValueError:
        return None
    if any(part.startswith(".") for part in parts):
        return None
    for i in range(1, len(parts) + 1):
        if parts[i - 1] in _SKIPPED:
            return None
        described = _metadata_in(f"{base}/", "/".join(parts[:i]) + "/")
        if described is None:
            continue
        below = parts[i:]
        if not below:
            return described
        if len(below) not in (2, 3) or below[0] != TOKENIZED_FOLDER:
            return None
        return _metadata_in(f"{base}/", "/".join(parts) + "/", described.path)
    return None


def dataset_name(described: Described, own_name: str, parent_name: str | None) -> str:
    """Returns the name of a dataset, given those in its metadata and in its parent's."""
    if described.parent is None or parent_name is None:
        return own_name
    # The folder ``tokenized`` is beside the parent's metadata file.
    folders = described.path.split("/")[described.parent.count("/") :]
    return "_".join([f"{parent_name}-{TOKENIZED_FOLDER}", *folders[1:-1]])
