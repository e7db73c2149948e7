"""Runs of tasks without a cluster: the commands that `packtok run` writes, called in this process."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from packtok.cli import app
from packtok.launch.record import read_record

RUN = ("run", "--no-submit", "--shards", "3")


def called(*arguments: object, code: int | None = 0) -> str:
    """Runs the program in this process and returns its output; it fails if ``code`` is ``None``."""
    before = signal.getsignal(signal.SIGINT)
    try:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    finally:
        # The command ignores Ctrl-C while it reports its outcome.
        signal.signal(signal.SIGINT, before)
    assert result.exit_code == code if code is not None else result.exit_code != 0, result.output
    return result.stdout if code == 0 else result.output


def status(place: object) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(called("status", place, "--json"))
    return values


def run_task(outdir: Path, shard: int) -> None:
    """Runs the command of a task of a recorded run."""
    record = read_record(outdir)
    assert record is not None
    called(*record.launch(outdir).task_command(str(outdir), str(shard), "1"), "--quiet")


def run_join(outdir: Path) -> None:
    record = read_record(outdir)
    assert record is not None
    called(*record.launch(outdir).join_command(str(outdir)), "--quiet")


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
