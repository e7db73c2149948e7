"""An SFTP server on this machine that serves a folder, counts what it serves, and fails on request."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh

USER = "reader"


@dataclass
class SftpServer:
    """A running server."""

    folder: Path
    password: str
    key: Path
    """A private key that it accepts too."""
    port: int = 0
    reads: list[tuple[int, int]] = field(default_factory=list)
    """Start and length of every read."""
    num_logins: int = 0
    denied: set[str] = field(default_factory=set)
    """Names of files whose opening is denied."""
    breaks_after: int | None = None
    """Reads until all connections break."""
    hangs_after: int | None = None
    """Reads until one is never answered."""
    connections: list[asyncssh.SSHServerConnection] = field(default_factory=list)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    listener: Any = None

    def url(self, name: str, *, scheme: str = "sftp", user: str | None = None) -> str:
        """Returns the URL of a file; ``user`` stands in front of the host."""
        return f"{scheme}://{f'{user}@' if user else ''}127.0.0.1:{self.port}/{name}"

    def forget(self) -> None:
        """Forgets what was read."""
        self.reads.clear()

    def stop(self) -> None:
        """Breaks all connections and accepts no others."""
        self.loop.call_soon_threadsafe(self.listener.close)
        self.loop.call_soon_threadsafe(self.break_connections)

    def break_connections(self) -> None:
        """Breaks all connections; runs on the loop."""
        for connection in self.connections:
            connection.abort()
        self.connections.clear()

    async def start(self) -> None:
        """Listens on a free port."""
        server = self

        class Login(asyncssh.SSHServer):
            def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
                server.connections.append(conn)

            def password_auth_supported(self) -> bool:
                return True

            def validate_password(self, username: str, password: str) -> bool:
                return (username, password) == (USER, server.password)

            def auth_completed(self) -> None:
                server.num_logins += 1

        class Files(asyncssh.SFTPServer):
            def __init__(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
                super().__init__(chan, chroot=str(server.folder).encode())

            def open(self, path: bytes, pflags: int, attrs: asyncssh.SFTPAttrs) -> object:
                if Path(path.decode()).name in server.denied:
                    raise asyncssh.SFTPPermissionDenied("Permission denied")
                return super().open(path, pflags, attrs)

            async def read(self, file_obj: object, offset: int, size: int) -> bytes:
                await server.before_read(offset, size)
                data = super().read(file_obj, offset, size)
                return await data if isinstance(data, Awaitable) else data

        self.listener = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=Login,
            server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
            authorized_client_keys=f"{self.key}.pub",
            sftp_factory=Files,
        )
        self.port = self.listener.get_port()

    async def before_read(self, offset: int, size: int) -> None:
        """Counts a read, and fails when it is time."""
        self.reads.append((offset, size))
        if self.breaks_after is not None and len(self.reads) > self.breaks_after:
            self.breaks_after = None
            self.break_connections()
        if self.hangs_after is not None and len(self.reads) > self.hangs_after:
            self.hangs_after = None
            await asyncio.Event().wait()


@contextmanager
def sftp_server(folder: Path, keys: Path, password: str) -> Iterator[SftpServer]:
    """Serves ``folder``; writes a key that the server accepts to the folder ``keys``."""
    key = keys / "id_ed25519"
    private = asyncssh.generate_private_key("ssh-ed25519")
    private.write_private_key(str(key))
    private.write_public_key(f"{key}.pub")
    server = SftpServer(folder, password, key)
    thread = threading.Thread(target=server.loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), server.loop).result(30)
    try:
        yield server
    finally:
        server.stop()
        server.loop.call_soon_threadsafe(server.loop.stop)
        thread.join(10)
