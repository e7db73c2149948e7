"""Files with URLs that packtok does not know, such as ``sftp://``, read through fsspec.

Python returns blocks of bytes. The compiled module interprets them, and calls `RemoteFiles` and `RemoteFile`
by the names of their methods.

Only this module keeps the credentials of a URL: everywhere else, the URL has ``…`` instead of them.
"""

from __future__ import annotations

import errno
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, NoReturn, TypeVar
from urllib.parse import unquote

from packtok._packtok import is_store_url, is_url

__all__ = ["ALL_FILES", "ChangedError", "RemoteFile", "RemoteFiles", "without_credentials"]

T = TypeVar("T")

_HIDDEN = "…"
_PARTS = re.compile(r"(?P<scheme>[^:/]+)://(?:(?P<user>[^/]*)@)?(?P<host>[^/]*)(?P<path>.*)", re.DOTALL)
# Entries by which a file system may identify a version of a file.
_VERSIONS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "modified", "created")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_MAX_CHARS = 300
_PATIENCE_SECONDS = 60.0
# Schemes that fsspec knows only by another name, with the options that make up the difference.
_ALIASES: dict[str, tuple[str, dict[str, Any]]] = {
    "ftps": ("ftp", {"tls": True}),
    "s3n": ("s3", {}),
    "scp": ("sftp", {}),
}
_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)
_NETWORK = frozenset(
    (errno.EPIPE, errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENOTCONN)
)
# Exceptions of asyncssh, paramiko, aiohttp and requests, which are not imported here, by their names.
_BROKEN_NAMES = frozenset(
    (
        "ConnectionLost",
        "SFTPConnectionLost",
        "SFTPNoConnection",
        "SSHException",
        "ClientConnectionError",
        "ClientPayloadError",
        "ChunkedEncodingError",
    )
)
_REFUSED_NAMES = frozenset(("AuthenticationException", "BadHostKeyException"))


_of_parents: list[dict[str, _Connection]] = []


class ChangedError(Exception):
    """A file was replaced after it was opened."""

    is_changed = True


class RemoteError(Exception):
    """A file that cannot be read; the text is for the user."""


def without_credentials(urls: Sequence[str], timeout: float) -> tuple[list[str], RemoteFiles | None]:
    """Returns ``urls`` without credentials, and the reader of those that packtok does not know, if any.

    Args:
        urls: Paths and URLs.
        timeout: Seconds that a read may take, and that a broken connection is tried again for.

    Raises:
        ValueError: If a URL is not valid, or nothing that is installed reads it.
    """
    files = RemoteFiles(timeout)
    foreign = [is_url(url) and not is_store_url(url) and not os.path.exists(url) for url in urls]
    public_urls = [
        files.add(url) if is_foreign else url for url, is_foreign in zip(urls, foreign, strict=True)
    ]
    return public_urls, files if any(foreign) else None


