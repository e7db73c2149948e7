"""The program `packtok`, as tests start it, and the type of the fixture that runs it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import forked_cli
from processes import PROGRAM


class PacktokCli(Protocol):
    """The type of `run`, and of the fixture ``packtok_cli``."""

    def __call__(
        self,
        *arguments: object,
        cwd: Path | None = None,
        code: int | None = 0,
        env: Mapping[str, str] | None = None,
        timeout_seconds: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        """Runs ``packtok`` with these arguments; it must exit with ``code``, unless that is ``None``."""


def run(
    *arguments: object,
    cwd: Path | None = None,
    code: int | None = 0,
    env: Mapping[str, str] | None = None,
    timeout_seconds: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Runs ``packtok`` in a process of its own, with ``env`` in addition to the variables of this one."""
    words = [str(argument) for argument in arguments]
    complete = {**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "200", **(env or {})}
    if forked_cli.can_run(env or {}):
        done = forked_cli.run(words, cwd=cwd, env=complete, timeout_seconds=timeout_seconds)
    else:
        done = subprocess.run(
            [*PROGRAM, *words],
            cwd=cwd,
            env=complete,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=timeout_seconds,
        )
    assert code is None or done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done
