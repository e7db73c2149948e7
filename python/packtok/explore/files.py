"""Opens files below one folder, and none outside it.

A path from a URL or from metadata is resolved first, so that a link to another place below the folder works.
The resolved path is then opened one folder at a time, relative to the folder before and without following
links. A link that replaces a part of the path in between makes opening fail, and cannot lead outside.
"""

import os
import stat
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from packtok.errors import PacktokError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a named pipe would wait for a writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

# A read allocates as many bytes as it may return.
_BLOCK_BYTES = 1 << 20
# The limit keeps the recursion over the parts of a path shallow.
_MAX_PLAIN_DEPTH = 100


class NotServedError(PacktokError):
    """A path that is missing, is no regular file, or leads outside; the page does not tell them apart."""


@dataclass(frozen=True)
class Identity:
    """The properties that distinguish one version of a file from another."""

    device: int
    inode: int
    bytes: int
    modified_ns: int


class OpenFile:
    """An open regular file, which is closed when nothing refers to it."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._file = open(descriptor, "rb", buffering=0)  # noqa: SIM115
        self.name = name
        """Path below the folder, with slashes."""
        status = os.fstat(descriptor)
        self.identity = Identity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)

    @property
    def path(self) -> str:
        """A path that opens exactly this file, as long as it is open."""
        return f"/proc/self/fd/{self._file.fileno()}"

    def num_descriptors(self) -> int:
        """Returns how many descriptors of this process refer to the file."""
        number = 0
        for descriptor in os.listdir("/proc/self/fd"):
            try:
                status = os.fstat(int(descriptor))
            except OSError:
                # Another thread has closed it.
                continue
            number += (status.st_dev, status.st_ino) == (self.identity.device, self.identity.inode)
        return number

    def part(self, start: int, max_bytes: int) -> bytes:
        """Returns the bytes from ``start`` on, at most ``max_bytes``."""
        return os.pread(self._file.fileno(), max_bytes, start)

    def content(self, max_bytes: int) -> bytes:
        """Returns the content of the file.

        Raises:
            NotServedError: If it has more than ``max_bytes``.
        """
        blocks: list[bytes] = []
        num_bytes = 0
        while block := os.pread(self._file.fileno(), _BLOCK_BYTES, num_bytes):
            blocks.append(block)
            num_bytes += len(block)
            if num_bytes > max_bytes:
                raise NotServedError(f"{self.name} has more than {max_bytes:,} bytes, too many for a page")
        return b"".join(blocks)


class Root:
    """The folder whose files are served.

    Args:
        folder: The folder.
        only: Names of the only files in it to serve; ``None`` serves all files below it.
    """

    def __init__(self, folder: Path, only: Collection[str] | None = None) -> None:
        self.folder = Path(os.path.realpath(folder))
        self._prefix = f"{self.folder}/".replace("//", "/")
        self._only = None if only is None else frozenset(only)
        self._descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def open(self, name: str) -> OpenFile:
        """Opens a file by its path below the folder.

        Raises:
            NotServedError: If it is missing, no regular file, or outside the folder.
        """
        parts = self._parts(name)
        try:
            descriptor = self._walk(parts)
        except OSError:
            raise _not_served(name) from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise _not_served(name)
        return OpenFile(descriptor, name)

    def has_file(self, name: str) -> bool:
        """Returns whether `open` opens a file."""
        try:
            self.open(name)
        except NotServedError:
            return False
        return True

    def contained(self, names: Iterable[str], known: dict[str, bool] | None = None) -> list[bool]:
        """Returns whether each path is below the folder after links are followed. The files may be missing.

        Args:
            names: The paths.
            known: What an earlier call found, which this one adds to.
        """
        plain = {} if known is None else known
        plain[""] = True
        return [
            (name.count("/") < _MAX_PLAIN_DEPTH and self._is_plain(name, plain)) or self._is_inside(name)
            for name in names
        ]

    def contains(self, name: str) -> bool:
        """Returns whether a path is below the folder after links are followed; the file may be missing."""
        return self.contained([name])[0]

    def _is_inside(self, name: str) -> bool:
        try:
            self._parts(name)
        except NotServedError:
            return False
        return True

    def _is_plain(self, name: str, plain: dict[str, bool]) -> bool:
        """Returns whether no part of a path is a link; ``plain`` caches the result for folders."""
        known = plain.get(name)
        if known is None:
            above, _, last = name.rpartition("/")
            known = last not in ("", ".", "..") and self._is_plain(above, plain)
            if known:
                try:
                    status = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
                except (OSError, ValueError):
                    known = False
                else:
                    known = not stat.S_ISLNK(status.st_mode)
            plain[name] = known
        return known

    def names(self, folder: str) -> list[str]:
        """Returns the names in a folder; none if it cannot be read or is outside."""
        try:
            descriptor = self._folder(self._parts(folder))
        except (NotServedError, OSError):
            return []
        try:
            return os.listdir(descriptor)
        finally:
            os.close(descriptor)

    def _parts(self, name: str) -> tuple[str, ...]:
        """Returns the parts of the resolved path below the folder."""
        if self._only is not None and name not in self._only:
            raise _not_served(name)
        try:
            resolved = os.path.realpath(f"{self._prefix}{name}")
        except (OSError, ValueError):
            raise _not_served(name) from None
        if not f"{resolved}/".startswith(self._prefix):
            raise _not_served(name)
        return tuple(filter(None, resolved[len(self._prefix) :].split("/")))

    def _walk(self, parts: tuple[str, ...]) -> int:
        folder = self._folder(parts[:-1])
        try:
            return os.open(parts[-1] if parts else ".", _FILE, dir_fd=folder)
        finally:
            os.close(folder)

    def _folder(self, parts: tuple[str, ...]) -> int:
        descriptor = os.dup(self._descriptor)
        for part in parts:
            try:
                inner = os.open(part, _FOLDER, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = inner
        return descriptor


def _not_served(name: str) -> NotServedError:
    return NotServedError(f"{name}: no such file below the folder that is served")
