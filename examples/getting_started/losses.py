"""The losses of a run, as a CSV that always goes on where the checkpoint ends."""

import csv
import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO, NamedTuple


class Row(NamedTuple):
    """A loss: of the global batch of ``step``, or of the whole test set after ``step`` steps."""

    step: int
    split: str
    loss: float


class LossFile:
    """Appends rows to a CSV; numbers are written so that reading gives the same bits."""

    def __init__(self, path: Path, *, last_step: int) -> None:
        """Opens ``path`` and drops what a run that was stopped wrote after ``last_step``."""
        kept = [row for row in read(path) if row.step <= last_step] if path.exists() else []
        unfinished = path.with_suffix(".tmp")
        self._file = unfinished.open("w", encoding="utf-8", newline="")
        self._write([Row._fields, *kept])
        self.sync()
        unfinished.rename(path)

    def add(self, row: Row) -> None:
        """Appends a row, which a killed process does not lose."""
        self._write([row])
        self._file.flush()

    def sync(self) -> None:
        """Waits until all rows are on the disk, as they must be before a checkpoint that counts on them."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def _write(self, rows: Iterable[Iterable[object]]) -> None:
        csv.writer(self._file, lineterminator="\n").writerows(rows)


def read(path: Path) -> list[Row]:
    """The rows of a CSV of losses; a last line that a killed process did not finish is left out."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Row(int(row["step"]), row["split"], float(row["loss"])) for row in csv.DictReader(_whole(file))
        ]


def _whole(file: IO[str]) -> Iterable[str]:
    return (line for line in file if line.endswith("\n"))
