"""The datasets of a base directory: searched in its index, and described by the metadata files themselves."""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from packtok import _packtok
from packtok.catalog.discovery import described_below
from packtok.catalog.entries import Broken, entries_of
from packtok.catalog.index import INDEX_NAME, Index
from packtok.catalog.index_file import index_content
from packtok.catalog.schema import (
    DETAILS_VERSION,
    METADATA_NAMES,
    DatasetMetadata,
    details_name,
    mapping_of_bytes,
    metadata_of_dict,
)
from packtok.catalog.search import Query, SearchResult
from packtok.data.token_sources import listed_pbins
from packtok.errors import ConfigError
from packtok.explore.files import Identity, NotServedError, OpenFile, Root
from packtok.tokenizer.find import TOKENIZER_FILE

# YAML is parsed in Python, and a short text in it can describe a large value.
_MAX_METADATA_BYTES = {".json": 4 << 20, ".yaml": 256 << 10, ".yml": 256 << 10}
_MAX_DETAILS_BYTES = 32 << 20
T = TypeVar("T")
_LINKS_SECONDS = 10.0
_MAX_OF_ONE_NAME = 10
# Without an index, pages of the first second wait for the folders; most bases take no longer.
_WAIT_SECONDS = 1.0
# The limits of the search of folders. Its recursion is as deep as they are.
_MAX_DEPTH = 64
_MAX_FOLDERS = 100_000
_OUTSIDE = "A dataset outside the base directory"


