"""Trains a small GPT on token files, with one process or many, and goes on exactly where it was stopped.

    torchrun --standalone --nproc-per-node 2 train.py small.yaml
    torchrun --standalone --nproc-per-node 2 train.py small.yaml --resume

packtok makes the batches and knows the place in the data; everything else is plain PyTorch.
"""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import torch.distributed as dist
import typer

import checkpoint
import packtok
from process_group import from_first, join_processes, make_deterministic
from reporting import FullReport, NoReport
from settings import Settings, SettingsError, load_settings
from training import Run


def prepare_folder(settings: Settings, *, resume: bool) -> int:
    """Makes the output folder, or finds the step to go on from in it; 0 at the beginning.

    Raises:
        SettingsError: If there is a run that was not meant to be resumed.
    """
    folder = Path(settings.output.folder)
    folder.mkdir(parents=True, exist_ok=True)
    found = checkpoint.steps(folder)
    if not resume and (found or (folder / "losses.csv").exists()):
        raise SettingsError(f"{folder}: there is a run already; add --resume, or name another output.folder")
    shutil.copyfile(f"{settings.data.train}.tokenizer.json", folder / "tokenizer.json")
    return found[-1] if found else 0


def run(settings: Settings, *, resume: bool) -> None:
    """Trains as ``settings`` say, in this process and those that it was started with."""
    make_deterministic()
    device = join_processes()
    is_first = dist.get_rank() == 0
    last_step = from_first(_step_or_error(settings, resume=resume) if is_first else None)
    if isinstance(last_step, Exception):
        raise last_step
    training = Run(settings, device)
    if len(training.loader) == 0:
        raise SettingsError(f"{settings.data.train}: there are too few tokens for one global batch")
    if last_step:
        training.load(last_step)
    training.warm_up()
    training.train(FullReport(settings, last_step=last_step) if is_first else NoReport())
    dist.destroy_process_group()


def _step_or_error(settings: Settings, *, resume: bool) -> int | Exception:
    """What `prepare_folder` returns or raises, for processes that would wait for it in vain."""
    try:
        return prepare_folder(settings, resume=resume)
    except (SettingsError, OSError) as error:
        return error


def main(
    config: Annotated[Path, typer.Argument(help="A YAML file such as small.yaml.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="Such as training.steps=10.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
) -> None:
    """Trains a small GPT as CONFIG says."""
    try:
        run(load_settings(config, overrides or []), resume=resume)
    except (SettingsError, packtok.PacktokError, OSError) as error:
        print(f"train.py: {error}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    typer.run(main)
