"""Trains a small GPT on token files, with one process or many, and resumes exactly where it stopped.

    torchrun --standalone --nproc-per-node 2 train.py small.yaml
    torchrun --standalone --nproc-per-node 2 train.py small.yaml --resume

packtok creates the batches and keeps the position in the data; everything else is plain PyTorch.
"""

import os
import sys
from pathlib import Path
from typing import Annotated

import torch.distributed as dist
import typer

import packtok
from process_group import Launcher, OrphanedError, from_first, join_processes, make_deterministic
from reporting import FullReport, NoReport
from run_folder import Claim, claim
from settings import Settings, SettingsError, load_settings
from training import Run


def run(settings: Settings, *, resume: bool) -> None:
    """Trains according to ``settings``, together with the processes that were launched with this one."""
    launcher = Launcher()
    make_deterministic()
    device = join_processes()
    is_first = dist.get_rank() == 0
    claimed = _claim_or_error(settings, resume=resume) if is_first else None
    last_step = from_first(claimed.last_step if isinstance(claimed, Claim) else claimed)
    if isinstance(last_step, Exception):
        # Only the first process prints the error.
        raise last_step if is_first else SystemExit(1)
    if last_step >= settings.training.steps:
        if is_first:
            print(
                f"{settings.output.folder}: the run is finished: it has taken {last_step} steps and "
                f"training.steps is {settings.training.steps}"
            )
    else:
        training = Run(settings, device, launcher)
        if len(training.loader) == 0:
            raise SettingsError(f"{settings.data.train}: there are too few tokens for one global batch")
        if last_step:
            training.load(last_step)
        training.warm_up()
        report = FullReport(settings, last_step=last_step) if is_first else NoReport()
        training.train(report)
    dist.destroy_process_group()


def _claim_or_error(settings: Settings, *, resume: bool) -> Claim | Exception:
    """Returns the result of `claim`, or its exception, so that the other processes do not wait forever."""
    try:
        return claim(settings, resume=resume)
    except (SettingsError, OSError) as error:
        return error


def main(
    config: Annotated[Path, typer.Argument(help="A YAML file such as small.yaml.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="Such as training.steps=10.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoint.")] = False,
) -> None:
    """Trains a small GPT as CONFIG says."""
    try:
        run(load_settings(config, overrides or []), resume=resume)
    except (SettingsError, OrphanedError) as error:
        # All processes raise these; the first of each machine prints them.
        if os.environ.get("LOCAL_RANK", "0") == "0":
            print(f"train.py: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except (packtok.PacktokError, OSError) as error:
        print(f"train.py: {error}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    typer.run(main)