class RemoteFiles:
    """The files of all hosts of a dataset. Connects to each host once, when it is needed."""

    def __init__(self, timeout: float) -> None:
        """Starts without a URL."""
        self._timeout = timeout
        # Hosts by their public form, which has no credentials.
        self._hosts: dict[str, _Host] = {}
        self._renew()

    def _renew(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._connections: dict[str, _Connection] = {}
        # Hosts that answered once: only their calls are repeated after a broken connection.
        self._answered: set[str] = set()
        self._readable: set[str] = set()

    def __getstate__(self) -> Mapping[str, Any]:
        """Omits the connections, which belong to this process."""
        return {"_timeout": self._timeout, "_hosts": self._hosts}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._renew()

    def add(self, url: str) -> str:
        """Adds the host of a URL; returns the public form of the URL.

        Raises:
            ValueError: If the URL is not valid, or nothing that is installed reads it.
        """
        host = _Host.of(url)
        known = self._hosts.setdefault(host.public, host)
        if known != host:
            raise ValueError(
                f"{host.public}: two URLs have this host and different credentials; read each with a dataset "
                "of its own, and combine them with interleave_datasets or concat_datasets"
            )
        _file_system(host.scheme)
        return host.public + url.removeprefix(host.real)

    # --- called by the compiled module ---

    def status(self, url: str) -> tuple[int, str | None]:
        """Returns length and version of a file, which can be read."""

        def read(connection: _Connection) -> tuple[int, str | None]:
            status = connection.info(self._real(url))
            if url not in self._readable:
                _close(connection.open(self._real(url)))
            return status

        status = self.call(url, read)
        self._readable.add(url)
        return status

    def matching(self, pattern: str) -> list[tuple[str, int]]:
        """Returns URLs and lengths of the files that match a pattern."""
        return self._listed(pattern, lambda connection: connection.matching(self._real(pattern)))

    def below(self, folder: str) -> list[tuple[str, int]]:
        """Returns URLs and lengths of the files in a folder and its subfolders."""
        return self._listed(folder, lambda connection: connection.below(self._real(folder)))

    def open(self, url: str) -> RemoteFile:
        """Opens a file."""
        return RemoteFile(self, url, self._real(url))

    # --- connections ---

    def call(self, url: str, work: Callable[[_Connection], T], closed: threading.Event | None = None) -> T:
        """Calls ``work`` with the connection to the host of ``url``, again with new ones if they break.

        Gives up when ``closed`` is set.

        Raises:
            FileNotFoundError: If there is no such file.
            ChangedError: If the file was replaced.
            RemoteError: For any other reason, which it tells without credentials.
        """
        host = self._host(url)
        try:
            return self._call(host, work, closed or threading.Event())
        except Exception as error:
            public_error = _public_error(host, error)
        try:
            raise public_error from None
        finally:
            # The reference cycle through the frame would keep files open until garbage collection.
            del public_error

    def _call(self, host: _Host, work: Callable[[_Connection], T], closed: threading.Event) -> T:
        pause, end = _FIRST_PAUSE, None
        while True:
            connection = None
            try:
                connection = self._connection(host)
                result = _within(self._timeout, partial(work, connection))
                self._answered.add(host.public)
                return result
            except Exception as error:
                if host.public not in self._answered or not is_transient(error):
                    raise
                end = end or time.monotonic() + self._timeout
                if time.monotonic() + pause > end or closed.wait(pause):
                    raise
            self._forget(host, connection)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _connection(self, host: _Host) -> _Connection:
        if self._process != os.getpid():
            # Connections of a parent process must not be used, not even to close them.
            _of_parents.append(self._connections)
            self._renew()
        with self._lock:
            if host.public not in self._connections:
                self._connections[host.public] = _within(self._timeout, lambda: _Connection(host))
            return self._connections[host.public]

    def _forget(self, host: _Host, broken: _Connection | None) -> None:
        with self._lock:
            # Another thread may have replaced the connection already.
            if self._connections.get(host.public) is broken:
                self._connections.pop(host.public, None)

    def _host(self, url: str) -> _Host:
        return self._hosts[_Host.public_of(url)]

    def _real(self, url: str) -> str:
        host = self._host(url)
        return host.real + url.removeprefix(host.public)

    def _listed(
        self, url: str, work: Callable[[_Connection], Sequence[tuple[str, int]]]
    ) -> list[tuple[str, int]]:
        host, entries = self._host(url), self.call(url, work)
        return [(host.public + entry_url.removeprefix(host.real), size) for entry_url, size in entries]


class _AllFiles(RemoteFiles):
    """The files of all URLs outside of streams. These URLs contain no credentials."""

    def _host(self, url: str) -> _Host:
        host = _Host.public_of(url)
        if host not in self._hosts:
            try:
                self.add(url)
            except ValueError as error:
                # The message of the caller starts with the URL.
                raise RemoteError(str(error).removeprefix(f"{url.partition('://')[0]}://: ")) from None
        return self._hosts[host]


class RemoteFile:
    """An open file. After a broken connection, it is opened again, and must be the same file."""

    def __init__(self, files: RemoteFiles, url: str, real: str) -> None:
        """Opens the file."""
        self._files, self._url, self._real = files, url, real
        self._handle: _Handle | None = None
        self._closed = threading.Event()
        self._version = files.call(url, self._opened)
        self.bytes, self.version = self._version

    def _opened(self, connection: _Connection) -> tuple[int, str | None]:
        status = connection.info(self._real)
        self._close()
        self._handle = _Handle(connection, self._real)
        if self._closed.is_set():
            self._close()
        return status

    def read(self, start: int, stop: int) -> bytes:
        """Returns the bytes of a range, which the file had when it was opened."""
        return self._files.call(
            self._url, lambda connection: self._read(connection, start, stop), self._closed
        )

    def _read(self, connection: _Connection, start: int, stop: int) -> bytes:
        handle = self._handle
        if self._closed.is_set():
            raise RemoteError("the file is closed")
        if handle is None or handle.connection is not connection:
            if self._opened(connection) != self._version:
                raise ChangedError(self._url)
            handle = self._handle
        data = handle.read(start, stop) if handle is not None else b""
        # The version is checked after the last bytes, so that a change during reading is noticed.
        is_end = stop == self.bytes
        if len(data) != stop - start or (is_end and connection.info(self._real) != self._version):
            raise ChangedError(self._url)
        return data

    def close(self) -> None:
        """Starts to close the file; nothing waits for the answer."""
        self._closed.set()
        self._close()

    def _close(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.close()


class _Host:
    """The start of a URL up to the host, with and without credentials."""

    def __init__(self, scheme: str, user: str | None, host: str) -> None:
        self.scheme, self.user = scheme, user
        self.real = f"{scheme}://{host}" if user is None else f"{scheme}://{user}@{host}"
        self.public = f"{scheme}://{host}" if user is None else f"{scheme}://{_HIDDEN}@{host}"

    @staticmethod
    def of(url: str) -> _Host:
        """Raises an error if credentials might be in other parts of the URL."""
        match = _PARTS.fullmatch(url)
        if match is None:
            _refuse(url, "not a URL")
        scheme, user, host, path = match.group("scheme", "user", "host", "path")
        if ":" in (user or "") + host and "@" in path:
            _refuse(
                url,
                "the URL has an @ after its host; in a password, write / as %2F and @ as %40, or give the "
                "password in fsspec's configuration",
            )
        if any(char in url for char in "?#"):
            _refuse(url, "the URL has a ? or a #; give options in fsspec's configuration, and use * in globs")
        if "::" in url:
            _refuse(url, "URLs within URLs are not supported; give files that are not in an archive")
        return _Host(scheme, user, host)

    @staticmethod
    def public_of(url: str) -> str:
        """Returns the public form of the host in the public form of a URL."""
        scheme, _, address = url.partition("://")
        return f"{scheme}://{address.partition('/')[0]}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Host) and self.real == other.real

    def __hash__(self) -> int:
        return hash(self.real)

    def __repr__(self) -> str:
        return self.public

    def without_secrets(self, text: str) -> str:
        """Returns a text without the credentials, however a library writes them."""
        if self.user is None:
            return text
        name, _, password = self.user.partition(":")
        written = (self.user, password or name)
        secrets = {form for part in written for form in (part, unquote(part), repr(unquote(part))[1:-1])}
        for secret in sorted(secrets - {""}, key=len, reverse=True):
            text = text.replace(secret, _HIDDEN)
        return text

    def options(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the options that fsspec finds in the URL, with user and password decoded."""
        name, _, password = (self.user or "").partition(":")
        decoded = {"username": (name, unquote(name)), "password": (password, unquote(password))}
        options = dict(arguments)
        for key, (written, meant) in decoded.items():
            if options.get(key) == written:
                options[key] = meant
        return options


def _refuse(url: str, reason: str) -> NoReturn:
    scheme, _, address = url.partition("://")
    public_url = f"{scheme}://{_HIDDEN}" if "@" in address else url.partition("?")[0].partition("#")[0]
    raise ValueError(f"{public_url}: {reason}")


ALL_FILES = _AllFiles(_PATIENCE_SECONDS)


class _Handle:
    """A file that is open in a connection."""

    def __init__(self, connection: _Connection, url: str) -> None:
        self.connection = connection
        self._lock = connection.lock or threading.Lock()
        self._file = connection.open(url)

    def read(self, start: int, stop: int) -> bytes:
        blocks: list[bytes] = []
        with self._lock:
            self._file.seek(start)
            while start < stop and (block := self._file.read(stop - start)):
                blocks.append(block)
                start += len(block)
        return bytes(blocks[0]) if len(blocks) == 1 else b"".join(blocks)

    def close(self) -> None:
        # At the end of the program, no new thread can start.
        with suppress(RuntimeError):
            threading.Thread(target=self._close, name="packtok-remote", daemon=True).start()

    def _close(self) -> None:
        with self._lock:
            _close(self._file)


def _close(file: Any) -> None:
    try:
        file.close()
    except Exception:
        # sshfs would try to close the file again when it is collected. At the end of the program, that waits
        # forever.
        with suppress(AttributeError):
            file._closed = True


class _Connection:
    """fsspec's connection to a host. The URLs that it receives and returns have credentials."""

    def __init__(self, host: _Host) -> None:
        self._scheme, kind, options = _file_system(host.scheme)
        options |= host.options(kind._get_kwargs_from_urls(self._known(host.real + "/")))
        # fsspec caches instances, which may have a broken connection.
        self._fs = kind(**options, skip_instance_cache=True)
        is_async = getattr(self._fs, "async_impl", False)
        # The lock is held during a call, if the file system allows only one at a time.
        self.lock: threading.Lock | None = None if is_async else threading.Lock()

    def info(self, url: str) -> tuple[int, str | None]:
        """Returns length and version of a file."""
        with self._guard():
            info = self._fs.info(self._path(url))
        if info["type"] == "directory":
            raise FileNotFoundError(url)
        return _size(info), next((str(info[key]) for key in _VERSIONS if info.get(key)), None)

    def open(self, url: str) -> Any:
        """Opens a file that can seek."""
        # No read-ahead of fsspec, because the compiled module reads ahead.
        with self._guard():
            return self._fs.open(self._path(url), "rb", cache_type="none")

    def matching(self, url: str) -> Sequence[tuple[str, int]]:
        """Returns URLs and lengths of the files that match."""
        with self._guard():
            return self._files(url, self._fs.glob(self._path(url), detail=True))

    def below(self, url: str) -> Sequence[tuple[str, int]]:
        """Returns URLs and lengths of the files in a folder and its subfolders."""
        with self._guard():
            return self._files(url, self._fs.find(self._path(url), detail=True))

    def _guard(self) -> Any:
        return self.lock or nullcontext()

    def _path(self, url: str) -> str:
        return str(self._fs._strip_protocol(self._known(url)))

    def _known(self, url: str) -> str:
        """Returns a URL with the scheme that fsspec knows."""
        return f"{self._scheme}://{url.partition('://')[2]}"

    def _files(self, url: str, listing: Mapping[str, Mapping[str, Any]]) -> Sequence[tuple[str, int]]:
        # A listed path may start with the host or lack it; the given URL shows which.
        path = self._path(url).strip("/")
        url = url.rstrip("/") if path else url.removesuffix("/") + "/"
        start = url.removesuffix(path)
        if path and start == url:
            raise RemoteError("fsspec writes its paths in another form; give the URLs of all files")
        files = [(name, self._target(name, info)) for name, info in listing.items()]
        return [
            (start + name.lstrip("/"), _size(entry)) for name, entry in files if entry["type"] != "directory"
        ]

    def _target(self, name: str, info: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the target of a link. A link to nothing counts, like a folder, as no file."""
        if info["type"] != "link":
            return info
        try:
            target: Mapping[str, Any] = self._fs.info(name)
        except FileNotFoundError:
            return {"type": "directory"}
        return target


def _size(info: Mapping[str, Any]) -> int:
    size = info.get("size")
    if size is None:
        raise RemoteError("the server does not tell the length of the file")
    return int(size)


def _file_system(scheme: str) -> tuple[str, type[Any], dict[str, Any]]:
    """Returns fsspec's name of a scheme, its class, and options for it.

    Raises:
        ValueError: If nothing that is installed reads URLs of this scheme; names the remedy.
    """
    remedy = "run pip install 'packtok[fsspec]'"
    try:
        from fsspec import get_filesystem_class
    except ImportError:
        pass
    else:
        for known, options in ((scheme, {}), *([_ALIASES[scheme]] if scheme in _ALIASES else [])):
            try:
                return known, get_filesystem_class(known), dict(options)
            except ImportError as error:
                remedy = f"fsspec needs a package for it: {error}"
            except ValueError:
                remedy = "fsspec, which is installed, does not know it either; check the spelling"
    if scheme in ("sftp", "ssh", "scp"):
        remedy = "run pip install 'packtok[sftp]'"
    raise ValueError(f"{scheme}://: packtok itself reads URLs of s3, gs, az, http and https only; {remedy}")


def is_transient(error: BaseException) -> bool:
    """Returns whether an error means that a connection broke, so that a new connection may succeed."""
    if isinstance(error, _FINAL):
        return False
    if isinstance(error, ConnectionError | TimeoutError | EOFError):
        return True
    if isinstance(error, OSError) and error.errno in _NETWORK:
        return True
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & _BROKEN_NAMES) and not names & _REFUSED_NAMES


def _within(timeout: float, call: Callable[[], T]) -> T:
    """Calls a function on a thread of its own, which is abandoned after ``timeout`` seconds.

    Raises:
        TimeoutError: If it has not returned then.
    """
    results: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            results.put((call(), None))
        except BaseException as error:
            results.put((None, error))

    threading.Thread(target=run, name="packtok-remote", daemon=True).start()
    try:
        result, error = results.get(timeout=timeout)
    except Empty:
        raise TimeoutError(f"no answer within {timeout:g} s") from None
    if error is not None:
        try:
            raise error
        finally:
            del error
    return result  # type: ignore[no-any-return]


def _public_error(host: _Host, error: Exception) -> Exception:
    """Returns an exception in place of a library's, whose text and causes may contain credentials."""
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(host.public)
    if isinstance(error, ChangedError | RemoteError):
        return error
    text = " ".join(host.without_secrets(f"{type(error).__name__}: {error}").split())
    return RemoteError(text[:_MAX_CHARS].removesuffix(":"))
