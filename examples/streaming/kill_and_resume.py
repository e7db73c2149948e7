"""Shows that a killed run, resumed with another number of processes, trains on the same global batches.

    python kill_and_resume.py 's3://bucket/corpus/*.jsonl'

Trains once with two processes, then again, kills all processes of the second run with SIGKILL, resumes it
with three, and compares the losses and the digests of the token ids of every step. Linux only: the processes
to kill are found in /proc.
"""

import csv
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

_HERE = Path(__file__).resolve().parent
# Sums of other numbers of processes round differently.
_TOLERANCE = 1e-3


def start(num_processes: int, folder: Path, arguments: list[str]) -> subprocess.Popen[bytes]:
    """Starts training with torchrun, or continues it."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    program = [str(_HERE / "train.py"), *arguments, "--folder", str(folder)]
    return subprocess.Popen([*torchrun, f"--nproc-per-node={num_processes}", *program])


def train(num_processes: int, folder: Path, arguments: list[str]) -> None:
    """Trains until the last step.

    Raises:
        SystemExit: If training fails.
    """
    if start(num_processes, folder, arguments).wait() != 0:
        raise SystemExit(1)


def rows_of(folder: Path) -> list[tuple[int, float, str]]:
    """Returns step, loss and digest of the steps in the log; a killed run may leave an incomplete line."""
    path = folder / "losses.csv"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    rows = csv.DictReader(line for line in lines if line.endswith("\n"))
    return [(int(row["step"]), float(row["loss"]), row["digest"]) for row in rows]


def kill_after(step: int, running: subprocess.Popen[bytes], folder: Path) -> int:
    """Kills torchrun and the processes it started once ``step`` is done; returns the last step done.

    Raises:
        SystemExit: If training ends earlier.
    """
    while len(rows_of(folder)) < step:
        if running.poll() is not None:
            raise SystemExit(f"training ended before step {step}, so it could not be killed")
        time.sleep(0.01)
    workers = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    for process in (*map(int, workers), running.pid):
        os.kill(process, signal.SIGKILL)
    running.wait()
    return len(rows_of(folder))


def main(
    data: Annotated[list[str], typer.Argument(help="Files, globs, folders or URLs of object stores.")],
    folder: Annotated[Path, typer.Option(help="Where both runs are written.")] = Path("runs"),
    steps: Annotated[int, typer.Option(min=20)] = 40,
    tokenizer: Annotated[str, typer.Option(help="A name, or a folder with tokenizer.json.")] = "gpt2",
    processes: Annotated[int, typer.Option(min=1)] = 2,
    resumed_processes: Annotated[int, typer.Option(min=1)] = 3,
) -> None:
    """Trains on DATA into the folders whole and killed, and compares them."""
    arguments = [*data, "--steps", str(steps), "--save-every", "8", "--tokenizer", tokenizer]
    whole, killed = folder / "whole", folder / "killed"
    train(processes, whole, arguments)
    done = kill_after(steps // 2, start(processes, killed, arguments), killed)
    print(f"killed {processes} processes after step {done}", flush=True)
    train(resumed_processes, killed, arguments)

    for expected, resumed_row in zip(rows_of(whole), rows_of(killed), strict=True):
        is_close = math.isclose(expected[1], resumed_row[1], rel_tol=_TOLERANCE)
        if expected[0] != resumed_row[0] or expected[2] != resumed_row[2] or not is_close:
            raise SystemExit(f"expected step, loss and digest {expected}, found {resumed_row}")
    print(f"resumed with {resumed_processes}: all {steps} global batches and losses are the same")


if __name__ == "__main__":
    typer.run(main)
