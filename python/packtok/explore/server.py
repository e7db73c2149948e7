"""Runs the server: binds the address, reports the URL, and serves until Ctrl-C."""

import contextlib
import errno
import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from packtok.errors import ConfigError, PacktokError
from packtok.explore.application import application
from packtok.explore.site import Site

_BACKLOG = 128


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


def url_of(listener: socket.socket, host: str) -> str:
    """Returns the URL of a server."""
    port = listener.getsockname()[1]
    name = host.strip("[]")
    return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"


def serve(
    site: Site, listener: socket.socket, *, host: str, token: str | None, ready: Callable[[], None]
) -> None:
    """Serves until Ctrl-C."""
    config = configuration(application(site, host=host, token=token))
    # Errors are ignored: a file that has become unreadable is an error of its page.
    with contextlib.suppress(PacktokError, OSError):
        site.prepare()
    ready()
    try:
        uvicorn.Server(config).run([listener])
    except KeyboardInterrupt:
        # Ctrl-C is the normal way to end the server.
        return


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
        limit_concurrency=256,
        h11_max_incomplete_event_size=64 << 10,
    )
