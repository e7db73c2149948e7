"""A `loader_worker.py` process and its answers."""

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class ToolError(RuntimeError):
    """A tool that exited; contains the end of its standard error."""


class Server:
    """A tool that waits on its core for requests; it runs with one thread."""

    def __init__(self, command: Sequence[str | Path], core: str) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
        self._process = subprocess.Popen(
            ["taskset", "-c", core, *map(str, command)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        started = self._answer()
        self.cases: list[str] = started["cases"]
        self.import_seconds: float = started["import_seconds"]

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Sends a request to `loader_worker.py` and returns the answer.

        Raises:
            ToolError: If the tool failed, now or earlier.
        """
        if self._process.poll() is None and self._process.stdin is not None:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        return self._answer()

    def stop(self) -> None:
        """Kills the process."""
        self._process.kill()
        self._process.wait()
        self._errors.close()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line:
            self._process.wait()
            self._errors.seek(0)
            lines = self._errors.read().decode(errors="replace").splitlines()
            raise ToolError(lines[-1] if lines else f"exit code {self._process.returncode}")
        answer: dict[str, Any] = json.loads(line)
        return answer
