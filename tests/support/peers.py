"""Programs of other projects, each run by the Python of its own environment."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest


def python_of(peer: str, requirement: str) -> str:
    """Returns the Python of a trainer's environment; skips the test if there is none."""
    variable = f"PACKTOK_{peer.upper()}_PYTHON"
    if variable not in os.environ:
        pytest.skip(f"needs {variable}, a Python with {requirement} installed, not set")
    return os.environ[variable]


def trained(
    python: str, program: str, argument: object, *, package: Path | None = None, cwd: Path | None = None
) -> dict[str, Any]:
    """Returns the last line that a program next to this file prints, run by a trainer's Python.

    The program can import ``package`` from the environment of the tests, and nothing else.
    """
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if package is not None:
        env["PYTHONPATH"] = str(package)
    done = subprocess.run(
        [python, Path(__file__).with_name(program), str(argument)],
        cwd=cwd,
        env={**env, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


def modalities_python() -> Path:
    """Returns the interpreter of an environment with Modalities."""
    python = os.environ.get("PACKTOK_MODALITIES_PYTHON")
    if not python:
        pytest.skip("needs PACKTOK_MODALITIES_PYTHON, a Python with modalities installed, not set")
    return Path(python)
