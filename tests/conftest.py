"""Fixtures that the tests share: the data folder, and packtok as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "golden"), str(HERE.parent / "examples" / "getting_started")]

# A run in the background of a shell ignores Ctrl-C and its children would too; tests send it to them.
signal.signal(signal.SIGINT, signal.default_int_handler)

MAIN = "from packtok.cli import main; main()"
SHARED = Path(os.environ.get("PACKTOK_SHARED") or HERE.parent.parent / "shared")


class PacktokCli(Protocol):
    """What the fixture ``packtok_cli`` gives."""

    def __call__(
        self,
        *arguments: object,
        cwd: Path | None = None,
        code: int | None = 0,
        env: Mapping[str, str] | None = None,
        timeout_seconds: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        """Runs ``packtok`` with these arguments; it must end with ``code``, unless that is ``None``."""


@pytest.fixture(scope="session")
def shared() -> Path:
    """The ``data`` folder of the shared material: real corpora, tokenizers and files made by peers."""
    data = SHARED / "data"
    if not data.is_dir():
        pytest.skip(f"needs the shared data folder (PACKTOK_SHARED, or {SHARED}), not there")
    return data


@pytest.fixture(scope="session")
def packtok_cli() -> PacktokCli:
    """Runs the command in a process of its own and returns what it printed and its exit code."""

    def run(
        *arguments: object,
        cwd: Path | None = None,
        code: int | None = 0,
        env: Mapping[str, str] | None = None,
        timeout_seconds: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *map(str, arguments)],
            cwd=cwd,
            env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "200", **(env or {})},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=timeout_seconds,
        )
        assert code is None or done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run
