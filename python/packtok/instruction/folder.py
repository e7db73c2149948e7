"""A folder that appears under its name when all of its files are complete.

Files are written into a folder with another name next to it. A lock marks that folder as in use. A folder
that a killed run left behind has no lock; the next run for the same output removes it.
"""

import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

_ENDING = ".unfinished"
_HELD_BY_OTHERS = (errno.EACCES, errno.EAGAIN)


class NewFile:
    """A file that is created, and synced when it is complete.

    Python names a file only in errors of opening it. Here, errors of writing and closing name it too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("xb")

    def write(self, content: bytes) -> None:
        """Appends bytes, which may stay in a buffer until the file is closed."""
        with _naming(self._path):
            self._file.write(content)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with _naming(self._path), self._file:
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Adds a path to errors of the system that have no path."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


@contextmanager
def unfinished(folder: Path) -> Iterator[Path]:
    """Yields a new, empty folder next to ``folder``, and removes it afterwards if it was not published.

    If an exception has the attribute ``keeps_folder``, the folder is kept for the next run to remove, because
    the message refers to a file in it.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(folder)
    path, lock = _new(folder)
    try:
        yield path
    except BaseException as error:
        if not getattr(error, "keeps_folder", False):
            shutil.rmtree(path, ignore_errors=True)
        raise
    finally:
        os.close(lock)
    shutil.rmtree(path, ignore_errors=True)


def publish(path: Path, folder: Path) -> None:
    """Gives a complete folder its final name, replacing an existing folder.

    After a kill, there is the old folder or the new folder, or, between two renames, neither; never a folder
    with files of both.
    """
    _sync(path)
    replaced = None
    if folder.exists():
        replaced = _free_name(folder)
        folder.rename(replaced)
    try:
        path.rename(folder)
    except OSError:
        if replaced is not None:
            replaced.rename(folder)
        raise
    _sync(folder.parent)
    if replaced is not None:
        shutil.rmtree(replaced, ignore_errors=True)


def check_replaceable(folder: Path, is_ours: Callable[[str], bool]) -> None:
    """Raises a `FileExistsError` if replacing a folder would remove files of another command."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise FileExistsError(
            errno.EEXIST, "is no folder; remove it, or change settings.dst_path", str(folder)
        )
    others = (
        sorted(path.name for path in folder.iterdir() if not is_ours(path.name)) if folder.exists() else []
    )
    if others:
        raise FileExistsError(
            errno.EEXIST,
            "replacing the folder of the output would remove a file of yours; move it",
            str(folder / others[0]),
        )


def _new(folder: Path) -> tuple[Path, int]:
    while True:
        path = _free_name(folder)
        path.mkdir()
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        # On file systems that cannot lock folders, no run removes the folders of another.
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.exists():
            return path, lock
        # Another run removed the folder before this one locked it.
        os.close(lock)


def _free_name(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.{secrets.token_hex(4)}{_ENDING}")


def _remove_abandoned(folder: Path) -> None:
    pattern = re.compile(rf"\.{re.escape(folder.name)}\.[0-9a-f]{{8}}{re.escape(_ENDING)}")
    for path in folder.parent.iterdir():
        if pattern.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            _remove_if_abandoned(path)


def _remove_if_abandoned(path: Path) -> None:
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    except OSError:
        # The folder is in use, or the file system cannot lock folders.
        pass
    finally:
        os.close(lock)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with _naming(folder):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
