"""SHA-256 of the files of a dataset: computed from their bytes, or taken from a file of `sha256sum`."""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO

from packtok.catalog.cards.facts import CardFile
from packtok.errors import ConfigError
from packtok.progress import Progress

_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def hashed(
    files: Iterable[CardFile], known: Mapping[str, str], on_progress: Progress | None = None
) -> tuple[CardFile, ...]:
    """Returns the files with their SHA-256; those whose absolute path is in ``known`` are not read.

    Raises:
        ConfigError: If a file has changed while it was read.
        OSError: If a file cannot be read.
    """
    listed = [(file, known.get(os.path.realpath(file.file))) for file in files]
    counts = {"bytes_read": 0, "total_bytes": sum(file.bytes for file, sha256 in listed if sha256 is None)}
    return tuple(
        replace(file, sha256=_sha256(file, counts, on_progress) if sha256 is None else sha256)
        for file, sha256 in listed
    )


def _sha256(file: CardFile, counts: dict[str, int], on_progress: Progress | None) -> str:
    before = counts["bytes_read"]
    with file.file.open("rb", buffering=0) as opened:
        digest = hashlib.file_digest(_Counted(opened, counts, on_progress), "sha256")
    if counts["bytes_read"] - before != file.bytes:
        raise ConfigError(f"{file.file}: the file has changed while it was read; run the command again")
    return digest.hexdigest()


class _Counted:
    """A file that counts the bytes read from it."""

    def __init__(self, file: IO[bytes], counts: dict[str, int], on_progress: Progress | None) -> None:
        self._file = file
        self._counts = counts
        self._on_progress = on_progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:
        number: int = self._file.readinto(buffer)  # type: ignore[attr-defined]
        self._counts["bytes_read"] += number
        if self._on_progress is not None:
            self._on_progress(dict(self._counts))
        return number


def known_hashes(path: Path) -> dict[str, str]:
    """Returns the SHA-256 by absolute path that a file of `sha256sum` lists, relative to its folder.

    Raises:
        ConfigError: If a line is anything else.
    """
    hashes = {}
    with path.open(encoding="utf-8", errors="surrogateescape") as file:
        for number, line in enumerate(file, 1):
            match = _LINE.fullmatch(line.rstrip("\n"))
            if match is None:
                raise ConfigError(
                    f"{path}: line {number} is {line.rstrip()[:100]!r}, expected a SHA-256 and a path, as "
                    "sha256sum writes"
                )
            hashes[os.path.realpath(path.parent / match[2])] = match[1]
    return hashes
