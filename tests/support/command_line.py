"""The program `packtok`, as tests start it, and the type of the fixture that runs it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

MAIN = "from packtok.cli import main; main()"


class PacktokCli(Protocol):
    """The type of the fixture ``packtok_cli``."""

    def __call__(
        self,
        *arguments: object,
        cwd: Path | None = None,
        code: int | None = 0,
        env: Mapping[str, str] | None = None,
        timeout_seconds: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        """Runs ``packtok`` with these arguments; it must exit with ``code``, unless that is ``None``."""