@dataclass(frozen=True)
class Dataset:
    """A described dataset: its metadata, details and index entry."""

    folder: str
    """Path of its folder below the base."""
    metadata: DatasetMetadata
    details: dict[str, Any]
    file: str
    """Path of the metadata file below the base."""
    entry: dict[str, Any] | None = None
    """The row of the index; ``None`` if the index does not have it."""
    is_named: bool = False
    """Whether the index file has its name, and no other dataset has that name."""
    parent: dict[str, Any] | None = None
    children: list[dict[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name in the index; without an entry, the name in the metadata."""
        return self.metadata.name if self.entry is None else str(self.entry["name"])


@dataclass(frozen=True)
class TokenizerFile:
    """A tokenizer next to a dataset."""

    path: str
    name: str
    """A label, which another tokenizer may have too."""
    fingerprint: str | None
    """The fingerprint that the dataset records, if it does."""


class Walk:
    """Decides which folders the page itself searches for metadata files: none outside, and a limited number.

    Args:
        root: The base directory.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self._known: dict[str, bool] = {}
        self._num_folders = 0
        self.is_cut = False
        """Whether folders were left out because they are too deep or too many."""

    def enters(self, folder: str) -> bool:
        """Returns whether to read a folder, whose path ends with a slash."""
        self._num_folders += 1
        if folder.count("/") > _MAX_DEPTH or self._num_folders > _MAX_FOLDERS:
            self.is_cut = True
            return False
        return self._root.contained([folder.rstrip("/")], self._known)[0]


class Catalog:
    """The index and the metadata files below a folder. Threads may share it."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._links: tuple[float, dict[str, bool]] = (0.0, {})
        self._open: tuple[Identity | None, Index | Future[Index]] | None = None
        self._empty: Index | None = None
        self._wait_until = 0.0
        self._walk = Walk(root)
        self._tokenizers: tuple[Index, list[TokenizerFile]] | None = None

    @property
    def has_index(self) -> bool:
        """Whether the base directory had an index file when it was last searched."""
        with self._lock:
            return self._open is not None and self._open[0] is not None

    @property
    def is_building(self) -> bool:
        """Whether the folders are still being searched, so that `index` has no datasets yet."""
        with self._lock:
            opened = None if self._open is None else self._open[1]
        return isinstance(opened, Future) and not opened.done()

    @property
    def is_cut(self) -> bool:
        """Whether the search of the folders left some out."""
        return not self.has_index and self._walk.is_cut

    def index(self) -> Index:
        """Returns the index of the base, opened again if it was replaced.

        Without one, a thread makes one of the folders. Until it is made, an index without datasets is
        returned, after `_WAIT_SECONDS` at most.

        Raises:
            PacktokError: If the file is no index.
        """
        with self._lock:
            file = self._index_file()
            identity = None if file is None else file.identity
            if self._open is None or self._open[0] != identity:
                opened = self._building() if file is None else self._index_in(file)
                self._open = (identity, opened)
            opened = self._open[1]
        return opened if isinstance(opened, Index) else self._built(opened)

    def _building(self) -> "Future[Index]":
        """Returns the index that a thread makes of the folders."""
        future: Future[Index] = Future()
        self._walk = walk = Walk(self._root)
        self._wait_until = time.monotonic() + _WAIT_SECONDS

        def build() -> None:
            try:
                future.set_result(self._index_of_folders(walk))
            except BaseException as error:
                future.set_exception(error)

        # The process does not wait for a daemon at its end.
        threading.Thread(target=build, daemon=True).start()
        return future

    def _built(self, future: "Future[Index]") -> Index:
        """Returns the index that a thread makes, or one without datasets if that takes longer."""
        wait([future], max(0.0, self._wait_until - time.monotonic()))
        if not future.done():
            with self._lock:
                if self._empty is None:
                    self._empty = _index_in_memory([], [])
                return self._empty
        if future.exception() is not None:
            # The next page tries again.
            with self._lock:
                if self._open is not None and self._open[1] is future:
                    self._open = None
        return future.result()

    def search(self, query: Query) -> SearchResult:
        """Returns the datasets that a query finds. Datasets outside the base show only that they exist."""
        result = self.index().find(query)
        return replace(result, entries=self._served(result.entries))

    def broken(self, limit: int) -> tuple[list[Broken], int]:
        """Returns the first metadata files that cannot be read, with reasons, and the number of all."""
        broken = self.index().broken()
        shown = []
        for file in broken[:limit]:
            # The reason may be about either file, and quote it.
            if all(self._root.contained([file.path, _details_path(file.path)])):
                reason = file.reason.replace(f"{self._root.folder}/", "").removeprefix(f"{file.path}: ")
                shown.append(replace(file, reason=reason))
        return shown, len(broken)

    def dataset(self, folder: str) -> Dataset:
        """Returns the dataset in a folder.

        Raises:
            NotServedError: If there is no metadata file, or none that can be read.
        """
        described = self.described(folder)
        file = described.file
        index = self.index()
        entry = index.entry(file)
        parent = None if entry is None or entry["parent"] is None else index.entry(entry["parent"])
        return replace(
            described,
            entry=entry,
            is_named=self.has_index and entry is not None and index.paths_of(entry["name"]) == [file],
            parent=None if parent is None else self._served([parent])[0],
            children=self._served(index.children(file)),
        )

    def described(self, folder: str) -> Dataset:
        """Returns the dataset in a folder without its entry in the index, its parent and its children.

        Raises:
            NotServedError: If there is no metadata file, or none that can be read.
        """
        file = self._metadata_file(folder)
        values = self._parsed(file, _MAX_METADATA_BYTES[Path(file.name).suffix])
        path = self._root.folder / file.name
        metadata = _checked(lambda: metadata_of_dict(values, path), self._root.folder)
        return Dataset(folder, metadata, self._details(file.name), file.name)

    def has_dataset(self, folder: str) -> bool:
        """Returns whether a folder has a metadata file."""
        try:
            self._metadata_file(folder)
        except NotServedError:
            return False
        return True

    def details(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Returns packtok's details of the dataset of an entry; empty if there are none."""
        return self._details(str(entry["path"]))

    def token_files(self, dataset: Dataset) -> list[str]:
        """Returns the paths of the token files below the base, in the order of `packtok.get_dataset`."""
        info = dataset.metadata.tokenized_info
        if info is None:
            return []
        if listed := listed_pbins(dataset.details):
            return [os.path.normpath(f"{dataset.folder}/{name}") for name in listed]
        # The prefix starts at the metadata or at the data. In a folder that was moved, the files are next to
        # the metadata.
        prefix, data = info.file_prefix, dataset.metadata.dataset_path or ""
        for start in (prefix, os.path.join(data, prefix), Path(prefix).name):
            if files := self._files_with_prefix(dataset.folder, start, info.file_extension.removeprefix(".")):
                return files
        return []

    def _files_with_prefix(self, dataset_folder: str, file_prefix: str, suffix: str) -> list[str]:
        prefix = Path(self._root.folder, dataset_folder, file_prefix)
        if not prefix.is_relative_to(self._root.folder) or "\0" in file_prefix:
            return []
        folder = str(prefix.parent.relative_to(self._root.folder))
        start = "" if file_prefix.endswith("/") else prefix.name
        names = [
            name
            for name in self._root.names(folder)
            if name.startswith(start) and name.endswith(f".{suffix}")
        ]
        return [f"{folder}/{name}" for name in _packtok.natural_sorted(names)]

    def tokenizers(self, limit: int) -> list[TokenizerFile]:
        """Returns tokenizer files next to datasets below the base, most frequent names first."""
        index = self.index()
        with self._lock:
            if self._tokenizers is None or self._tokenizers[0] is not index:
                self._tokenizers = (index, list(self._tokenizer_files(index, limit)))
            return self._tokenizers[1]

    def _tokenizer_files(self, index: Index, limit: int) -> Iterator[TokenizerFile]:
        for name, _ in index.find(Query(limit=0)).facets["tokenizer"][:limit]:
            # Datasets may name different tokenizers alike: each fingerprint is another one.
            fingerprints: set[str | None] = set()
            for entry in index.find(Query(tokenizer=(name,), limit=_MAX_OF_ONE_NAME)).entries:
                path = f"{folder_of(entry)}/{TOKENIZER_FILE}"
                is_there = self._root.contains(path) and (self._root.folder / path).is_file()
                if not entry["tokenizer"] or not is_there:
                    continue
                fingerprint = self._recorded_fingerprint(entry)
                if fingerprint not in fingerprints:
                    fingerprints.add(fingerprint)
                    yield TokenizerFile(path, name, fingerprint)

    def _recorded_fingerprint(self, entry: Mapping[str, Any]) -> str | None:
        try:
            fingerprint = self.details(entry).get("tokenizer_fingerprint")
        except NotServedError:
            return None
        return fingerprint if isinstance(fingerprint, str) else None

    def _index_file(self) -> OpenFile | None:
        try:
            return self._root.open(INDEX_NAME)
        except NotServedError:
            return None

    def _index_in(self, file: OpenFile) -> Index:
        """Returns the index in an open file.

        SQLite opens files by their paths only, and also looks up the path of a descriptor. So the index could
        be replaced by a link to another place in between, and the file that SQLite opened is compared. The
        lock of the index is held, so that nothing else opens it.
        """
        before = file.num_descriptors()
        index = Index(self._root.folder / INDEX_NAME)
        if file.num_descriptors() == before:
            index.close()
            raise NotServedError("the index was replaced while it was opened; load the page again")
        return index

    def _index_of_folders(self, walk: Walk) -> Index:
        described = list(described_below(self._root.folder, walk.enters))
        # Both files must be inside, because an entry has values from both.
        known: dict[str, bool] = {}
        files = self._root.contained([dataset.path for dataset in described], known)
        details = self._root.contained([_details_path(dataset.path) for dataset in described], known)
        inside = [
            dataset for dataset, *are_inside in zip(described, files, details, strict=True) if all(are_inside)
        ]
        entries = list(entries_of(self._root.folder, inside))
        broken = [entry for entry in entries if isinstance(entry, Broken)]
        return _index_in_memory([entry for entry in entries if isinstance(entry, dict)], broken)

    def _served(self, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Returns entries with their folders; entries whose files are outside the base are reduced."""
        known = self._known_links()
        are_inside = self._root.contained([entry["path"] for entry in entries], known)
        # An entry has values from its raw dataset too.
        parents = self._root.contained([entry["parent"] or "" for entry in entries], known)
        return [
            {**entry, "folder": folder_of(entry)} if all(is_inside) else _hidden(entry)
            for entry, *is_inside in zip(entries, are_inside, parents, strict=True)
        ]

    def _known_links(self) -> dict[str, bool]:
        """Returns which paths were not links within the last seconds; network file systems check slowly.

        Pages show values of the index only, so an outdated answer reveals nothing.
        """
        now = time.monotonic()
        with self._lock:
            if now > self._links[0]:
                self._links = (now + _LINKS_SECONDS, {})
            return self._links[1]

    def _metadata_file(self, folder: str) -> OpenFile:
        for name in METADATA_NAMES:
            try:
                return self._root.open(f"{folder}/{name}")
            except NotServedError:
                continue
        raise NotServedError(f"{folder}: no dataset in this folder")

    def _details(self, metadata_path: str) -> dict[str, Any]:
        try:
            file = self._root.open(_details_path(metadata_path))
        except NotServedError:
            return {}
        values = self._parsed(file, _MAX_DETAILS_BYTES)
        return values if values.get("packtok_metadata") == DETAILS_VERSION else {}

    def _parsed(self, file: OpenFile, max_bytes: int) -> dict[str, Any]:
        content = file.content(max_bytes)
        path = self._root.folder / file.name
        return _checked(lambda: mapping_of_bytes(content, path), self._root.folder)


def _index_in_memory(entries: list[dict[str, Any]], broken: list[Broken]) -> Index:
    """Returns an index whose file is removed as soon as it is open."""
    with tempfile.TemporaryDirectory(prefix="packtok-explore-") as folder:
        path = Path(folder, INDEX_NAME)
        path.write_bytes(index_content(entries, broken))
        return Index(path)


def _hidden(entry: dict[str, Any]) -> dict[str, Any]:
    unknown: dict[str, Any] = dict.fromkeys(entry)
    return {**unknown, "name": _OUTSIDE, "folder": None, "entry": "{}", "context": ""}


def _checked(read: Callable[[], T], folder: Path) -> T:
    """Returns the result of ``read``. Its errors become errors of the page."""
    try:
        return read()
    except (ConfigError, ValueError, RecursionError) as error:
        raise NotServedError(str(error).replace(f"{folder}/", "")[:1000]) from None


def _details_path(metadata_path: str) -> str:
    folder, _, name = metadata_path.rpartition("/")
    return f"{folder}/{details_name(name)}"


def folder_of(entry: Mapping[str, Any]) -> str:
    """Returns the folder of a metadata file."""
    return str(entry["path"]).rpartition("/")[0]
