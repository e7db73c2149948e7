"""Runs the command line in processes that are forked from one that has already imported it.

The imports take half the time of a short command. Tests of imports, signals, memory and start-up start Python
itself.
"""

from __future__ import annotations

import functools
import gc
import multiprocessing
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import forkserver
from pathlib import Path

import pytest

import packtok.cli
import packtok.commands

# This module, all commands, what the first one imports and makes, and the tokenizer of most tests. Modules
# that do not exist are ignored.
_IMPORTED = [
    __name__,
    *(
        f"{package.__name__}.{module.name}"
        for package in (packtok.cli, packtok.commands)
        for module in pkgutil.iter_modules(package.__path__)
    ),
    "loaded_gpt2",
    "prepared_commands",
]
# Python reads these variables at its start, so a forked process would not notice them.
_READ_AT_START = ("PYTHON", "LC_", "LANG")


def can_run(env: Mapping[str, str]) -> bool:
    """Returns whether a forked process can have the variables ``env`` in addition to its own."""
    return not any(name.startswith(_READ_AT_START) for name in env)


def run(
    arguments: Sequence[str], *, cwd: Path | None, env: Mapping[str, str], timeout_seconds: float
) -> subprocess.CompletedProcess[str]:
    """Runs ``packtok`` to its end in an environment of exactly these variables."""
    program = functools.partial(_program, tuple(arguments))
    done = call(program, cwd=cwd, env=env, timeout_seconds=timeout_seconds)
    done.args = ["packtok", *arguments]
    return done


def call(
    function: Callable[[], object],
    *,
    cwd: Path | None,
    env: Mapping[str, str],
    timeout_seconds: float,
    is_forked: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Calls a function of a module in a process like that of `run`, or in one that starts Python itself."""
    if is_forked:
        start_server()
    context = multiprocessing.get_context("forkserver" if is_forked else "spawn")
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        process = context.Process(
            target=_main, args=(function, str(cwd or Path.cwd()), dict(env), str(out), str(err))
        )
        process.start()
        process.join(timeout_seconds)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired([str(function)], timeout_seconds)
        texts = [path.read_text(encoding="utf-8") if path.exists() else "" for path in (out, err)]
        done = subprocess.CompletedProcess([str(function)], process.exitcode, *texts)
        process.close()
    return done


@functools.cache
def start_server() -> None:
    """Starts the process that others are forked from, unless a stream has already started one."""
    multiprocessing.set_forkserver_preload(_IMPORTED)
    # Not every version of Python passes its search path on.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        forkserver.ensure_running()


def _main(function: Callable[[], object], cwd: str, env: Mapping[str, str], out: str, err: str) -> None:
    """Runs in the forked process."""
    # Excludes earlier imports from garbage collection, which takes a third of the time of a short command.
    gc.freeze()
    for descriptor, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), descriptor)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    function()


def _program(arguments: Sequence[str]) -> None:
    sys.argv = ["packtok", *arguments]
    from packtok.cli import main

    main()
