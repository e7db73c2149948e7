"""What the first process tells of a run: a CSV, lines on the terminal, Weights & Biases when asked."""

import sys
import time
from pathlib import Path
from typing import Any, Protocol

from losses import LossFile, Row
from settings import Settings

_PRINT_EVERY_STEPS = 10


class Report(Protocol):
    """Takes the losses of a run."""

    def add(self, row: Row) -> None:
        """Tells of one loss."""

    def sync(self) -> None:
        """Waits until all that was told is safe, as it must be before a checkpoint that counts on it."""


class NoReport:
    """The report of all processes but the first."""

    def add(self, row: Row) -> None:
        """Nothing; the first process has the same loss."""

    def sync(self) -> None:
        """Nothing."""


class FullReport:
    """The report of the first process."""

    def __init__(self, settings: Settings, *, last_step: int) -> None:
        self._file = LossFile(Path(settings.output.folder) / "losses.csv", last_step=last_step)
        self._wandb = _wandb_run(settings)
        training = settings.training
        self._tokens_per_step = training.global_batch_size * settings.data.context_length
        self._printed = (last_step, time.monotonic())

    def add(self, row: Row) -> None:
        """Writes the loss down; of training, every tenth is printed."""
        self._file.add(row)
        if self._wandb is not None:
            self._wandb.log({f"{row.split} loss": row.loss}, step=row.step)
        if row.split == "test":
            print(f"step {row.step:6}  test loss {row.loss:.4f}", file=sys.stderr)
        elif row.step % _PRINT_EVERY_STEPS == 0:
            print(f"step {row.step:6}  loss {row.loss:.4f}  {self._speed(row.step)}", file=sys.stderr)

    def _speed(self, step: int) -> str:
        now = time.monotonic()
        last_step, last = self._printed
        self._printed = (step, now)
        return f"{(step - last_step) * self._tokens_per_step / (now - last):,.0f} tokens/s"

    def sync(self) -> None:
        """Waits until the CSV is on the disk."""
        self._file.sync()


def _wandb_run(settings: Settings) -> Any:
    """The run on Weights & Biases that is named as the output folder, or ``None`` unless asked for."""
    project = settings.output.wandb_project
    if project is None:
        return None
    import wandb

    # Steps that a resumed run takes again are the same, and Weights & Biases keeps the first.
    name = Path(settings.output.folder).name
    return wandb.init(project=project, id=name, resume="allow", config=settings.model_dump())
