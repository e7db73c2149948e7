"""Shows that a killed and resumed run has the losses of an uninterrupted one, bit for bit.

Trains once without interruption, then again and kills all processes with SIGKILL between two checkpoints,
resumes, and compares. Linux only: the processes to kill are found in /proc.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

import checkpoint
import compare_losses
import losses
from settings import load_settings

_HERE = Path(__file__).resolve().parent


def start(config: Path, folder: Path, *options: str, processes: int) -> subprocess.Popen[bytes]:
    """Starts training with torchrun and ``folder`` as its output."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    program = [_HERE / "train.py", config, f"output.folder={folder}", *options]
    return subprocess.Popen([*torchrun, f"--nproc-per-node={processes}", *map(str, program)])


def train(config: Path, folder: Path, *options: str, processes: int) -> None:
    """Trains until the last step.

    Raises:
        SystemExit: If training fails.
    """
    if start(config, folder, *options, processes=processes).wait() != 0:
        raise SystemExit(1)


def kill_after(step: int, running: subprocess.Popen[bytes], folder: Path) -> int:
    """Kills torchrun and the processes it started once ``step`` is done; returns the last step done.

    Raises:
        SystemExit: If training ends earlier.
    """
    while (last_step := _last_step(folder)) < step:
        if running.poll() is not None:
            raise SystemExit(f"training ended after step {last_step}, before it could be killed")
        time.sleep(0.01)
    workers = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    for process in (*map(int, workers), running.pid):
        os.kill(process, signal.SIGKILL)
    running.wait()
    return _last_step(folder)


def _last_step(folder: Path) -> int:
    path = folder / "losses.csv"
    rows = losses.read(path) if path.exists() else []
    return rows[-1].step if rows else 0


def main(
    config: Annotated[Path, typer.Argument(help="A YAML file such as small.yaml.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="Such as training.steps=10.")] = None,
    processes: Annotated[int, typer.Option(min=1)] = 2,
) -> None:
    """Trains as CONFIG says into the folders whole and killed next to its own, and compares the losses."""
    settings = load_settings(config, overrides or [])
    parent = Path(settings.output.folder).parent
    whole, killed = parent / "whole", parent / "killed"
    options = tuple(overrides or [])
    train(config, whole, *options, processes=processes)

    # In the middle of the run, between two checkpoints.
    every = settings.output.checkpoint_every
    step = settings.training.steps // 2 // every * every + every // 2
    running = start(config, killed, *options, processes=processes)
    done = kill_after(step, running, killed)
    last = checkpoint.steps(killed)[-1]
    print(f"killed after step {done}; the last checkpoint is of step {last}", flush=True)
    train(config, killed, "--resume", *options, processes=processes)
    compare_losses.main(whole / "losses.csv", killed / "losses.csv")


if __name__ == "__main__":
    typer.run(main)
