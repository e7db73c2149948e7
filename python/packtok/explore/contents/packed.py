"""Open token files, and the facts that a page shows about one without reading the whole file."""

import os
import re
import tempfile
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from packtok._packtok import TOKEN_FORMATS, PbinReader, Reshaper, find_token_marker, verify
from packtok.errors import PacktokError
from packtok.explore.files import NotServedError, OpenFile, Root

T = TypeVar("T")
D = TypeVar("D")
ReadAs = tuple[str | None, str | None, str | None]
_MAX_OPEN = 64
# One thread at a time opens all files of a dataset, so that the process has descriptors for them.
_DESCRIPTORS = threading.Lock()
# The items of a dataset are made of all its files at once, each of which takes a descriptor until then.
MAX_GROUP_FILES = 500
# A histogram reads the index entry of every document.
MAX_HISTOGRAM_DOCUMENTS = 20_000_000
MAX_SOURCES_SHOWN = 200
# All bytes of a file up to this length are verified for its page.
MAX_VERIFIED_BYTES = 1 << 20


class Recent:
    """The values that were used last, by key; older ones are dropped."""

    def __init__(self, max_values: int) -> None:
        self._max_values = max_values
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def value(self, key: Hashable, make: Callable[[], T]) -> T:
        """Returns the value for a key, from ``make`` if there is none."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                value: T = self._values[key]
                return value
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._max_values:
                self._values.popitem(last=False)
        return value


@dataclass(frozen=True)
class Sources:
    """The sources of a file that a page shows; a file may have a million."""

    first: list[dict[str, Any]]
    number: int
    bytes: int


@dataclass(frozen=True)
class SingleFile:
    """The only file of a site, as its user names it."""

    path: str
    read_as: ReadAs
    """The arguments ``format``, ``input_dtype`` and ``boundaries`` of `PbinReader`."""


class Packed:
    """An open token file. A pbin stays open, so that the compiled module can open it again by its descriptor.

    Args:
        file: The file.
        single: How to open a file that is no pbin, by its name, because other files beside it belong to it.
            Default: by its descriptor.
    """

    def __init__(self, file: OpenFile, single: SingleFile | None = None) -> None:
        self.file = file
        self.name = file.name
        self.path = file.path if single is None else single.path
        self.read_as: ReadAs = (None, None, None) if single is None else single.read_as
        self.reader = PbinReader(self.path, *self.read_as)
        self.metadata: dict[str, Any] = self.reader.metadata or {}
        self._faults: list[str] = []
        if self.reader.dialect in TOKEN_FORMATS:
            self.metadata = (find_token_marker(self.path) or {}).get("plan", {})

    @property
    def identity(self) -> Hashable:
        """A value that distinguishes this version of the file from others."""
        return self.file.identity

    @property
    def num_documents(self) -> int:
        """Number of documents."""
        return len(self.reader)

    @property
    def eod_id(self) -> int | None:
        """The id that closes documents, if the file records it."""
        eod_id = (self.metadata.get("eod") or {}).get("id")
        return eod_id if isinstance(eod_id, int) else None

    @property
    def tokenizer_name(self) -> str | None:
        """The name of the tokenizer, if the file records it."""
        name = (self.metadata.get("tokenizer") or {}).get("name")
        return None if name is None else str(name)

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the tokenizer, if the file records it."""
        fingerprint = (self.metadata.get("tokenizer") or {}).get("fingerprint")
        return None if fingerprint is None else str(fingerprint)

    @cached_property
    def sources(self) -> Sources:
        """The sources that the file lists, none if they are damaged. All of them are read, but only once."""
        sources: list[dict[str, Any]] = self._read(lambda: self.reader.sources, [])
        return Sources(sources[:MAX_SOURCES_SHOWN], len(sources), sum(source["bytes"] for source in sources))

    @cached_property
    def histogram(self) -> list[tuple[int, int, int]]:
        """Lengths of documents as (from, below, documents); empty if they are too many or damaged."""
        if self.num_documents > MAX_HISTOGRAM_DOCUMENTS:
            return []
        return self._read(self.reader.document_lengths_histogram, [])

    @property
    def is_verified(self) -> bool:
        """Whether `faults` covers every byte of the file."""
        return self.reader.file_bytes <= MAX_VERIFIED_BYTES

    @cached_property
    def faults(self) -> list[str]:
        """The damage that is found without reading the data of a large file."""
        # All of them record the damage that they meet.
        _ = self.sources, self.histogram
        self._verify()
        counts = self.metadata.get("counts") or {}
        for key, number in (("documents", self.num_documents), ("tokens", self.reader.num_tokens)):
            if counts.get(key, number) != number:
                self._faults.append(f"the trailer counts {counts[key]:,} {key}, the file has {number:,}")
        if self.is_verified and not self._faults:
            names = dict(zip(("format", "input_dtype", "boundaries"), self.read_as, strict=True))
            self._read(lambda: verify(path=self.path, tokenizer=None, on_progress=None, **names), None)
        return list(dict.fromkeys(self._faults))

    def lengths(self) -> npt.NDArray[np.uint64] | None:
        """Returns the number of tokens of each document; ``None`` if the file is damaged."""
        return self._read(self.reader.document_lengths, None)

    def _verify(self) -> None:
        """Verifies the checksums of the trailer, as far as that needs no data."""
        names = dict(zip(("format", "input_dtype", "boundaries"), self.read_as, strict=True))
        self._read(lambda: Reshaper([str(self.path)], tokenizer=None, **names), None)

    def _read(self, read: Callable[[], T], default: D) -> T | D:
        """Returns the result of ``read``, and ``default`` if the file is damaged there, which is recorded."""
        try:
            return read()
        except (PacktokError, ValueError) as error:
            self._faults.append(str(error).replace(self.path, self.name).removeprefix(f"{self.name}: "))
            return default


