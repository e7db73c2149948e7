"""Runs the server: binds the address, reports the URL, and serves until Ctrl-C.

Pages read mapped files, and a file that another program truncates in place ends its reader with SIGBUS. So a
child process makes the pages, and its parent, which reads no file for a page, starts it again. The socket,
the access token and the key of the sessions belong to the parent: connections wait meanwhile, and no browser
has to sign in again.
"""

import asyncio
import contextlib
import errno
import multiprocessing
import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from packtok.errors import ConfigError, PacktokError
from packtok.explore.site import Site

_BACKLOG = 128
_MAX_CONNECTIONS = 256
# The time for a whole request: its headers, and the form with the token.
_REQUEST_SECONDS = 10.0


def bound_socket(host: str, port: int) -> socket.socket:
    """Returns a socket that listens on an address; port 0 takes any free port.

    Raises:
        ConfigError: If the host has no address, or the port is in use.
        OSError: If the port or address is not allowed.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise ConfigError(f"--host: {host} has no address: {error.strerror}") from None
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"--port: {host}:{port} is in use; choose another port, or 0 for a free one"
            ) from None
        raise OSError(error.errno, error.strerror, f"{host}:{port}") from None
    return listener


@contextlib.contextmanager
def bound_path(path: Path) -> Iterator[socket.socket]:
    """Yields a Unix socket that listens at a path, for this user only, and removes its file at the end.

    A file that a killed server left is replaced.

    Raises:
        ConfigError: If something else is at the path, or a server listens there.
        OSError: If the file cannot be made.
    """
    _remove_unused(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        # The file has its mode from the start. No other thread makes files yet.
        mask = os.umask(0o177)
        try:
            listener.bind(os.fspath(path))
        except OSError as error:
            if error.errno is None:
                raise ConfigError(f"--socket: {path}: {error}; choose a shorter path") from None
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        finally:
            os.umask(mask)
        try:
            listener.listen(_BACKLOG)
            yield listener
        finally:
            path.unlink(missing_ok=True)


def _remove_unused(path: Path) -> None:
    """Removes a socket at which no server listens."""
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if not is_socket:
        raise ConfigError(f"--socket: {path} exists and is no socket; choose another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink()
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        else:
            raise ConfigError(f"--socket: a server listens at {path}; choose another path")


def url_of(listener: socket.socket, host: str) -> str:
    """Returns the URL of a server; of a Unix socket, its path."""
    if listener.family == socket.AF_UNIX:
        return f"unix:{listener.getsockname()}"
    port = listener.getsockname()[1]
    name = host.strip("[]")
    return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"


def serve(site: Site, app: ASGIApp, listener: socket.socket, *, ready: Callable[[], None]) -> None:
    """Serves the application of a site until Ctrl-C.

    Raises:
        PacktokError: If the process that makes the pages fails.
    """
    # The child ends when this process does, however it ends: then nothing holds the end for writing.
    read_end, write_end = os.pipe()
    context = multiprocessing.get_context("fork")
    worker = None
    try:
        ready()
        while worker is None or _is_replaced(worker.exitcode):
            worker = context.Process(target=_work, args=(site, app, listener, read_end, write_end))
            # The functions that Python runs around a fork lose an interrupt. The child keeps the mask: Ctrl-C
            # reaches both processes, and the parent handles it.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            worker.start()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            worker.join()
        if worker.exitcode:
            raise PacktokError(f"the process that makes the pages ended with exit code {worker.exitcode}")
    except KeyboardInterrupt:
        # Ctrl-C is the normal way to end the server.
        pass
    finally:
        os.close(write_end)
        # Another thread may receive an interrupt that the mask keeps from this one before the process starts.
        if worker is not None and worker.pid is not None:
            worker.join()
        os.close(read_end)


def _is_replaced(exitcode: int | None) -> bool:
    """Returns whether a process that makes pages was ended by its work, and reports that."""
    if exitcode is None or exitcode >= 0 or exitcode == -signal.SIGTERM:
        return False
    reason = "a file was truncated while a page read it"
    if exitcode != -signal.SIGBUS:
        reason = f"the process that makes the pages was ended by {signal.Signals(-exitcode).name}"
    sys.stderr.write(f"packtok: {reason}; pages that were requested are lost, and the server continues\n")
    return True


def _work(site: Site, app: ASGIApp, listener: socket.socket, read_end: int, write_end: int) -> None:
    """Makes the pages, in a process of its own, until the parent closes the pipe."""
    os.close(write_end)
    server = uvicorn.Server(configuration(app))

    def end_with_parent() -> None:
        os.read(read_end, 1)
        server.should_exit = True

    threading.Thread(target=end_with_parent, daemon=True).start()
    # Errors are ignored: a file that has become unreadable is an error of its page.
    with contextlib.suppress(PacktokError, OSError):
        site.prepare()
    server.run([listener])


class _Connection(H11Protocol):
    """A connection that is closed if it sends no request for a while, or at once if its place is needed."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Takes a place, that of the oldest connection without a request if there is no free one."""
        others = [other for other in self.connections if not other.transport.is_closing()]
        # The limit itself is refused.
        if len(others) >= _MAX_CONNECTIONS - 1:
            waiting = [other for other in others if isinstance(other, _Connection) and other.is_waiting]
            if waiting:
                min(waiting, key=lambda other: other.waits_from).transport.abort()
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Gives the place back."""
        self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Waits for the next request."""
        self._timer.cancel()
        self._wait()
        super().on_response_complete()

    @property
    def is_waiting(self) -> bool:
        """Whether no complete request was received, or the client does not read the response."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body or self.flow.write_paused

    def _wait(self) -> None:
        self.waits_from = self.loop.time()
        self._timer = self.loop.call_later(_REQUEST_SECONDS, self._close_if_waiting)

    def _close_if_waiting(self) -> None:
        if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            self.transport.abort()


def configuration(app: ASGIApp) -> uvicorn.Config:
    """Returns how an application is served: requests are not logged, and large ones are refused."""
    return uvicorn.Config(
        app,
        access_log=False,
        log_level="error",
        lifespan="off",
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=1,
        http=_Connection,
        limit_concurrency=_MAX_CONNECTIONS,
        h11_max_incomplete_event_size=64 << 10,
    )
