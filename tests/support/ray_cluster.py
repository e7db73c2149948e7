"""A real Ray cluster of two nodes on this machine, for tests that kill nodes and workers."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from processes import children, wait_for

START = [sys.executable, "-m", "ray.scripts.scripts", "start", "--disable-usage-stats", "--block"]
NODE_CPUS = 2
# packtok shares nothing through Ray's object store.
STORE_BYTES = 80_000_000


class RayCluster:
    """A head and a second node, each a group of processes that a test can kill."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Ray keeps sockets there, whose paths must be short.
        self._temp = tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True)
        self._port = _free_port()
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        self.env = {
            **{name: text for name, text in os.environ.items() if not name.startswith("RAY_")},
            "HOME": str(folder),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0",
        }

    def start(self) -> None:
        """Starts the head and waits until it responds."""
        where = [f"--port={self._port}", f"--temp-dir={self._temp.name}", "--include-dashboard=false"]
        self._start("head", ["--head", *where])
        log = self.folder / "head.out"
        wait_for(lambda: "Local node IP" in log.read_text(), "Ray has started", seconds=60)
        match_ = re.search(r"Local node IP: ([0-9.]+)", log.read_text())
        assert match_
        self.env["RAY_ADDRESS"] = f"{match_[1]}:{self._port}"
        wait_for(lambda: self._answers(match_[1]), "Ray's head answers", seconds=60)

    def _answers(self, address: str) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((address, self._port), 1):
            return True
        return False

    def start_second(self) -> None:
        """Starts the second node and waits until it is part of the cluster."""
        self._start("second", [f"--address={self.env['RAY_ADDRESS']}"])
        log = self.folder / "second.out"
        wait_for(lambda: "Ray runtime started" in log.read_text(), "the second node has joined", seconds=60)

    def _start(self, name: str, arguments: list[str]) -> None:
        sizes = [f"--num-cpus={NODE_CPUS}", f"--object-store-memory={STORE_BYTES}"]
        with (self.folder / f"{name}.out").open("wb") as log:
            self._nodes[name] = subprocess.Popen(
                [*START, *arguments, *sizes],
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill_second(self) -> None:
        """Kills the second node with all of its processes, as a power failure would."""
        node = self._nodes.pop("second")
        doomed = descendants(node.pid)
        for pid in [node.pid, *doomed]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        node.wait(10)

    def is_on_second(self, pid: int) -> bool:
        """Returns whether a process runs on the second node."""
        return pid in descendants(self._nodes["second"].pid)

    def stop(self) -> None:
        """Stops everything that was started."""
        for node in self._nodes.values():
            for pid in [*descendants(node.pid), node.pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            node.wait(10)
        self._temp.cleanup()


def descendants(pid: int) -> list[int]:
    """Returns the children of a process, their children and so on."""
    return [each for child in children(pid) for each in (child, *descendants(child))]


def parent(pid: int) -> int:
    """Returns the parent of a process."""
    return int(re.search(r"^PPid:\s*(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M)[1])  # type: ignore[index]


def _free_port() -> int:
    with socket.socket() as socket_:
        socket_.bind(("", 0))
        port: int = socket_.getsockname()[1]
    return port