@dataclass(frozen=True)
class FileGroup:
    """Token files that share one numbering of documents: one file, or all files of a dataset in order."""

    name: str
    """Path below the folder: of the file, or of the folder of the dataset."""
    files: tuple[str, ...]
    """Paths of the files."""
    identities: tuple[Hashable, ...]
    starts: tuple[int, ...]
    """The number of the first document of each file, and the number of all documents."""
    num_tokens: int

    @property
    def is_dataset(self) -> bool:
        """Whether the name is that of a dataset and not of a file."""
        return self.files != (self.name,)

    @property
    def num_documents(self) -> int:
        """Number of documents in all files."""
        return self.starts[-1]

    def place(self, document: int) -> tuple[str, int]:
        """Returns the file of a document, and its number in that file."""
        i = bisect_right(self.starts, document) - 1
        return self.files[i], document - self.starts[i]


class PackedFiles:
    """Opens token files below a folder, and keeps some of them open.

    Args:
        root: The folder.
        single: The only token file, if one is served. Others are opened by their descriptors, so that nothing
            beside them is read.
    """

    def __init__(self, root: Root, single: SingleFile | None = None) -> None:
        self._root = root
        self._single = single
        self._recent = Recent(_MAX_OPEN)
        self._groups = Recent(_MAX_OPEN)

    def open(self, name: str) -> Packed:
        """Returns the token file at a path below the folder.

        Raises:
            NotServedError: If it is not served, or no token file.
        """
        file = self._root.open(name)
        is_single = self._single is not None and os.path.basename(self._single.path) == name

        def opened() -> Packed:
            single = self._single if is_single and not _is_pbin(file) else None
            try:
                return Packed(file, single)
            except (PacktokError, ValueError) as error:
                # The message has the path that was opened; the page shows the name instead.
                path = file.path if single is None else single.path
                raise NotServedError(str(error).replace(path, name)) from None

        return self._recent.value((file.identity, name), opened)

    def group(self, name: str, files: Sequence[str]) -> FileGroup:
        """Returns the group of some token files, whose documents are counted again if a file was replaced.

        Raises:
            NotServedError: If a file cannot be read, so that the numbers after it are unknown, or there are
                no files or too many.
        """
        if not 0 < len(files) <= MAX_GROUP_FILES:
            raise NotServedError(
                f"{name}: the dataset has {len(files):,} token files, expected 1 to {MAX_GROUP_FILES} to "
                "number all documents; open one of the files instead"
            )
        identities = tuple(self._root.open(file).identity for file in files)

        def counted() -> FileGroup:
            starts, num_tokens = [0], 0
            for file in files:
                packed = self.open(file)
                starts.append(starts[-1] + packed.num_documents)
                num_tokens += packed.reader.num_tokens
            return FileGroup(name, tuple(files), identities, tuple(starts), num_tokens)

        return self._groups.value((name, *files, identities), counted)

    def opened(self, group: FileGroup) -> list[OpenFile]:
        """Returns the files of a group, all open.

        Raises:
            NotServedError: If a file was replaced or removed since the documents were counted.
        """
        files = [self._root.open(file) for file in group.files]
        for file, identity in zip(files, group.identities, strict=True):
            if file.identity != identity:
                raise NotServedError(f"{file.name} was replaced at this moment; load the page again")
        return files

    @contextmanager
    def paths(self, group: FileGroup) -> Iterator[tuple[list[str], ReadAs]]:
        """Yields paths at which the compiled module opens the files of a group, and how it reads them.

        Raises:
            NotServedError: If a file was replaced or removed since the documents were counted.
            ValueError: If the block raises one or a `PacktokError`; it names the files as the page does.
        """
        if len(group.files) > 1:
            with _DESCRIPTORS, _linked(self.opened(group)) as paths:
                yield paths, (None, None, None)
            return
        packed = self.open(group.files[0])
        if packed.path == packed.file.path:
            with _linked([packed.file]) as paths:
                yield paths, packed.read_as
            return
        # A file of another format is opened by its name.
        with _named({packed.path: packed.name}):
            yield [packed.path], packed.read_as


@contextmanager
def _linked(files: Sequence[OpenFile]) -> Iterator[list[str]]:
    """Yields paths of open files that have the same names each time, because a plan depends on them."""
    with tempfile.TemporaryDirectory(prefix="packtok-explore-") as folder:
        paths = [os.path.join(folder, f"{i}.pbin") for i in range(len(files))]
        for path, file in zip(paths, files, strict=True):
            os.symlink(file.path, path)
        with _named(dict(zip(paths, (file.name for file in files), strict=True))):
            yield paths


@contextmanager
def _named(names: dict[str, str]) -> Iterator[None]:
    """Replaces the paths in the messages of errors."""
    try:
        yield
    except (PacktokError, ValueError) as error:
        pattern = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        raise ValueError(re.sub(pattern, lambda match: names[match[0]], str(error))) from None


def _is_pbin(file: OpenFile) -> bool:
    try:
        return PbinReader(file.path).dialect not in TOKEN_FORMATS
    except (PacktokError, ValueError):
        return False
