"""The losses of a run, as a CSV that always continues where the checkpoint ends."""

import csv
import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO, NamedTuple


class Row(NamedTuple):
    """A loss, either of the global batch of ``step`` or of the whole test set after ``step`` steps.

    A training step also has its learning rate and the norm of its gradient before clipping.
    """

    step: int
    split: str
    loss: float
    learning_rate: float | None = None
    gradient_norm: float | None = None


class LossFile:
    """Appends rows to a CSV; numbers are written so that reading gives the same bits."""

    def __init__(self, path: Path, *, last_step: int) -> None:
        """Opens ``path`` and drops the rows that a stopped run wrote after ``last_step``."""
        kept = [row for row in read(path) if row.step <= last_step] if path.exists() else []
        unfinished = path.with_suffix(".tmp")
        self._file = unfinished.open("w", encoding="utf-8", newline="")
        self._write([Row._fields, *kept])
        self.sync()
        unfinished.rename(path)

    def add(self, row: Row) -> None:
        """Appends a row, which is kept even if the process is killed."""
        self._write([row])
        self._file.flush()

    def sync(self) -> None:
        """Waits until all rows are on disk; called before a checkpoint, which relies on them."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def _write(self, rows: Iterable[Iterable[object]]) -> None:
        csv.writer(self._file, lineterminator="\n").writerows(rows)


def read(path: Path) -> list[Row]:
    """Returns the rows of a CSV of losses, without a last line that a killed process left incomplete."""
    with path.open(encoding="utf-8", newline="") as file:
        return [_row(fields) for fields in csv.DictReader(_complete(file))]


def _row(fields: dict[str, str]) -> Row:
    rate, norm = (
        float(fields[name]) if fields.get(name) else None for name in ("learning_rate", "gradient_norm")
    )
    return Row(int(fields["step"]), fields["split"], float(fields["loss"]), rate, norm)


def _complete(file: IO[str]) -> Iterable[str]:
    return (line for line in file if line.endswith("\n"))
