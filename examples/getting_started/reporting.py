"""Reports the progress of a run: a CSV, lines on the terminal, and Weights & Biases on request."""

import sys
import time
from pathlib import Path
from typing import Any, Protocol

from losses import LossFile, Row
from settings import Settings

_PRINT_EVERY_STEPS = 10


class Report(Protocol):
    """Receives the losses of a run."""

    def add(self, row: Row) -> None:
        """Reports one loss."""

    def sync(self) -> None:
        """Waits until all reports are on disk; called before a checkpoint, which relies on them."""


class NoReport:
    """The report of all processes except the first."""

    def add(self, row: Row) -> None:
        """Does nothing; the first process has the same loss."""

    def sync(self) -> None:
        """Does nothing."""


class FullReport:
    """The report of the first process."""

    def __init__(self, settings: Settings, *, last_step: int) -> None:
        folder = Path(settings.output.folder)
        self._file = LossFile(folder / "losses.csv", last_step=last_step)
        if last_step:
            print(f"{folder}: resumed after step {last_step} of {settings.training.steps}", file=sys.stderr)
        self._wandb = _wandb_run(settings)
        training = settings.training
        self._tokens_per_step = training.global_batch_size * settings.data.context_length
        self._printed = (last_step, time.monotonic())

    def add(self, row: Row) -> None:
        """Writes the loss to the CSV and prints it, for training losses only every tenth."""
        self._file.add(row)
        if self._wandb is not None:
            self._wandb.log(_named_values(row), step=row.step)
        if row.split == "test":
            print(f"step {row.step:6}  test loss {row.loss:.4f}", file=sys.stderr)
        elif row.step % _PRINT_EVERY_STEPS == 0:
            print(
                f"step {row.step:6}  loss {row.loss:.4f}  learning rate {row.learning_rate:.2e}  "
                f"gradient norm {row.gradient_norm:.3f}  {self._speed(row.step)}",
                file=sys.stderr,
            )

    def _speed(self, step: int) -> str:
        now = time.monotonic()
        last_step, last = self._printed
        self._printed = (step, now)
        return f"{(step - last_step) * self._tokens_per_step / (now - last):,.0f} tokens/s"

    def sync(self) -> None:
        """Waits until the CSV is on disk."""
        self._file.sync()


def _named_values(row: Row) -> dict[str, float]:
    """Returns the numbers of ``row`` under their names in Weights & Biases."""
    values = {
        f"{row.split} loss": row.loss,
        "learning rate": row.learning_rate,
        "gradient norm": row.gradient_norm,
    }
    return {name: value for name, value in values.items() if value is not None}


def _wandb_run(settings: Settings) -> Any:
    """Returns the Weights & Biases run, named after the output folder; ``None`` unless it is requested."""
    project = settings.output.wandb_project
    if project is None:
        return None
    import wandb

    # A resumed run repeats steps with the same values, and Weights & Biases keeps the first ones.
    name = Path(settings.output.folder).name
    return wandb.init(project=project, id=name, resume="allow", config=settings.model_dump())
