"""Compares the losses of two runs bit for bit: exit status 0 if all are equal, 1 if not."""

import sys
from pathlib import Path

import typer

import losses


def first_difference(first: list[losses.Row], second: list[losses.Row]) -> int | None:
    """Returns the index of the first row that differs or is in only one run; ``None`` if all are equal."""
    for i, pair in enumerate(zip(first, second, strict=False)):
        if pair[0] != pair[1]:
            return i
    return None if len(first) == len(second) else min(len(first), len(second))


def main(one: Path, other: Path) -> None:
    """Compares two files losses.csv."""
    rows = losses.read(one), losses.read(other)
    i = first_difference(*rows)
    if i is None and rows[0]:
        print(f"all {len(rows[0])} losses are the same, bit for bit; the last is {rows[0][-1].loss!r}")
        return
    for path, table in zip((one, other), rows, strict=True):
        print(f"{path}: row {i}: {table[i] if i is not None and i < len(table) else 'none'}", file=sys.stderr)
    raise SystemExit(1)


if __name__ == "__main__":
    typer.run(main)
